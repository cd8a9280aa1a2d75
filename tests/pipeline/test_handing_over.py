"""Where a log ends and a recording goes on, the recording's last answer before undoes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from fake_cache import FakeCache, FakeClock
from kraft_days import FIRST, LogOfDays

from rdmeta import pipeline
from rdmeta.generate.logs import uuid_text
from rdmeta.history import Recorder


def polled(
    directory: Path,
    epochs: Mapping[float, int],
    others: Mapping[float, tuple[tuple[int, ...], int]] | None = None,
) -> None:
    """Writes what a recorder saw that polled at these hours: leader epochs, ISRs and min ISRs."""
    clock = FakeClock()
    cache = FakeCache(clock, "c")
    cache.add_broker(1)
    cache.add_topic("orders", uuid_text(7), [1])
    with Recorder(cache, directory, clock=clock, max_gap=10_000.0) as recorder:
        for hour, epoch in epochs.items():
            clock.now = FIRST + timedelta(hours=hour)
            if epoch != cache.topic("orders").partitions[0].leader_epoch:
                cache.set_leader("orders", 0, 1 + epoch % 2, epoch=epoch)
            if others is not None:
                isr, min_isr = others[hour]
                if isr != cache.topic("orders").partitions[0].isr:
                    cache.set_isr("orders", 0, isr)
                recorder.configs({"orders": min_isr})
            recorder.observe()


def rows(source: Path, table: str) -> list[dict[str, Any]]:
    out = source.parent / "out"
    if not out.exists():
        pipeline.run(pipeline.plan([source], out), workers=1)
        assert pipeline.check(out) == []
    paths = sorted(out.glob(f"silver/v1/{table}/**/*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def ended(source: Path, hours: int) -> None:
    """Writes a log that ends with an election, at an hour, of the epoch of that number."""
    LogOfDays(3).write(source / "n1", 1, snapshots=(5 + hours,), end=5 + hours)


def epochs_of(source: Path, since: float) -> list[tuple[float, float, int]]:
    """Returns the begins, ends and leader epochs of what the tables have from an hour on."""
    hour = timedelta(hours=1)
    found = [
        ((row["began_at"] - FIRST) / hour, (row["ended_at"] - FIRST) / hour, row["leader_epoch"])
        for row in rows(source, "partition_interval")
    ]
    return sorted(each for each in found if each[1] > since)


def test_a_log_s_last_state_holds_until_the_recording_tells_of_a_change(tmp_path: Path) -> None:
    source = tmp_path / "in"
    ended(source, 8)
    polled(source / "polled", {6.75: 6, 7.75: 7, 8.75: 8, 9.75: 9, 10.75: 9})
    assert epochs_of(source, 8) == [(8, 8.75, 8), (8.75, 9.75, 8), (9.75, 10.75, 9)]
    names = ("seen_from", "seen_to", "counts_from", "counts_to")
    found = [
        [(row[each] - FIRST) / timedelta(hours=1) for each in names]
        for row in rows(source, "observation")
    ]
    assert found == [[0, 8, 0, 8.75], [6.75, 10.75, 8.75, 10.75]]


def test_it_holds_for_the_longest_time_between_two_answers_if_nothing_is_told(
    tmp_path: Path,
) -> None:
    source = tmp_path / "in"
    ended(source, 8)
    polled(source / "polled", {6.75: 6, 7.25: 7, 7.75: 7, 8.5: 7, 10: 7})
    assert epochs_of(source, 8) == [(8, 9.5, 8), (9.5, 10, 7)]


def test_over_midnight_nothing_is_known_until_the_recording_takes_over(tmp_path: Path) -> None:
    source = tmp_path / "in"
    ended(source, 11)
    polled(source / "polled", {9.5: 9, 10.5: 10, 12.5: 12, 13.5: 12})
    assert epochs_of(source, 11) == [(11, 12, 11), (12.5, 13.5, 12)]


def test_no_interval_of_a_log_spans_a_hole_that_a_recording_did_not_look_into(
    tmp_path: Path,
) -> None:
    source = tmp_path / "in"
    log = LogOfDays(3).write(source / "n1", 1, cuts=(8, 10), snapshots=(8, 10, 12), end=12)
    (log / f"{8:020d}.log").unlink()
    polled(source / "polled", {2.75: 2, 5.75: 5})
    assert epochs_of(source, 2.5) == [(2, 3, 2), (3, 3, 3), (5, 6, 5), (6, 7, 6), (7, 7, 7)]


def test_a_recording_that_ends_without_news_leaves_it_to_the_next_one(tmp_path: Path) -> None:
    source = tmp_path / "in"
    ended(source, 8)
    polled(source / "one", {6.5: 6, 7.5: 7, 8.25: 7})
    polled(source / "other", {6.75: 6, 7.75: 7, 8.75: 8})
    assert epochs_of(source, 8) == [(8, 8.75, 8)]


def test_a_change_that_the_log_told_and_the_recording_saw_late_is_told_once(tmp_path: Path) -> None:
    source = tmp_path / "in"
    days = LogOfDays(1)
    config = {"resourceType": 2, "resourceName": "orders", "name": "min.insync.replicas"}
    days.log.append(("CONFIG_RECORD", 0, {**config, "value": "2"}))
    about = {"partitionId": 0, "topicId": uuid_text(7)}
    days.log.append(("PARTITION_CHANGE_RECORD", 0, {**about, "isr": [1]}))
    for node in (1, 2):  # so that all is proven
        days.write(source / f"n{node}", node)
    others = {10.5: ((1, 2), 1), 11.5: ((1,), 2), 11.75: ((1, 2), 2)}
    polled(source / "polled", {10.5: 10, 11.5: 11, 11.75: 11}, others)
    eleven = FIRST + timedelta(hours=11)
    found = [
        (row["kind"], row["source"], row["detail"], row["new_isr"])
        for row in rows(source, "change")
        if row["kind"] in ("config_changed", "isr_changed") and row["observed_at"] >= eleven
    ]
    assert found == [
        ("config_changed", "log", "min.insync.replicas=2", None),
        ("isr_changed", "log", None, [1]),
        ("isr_changed", "poll", None, [1, 2]),
    ]


def test_a_recording_that_begins_where_the_log_ends_counts_at_once(tmp_path: Path) -> None:
    source = tmp_path / "in"
    ended(source, 8)
    polled(source / "polled", {8: 8, 9.5: 9, 10: 9})
    assert epochs_of(source, 8) == [(8, 9.5, 8), (9.5, 10, 9)]
