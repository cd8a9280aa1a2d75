"""After SIGKILL around a commit each reader sees each table before or after it; a run goes on.

A run is killed at two random moments, or at 20 with RDMETA_KILLS=every.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from random import Random

import pytest
from killed_commit import killed, started
from logged_tables import SILVER, assert_same_rows, made, rows_by_reader, rows_of_folder
from recorded import cluster_day, tree

from rdmeta import pipeline
from rdmeta.pipeline.committing import EVERY_TABLE, LoggedTable
from rdmeta.pipeline.layout import StoredName

EVERY = os.environ.get("RDMETA_KILLS") == "every"


def are_new(
    out: Path, old: Path, new: Path, tables: tuple[LoggedTable, ...] = SILVER
) -> list[bool]:
    """Compares each table with those of two folders; returns which have rows of the new one."""
    found = []
    for table in tables:
        before, after = rows_of_folder(old, table), rows_of_folder(new, table)
        for reader, rows in rows_by_reader(out, table).items():
            assert rows in (before, after), (table.name, reader)
        found.append(rows == after and before != after)
    return found


def tables(out: Path) -> dict[str, object]:
    """Returns all files of tables, with what differs when one is written again."""
    return {n: about for n, about in tree(out).items() if StoredName.parse(n) is not None}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A history in two steps, `1` and `2`; folders without logs of both."""
    root = tmp_path_factory.mktemp("folders")
    cluster_day(root / "1", "one", 1)
    cluster_day(root / "1", "a/b %", 1)
    shutil.copytree(root / "1", root / "2")
    made(root / "1", root / "old")
    cluster_day(root / "2", "one", 2)
    cluster_day(root / "2", "two", 1)
    made(root / "2", root / "new")
    return root, root / "old", root / "new"


# 1 is before the first commit, 2 behind it, and 9 before the fifth of eight.
STOPS = [("delta", "1"), ("delta", "2"), ("delta", "9"), ("delta", "manifest"), ("iceberg", "1")]
STOPS += [
    ("delta", "log"),
    ("delta", "logged"),
    ("iceberg", "in"),
    ("iceberg", "9"),
    ("iceberg", "manifest"),
]
COMMITS_TO_GOLD = [
    ("delta", "24"),
    ("iceberg", "17"),
    pytest.param("delta", "17", marks=pytest.mark.nightly),
]
MOMENTS = [("delta", 0.6), pytest.param("iceberg", 3.0, marks=pytest.mark.nightly)]
MARKED = [
    pytest.param(*each, marks=pytest.mark.proof if each == ("delta", "9") else pytest.mark.slow)
    for each in STOPS
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "stop"), MARKED)
def test_a_run_killed_around_a_commit_goes_on(
    folders: tuple[Path, Path, Path], tmp_path: Path, kind: str, stop: str
) -> None:
    """The files are there; the tables have all, some, or none of them."""
    root, old, new = folders
    out = tmp_path / "out"
    made(root / "1", out, tables=kind)
    killed(root / "2", out, kind, stop)
    # config_interval and change have no rows.
    count = {"1": 0, "in": 0, "log": 0, "logged": 1, "2": 1, "9": 3, "manifest": 5}[stop]
    assert sum(are_new(out, old, new)) == count
    seen = tables(out)
    assert made(root / "2", out).made == []  # only committed
    assert tables(out) == seen
    assert_same_rows(out, new, SILVER)
    assert pipeline.check(out) == []
    whole = tree(out)
    made(root / "2", out)
    assert tree(out) == whole


@pytest.fixture(scope="module")
def gold_folders(folders: tuple[Path, Path, Path]) -> tuple[Path, Path]:
    """The two folders without logs again, with gold."""
    root, old, new = folders
    made(root / "1", shutil.copytree(old, root / "old-gold"), gold=True)
    made(root / "2", shutil.copytree(new, root / "new-gold"), gold=True)
    return root / "old-gold", root / "new-gold"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "stop"), COMMITS_TO_GOLD)
def test_a_run_killed_around_a_commit_to_gold_goes_on(
    folders: tuple[Path, Path, Path],
    gold_folders: tuple[Path, Path],
    tmp_path: Path,
    kind: str,
    stop: str,
) -> None:
    """All tables of silver have been committed before, and none, or some, of gold."""
    root, (old, new), out = folders[0], gold_folders, tmp_path / "out"
    gold = tuple(each for each in EVERY_TABLE if each.layer == "gold")
    made(root / "1", out, tables=kind, gold=True)
    killed(root / "2", out, kind, stop, "gold")
    assert_same_rows(out, new, SILVER)
    assert any(are_new(out, old, new, gold)) == (stop != "17")
    assert made(root / "2", out, gold=True).made == []
    assert_same_rows(out, new, EVERY_TABLE)
    assert pipeline.check(out) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_readers_see_each_row_once_while_a_run_commits(
    folders: tuple[Path, Path, Path], tmp_path: Path, kind: str
) -> None:
    root, old, new = folders
    out, looks = tmp_path / "out", 0
    made(root / "1", out, tables=kind)
    with started(root / "2", out, kind, "0") as process:
        while process.poll() is None:
            are_new(out, old, new)
            looks += 1
    assert (process.returncode, looks > 1) == (0, True)
    assert_same_rows(out, new, SILVER)


@pytest.mark.slow
@pytest.mark.timeout(600 if EVERY else 300)
@pytest.mark.parametrize(("kind", "seconds"), MOMENTS)
def test_a_run_killed_at_any_moment_goes_on(
    folders: tuple[Path, Path, Path], tmp_path: Path, kind: str, seconds: float
) -> None:
    root, old, new = folders
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    random = Random(seed)
    for number in range(20 if EVERY else 2):
        out = tmp_path / str(number)
        made(root / "1", out, tables=kind)
        killed(root / "2", out, kind, "0", after=random.random() * seconds)
        are_new(out, old, new)
        made(root / "2", out)
        assert_same_rows(out, new, SILVER)
        assert pipeline.check(out) == []
