"""A full disk ends a run with one line, leaves the tables right, and the next run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import commands
import pytest
from kraft_days import LogOfDays
from logged_tables import SILVER, made, rows_by_reader
from readers import assert_each_row_is_seen_once, lasting
from recorded import cluster_day
from small_disk import filled, small_disk

from rdmeta import pipeline
from rdmeta.pipeline.delta import DeltaLogs
from rdmeta.pipeline.iceberg import IcebergLogs


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as path:
        yield path


def run(source: Path, out: Path) -> commands.Done:
    return commands.run("pipeline", "all", str(source), str(out), "--engine", "local", "-q")


def history(source: Path, part: int) -> None:
    """Writes recordings of a day, and then of another one and of another cluster."""
    cluster_day(source, "one", part)
    if part == 2:
        cluster_day(source, "two", part)


def log(source: Path, part: int) -> None:
    """Writes a log of two days, and then a longer one."""
    days = LogOfDays(3)
    end = 30 if part == 1 else days.end
    days.write(source, 1, end=end, snapshots=(end,))


@pytest.mark.slow
@pytest.mark.parametrize("write", [history, log])
def test_a_run_on_a_full_disk_names_the_file_and_the_next_one_goes_on(
    disk: Path, tmp_path: Path, write: Callable[[Path, int], None]
) -> None:
    source, out = tmp_path / "in", disk / "out"
    write(source, 1)
    assert run(source, out).code == 0
    before = lasting(out)
    write(source, 2)
    for pages in range(0, 64, 4):
        with filled(disk, 4096 * pages):
            done = run(source, out)
            assert_each_row_is_seen_once(out)
            if done.code == 0:
                break
            assert done.code == 2
            assert done.err.startswith(f"rdmeta: {out}/"), done.err
            assert done.err.endswith(": No space left on device\n")
            assert done.err.count("\n") == 1
        assert not list(out.rglob("*.tmp"))
        if pages == 0:
            assert lasting(out) == before
    assert pages > 4
    assert pipeline.check(out) == []
    assert run(source, tmp_path / "whole").code == 0
    assert lasting(out) != before
    assert lasting(out) == lasting(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_disk_that_is_full_in_a_commit_leaves_the_table_and_the_next_run_goes_on(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    pytest.importorskip("deltalake" if kind == "delta" else "pyiceberg.catalog.sql")
    source, out = tmp_path / "history", disk / "out"
    cluster_day(source, "one", 1)
    words = ("pipeline", "silver", str(source), str(out), "--engine", "local", "--json")
    assert commands.run(*words, "--tables", kind).code == 0
    wanted = rows_by_reader(out, SILVER[0])
    cluster_day(source, "one", 2)
    logs = DeltaLogs if kind == "delta" else IcebergLogs
    commit: Any = logs.commit

    def full(self: Any, *arguments: Any) -> None:
        with filled(disk):
            commit(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(logs, "commit", full)
        done = commands.run(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"rdmeta: {out}/silver/v1/partition_interval: "), done.err
    assert rows_by_reader(out, SILVER[0]) == wanted
    assert made(source, out).made == []  # only committed
    assert pipeline.check(out) == []
    assert rows_by_reader(out, SILVER[0]) != wanted
