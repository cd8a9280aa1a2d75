"""A log that does not know the min ISR of topics takes it from the recordings beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock
from kraft_days import FIRST, LogOfDays

from rdmeta import pipeline
from rdmeta.generate.logs import Given, uuid_text
from rdmeta.history import CHANGE_SCHEMA, Recorder
from rdmeta.pipeline.days import Stretch, begin_of, days_of
from rdmeta.pipeline.inputs import Input, InputRecording
from rdmeta.pipeline.min_isrs_beside import MinIsrRows, min_isrs_beside

MIN_ISR = "min.insync.replicas"


def asked(directory: Path, hours: range, told: dict[int, int | None]) -> None:
    """Writes what a recorder saw that polled each hour; `told` has the min ISRs from hours on."""
    clock = FakeClock()
    clock.now = FIRST + timedelta(hours=hours[0], seconds=3)
    cache = FakeCache(clock, "c")
    cache.add_broker(1)
    cache.add_topic("orders", uuid_text(7), [1 + hours[0] % 2])
    # Both begin anew at midnight: of recordings that begin at one time the lower id counts.
    ids = partial(next, (UUID(int=each) for each in count(hours[0] << 64)))
    with Recorder(cache, directory, clock=clock, max_gap=7200.0, uuids=ids) as recorder:
        for hour in hours:
            cache.set_leader("orders", 0, 1 + hour % 2, epoch=hour)
            if hour in told:
                recorder.configs({"orders": told[hour]})
            recorder.observe()
            clock.pass_seconds(3600)


def rows(source: Path, out: Path, table: str) -> list[dict[str, Any]]:
    if not out.exists():
        pipeline.run(pipeline.plan([source], out), workers=1)
    paths = sorted(out.glob(f"silver/v1/{table}/**/*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def timeline(found: list[dict[str, Any]], name: str) -> list[tuple[float, Any]]:
    """Returns at which hours a column of intervals got another value."""
    turns: list[tuple[float, Any]] = []
    for row in sorted(found, key=lambda row: row["began_at"]):
        if not turns or turns[-1][1] != row[name]:
            turns.append(((row["began_at"] - FIRST) / timedelta(hours=1), row[name]))
    return turns


@pytest.mark.proof
def test_the_min_isr_of_recordings_counts_over_midnights_and_from_one_to_the_next(
    tmp_path: Path,
) -> None:
    source, out, late = tmp_path / "in", tmp_path / "out", 3 / 3600
    LogOfDays(3).write(source / "n1", 1, snapshots=(49,))
    asked(source / "one", range(5, 31), {5: 2, 8: 1, 20: 2})
    asked(source / "other", range(10, 35), {10: 3, 32: None, 33: 2})
    found = rows(source, out, "partition_interval")
    assert {row["source"] for row in found} == {"log", "poll"}
    told = [(5, 2), (8, 1), (20, 2), (30, 3), (32, None), (33, 2), (34, None)]
    assert timeline(found, "min_isr") == [
        (0, None),
        *((hour + late, value) for hour, value in told),
    ]
    (config, *_) = (row for row in rows(source, out, "config_interval") if row["value"] == "1")
    assert (config["key"], config["source"], config["version"]) == (MIN_ISR, "poll", 13)
    assert config["offset"] is None
    assert pipeline.check(out) == []


def test_what_the_log_knows_is_not_taken_from_recordings(tmp_path: Path) -> None:
    days = LogOfDays(1)
    about = {"resourceType": 4, "resourceName": "", "name": MIN_ISR, "value": "2"}
    known: Given = ("CONFIG_RECORD", 0, about)
    days.log.time_ms = round((FIRST + timedelta(hours=11)).timestamp() * 1000) + 1
    days.log.append(known)
    days.elect(FIRST + timedelta(hours=11.5), 12)
    for name in ("alone", "both"):
        days.write(tmp_path / name / "n1", 1)
        days.write(tmp_path / name / "n2", 2)
    asked(tmp_path / "both", range(8, 12), {8: 1, 11: 3})
    found = rows(tmp_path / "both", tmp_path / "out", "partition_interval")
    hours = [hour for hour, _ in timeline(found, "min_isr")]
    assert [value for _, value in timeline(found, "min_isr")] == [None, 1, 2]
    assert round(hours[-1], 2) == 11
    changes = rows(tmp_path / "both", tmp_path / "out", "change")
    alone = rows(tmp_path / "alone", tmp_path / "out1", "change")
    assert [row for row in changes if row["source"] == "log"] == alone
    assert [row["detail"] for row in changes if row["source"] == "poll"] == [f"{MIN_ISR}=1"]


def test_of_recordings_that_come_over_midnight_the_one_that_began_first_counts() -> None:
    """One goes on over midnight, and another one, whose id is lower, begins there."""
    midnight = begin_of("2026-11-23")
    spans = {"log": (-20, 20), "b": (-5, 10), "a": (0, 10)}
    recordings = []
    for name, hours in spans.items():
        begin, end = (midnight + hour * 3_600_000_000 for hour in hours)
        file = Input("p", name, 1, 1, name, from_us=begin, to_us=end, until=1)
        about = ("c", name, (file,), begin, end, None, None)
        recordings.append(InputRecording(*about, is_of_log=name == "log"))
    log, *beside = days_of(recordings, 1)[-1].stretches

    def read(stretch: Stretch) -> Iterator[pa.RecordBatch]:
        about = {"kind": "config_changed", "topic": stretch.origin, "detail": f"{MIN_ISR}=1"}
        row = {"version": 1, "observed_at": stretch.seen_from_us, **about}
        yield pa.RecordBatch.from_pylist([row], schema=CHANGE_SCHEMA)

    found = min_isrs_beside(log, beside, read)
    assert found is not None
    log_rows = pa.RecordBatch.from_pydict({"version": [1], "observed_at": [midnight + 10**12]})
    (part,) = (part for part, is_own in found.between(log_rows) if not is_own)
    assert part["topic"].to_pylist() == ["b", "b"]  # its value, and that it is not known any more


@pytest.mark.parametrize("cut", [2, 4])
def test_what_was_known_at_midnight_belongs_to_the_baseline_although_the_log_changes_then(
    cut: int,
) -> None:
    """Else the fold would see a change of the min ISR there."""
    row = {"observed_at": 5, "kind": "config_changed", "topic": "orders", "detail": f"{MIN_ISR}=1"}
    found = MinIsrRows([row])
    log = pa.RecordBatch.from_pydict({"version": [7, 7, 8, 9], "observed_at": [5, 5, 5, 6]})
    parts = [part for each in (log[:cut], log[cut:]) for part in found.between(each)]
    versions = [(each, is_log) for part, is_log in parts for each in part["version"].to_pylist()]
    assert versions == [(7, True), (7, True), (7, False), (8, True), (9, True)]
