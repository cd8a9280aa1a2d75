"""A recording: its marks, its times, and which versions and rows its files have."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from fake_cache import START

from rdmeta.history.columns import single
from rdmeta.history.pace import Sight
from rdmeta.history.recorder import OpenRecording
from rdmeta.history.schema import Footer


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def state(count: int = 1) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {"version": 3, "source": "poll", "kind": "topic_added", "observed_at": at(-99)}
    ] * count
    return single(rows)


def changed(version: int, seconds: float) -> pa.Table:
    kind = "leader_changed"
    row = {"version": version, "source": "poll", "kind": kind, "observed_at": at(seconds)}
    return single([row])


def written(recording: OpenRecording) -> tuple[Path, pa.Table, Footer]:
    """Returns the recording's next file, and notes that it is on the disk."""
    path, table = recording.file(Path("dir"))
    recording.written()
    return path, table, Footer.parse(table.schema.metadata)


def test_a_recording_begins_with_its_marks_and_the_state_of_its_begin() -> None:
    recording = OpenRecording("one", at(0))
    assert recording.begin_with(state(2), 3, "no observation for 70.0 s") == 4
    _, table, _ = written(recording)
    assert table["kind"].to_pylist() == ["observed_from", "resync", *["topic_added"] * 2]
    assert table["detail"].to_pylist() == [None, "no observation for 70.0 s", None, None]
    assert set(table["observed_at"].to_pylist()) == {at(0)}
    assert table["unseen_us"].null_count == 4


def test_each_file_begins_where_the_one_before_it_ended() -> None:
    recording = OpenRecording("a/b", at(0), continues="before")
    recording.begin_with(state(), 3)
    first = written(recording)
    recording.add(changed(5, 12), 5, at(20), at(10))
    assert recording.row_count == 1
    recording.end("gap")
    second = written(recording)
    assert recording.row_count == 0
    names = [(footer.file.since, footer.file.until) for _, _, footer in (first, second)]
    assert names == [(0, 3), (3, 5)]
    assert first[0].parts[:3] == ("dir", "cluster=a%2Fb", "day=2025-06-01")
    assert second[2].observed_from == first[2].observed_to == at(0)
    assert (second[2].observed_to, second[2].ended_by) == (at(20), "gap")
    assert first[2].ended_by is None
    assert first[2].continues == "before"
    assert second[1]["kind"].to_pylist() == ["leader_changed", "observed_to"]
    assert second[1]["unseen_us"].to_pylist() == [2_000_000, None]


def test_a_file_that_reaches_no_later_version_is_replaced_by_one_with_its_rows() -> None:
    recording = OpenRecording("one", at(0))
    recording.begin_with(state(), 3)
    written(recording)
    recording.add(changed(3, 5), 3, at(10), at(0))
    extended = written(recording)
    recording.add(changed(4, 15), 4, at(20), at(10))
    following = written(recording)
    assert (extended[2].file.since, extended[2].file.until) == (3, 3)
    assert (following[2].file.since, following[2].file.until) == (3, 4)
    assert following[2].observed_from == extended[2].observed_from == at(0)
    assert following[1].slice(0, 1).to_pylist() == extended[1].to_pylist()
    assert len(following[1]) == 2


def test_a_clock_that_runs_backwards_does_not_shorten_what_was_observed() -> None:
    recording = OpenRecording("one", at(0))
    recording.begin_with(state(), 3)
    recording.add(changed(4, 30), 4, at(30), at(0))
    recording.add(changed(5, 10), 5, at(10), at(30))
    assert recording.observed_to == at(30)
    _, table, _ = written(recording)
    assert table["observed_at"].to_pylist()[-2:] == [at(30), at(30)]


def test_a_footer_has_the_longest_distance_since_the_file_before() -> None:
    recording = OpenRecording("one", at(0))
    recording.begin_with(state(), 3)
    recording.note(Sight(at(0), None, 0.0, 60.0))
    assert written(recording)[2].longest_gap_us is None
    for passed in (2.0, 7.5, 3.0):
        recording.note(Sight(at(0), passed, 0.0, 60.0))
    recording.add(changed(4, 5), 4, at(13), at(10))
    assert written(recording)[2].longest_gap_us == 7_500_000
    recording.add(changed(5, 14), 5, at(14), at(13))
    assert written(recording)[2].longest_gap_us is None
