"""A full disk ends a run with one line, leaves the tables right, and the next run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from readers import assert_each_row_is_seen_once, lasting
from recorded import cluster_day
from small_disk import filled, small_disk

from rdmeta import pipeline


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as path:
        yield path


def run(source: Path, out: Path) -> commands.Done:
    return commands.run("pipeline", "all", str(source), str(out), "--engine", "local", "-q")


@pytest.mark.slow
def test_a_run_on_a_full_disk_names_the_file_and_the_next_one_goes_on(
    disk: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "history", disk / "out"
    cluster_day(source, "one", 1)
    assert run(source, out).code == 0
    before = lasting(out)
    cluster_day(source, "one", 2)
    cluster_day(source, "two", 2)
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
    assert {n for n in lasting(out) if "silver" in n} > {n for n in before if "silver" in n}
    assert lasting(out) == lasting(tmp_path / "whole")
