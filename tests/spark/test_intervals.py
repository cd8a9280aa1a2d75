"""Periods and leader changes match a naive model and cover no unobserved time."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fake_cache import START, FakeCache, FakeClock
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from simulated_history import Simulation, history, periods, slots
from window_intervals import leader_change, load, partition_interval

from rdmeta.history import Recorder, recordings

Case = Callable[[FakeCache, FakeClock, Recorder], None]
Play = Callable[[FakeCache, FakeClock, Recorder, Recorder], None]


class Tables(NamedTuple):
    intervals: list[Row]
    changes: list[Row]

    def of(self, cluster_id: str) -> Tables:
        return Tables(*([row for row in rows if row.cluster_id == cluster_id] for rows in self))


def tables(spark: SparkSession, directory: Path) -> Tables:
    changes, observed = load(spark, recordings(directory))
    intervals = partition_interval(changes, observed).cache()
    return Tables(
        rows(intervals, "topic", "partition", "began_at", "version", "session"),
        rows(leader_change(changes, observed), "observed_at"),
    )


def rows(frame: DataFrame, *order: str) -> list[Row]:
    return frame.orderBy("cluster_id", *order).collect()


def utc(when: datetime) -> datetime:
    """Returns a time of collect(), which is in the local time zone, in UTC."""
    return when.astimezone(timezone.utc)


def second(when: datetime) -> float:
    return (utc(when) - START).total_seconds()


def brief(row: Row) -> tuple[Any, ...]:
    span = (second(row.began_at), second(row.ended_at))
    return (row.leader, row.leader_epoch, *span, row.began_by, row.ended_by, row.open)


CASES: list[Case] = []
PLAYED: list[Play] = []


def case(change: Case) -> Case:
    """Registers a change between two observations of a topic with one partition, led by 1."""
    CASES.append(change)
    return change


def played(play: Play) -> Play:
    """Registers changes of a cache that has two recorders of its own."""
    PLAYED.append(play)
    return play


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of all registered changes, each in a cluster of its own, from one job."""
    directory = tmp_path_factory.mktemp("history")
    for change in CASES:
        clock = FakeClock()
        cache = FakeCache(clock, change.__name__)
        cache.add_broker(1)
        cache.add_topic("orders", "A" * 22, [1])
        with Recorder(cache, directory, clock=clock) as recorder:
            recorder.observe()
            clock.pass_seconds(10)
            change(cache, clock, recorder)
            recorder.observe()
    for play in PLAYED:
        clock = FakeClock()
        cache = FakeCache(clock, play.__name__)
        cache.add_topic("orders", "A" * 22, [1])
        recorders = (Recorder(cache, directory, clock=clock) for _ in range(2))
        play(cache, clock, *recorders)
    return tables(spark, directory)


@case
def one_change(cache: FakeCache, clock: FakeClock, _: Recorder) -> None:
    cache.set_leader("orders", 0, 2)
    clock.pass_seconds(20)


def test_a_leader_change_ends_one_period_and_begins_another(made: Tables) -> None:
    intervals, changes = made.of("one_change")
    assert [brief(row) for row in intervals] == [
        (1, 0, 0, 10, "baseline", "leader_changed", False),
        (2, 1, 10, 30, "leader_changed", "observed_to", True),
    ]
    (change,) = changes
    assert (change.old_leader, change.new_leader, change.elections) == (1, 2, 1)
    assert second(change.observed_at) == 10


@case
def epoch_learned(cache: FakeCache, clock: FakeClock, _: Recorder) -> None:
    cache.set_leader("orders", 0, 1, 5, kind="leader_epoch_changed")
    clock.pass_seconds(20)


def test_an_epoch_that_becomes_known_begins_a_period_and_is_no_leader_change(made: Tables) -> None:
    intervals, changes = made.of("epoch_learned")
    assert [brief(row) for row in intervals] == [
        (1, 0, 0, 10, "baseline", "leader_epoch_changed", False),
        (1, 5, 10, 30, "leader_epoch_changed", "observed_to", True),
    ]
    assert changes == []


@case
def leaderless(cache: FakeCache, clock: FakeClock, _: Recorder) -> None:
    cache.set_leader("orders", 0, None)
    clock.pass_seconds(30)


def test_time_without_a_leader_is_a_period_of_its_own(made: Tables) -> None:
    intervals, _ = made.of("leaderless")
    assert [(row.leader, row.seconds) for row in intervals] == [(1, 10.0), (None, 30.0)]


@case
def isr_reordered(cache: FakeCache, clock: FakeClock, _: Recorder) -> None:
    cache.set_isr("orders", 0, (3, 1, 2))
    clock.pass_seconds(5)
    cache.set_isr("orders", 0, (3, 1))


def test_an_isr_in_another_order_is_the_same_isr(made: Tables) -> None:
    intervals = made.of("isr_reordered").intervals
    assert [(row.isr, row.seconds) for row in intervals] == [([1, 2, 3], 15.0), ([1, 3], 0.0)]


@case
def reassigned(cache: FakeCache, clock: FakeClock, _: Recorder) -> None:
    cache.set_replicas("orders", 0, (1, 2, 3, 4))
    clock.pass_seconds(5)


def test_other_replicas_do_not_end_a_period(made: Tables) -> None:
    (only,) = made.of("reassigned").intervals
    assert (only.replicas, only.seconds) == ([1, 2, 3], 15.0)


def remove_for_a_while(kind: str, cache: FakeCache, clock: FakeClock, recorder: Recorder) -> None:
    cache.remove_topic("orders", kind)
    recorder.observe()
    clock.pass_seconds(10)
    cache.add_topic("orders", "A" * 22, [1])


@case
def topic_removed(cache: FakeCache, clock: FakeClock, recorder: Recorder) -> None:
    remove_for_a_while("topic_removed", cache, clock, recorder)


@case
def topic_absent(cache: FakeCache, clock: FakeClock, recorder: Recorder) -> None:
    remove_for_a_while("topic_absent", cache, clock, recorder)


@case
def topic_error(cache: FakeCache, clock: FakeClock, recorder: Recorder) -> None:
    remove_for_a_while("topic_error", cache, clock, recorder)


@pytest.mark.parametrize("kind", ["topic_removed", "topic_absent", "topic_error"])
def test_a_removed_topic_has_no_period(made: Tables, kind: str) -> None:
    assert [brief(row) for row in made.of(kind).intervals] == [
        (1, 0, 0, 10, "baseline", kind, False),
        (1, 0, 20, 20, "topic_added", "observed_to", True),
    ]


@case
def recreated(cache: FakeCache, clock: FakeClock, _: Recorder) -> None:
    cache.add_topic("orders", "B" * 22, [1])
    clock.pass_seconds(10)


def test_a_recreated_topic_is_another_one_even_if_nothing_else_differs(made: Tables) -> None:
    intervals, changes = made.of("recreated")
    assert [(row.topic_id, row.ended_by, row.seconds) for row in intervals] == [
        ("A" * 22, "topic_recreated", 10.0),
        ("B" * 22, "observed_to", 10.0),
    ]
    assert changes == []


@case
def elected_again(cache: FakeCache, _: FakeClock, __: Recorder) -> None:
    cache.set_leader("orders", 0, 1, epoch=3)


def test_an_election_that_kept_the_leader_is_a_change(made: Tables) -> None:
    intervals, changes = made.of("elected_again")
    assert [(row.leader_epoch, row.seconds) for row in intervals] == [(0, 10.0), (3, 0.0)]
    assert [(row.old_leader, row.new_leader, row.elections) for row in changes] == [(1, 1, 3)]


@case
def not_observed(_: FakeCache, clock: FakeClock, recorder: Recorder) -> None:
    recorder.observe()
    clock.pass_seconds(3600)


def test_no_period_spans_time_without_observations(made: Tables) -> None:
    assert [brief(row) for row in made.of("not_observed").intervals] == [
        (1, 0, 0, 10, "baseline", "observed_to", True),
        (1, 0, 3610, 3610, "baseline", "observed_to", True),
    ]


@case
def changes_lost(cache: FakeCache, _: FakeClock, __: Recorder) -> None:
    cache.set_leader("orders", 0, 2)
    cache.forget_changes()


def test_no_period_spans_changes_that_were_lost(made: Tables) -> None:
    assert [brief(row) for row in made.of("changes_lost").intervals] == [
        (1, 0, 0, 0, "baseline", "observed_to", True),
        (2, 1, 10, 10, "baseline", "observed_to", True),
    ]


@played
def killed(_: FakeCache, clock: FakeClock, recorder: Recorder, __: Recorder) -> None:
    recorder.observe()
    clock.pass_seconds(7)
    recorder.observe()
    recorder.flush()
    clock.pass_seconds(7)
    recorder.observe()


def test_the_time_of_a_killed_recorder_ends_at_its_last_file(made: Tables) -> None:
    assert [brief(row) for row in made.of("killed").intervals] == [
        (1, 0, 0, 7, "baseline", "unfinished", True)
    ]


@played
def both_observe(cache: FakeCache, clock: FakeClock, first: Recorder, later: Recorder) -> None:
    first.observe()
    clock.pass_seconds(5)
    later.observe()
    clock.pass_seconds(5)
    cache.set_leader("orders", 0, 2)
    first.observe()
    later.observe()
    first.close()
    clock.pass_seconds(10)
    later.observe()
    later.close()


def test_two_recordings_of_the_same_time_count_it_once(made: Tables) -> None:
    intervals, changes = made.of("both_observe")
    assert sorted(brief(row) for row in intervals) == [
        (1, 0, 0, 10, "baseline", "leader_changed", False),
        (2, 1, 10, 10, "leader_changed", "observed_to", True),
        (2, 1, 10, 20, "leader_changed", "observed_to", True),
    ]
    (change,) = changes
    assert change.recordings == 2


@played
def handed_over(_: FakeCache, clock: FakeClock, first: Recorder, later: Recorder) -> None:
    first.observe()
    clock.pass_seconds(1)
    later.observe()
    clock.pass_seconds(4)
    first.observe()
    first.close()
    clock.pass_seconds(5)
    later.observe()
    later.close()


def test_a_state_that_an_earlier_recording_covers_begins_by_overlap(made: Tables) -> None:
    assert [brief(row) for row in made.of("handed_over").intervals] == [
        (1, 0, 0, 5, "baseline", "observed_to", True),
        (1, 0, 5, 10, "overlap", "observed_to", True),
    ]


def test_a_gap_within_a_recording_ends_every_period(spark: SparkSession) -> None:
    columns = (
        "version long, cluster_id string, session string, observed_at timestamp, kind string,"
        " topic string, topic_id string, partition int, new_leader int, new_leader_epoch int,"
        " new_isr array<int>, new_replicas array<int>"
    )

    def row(version: int, at: int, kind: str, leader: int | None = None) -> tuple[Any, ...]:
        state = ("t", None, 0, leader, 0, [1], [1]) if leader else (None,) * 7
        return (version, "c", "s", START + timedelta(seconds=at), kind, *state)

    changes = spark.createDataFrame(
        [
            row(5, 0, "observed_from"),
            row(5, 0, "topic_added", 1),
            row(6, 10, "leader_changed", 2),
            row(9, 50, "resync"),
            row(9, 50, "topic_added", 2),
            row(9, 70, "observed_to"),
        ],
        columns,
    )
    observed = spark.createDataFrame(
        [("c", "s", 6, START + timedelta(seconds=15))],
        "cluster_id string, session string, version long, observed_at timestamp",
    )
    assert [brief(row) for row in rows(partition_interval(changes, observed), "began_at")] == [
        (1, 0, 0, 10, "baseline", "leader_changed", False),
        (2, 0, 10, 15, "leader_changed", "resync", True),
        (2, 0, 50, 70, "baseline", "observed_to", True),
    ]


@settings(
    max_examples=1,
    deadline=None,
    # Hypothesis cannot shrink a seed.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**63))
def test_tables_match_a_naive_model_of_any_history(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    shutil.rmtree(tmp_path, ignore_errors=True)
    # One job handles all clusters of an example, as even a small job takes seconds.
    simulations = {
        f"cluster-{number}": Simulation(f"cluster-{number}", tmp_path, history(seed + number))
        for number in range(16)
    }
    made = tables(spark, tmp_path)
    for cluster_id, simulation in simulations.items():
        found = [row for row in made.intervals if row.cluster_id == cluster_id]
        seconds = [slot for row in found for slot in seconds_of(row)]
        assert dict(seconds) == slots(simulation.seen), cluster_id
        assert len(seconds) == len(dict(seconds)), cluster_id
        apart = [s for s in simulation.seen if not overlaps(s, simulation.seen)]
        alone = {s.session for s in apart}
        expected = Counter(period for s in apart for period in periods(s))
        assert Counter(as_period(r) for r in found if r.session in alone) == expected, cluster_id


def seconds_of(row: Row) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Returns each second of a period with its state."""
    state = as_period(row)[2:6] + (row.session,)
    begin, end = utc(row.began_at), utc(row.ended_at)
    whole = range(int((end - begin).total_seconds()))
    return [((begin + timedelta(seconds=n), row.topic, row.partition), state) for n in whole]


def as_period(row: Row) -> tuple[Any, ...]:
    isr = None if row.isr is None else tuple(row.isr)
    state = (row.topic_id, row.leader, row.leader_epoch, isr)
    return (row.topic, row.partition, *state, utc(row.began_at), utc(row.ended_at), row.session)


def overlaps(one: Any, recordings_: list[Any]) -> bool:
    """Returns whether another recording overlaps this one, ends included."""
    others = [s for s in recordings_ if s is not one]
    return any(s.begin <= one.end and one.begin <= s.end for s in others)
