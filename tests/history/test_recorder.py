"""A recorder writes all changes of a cache, and never claims time that it did not observe."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fake_cache import START, FakeCache, FakeClock, Observed

from rdmeta.history import CHANGE_SCHEMA, HistoryError, Recorder, changes, read, recordings
from rdmeta.history.schema import Footer
from rdmeta.model import Change

ID = "lkG5VK0pTeCvTgvv0gdI1A"


@pytest.fixture
def cache(clock: FakeClock) -> FakeCache:
    """A cache of three brokers and a topic of two partitions."""
    cache = FakeCache(clock)
    for broker in (1, 2, 3):
        cache.add_broker(broker)
    cache.add_topic("orders", ID, [1, None])
    return cache


def rows_of(directory: Path, kind: str) -> list[Change]:
    return [row for row in changes(directory) if row.kind == kind]


def test_columns_are_those_of_a_change_record() -> None:
    assert sorted(CHANGE_SCHEMA.names) == sorted(Change._fields)


def test_a_recording_begins_with_the_whole_state(seen: Observed) -> None:
    with seen.observed():
        rows = list(changes(seen.path))
    assert [row.kind for row in rows] == [
        "observed_from",
        *["broker_added"] * 3,
        *["topic_added"] * 3,
    ]
    assert [(row.broker, row.detail) for row in rows[1:4]] == [
        (1, "localhost:9093"),
        (2, "localhost:9094"),
        (3, "localhost:9095"),
    ]
    whole, first, second = rows[4:]
    assert (whole.topic, whole.topic_id, whole.partition) == ("orders", ID, None)
    assert (first.partition, first.new_leader, first.new_leader_epoch) == (0, 1, 0)
    assert (first.new_isr, first.new_replicas) == ((1, 2, 3), (1, 2, 3))
    assert (second.partition, second.new_leader, second.new_leader_epoch) == (1, None, 0)
    assert {(row.version, row.observed_at) for row in rows} == {(seen.cache.version, START)}


def test_rows_name_the_recording_and_not_the_cache(seen: Observed) -> None:
    with seen.observed() as recorder:
        session = recorder.session
        seen.cache.set_leader("orders", 0, 2)
        recorder.observe()
    assert {row.session for row in changes(seen.path)} == {session}
    assert recorder.session is None


def test_changes_follow_as_the_cache_made_them(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(5)
        seen.cache.set_leader("orders", 0, 2)
        seen.cache.set_isr("orders", 1, (2, 3))
        seen.clock.pass_seconds(1)
        assert recorder.observe() == 2
        session = recorder.session
    assert session is not None
    written = [row for row in changes(seen.path) if row.kind in ("leader_changed", "isr_changed")]
    assert written == [
        record._replace(session=session, unseen_us=5_000_000) for record in seen.cache.changes(4)
    ]


def test_a_leaderless_partition_has_a_null_leader(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.set_leader("orders", 0, None)
        seen.cache.set_leader("orders", 0, 0)
        recorder.observe()
    lost, found = rows_of(seen.path, "leader_changed")
    assert (lost.old_leader, lost.new_leader) == (1, None)
    assert (found.old_leader, found.new_leader) == (None, 0)


def test_a_new_topic_is_followed_by_its_partitions(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.add_topic("payments", None, [3, 2])
        recorder.observe()
    rows = [row for row in changes(seen.path) if row.topic == "payments"]
    assert [(r.kind, r.partition, r.new_leader) for r in rows] == [
        ("topic_added", None, None),
        ("topic_added", 0, 3),
        ("topic_added", 1, 2),
    ]


def test_a_new_topic_is_written_as_it_was_before_later_changes(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.add_topic("payments", None, [3])
        seen.cache.set_leader("payments", 0, 1, epoch=7)
        seen.cache.set_isr("payments", 0, (1,))
        seen.cache.set_replicas("payments", 0, (1, 2))
        seen.cache.grow("payments", 2)
        recorder.observe()
    added = rows_of(seen.path, "topic_added")[-1]
    assert (added.topic, added.partition) == ("payments", 0)
    assert (added.new_leader, added.new_leader_epoch) == (3, 0)
    assert (added.new_isr, added.new_replicas) == ((1, 2, 3), (1, 2, 3))
    (grown,) = rows_of(seen.path, "partitions_added")
    assert (grown.partition, grown.new_leader, grown.new_isr) == (1, 2, (1, 2, 3))


def test_an_epoch_that_became_known_is_not_written_for_the_time_before(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.add_topic("payments", None, [3])
        seen.cache.set_leader("payments", 0, 3, 7, kind="leader_epoch_changed")
        recorder.observe()
    rows = [row for row in changes(seen.path) if row.topic == "payments"]
    assert [(r.kind, r.partition, r.new_leader_epoch) for r in rows] == [
        ("topic_added", None, None),
        ("topic_added", 0, 0),
        ("leader_epoch_changed", 0, 7),
    ]


@pytest.mark.parametrize("kind", ["topic_id_learned", "topic_of_a_later_version"])
def test_a_kind_that_ends_no_topic_keeps_the_states_of_its_partitions(
    seen: Observed, kind: str
) -> None:
    with seen.observed() as recorder:
        seen.cache.add_topic("payments", None, [3])
        seen.cache.record("payments", kind)
        seen.cache.set_leader("payments", 0, 1)
        recorder.observe()
    rows = [row for row in changes(seen.path) if row.topic == "payments"]
    assert [(r.kind, r.partition, r.new_leader) for r in rows] == [
        ("topic_added", None, None),
        ("topic_added", 0, 3),
        (kind, None, None),
        ("leader_changed", 0, 1),
    ]


def test_partitions_that_were_added_are_written_once_with_their_state(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.grow("orders", 3)
        recorder.observe()
    (grown,) = rows_of(seen.path, "partitions_added")
    assert (grown.partition, grown.new_leader, grown.new_replicas) == (2, 3, (1, 2, 3))


def test_a_topic_that_came_and_went_between_looks_is_told_with_its_partitions(
    seen: Observed,
) -> None:
    with seen.observed() as recorder:
        seen.cache.add_topic("brief", None, [1])
        seen.cache.remove_topic("brief")
        seen.cache.add_topic("orders", "B" * 22, [2])
        seen.cache.add_topic("orders", "C" * 22, [3])
        recorder.observe()
    assert [(r.kind, r.partition) for r in changes(seen.path) if r.topic == "brief"] == [
        ("topic_added", None),
        ("topic_added", 0),
        ("topic_removed", None),
    ]
    again = rows_of(seen.path, "topic_recreated")
    assert [(r.topic_id, r.partition, r.new_leader) for r in again] == [
        ("B" * 22, None, None),
        ("B" * 22, 0, 2),
        ("C" * 22, None, None),
        ("C" * 22, 0, 3),
    ]


def test_a_write_during_an_observation_is_left_to_the_next_one(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.add_topic("payments", None, [3])
        until = seen.cache.version
        seen.cache.meanwhile.append(lambda: seen.cache.set_leader("payments", 0, 2))
        assert recorder.observe() == 2
        recorder.flush()
        assert recordings(seen.path)[0].files[-1].until == until
        assert recorder.observe() == 1
    rows = [row for row in changes(seen.path) if row.topic == "payments"]
    assert [(r.kind, r.partition, r.new_leader, r.new_leader_epoch) for r in rows] == [
        ("topic_added", None, None, None),
        ("topic_added", 0, 3, 0),
        ("leader_changed", 0, 2, 1),
    ]


def test_nothing_is_recorded_of_an_empty_cache(clock: FakeClock, tmp_path: Path) -> None:
    with Recorder(FakeCache(clock), tmp_path, clock=clock) as recorder:
        assert recorder.observe() == 0
        assert recorder.session is None
    assert list(tmp_path.iterdir()) == []


def test_lost_changes_begin_a_new_recording_that_says_so(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(10)
        seen.cache.set_leader("orders", 0, 2)
        seen.cache.forget_changes()
        recorder.observe()
    before, after = recordings(seen.path)
    assert before.observed_to == START
    assert after.observed_from == START + timedelta(seconds=10)
    kinds = [row.kind for row in changes(seen.path, session=after.session)]
    assert kinds[:3] == ["observed_from", "resync", "broker_added"]
    assert "no longer holds" in str(rows_of(seen.path, "resync")[0].detail)
    assert [row.kind for row in changes(seen.path, session=before.session)][-1] == "observed_to"
    assert rows_of(seen.path, "leader_changed") == []


def test_observations_too_far_apart_are_two_recordings(seen: Observed) -> None:
    with seen.observed(max_gap=30) as recorder:
        seen.clock.pass_seconds(30)
        recorder.observe()
        seen.clock.pass_seconds(30.5)
        recorder.observe()
    before, after = recordings(seen.path)
    assert before.observed_to == START + timedelta(seconds=30)
    assert after.observed_from == START + timedelta(seconds=60.5)
    assert [row.detail for row in rows_of(seen.path, "resync")] == ["no observation for 30.5 s"]


def test_a_cache_that_was_purged_is_no_longer_observed(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.purge()
        assert recorder.observe() == 0
        assert recorder.session is None
    assert len(recordings(seen.path)) == 1


def test_another_cluster_begins_a_new_recording_under_its_own_name(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.cache.become("cluster-B")
        recorder.observe()
    assert [r.cluster_id for r in recordings(seen.path)] == ["cluster-A", "cluster-B"]
    assert {row.cluster_id for row in rows_of(seen.path, "topic_added")} == {"cluster-A"}


def test_a_cluster_without_an_id_needs_a_name_from_the_caller(
    clock: FakeClock, tmp_path: Path
) -> None:
    cache = FakeCache(clock, cluster_id=None)
    cache.add_broker(1)
    with pytest.raises(HistoryError, match="cluster_id="):
        Recorder(cache, tmp_path, clock=clock).observe()
    with Recorder(cache, tmp_path, clock=clock, cluster_id="given") as recorder:
        recorder.observe()
    assert [r.cluster_id for r in recordings(tmp_path)] == ["given"]


def test_each_file_begins_where_the_last_one_ended(seen: Observed) -> None:
    with seen.observed() as recorder:
        for leader in (2, 3, 1):
            seen.clock.pass_seconds(1)
            seen.cache.set_leader("orders", 0, leader)
            recorder.observe()
            recorder.flush()
    (recording,) = recordings(seen.path)
    assert [(file.since, file.until) for file in recording.files] == [
        (0, 4),
        (4, 5),
        (5, 6),
        (6, 7),
        (7, 7),
    ]
    assert recorder.files == tuple(file.path for file in recording.files)
    assert recording.observed_to == START + timedelta(seconds=3)


def test_time_without_changes_is_one_small_file_however_long(seen: Observed) -> None:
    recorder = seen.recorder(flush_every=10)
    for _ in range(20):
        recorder.observe()
        seen.clock.pass_seconds(10)
    # The process dies here: there is no observed_to, but the footer gives the end of the time.
    (recording,) = recordings(seen.path)
    assert len(recording.files) == 2
    assert recording.files[1].observed_from == START
    assert recording.observed_to == START + timedelta(seconds=190)
    assert pq.read_metadata(recording.files[1].path).num_rows == 0
    assert rows_of(seen.path, "observed_to") == []


def test_rows_are_written_when_there_are_many(seen: Observed) -> None:
    recorder = seen.recorder(flush_rows=3)
    recorder.observe()
    for leader in (2, 3, 1, 2):
        seen.cache.set_leader("orders", 0, leader)
        recorder.observe()
    assert len(rows_of(seen.path, "leader_changed")) == 3


def test_time_in_a_recording_never_runs_backwards(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(-3600)
        seen.cache.set_leader("orders", 0, 2)
        recorder.observe()
    assert rows_of(seen.path, "leader_changed")[0].observed_at == START


def test_a_failed_write_leaves_no_file_and_loses_no_rows(
    seen: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with seen.observed() as recorder:
        seen.cache.set_leader("orders", 0, 2)
        recorder.observe()
        before = sorted(seen.path.rglob("*"))

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                recorder.flush()
        assert sorted(seen.path.rglob("*")) == before
    assert len(rows_of(seen.path, "leader_changed")) == 1


@pytest.mark.slow
def test_a_killed_process_leaves_only_complete_files(tmp_path: Path) -> None:
    writes = """
import sys
from fake_cache import FakeCache, FakeClock, Observed
from rdmeta.history import Recorder
clock = FakeClock()
cache = FakeCache(clock)
cache.add_broker(1)
cache.add_topic("orders", None, [1])
recorder = Recorder(cache, sys.argv[1], clock=clock)
while True:
    recorder.observe()
    recorder.flush()
    print(flush=True)
    clock.pass_seconds(1)
    cache.set_leader("orders", 0, cache.version)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", writes, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    for _ in range(20):
        assert child.stdout.readline()
    child.kill()
    child.communicate(timeout=30)
    (recording,) = recordings(tmp_path)
    assert len(recording.files) >= 20
    assert len(rows_of(tmp_path, "leader_changed")) >= 19
    assert rows_of(tmp_path, "observed_to") == []


def test_a_recorder_that_is_closed_twice_ends_once(seen: Observed) -> None:
    with seen.observed() as recorder:
        recorder.close()
    assert len(rows_of(seen.path, "observed_to")) == 1


def test_everything_about_a_file_is_in_its_name_and_its_footer(
    clock: FakeClock, tmp_path: Path
) -> None:
    odd = "_odd/./id%2F.with-everything"
    cache = FakeCache(clock, cluster_id=odd)
    cache.add_broker(1)
    with Recorder(cache, tmp_path, clock=clock) as recorder:
        recorder.observe()
    folder = tmp_path / "cluster=_odd%2F.%2Fid%252F.with-everything" / "day=2025-06-01"
    assert {path.parent for path in recorder.files} == {folder}
    assert {r.cluster_id for r in recordings(tmp_path)} == {odd}
    assert set(read(tmp_path)["cluster_id"].to_pylist()) == {odd}


def footers(directory: Path) -> list[Footer]:
    """Returns the footers of all files, in their order."""
    return [
        Footer.parse(pq.read_schema(file.path).metadata)
        for recording in recordings(directory)
        for file in recording.files
    ]


def test_offline_replicas_are_recorded_before_and_after(seen: Observed) -> None:
    seen.cache.set_offline("orders", 1, (3,))
    with seen.observed() as recorder:
        seen.cache.set_offline("orders", 0, (2, 3))
        recorder.observe()
    assert [row.new_offline for row in rows_of(seen.path, "topic_added")] == [None, (), (3,)]
    (changed,) = rows_of(seen.path, "offline_changed")
    assert (changed.old_offline, changed.new_offline) == ((), (2, 3))


def test_a_row_says_how_long_what_it_tells_may_have_been_unseen(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(4)
        seen.cache.set_leader("orders", 0, 2)
        seen.clock.pass_seconds(1)
        recorder.observe()
        seen.cache.set_leader("orders", 0, 3)
        recorder.observe()
    table = read(seen.path)
    told = zip(table["kind"].to_pylist(), table["unseen_us"].to_pylist(), strict=True)
    assert [unseen for kind, unseen in told if kind == "leader_changed"] == [4_000_000, 0]
    assert table["unseen_us"].null_count == len(table) - 2


@pytest.mark.parametrize("how", ["closed", "gap", "lost", "cluster"])
def test_the_last_file_says_why_its_recording_ended(seen: Observed, how: str) -> None:
    recorder = seen.recorder()
    recorder.observe()
    seen.cache.set_leader("orders", 0, 2)
    recorder.observe()
    recorder.flush()
    if how == "closed":
        recorder.close()
    elif how == "gap":
        seen.clock.pass_seconds(61)
    elif how == "lost":
        seen.cache.set_leader("orders", 0, 3)
        seen.cache.forget_changes()
    else:
        seen.cache.become("cluster-B")
    seen.clock.pass_seconds(1)
    recorder.observe()
    assert [each.ended_by for each in footers(seen.path)] == [None, None, how, None]
    assert {each.continues for each in footers(seen.path)} == {None}


def test_footers_say_what_people_call_the_cluster_and_how_far_observations_lay_apart(
    seen: Observed,
) -> None:
    with seen.observed(name="prod", max_gap=30) as recorder:
        for seconds in (2, 7.5, 1):
            seen.clock.pass_seconds(seconds)
            seen.cache.set_leader("orders", 0, 2)
            recorder.observe()
        recorder.flush()
        seen.clock.pass_seconds(3)
        recorder.observe()
    told = footers(seen.path)
    assert {each.name for each in told} == {"prod"}
    assert {each.max_gap_us for each in told} == {30_000_000}
    assert [each.longest_gap_us for each in told] == [None, 7_500_000, 3_000_000]


def test_a_clock_that_is_set_back_begins_another_recording(seen: Observed) -> None:
    ticks = [0.0]
    with seen.recorder(monotonic=lambda: ticks[0]) as recorder:
        for step in (0, 5, -3600, 5, 3600):
            seen.clock.pass_seconds(step)
            ticks[0] += 5
            seen.cache.set_leader("orders", 0, seen.cache.version)
            recorder.observe()
    found = recordings(seen.path)
    spans = [((r.observed_from - START).seconds, (r.observed_to - START).seconds) for r in found]
    day = 86_400
    assert spans == [(day - 3595, day - 3590), (0, 5), (10, 10)]
    assert [row.detail for row in rows_of(seen.path, "resync")] == [
        "the wall clock was set back by 3605.0 s",
        "the wall clock was set forward by 3595.0 s",
    ]
    assert [each.ended_by for each in footers(seen.path) if each.ended_by] == [
        "clock",
        "clock",
        "closed",
    ]


def test_a_clock_that_is_corrected_by_less_than_a_second_ends_nothing(seen: Observed) -> None:
    ticks = [0.0]
    with seen.observed(monotonic=lambda: ticks[0]) as recorder:
        seen.clock.pass_seconds(-0.9)
        seen.cache.set_leader("orders", 0, 2)
        recorder.observe()
    assert len(recordings(seen.path)) == 1
    assert rows_of(seen.path, "leader_changed")[0].observed_at == START


def test_no_row_is_later_than_the_observation_that_saw_it(seen: Observed) -> None:
    """The clock is wrong for a moment, in which the cache takes an answer."""
    with seen.observed() as recorder:
        seen.clock.pass_seconds(86_400)
        seen.cache.set_leader("orders", 0, 2)
        seen.clock.pass_seconds(5 - 86_400)
        recorder.observe()
    assert len(recordings(seen.path)) == 1
    assert rows_of(seen.path, "leader_changed")[0].observed_at == START + timedelta(seconds=5)


def test_a_slow_poller_is_never_blind(seen: Observed, caplog: pytest.LogCaptureFixture) -> None:
    begin = seen.clock.now = START.replace(hour=23, minute=58)
    taken = 0
    with seen.recorder(cluster_id="prod") as recorder:
        for number in range(24):
            seen.cache.set_leader("orders", 0, number)
            taken += recorder.observe()
            assert recorder.version == seen.cache.version
            seen.clock.pass_seconds(300)
    before, after = recordings(seen.path)
    assert (before.observed_from, before.ended_by) == (begin, "midnight")
    assert before.observed_to == after.observed_from
    assert after.observed_to == begin + timedelta(seconds=23 * 300)
    leaders = rows_of(seen.path, "leader_changed")
    assert [row.new_leader for row in leaders] == list(range(1, 24))
    assert [row.observed_at for row in leaders] == [
        begin + timedelta(seconds=300 * number) for number in range(1, 24)
    ]
    assert {row["unseen_us"] for row in read(seen.path).to_pylist()} == {None, 300_000_000}
    assert len(read(seen.path)) == taken + 2  # observed_to of each recording
    assert not caplog.records


def test_a_hole_after_the_first_look_of_a_fast_poller_is_a_gap(
    seen: Observed, caplog: pytest.LogCaptureFixture
) -> None:
    with seen.recorder() as recorder:
        for leader, seconds in ((1, 600), (2, 5), (3, 5)):
            seen.cache.set_leader("orders", 0, leader)
            recorder.observe()
            seen.clock.pass_seconds(seconds)
    before, after = recordings(seen.path)
    assert (before.observed_from, before.observed_to, before.ended_by) == (START, START, "gap")
    assert after.observed_from == START + timedelta(seconds=600)
    assert [row.new_leader for row in rows_of(seen.path, "leader_changed")] == [3]
    assert [each.message for each in caplog.records] == [
        "cluster cluster-A: no observation for 600.0 s, more than 60.0 s, so that another recording"
        " begins: what happens in such a time is not recorded"
    ]


def test_a_long_distance_that_nothing_follows_is_a_gap(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(600)
        seen.cache.set_leader("orders", 0, 2)
        assert recorder.observe() == 0
    before, after = recordings(seen.path)
    assert (before.observed_to, before.ended_by) == (START, "gap")
    assert after.observed_from == after.observed_to == START + timedelta(seconds=600)
    assert after.ended_by == "closed"


def test_a_min_isr_that_comes_while_an_observation_waits_is_told_by_the_next_one(
    seen: Observed,
) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(300)
        recorder.observe()
        seen.clock.pass_seconds(1)
        recorder.configs({"orders": 2})
        seen.clock.pass_seconds(299)
        recorder.observe()
    (row,) = rows_of(seen.path, "config_changed")
    assert row.observed_at == START + timedelta(seconds=600)


def test_a_file_that_cannot_be_written_at_the_end_of_a_recording_is_written_later(
    seen: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with seen.observed(max_gap=30) as recorder:
        seen.cache.set_leader("orders", 0, 2)
        recorder.observe()
        seen.clock.pass_seconds(31)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                recorder.observe()
        seen.clock.pass_seconds(5)
        recorder.observe()
    before, after = recordings(seen.path)
    assert before.observed_to == START
    assert after.observed_from == START + timedelta(seconds=31)
    assert len(rows_of(seen.path, "leader_changed")) == 1
