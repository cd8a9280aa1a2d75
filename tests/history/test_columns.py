"""Rows of history: columns that only history has, a state's min ISR, and times within a span."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from fake_cache import START, FakeCache, FakeClock

from rdmeta._moments import microseconds
from rdmeta.history import CHANGE_SCHEMA, columns


@pytest.fixture
def cache() -> FakeCache:
    cache = FakeCache(FakeClock())
    cache.add_broker(1)
    cache.add_topic("a", "A" * 22, [1, 1])
    cache.add_topic("b", None, [1])
    return cache


def test_records_become_rows_whose_columns_of_history_are_null(cache: FakeCache) -> None:
    rows = columns.rows_of(cache.image().changes())
    assert rows.schema.equals(CHANGE_SCHEMA)
    assert rows["kind"].to_pylist() == ["broker_added", *["topic_added"] * 5]
    assert rows["unseen_us"].null_count == len(rows)


def test_records_of_a_later_version_are_left_to_the_next_observation(cache: FakeCache) -> None:
    seen = cache.version
    cache.set_leader("a", 0, 2)
    cache.set_leader("a", 1, 2)
    found = columns.rows_until(cache.changes(1), seen + 1)["version"].to_pylist()
    assert found == [2, 3, 4]
    assert len(columns.rows_until(cache.changes(1), 1)) == 0
    assert len(columns.rows_until(cache.changes(1), cache.version)) == 4


def test_a_state_names_its_topics_with_their_ids(cache: FakeCache) -> None:
    state = columns.rows_of(cache.image().changes())
    assert columns.topics_of(state) == {"a": "A" * 22, "b": None}


def test_a_known_min_isr_stands_right_behind_the_rows_of_its_topic(cache: FakeCache) -> None:
    state = columns.rows_of(cache.image().changes())
    assert columns.with_min_isr(state, 3, {}) is state
    both = columns.with_min_isr(state, 3, {"a": 2, "b": 1, "unknown": 9})
    found = zip(*(both[name].to_pylist() for name in ("kind", "topic", "partition")), strict=True)
    assert list(found) == [
        ("broker_added", None, None),
        ("topic_added", "a", None),
        ("topic_added", "a", 0),
        ("topic_added", "a", 1),
        ("config_changed", "a", None),
        ("topic_added", "b", None),
        ("topic_added", "b", 0),
        ("config_changed", "b", None),
    ]
    assert both["detail"].to_pylist()[4::3] == ["min.insync.replicas=2", "min.insync.replicas=1"]


def test_a_min_isr_that_is_not_known_any_more_is_its_key_alone() -> None:
    assert columns.config("a", None, 7, None)["detail"] == "min.insync.replicas"


def test_a_topic_that_came_again_counts_as_gone_and_its_partitions_do_not(cache: FakeCache) -> None:
    seen = cache.version
    cache.add_topic("a", "C" * 22, [1])
    cache.remove_topic("b")
    cache.set_leader("a", 0, 2)
    rows = columns.rows_of(cache.changes(seen, whole=True))
    assert columns.topics_gone(rows) == ["a", "b"]
    assert columns.has_kind(rows, "topic_removed")
    assert not columns.has_kind(rows, "cluster_changed")


@pytest.mark.parametrize("before", [None, START])
def test_times_stay_within_what_was_observed_and_never_run_backwards(
    before: datetime | None,
) -> None:
    """The wall clock said -5, 20, 10 and 90 s, in an observation from 0 s to 60 s."""
    seconds = (-5, 20, 10, 90)
    times = [START + timedelta(seconds=each) for each in seconds]
    rows = columns.single({"observed_at": when, "kind": "resync"} for when in times)
    span = (START, START + timedelta(seconds=60))
    found = columns.stamped(rows, "one", "session", span, before)
    assert found.schema.equals(CHANGE_SCHEMA)
    begin = microseconds(START)
    late = [(us - begin) // 1_000_000 for us in found["observed_at"].cast(pa.int64()).to_pylist()]
    assert late == [0, 20, 20, 60]
    unseen = [None if us is None else us // 1_000_000 for us in found["unseen_us"].to_pylist()]
    assert unseen == (late if before else [None] * 4)
    assert set(found["cluster_id"].to_pylist()) == {"one"}
