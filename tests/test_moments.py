"""A user's day or time is read as Python 3.10 can, too."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from rdmeta._moments import parse_moment


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=timezone.utc)),
        ("2026-11-22 03:05", datetime(2026, 11, 22, 3, 5, tzinfo=timezone.utc)),
        ("2026-11-22T03:05:07.5Z", datetime(2026, 11, 22, 3, 5, 7, 500_000, timezone.utc)),
        (
            "2026-11-22T03:05:07+02:00",
            datetime(2026, 11, 22, 3, 5, 7, tzinfo=timezone(timedelta(hours=2))),
        ),
    ],
)
def test_a_time_without_an_offset_is_one_of_utc(text: str, found: datetime) -> None:
    assert parse_moment(text) == found


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "20261122", "2026-11-22T25:00"])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_moment(text)
