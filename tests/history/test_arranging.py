"""Which of a recording's files count, by their names and times alone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

import pytest

from rdmeta.history.arranging import Arranged, arrange
from rdmeta.history.schema import LONGEST

BEGIN = datetime(2026, 11, 1, tzinfo=timezone.utc)


class Named(NamedTuple):
    """A file, whose name in the test tells it."""

    path: str
    since: int
    until: int
    observed_from: datetime
    observed_to: datetime
    compacted: int | None = None
    cluster_id: str = "one"
    session: str = "s"


def file(path: str, since: int, until: int, begin: float, end: float) -> Named:
    """Returns a file that covers the seconds from `begin` to `end`."""
    times = BEGIN + timedelta(seconds=begin), BEGIN + timedelta(seconds=end)
    return Named(path, since, until, *times)


def arranged(*files: Named) -> Arranged[Named]:
    return arrange(files, lambda one, other: one.path[0] == other.path[0])


def paths(found: list[tuple[Named, Named]] | list[tuple[Named, str]]) -> list[str]:
    return [each.path for each, _ in found]


def test_a_longer_time_does_not_excuse_other_rows_of_the_same_versions() -> None:
    found = arranged(file("a", 0, 3, 0, 9), file("b", 0, 3, 0, 5))
    assert sorted(paths(found.aside)) == ["a", "b"]
    found = arranged(file("a", 0, 3, 0, 4), file("a1", 3, 3, 4, 5), file("b", 3, 3, 4, 9))
    assert [each.path for each in found.files] == ["a", "b"]
    assert paths(found.covered) == ["a1"]


def test_of_two_files_of_one_name_the_compacted_one_counts() -> None:
    raw, compacted = file("a", 0, 3, 0, 4), file("a1", 0, 3, 0, 4)._replace(compacted=2)
    for both in ((raw, compacted), (compacted, raw)):
        found = arranged(*both)
        assert [each.path for each in found.files] == ["a1"]
        assert (paths(found.covered), found.duplicates) == (["a"], [])


def test_a_file_that_only_extends_the_time_is_covered_by_one_that_goes_further() -> None:
    found = arranged(file("a", 0, 3, 0, 4), file("b", 3, 3, 4, 5))
    assert [each.path for each in found.files] == ["a", "b"]
    found = arranged(file("a", 0, 3, 0, 4), file("b", 3, 3, 4, 5), file("c", 3, 4, 4, 6))
    assert [each.path for each in found.files] == ["a", "c"]


@pytest.mark.parametrize("more", [0, 1])
def test_files_are_not_joined_over_a_time_that_no_recorder_leaves(more: int) -> None:
    far = 4 + LONGEST.total_seconds() + more
    found = arranged(file("a", 0, 3, 0, 4), file("b", 3, 5, far, far + 1))
    assert [each.path for each in found.files] == ["a", "b"][: 2 - more]
    assert paths(found.aside) == ["b"] * more
