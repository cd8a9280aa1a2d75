"""A recorder writes topics' min.insync.replicas when they are new, and in every baseline."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fake_cache import START, FakeCache, FakeClock, Observed

from rdmeta.history import Recorder, changes, read, recordings
from rdmeta.history.schema import Footer
from rdmeta.model import Change

KEY = "min.insync.replicas"


@pytest.fixture
def cache(clock: FakeClock) -> FakeCache:
    cache = FakeCache(clock)
    cache.add_broker(1)
    for name in ("a", "b", "c"):
        cache.add_topic(name, name * 22, [1, 1])
    return cache


def configs(directory: Path) -> list[Change]:
    return [row for row in changes(directory) if row.kind == "config_changed"]


def test_a_baseline_has_what_is_known_right_behind_each_topics_partitions(seen: Observed) -> None:
    with seen.recorder() as recorder:
        recorder.configs({"c": 1, "a": 2, "b": None, "gone": 3})
        recorder.observe()
    rows = [(r.kind, r.topic, r.partition, r.detail) for r in changes(seen.path) if r.topic]
    assert rows == [
        ("topic_added", "a", None, None),
        ("topic_added", "a", 0, None),
        ("topic_added", "a", 1, None),
        ("config_changed", "a", None, f"{KEY}=2"),
        ("topic_added", "b", None, None),
        ("topic_added", "b", 0, None),
        ("topic_added", "b", 1, None),
        ("topic_added", "c", None, None),
        ("topic_added", "c", 0, None),
        ("topic_added", "c", 1, None),
        ("config_changed", "c", None, f"{KEY}=1"),
    ]
    assert {r.topic_id for r in configs(seen.path)} == {"a" * 22, "c" * 22}
    assert {r.version for r in changes(seen.path)} == {seen.cache.version}
    assert read(seen.path)["unseen_us"].null_count == len(read(seen.path))


def test_a_value_that_changes_is_a_row_of_the_next_observation_and_no_other(seen: Observed) -> None:
    with seen.recorder() as recorder:
        recorder.configs({"a": 2, "b": 1})
        recorder.observe()
        seen.clock.pass_seconds(40)
        recorder.configs({"a": 2, "b": 3})
        seen.clock.pass_seconds(2)
        assert recorder.observe() == 1
        recorder.configs({"a": None, "b": 3})
        assert recorder.observe() == 1
        assert recorder.observe() == 0
    rows = configs(seen.path)[2:]
    assert [(r.topic, r.detail) for r in rows] == [("b", f"{KEY}=3"), ("a", KEY)]
    assert [r.observed_at - START for r in rows] == [timedelta(seconds=42)] * 2
    assert [r.session for r in rows] == [r.session for r in configs(seen.path)[:2]]
    table = read(seen.path)
    told = zip(table["kind"].to_pylist(), table["unseen_us"].to_pylist(), strict=True)
    unseen = [us for kind, us in told if kind == "config_changed"]
    assert unseen == [None, None, 42_000_000, 2_000_000]


def test_a_value_without_a_change_of_the_cache_survives_the_next_files(seen: Observed) -> None:
    """Files of one version replace each other; each of them has the rows of the one before."""
    with seen.observed(flush_every=0.001) as recorder:
        for value in (1, 2, 3):
            recorder.configs({"a": value})
            seen.clock.pass_seconds(1)
            recorder.observe()
            assert [r.detail for r in configs(seen.path)][-1] == f"{KEY}={value}"
        seen.cache.set_leader("a", 0, 1)
        seen.clock.pass_seconds(1)
        recorder.observe()
        recorder.configs({"a": 4})
        seen.clock.pass_seconds(1)
        recorder.observe()
    assert [r.detail for r in configs(seen.path)] == [f"{KEY}={value}" for value in (1, 2, 3, 4)]
    assert len(recordings(seen.path)) == 1


def test_a_value_that_is_known_again_is_a_row_again(seen: Observed) -> None:
    with seen.observed() as recorder:
        for value in (2, None, 2):
            recorder.configs({"a": value})
            seen.clock.pass_seconds(1)
            recorder.observe()
    assert [r.detail for r in configs(seen.path)] == [f"{KEY}=2", KEY, f"{KEY}=2"]


def test_a_topic_that_ends_takes_its_value_with_it(seen: Observed) -> None:
    with seen.recorder(max_gap=30) as recorder:
        recorder.configs({"a": 2, "b": 2, "c": 2})
        recorder.observe()
        seen.cache.remove_topic("a")
        seen.cache.add_topic("b", "B" * 22, [1])
        recorder.observe()
        seen.cache.add_topic("a", "A" * 22, [1])
        recorder.observe()
        recorder.configs({"b": 2})
        assert recorder.observe() == 1
        seen.clock.pass_seconds(31)
        recorder.observe()
    rows = configs(seen.path)
    (after,) = {r.session for r in rows} - {rows[0].session}
    assert [r.topic for r in rows if r.session == after] == ["b", "c"]
    assert [r.topic_id for r in rows if r.topic == "b"] == ["b" * 22, "B" * 22, "B" * 22]


def test_a_topic_that_came_again_unobserved_does_not_inherit_a_value(seen: Observed) -> None:
    seen.cache.add_topic("d", None, [1])
    with seen.recorder(max_gap=30) as recorder:
        recorder.configs({"a": 2, "b": 2, "c": 2, "d": 2})
        recorder.observe()
        seen.cache.remove_topic("b")
        seen.cache.remove_topic("c")
        seen.cache.add_topic("b", "B" * 22, [1])
        seen.clock.pass_seconds(31)
        recorder.observe()
        recorder.configs({"a": 2, "b": 1})
        recorder.observe()
    rows = [(r.session, r.topic, r.detail, r.topic_id) for r in configs(seen.path)[4:]]
    (after,) = {session for session, *_ in rows}
    assert after != configs(seen.path)[0].session
    assert [row[1:] for row in rows] == [("a", f"{KEY}=2", "a" * 22), ("b", f"{KEY}=1", "B" * 22)]
    assert read(seen.path)["unseen_us"].to_pylist()[-2:] == [None, None]


def test_a_value_waits_for_its_topic(cache: FakeCache, clock: FakeClock, tmp_path: Path) -> None:
    with Recorder(cache, tmp_path, clock=clock) as recorder:
        recorder.observe()
        recorder.configs({"late": 2})
        assert recorder.observe() == 0
        cache.add_topic("late", None, [1])
        recorder.observe()
    (row,) = configs(tmp_path)
    assert (row.topic, row.topic_id, row.detail) == ("late", None, f"{KEY}=2")


def test_values_go_on_over_midnight(cache: FakeCache, clock: FakeClock, tmp_path: Path) -> None:
    clock.pass_seconds(12 * 3600 - 10)
    with Recorder(cache, tmp_path, clock=clock) as recorder:
        recorder.configs({"a": 2})
        recorder.observe()
        recorder.configs({"a": 2, "b": 1})
        clock.pass_seconds(15)
        recorder.observe()
    _, new = recordings(tmp_path)
    rows = [r for r in configs(tmp_path) if r.session == new.session]
    seconds = [(r.topic, (r.observed_at - new.observed_from).total_seconds()) for r in rows]
    assert seconds == [("a", 0), ("b", 5)]


@pytest.mark.parametrize("answer", ["known", "denied", "unsupported"])
def test_the_footer_says_how_the_brokers_answered(seen: Observed, answer: str) -> None:
    with seen.observed() as recorder:
        recorder.configs({}, answer)
    (recording,) = recordings(seen.path)
    told = [Footer.parse(pq.read_schema(each.path).metadata).min_isr for each in recording.files]
    assert told == [None, answer]
