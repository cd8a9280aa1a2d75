"""Silver says second by second what recorders knew, however its days and parts are made."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fake_cache import START
from recorded import contents, large_days, moved
from silver_model import made_silver, model_silver
from simulated_history import MAX_GAP, Seen, Simulation, history, slots

from rdmeta import pipeline
from rdmeta.pipeline import layout

CLUSTERS = 6


@pytest.fixture
def seed() -> int:
    found = time.time_ns() % 10**9
    print(f"seed {found}")
    return found


def simulated(directory: Path, seed: int) -> dict[str, list[Seen]]:
    """Writes random histories of several clusters; returns what their recorders knew."""
    names = [f"cluster-{number}" for number in range(CLUSTERS)]
    return {
        name: Simulation(name, directory, history(seed + number)).seen
        for number, name in enumerate(names)
    }


def made(source: Path, out: Path, **options: Any) -> Path:
    pipeline.run(pipeline.plan([source], out, in_place=True, **options), workers=1)
    return out


def rows(out: Path, table: str, cluster_id: str = "*") -> list[dict[str, Any]]:
    paths = sorted(out.glob(f"silver/v1/{table}/cluster={cluster_id}/*/part-*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def seconds_of(pieces: list[dict[str, Any]], by: timedelta) -> Iterator[tuple[Any, Any]]:
    """Yields each second of the pieces with its state, at the time before the history moved."""
    for row in pieces:
        isr = None if row["isr"] is None else tuple(row["isr"])
        state = (row["topic_id"], row["leader"], row["leader_epoch"], isr, row["origin"])
        for second in range(row["us"] // 1_000_000):
            at = row["began_at"] - by + timedelta(seconds=second)
            yield (at, row["topic"], row["partition"]), state


def over_midnight(seen: dict[str, list[Seen]], seed: int) -> timedelta:
    """Returns how far to move a history so that midnight lies in it."""
    end = max(each.end for found in seen.values() for each in found)
    length = int((end - START).total_seconds())
    inside = random.Random(seed).randrange(1, length)
    return timedelta(hours=12) - timedelta(seconds=inside)


def unordered(found: list[dict[str, Any]]) -> list[str]:
    return sorted(map(str, found))


@pytest.mark.slow
def test_silver_matches_a_walk_second_by_second(tmp_path: Path, seed: int) -> None:
    seen = simulated(tmp_path / "history", seed)
    out = made(tmp_path / "history", tmp_path / "out")
    for cluster_id, found in seen.items():
        seconds = list(seconds_of(rows(out, "partition_interval", cluster_id), timedelta(0)))
        assert dict(seconds) == slots(found)
        assert len(dict(seconds)) == len(seconds)
        told = model_silver(tmp_path / "history", cluster_id)["leader_change"]
        assert unordered(made_silver(out, cluster_id)["leader_change"]) == unordered(told)


@pytest.mark.slow
def test_recordings_over_midnight_match_it_too_however_they_are_cut(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = simulated(tmp_path / "before", seed)
    by = over_midnight(seen, seed)
    source = tmp_path / "history"
    moved(tmp_path / "before", source, by)
    month = made(source, tmp_path / "month")
    for cluster_id, found in seen.items():
        seconds = list(seconds_of(rows(month, "partition_interval", cluster_id), by))
        assert dict(seconds) == slots(found)
        assert len(dict(seconds)) == len(seconds)
        told = model_silver(source, cluster_id)["leader_change"]
        assert unordered(made_silver(month, cluster_id)["leader_change"]) == unordered(told)
    large_days(monkeypatch)
    whole = made(source, tmp_path / "whole")
    tables = ("partition_interval", "topic_interval", "leader_change", "change", "observation")
    for table in tables:
        assert unordered(rows(whole, table)) == unordered(rows(month, table))
    apart = made(source, tmp_path / "apart", until="2025-06-02")
    made(source, apart)
    assert without_inputs(apart) == without_inputs(whole)
    backwards = made(source, tmp_path / "backwards", since="2025-06-02")
    made(source, backwards)
    assert without_inputs(backwards) == without_inputs(whole)
    monkeypatch.setattr(layout, "_PART_ROWS", 8)
    parts = made(source, tmp_path / "parts")
    assert list(parts.glob("silver/v1/change/*/*/part-1-of-*.parquet"))
    for table in tables:
        assert unordered(rows(parts, table)) == unordered(rows(whole, table))


def without_inputs(out: Path) -> dict[str, bytes]:
    return {name: c for name, c in contents(out).items() if name != "input.parquet"}


def test_a_recorder_that_ends_its_recording_at_midnight_loses_nothing(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fake_cache.START", datetime(2025, 6, 1, 23, 58, tzinfo=timezone.utc))
    steps = [
        ("flush", 0)
        if step[0] in ("crash", "close")
        else ("observe", 0)
        if step[0] == "observe"
        else step
        for step in history(seed)
        if step[0] != "forget"
    ]
    simulation = Simulation("one", tmp_path / "history", [*steps, ("flush", 0)])
    out = made(tmp_path / "history", tmp_path / "out")
    found = dict(seconds_of(rows(out, "partition_interval"), timedelta(0)))
    wanted: dict[Any, Any] = dict(slots(simulation.seen))
    # A change after the last look before midnight is seen after it, and is dated at midnight.
    until = datetime(2025, 6, 2, tzinfo=timezone.utc)
    since = until - timedelta(seconds=MAX_GAP)
    left = [key for key in {*found, *wanted} if not since <= key[0] < until]
    for key in left:
        assert found[key][:-1] == wanted[key][:-1]
