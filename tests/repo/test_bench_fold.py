"""The bench of the fold makes the recording that it says, and times both ways on it. No speeds."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.fold import changes, intervals, worker
from rdmeta import Fold


@pytest.mark.slow
def test_the_recording_has_its_changes_in_order_with_rising_epochs(tmp_path: Path) -> None:
    path = tmp_path / "changes.parquet"
    changes.write(path, 30_000)
    table = pq.read_table(path)
    fold = Fold("cluster", "session")
    fold.add(table)
    kinds = fold.stats()["kinds"]
    assert (kinds["topic_added"], kinds["leader_changed"] + kinds["isr_changed"]) == (
        10_000,
        30_000,
    )
    epochs: dict[tuple[str, int], int] = {}
    for row in table.filter(table["kind"].is_valid()).to_pylist():
        if row["kind"] == "leader_changed":
            key = (row["topic"], row["partition"])
            epochs[key] = epochs.get(key, 0) + 1
            assert row["new_leader_epoch"] == epochs[key]


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        changes.write(tmp_path / name, 1_000)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("way", worker.WAYS)
def test_each_way_makes_a_row_per_change_at_least(tmp_path: Path, way: str) -> None:
    path = tmp_path / "changes.parquet"
    changes.write(path, 1_000)
    worker.WAYS[way](str(path), str(tmp_path / "out.parquet"))
    rows = pq.read_table(tmp_path / "out.parquet").num_rows
    assert 10_000 < rows <= 11_000


@pytest.mark.slow
def test_both_ways_are_timed_on_one_file() -> None:
    found = intervals.measure(2_000, 2)
    assert {key: len(samples) for key, samples in found.items()} == dict.fromkeys(
        ("fold", "duckdb", "fold_memory", "duckdb_memory"), 2
    )
