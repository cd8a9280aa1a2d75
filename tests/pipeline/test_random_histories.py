"""Silver says second by second what recorders knew, however its days and parts are made."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fake_cache import START
from recorded import contents, large_days, moved
from simulated_history import MAX_GAP, Seen, Simulation, history, slots

from rdmeta import history as recorded
from rdmeta import pipeline
from rdmeta.pipeline import layout
from rdmeta.pipeline.inputs import arrange, look
from rdmeta.pipeline.place import Place

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


def test_silver_matches_a_walk_second_by_second(tmp_path: Path, seed: int) -> None:
    seen = simulated(tmp_path / "history", seed)
    out = made(tmp_path / "history", tmp_path / "out")
    for cluster_id, found in seen.items():
        seconds = list(seconds_of(rows(out, "partition_interval", cluster_id), timedelta(0)))
        assert dict(seconds) == slots(found)
        assert len(dict(seconds)) == len(seconds)
    assert unordered(brief(rows(out, "leader_change"))) == unordered(
        elections(tmp_path / "history")
    )


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


def elections(directory: Path) -> list[dict[str, Any]]:
    """Returns the changes of leader of a history within one day, by plain counting."""
    counts: dict[str, tuple[Any, Any]] = {}
    found, _ = arrange(look(Place(directory), {}))
    for _, same_cluster in groupby(found, key=lambda each: each.cluster_id):
        covered = None
        for each in same_cluster:
            begin = each.from_us if covered is None else max(each.from_us, covered)
            if begin == each.from_us or begin < each.to_us:
                counts[each.origin] = (micros(begin), micros(each.to_us))
            covered = max(each.to_us, covered or 0)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for number, row in enumerate(recorded.read(directory).to_pylist()):
        if row["kind"] != "leader_changed" or row["partition"] is None:
            continue
        same = row["topic_id"] is not None and row["new_leader_epoch"] is not None
        span = counts.get(row["session"])
        if same or (span is not None and row["observed_at"] >= span[0]):
            names = ("cluster_id", "topic", "topic_id", "partition", "new_leader_epoch")
            key = (*(row[name] for name in names), row["new_leader"], 0 if same else number + 1)
            groups.setdefault(key, []).append({**row, "origin": row["session"]})
    firsts = []
    for group in groups.values():
        first = min(group, key=lambda row: (row["observed_at"], row["session"], row["version"]))
        firsts.append({**first, "recordings": len({row["session"] for row in group})})
    return brief(firsts)


def micros(us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)


def brief(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = (
        *("cluster_id", "topic", "topic_id", "partition", "observed_at", "old_leader"),
        *("new_leader", "new_leader_epoch", "origin", "version", "recordings"),
    )
    return [{name: row[name] for name in names} for row in found]
