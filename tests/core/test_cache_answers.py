"""Answers, hints, sweeps and purges, and the change records that they make."""

from __future__ import annotations

import struct
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import frames
import pytest
from answers import apply_answer
from clocks import Clock
from frames import B, P, T
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmeta import cache as codes
from rdmeta.cache import MetadataCache
from rdmeta.errors import Error, MalformedError, NoBrokersError, WrongClusterError
from rdmeta.model import ALL, Advice, DueReason, Request

ORDERS = T("orders", [P(0, 1, 7), P(1, -1, 8, (2, 3), (3,), (2,), error=5)])
ORDERS_ID = frames.topic_id("orders")


# ---- answers ------------------------------------------------------------------------------------


def test_the_same_answer_again_changes_nothing(cache: MetadataCache, clock: Clock) -> None:
    apply_answer(cache, ORDERS, T("other"), asked=ALL)
    version = cache.version
    clock.advance(1.0)
    again = apply_answer(cache, ORDERS, T("other"), asked=ALL)
    assert (again.changed, again.unchanged, again.topics) == (0, 2, 2)
    assert cache.version == again.version == version
    assert cache.age("orders") == 0.0


def test_an_answer_to_an_unknown_request_removes_nothing(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS, T("other"), asked=ALL)
    apply_answer(cache, ORDERS)
    assert set(cache) == {"orders", "other"}


def test_a_topic_absent_from_all_is_unknown_then_gone(cache: MetadataCache, clock: Clock) -> None:
    apply_answer(cache, ORDERS, T("other"), asked=ALL)
    assert apply_answer(cache, ORDERS, asked=ALL).absent == 1
    assert cache.state("other") == codes.UNKNOWN_TOPIC
    apply_answer(cache, ORDERS, asked=ALL, broker=2)
    assert cache.state("other") == codes.NOT_CACHED
    kinds = [c.kind for c in cache.changes() if c.topic == "other"]
    assert kinds == ["topic_added", "topic_absent", "topic_removed"]


def test_an_answer_does_not_remove_topics_learned_after_its_request_left(
    cache: MetadataCache,
) -> None:
    apply_answer(cache, ORDERS, asked=ALL)
    sent = cache.version
    apply_answer(cache, T("new"), asked=["new"])
    body = frames.response(12, [ORDERS])
    cache.apply(body, 12, Request(sent_version=sent), 1)
    assert "new" in cache
    cache.apply(body, 12, ALL, 1, sent_version=sent)
    assert "new" in cache
    cache.apply(body, 12, ALL, 1)
    assert "new" not in cache


def test_the_answer_to_the_first_request_does_not_remove_topics_learned_before_it(
    cache: MetadataCache,
) -> None:
    assert cache.version == 0
    first = Request(sent_version=cache.version)
    apply_answer(cache, T("new"), asked=["new"])
    cache.apply(frames.response(12, [ORDERS]), 12, first, 1)
    assert "new" in cache
    body = frames.response(12, [T("new", error=3)])
    cache.apply(body, 12, ["new"], 1, sent_version=0)
    assert "new" in cache


def state_of(cache: MetadataCache) -> tuple[Any, ...]:
    """Returns everything that a reader can see of a cache."""
    return (
        cache.version, cache.topics(), cache.brokers, cache.cluster_id, cache.controller,
        list(cache.changes()),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", MalformedError),
        (frames.response(12, [T("new")])[:-1], MalformedError),
        (frames.response(12, [T("new")]) + b"\0", MalformedError),
        (frames.response(8, [T("new")]), MalformedError),
        (frames.response(12, [T("new"), T("new")]), MalformedError),
        (frames.response(12, [T("new", [P(0), P(0)])]), MalformedError),
        (frames.response(12, [T("new", [P(-1)])]), MalformedError),
        (frames.response(12, [T("")]), MalformedError),
        (frames.response(12, [T("new")], []), NoBrokersError),
        (frames.response(12, [T("new")], cluster_id="another"), WrongClusterError),
    ],
)
def test_a_refused_answer_leaves_the_cache_as_it_was(
    body: bytes, error: type[Error], cache: MetadataCache
) -> None:
    apply_answer(cache, ORDERS)
    before = state_of(cache)
    with pytest.raises(error) as raised:
        cache.apply(body, 12, ALL, 1)
    assert type(raised.value) is error
    assert state_of(cache) == before
    assert raised.value.applied is not None
    assert raised.value.applied.version == cache.version


def test_an_answer_of_another_cluster_names_both_ids(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS)
    body = frames.response(12, [T("new")], cluster_id="another")
    with pytest.raises(WrongClusterError, match="'another'") as raised:
        cache.apply(body, 12, ALL, 1)
    assert repr(cache.cluster_id) in str(raised.value)


# A Metadata v1 response, and the positions of its counts: brokers, topics, partitions, replicas,
# ISR.
SMALL = frames.response(1, [T("o", [P(0, 1, 0, (1,))])], [B(1, "h", 9)], controller=1)
COUNTS = [0, 21, 31, 45, 53]


@pytest.mark.parametrize("at", COUNTS)
@pytest.mark.parametrize("count", [-(1 << 31), -2, 2, 1000, (1 << 31) - 1])
def test_an_impossible_count_is_refused(at: int, count: int, cache: MetadataCache) -> None:
    assert SMALL[at : at + 4] == b"\0\0\0\1"
    apply_answer(cache, ORDERS)
    before = state_of(cache)
    with pytest.raises(MalformedError):
        cache.apply(SMALL[:at] + struct.pack(">i", count) + SMALL[at + 4 :], 1, ALL, 1)
    assert state_of(cache) == before


@settings(max_examples=300, deadline=None)
@given(
    version=st.sampled_from(frames.VERSIONS),
    at=st.integers(0, 1 << 30),
    byte=st.integers(0, 255),
    end=st.integers(0, 1 << 30),
)
def test_a_damaged_answer_is_refused_whole_or_applied_whole(
    version: int, at: int, byte: int, end: int
) -> None:
    cache = MetadataCache()
    body = bytearray(frames.response(version, [ORDERS, T("other", id=ORDERS_ID)]))
    cache.apply(body, version, ALL, 1)
    body[at % len(body)] = byte
    before = state_of(cache)
    try:
        cache.apply(memoryview(body)[: end % (2 * len(body))], version, ALL, 1)
    except Error:
        after = state_of(cache)
    else:
        after = before
    assert after == before
    for topic in cache.topics(allow_stale=True):
        assert cache.topic(topic.name) == topic


def test_a_top_level_error_is_raised_with_advice(cache: MetadataCache) -> None:
    with pytest.raises(Error) as raised:
        cache.apply(frames.response(13, [ORDERS], error=129, throttle_ms=5), 13, ALL)
    assert raised.value.code == 129
    assert raised.value.applied is not None
    assert raised.value.applied.advice & Advice.REBOOTSTRAP
    assert (raised.value.applied.error, raised.value.applied.throttle_ms) == (129, 5)
    assert len(cache) == 0


def test_another_cluster_is_taken_after_a_rebootstrap(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS)
    body = frames.response(12, [T("theirs")], cluster_id="another")
    cache.apply(body, 12, ALL, 1, rebootstrapped=True)
    assert (list(cache), cache.cluster_id) == (["theirs"], "another")


def test_an_older_epoch_is_kept_out_and_another_broker_advised(cache: MetadataCache) -> None:
    apply_answer(cache, T("orders", [P(0, 1, 7)]))
    applied = apply_answer(cache, T("orders", [P(0, 2, 6)]))
    assert (applied.kept_back, applied.changed) == (1, 0)
    assert applied.advice & Advice.ASK_OTHER
    assert cache.leader("orders", 0) == 1


@pytest.mark.slow
def test_a_hundred_thousand_partitions_and_gaps_between_ids_are_kept(cache: MetadataCache) -> None:
    many = [P(i, i % 3 + 1, 0, (1,)) for i in range(100_000)]
    gaps = [P(i, 2, 0, (1,)) for i in (0, 7, 1 << 20, (1 << 31) - 1)]
    apply_answer(cache, T("many", many), T("gaps", gaps))
    assert cache.leader("many", 99_999) == 99_999 % 3 + 1
    assert len(cache.topic("many").partitions) == 100_000
    assert cache.leader("gaps", (1 << 31) - 1) == 2
    assert cache.state("gaps", 1) == codes.NO_PARTITION
    assert [p.partition for p in cache.topic("gaps").partitions] == [p.id for p in gaps]


# ---- hints, sweeping, purging -------------------------------------------------------------------


def test_a_name_is_asked_for_once_while_it_is_in_flight(cache: MetadataCache, clock: Clock) -> None:
    apply_answer(cache, T("known"))
    assert cache.hint(["a", "known", "a", "b"]) == ["a", "b"]
    assert cache.hint(["a", "c"]) == ["c"]
    assert cache.hint(["a"], replace=True) == ["a"]
    assert cache.hint(["known"], force=True) == ["known"]
    assert cache.state("a") == codes.WAITING
    clock.advance(61.0)
    assert cache.hint(["a"]) == ["a"]


def test_a_hint_ends_after_its_ttl(cache: MetadataCache, clock: Clock) -> None:
    cache.hint(["a"], ttl=2.0)
    clock.advance(1.9)
    assert cache.hint(["a"]) == []
    clock.advance(0.2)
    assert cache.hint(["a"]) == ["a"]


def test_hints_end_by_name_all_at_once_and_on_failure(cache: MetadataCache) -> None:
    cache.hint(["a", "b", "c", "d"])
    assert cache.purge_hints(["a", "nothing"]) == 1
    assert cache.hint(["a", "b"]) == ["a"]
    cache.apply_failure(["b"])
    assert cache.hint(["b", "c"]) == ["b"]
    assert cache.purge_hints() == 4
    assert cache.purge_hints() == 0
    cache.hint(["a"])
    cache.apply_failure()
    assert cache.hint(["a"]) == ["a"]


def test_an_answer_ends_no_hint_that_was_made_after_its_request_left(cache: MetadataCache) -> None:
    cache.hint(["a"])
    request = cache.request(ALL, reason="a look at all")
    assert (request.topics, request.reason, request.sent_version) == (ALL, "a look at all", 0)
    cache.hint(["b"])
    cache.apply(frames.response(12, [T("c", [P(0, 1)])]), 12, request)
    assert cache.reason("c") == "a look at all"
    assert (cache.state("a"), cache.state("b")) == (codes.NOT_CACHED, codes.WAITING)
    cache.apply(frames.response(12, [T("c", [P(0, 1)])]), 12, cache.request())
    assert cache.state("b") == codes.NOT_CACHED


def test_a_failure_ends_the_hints_of_its_own_request_alone(cache: MetadataCache) -> None:
    cache.hint(["a", "b"])
    first = cache.request(["a"])
    cache.hint(["a"], replace=True)
    cache.apply_failure(ALL)
    cache.apply_failure(first)
    assert (cache.state("a"), cache.state("b")) == (codes.WAITING, codes.WAITING)
    cache.apply_failure(cache.request(["a"]))
    assert (cache.state("a"), cache.state("b")) == (codes.NOT_CACHED, codes.WAITING)


@pytest.mark.parametrize("name", ["", "x" * 32_768])
def test_a_name_that_cannot_be_asked_for_is_refused(name: str, cache: MetadataCache) -> None:
    with pytest.raises(ValueError, match=r"topics\[1\]"):
        cache.hint(["a", name])
    assert cache.hint(["a"]) == ["a"], "no hint was made"


def test_a_sweep_returns_the_seconds_until_the_next_one(cache: MetadataCache, clock: Clock) -> None:
    assert cache.sweep() is None
    cache.hint(["a"], ttl=5.0)
    assert cache.sweep() == pytest.approx(5.0, abs=0.01)
    clock.advance(5.1)
    cache.sweep()
    assert cache.stats()["hints"] == 0


def test_a_purge_forgets_everything_and_records_it(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS, T("other"))
    version = cache.version
    cache.purge()
    assert (list(cache), cache.brokers, cache.cluster_id) == ([], (), None)
    assert cache.version > version
    assert {(c.kind, c.source) for c in cache.changes(version) if c.topic} == {
        ("topic_removed", "purge")
    }
    apply_answer(cache, T("orders", [P(0, 2, 0)]))
    assert cache.leader("orders", 0) == 2, "epochs are forgotten as well"


def test_forget_removes_topics_and_records_it_once(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS, T("other"), T("denied", error=29), T("kept"))
    cache.hint(["asked"])
    version = cache.version
    assert cache.forget(["orders", "nothing", "denied", "other", "asked", "orders"]) == 3
    assert list(cache) == ["kept"]
    assert (cache.version, cache.stats()["hints"]) == (version + 1, 0)
    assert [(c.kind, c.source, c.topic) for c in cache.changes(version)] == [
        ("topic_removed", "purge", "orders"),
        ("topic_removed", "purge", "other"),
    ]
    assert cache.forget(["orders", "denied"]) == cache.forget([]) == 0
    assert cache.version == version + 1
    apply_answer(cache, T("orders", [P(0, 2, 0)]))
    assert cache.leader("orders", 0) == 2, "epochs are forgotten as well"
    with pytest.raises(TypeError):
        cache.forget("orders")


# ---- what is due --------------------------------------------------------------------------------


def due(cache: MetadataCache) -> dict[str, DueReason]:
    found = cache.due()
    assert all(type(reasons) is DueReason for _, reasons in found)
    assert len(dict(found)) == len(found)
    return dict(found)


def test_due_names_each_topic_that_needs_another_answer(cache: MetadataCache, clock: Clock) -> None:
    partly = T("partly", [P(0, 1, 7), P(1, 9, 7)])
    apply_answer(cache, ORDERS, partly, T("old", [P(0, 1, 7)]), T("gone"), T("fine"), asked=ALL)
    assert due(cache) == {"orders": DueReason.NO_LEADER, "partly": DueReason.UNREACHABLE}
    late = T("partly", [P(0, 1, 6), P(1, 1, 6)])
    apply_answer(cache, ORDERS, late, T("old", [P(0, 1, 6)]), T("fine"), asked=ALL)
    apply_answer(cache, T("fine", error=103), T("denied", error=29))
    expected = {
        "orders": DueReason.NO_LEADER,
        "partly": DueReason.UNREACHABLE | DueReason.KEPT_BACK,
        "old": DueReason.KEPT_BACK,
        "gone": DueReason.ABSENT,
        "fine": DueReason.ASK_BY_NAME,
    }
    assert due(cache) == expected
    clock.advance(10.1)
    assert due(cache) == expected | {"denied": DueReason.DENIED}
    clock.advance(5.0)  # past the grace time; the sweep makes no difference
    for _ in range(2):
        assert due(cache).keys() == {"orders", "partly", "old", "fine", "denied"}
        cache.sweep()
    healed = [T(name, [P(0, 1, 8), P(1, 1, 8)]) for name in cache]
    apply_answer(cache, *healed, T("denied"))
    assert due(cache) == {}


def test_due_names_topics_whose_leader_went_without_an_answer_about_them(
    cache: MetadataCache,
) -> None:
    apply_answer(cache, T("a", [P(0, 1)]), T("b", [P(0, 3)]))
    cache.apply(frames.response(12, [], frames.BROKERS[:2]), 12, ())
    assert due(cache) == {"b": DueReason.UNREACHABLE}
    cache.apply(frames.response(12, [], frames.BROKERS), 12, ())
    assert due(cache) == {}


def test_due_takes_a_limit(cache: MetadataCache) -> None:
    apply_answer(cache, *[T(f"t{i}", [P(0, -1)]) for i in range(10)])
    assert len(cache.due()) == len(cache.due(limit=10)) == len(cache.due(2**62)) == 10
    assert len(set(cache.due(3))) == 3
    assert cache.due(0) == []
    with pytest.raises(ValueError, match="limit"):
        cache.due(-1)
    with pytest.raises(TypeError, match="limit"):
        cache.due("3")  # type: ignore[arg-type]


def test_due_holds_after_a_load(cache: MetadataCache, tmp_path: Path) -> None:
    apply_answer(cache, ORDERS, T("away", [P(0, 9)]), T("fine"), T("denied", error=29))
    cache.image().save(tmp_path / "image")
    loaded = MetadataCache.load(tmp_path / "image")
    assert due(loaded) == {
        "orders": DueReason.NO_LEADER,
        "away": DueReason.UNREACHABLE,
        "denied": DueReason.DENIED,
    }


@pytest.mark.slow
def test_due_costs_what_is_due_not_what_is_cached() -> None:
    def seconds(topics: int) -> float:
        cache = MetadataCache()
        rows = [T(f"topic-{i}", [P(0, -1 if i < 100 else 1, 1)]) for i in range(topics)]
        cache.apply(frames.response(12, rows), 12, ALL)
        assert len(cache.due()) == 100
        times = []
        for _ in range(20):
            start = time.perf_counter()
            cache.due()
            times.append(time.perf_counter() - start)
        return min(times)

    assert seconds(50_000) < 10 * seconds(200)


# ---- leader hints -------------------------------------------------------------------------------


def test_a_newer_leader_hint_is_taken_and_an_older_one_ignored(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS)
    taken = cache.apply_leader_hint("orders", 0, 2, 8)
    assert (taken.changed, bool(taken.advice & Advice.ASK_AGAIN)) == (1, True)
    assert cache.partition("orders", 0)[3:6] == (2, 8, (1, 2, 3))
    for epoch in (8, 7, -1):
        assert cache.apply_leader_hint("orders", 0, 3, epoch).changed == 0
    assert cache.apply_leader_hint("orders", 0, 99, 9).changed == 0, "an unknown broker"
    assert cache.apply_leader_hint("orders", 9, 3, 9).changed == 0, "an unknown partition"
    assert cache.apply_leader_hint("nothing", 0, 3, 9).changed == 0
    assert cache.apply_leader_hint("orders", 0, 3, 9, topic_id=ORDERS_ID).changed == 1, (
        "no id known"
    )
    assert [c.source for c in cache.changes() if c.kind == "leader_changed"] == ["hint", "hint"]


# ---- changes ------------------------------------------------------------------------------------


def test_changes_contain_the_difference_its_time_and_its_broker(
    cache: MetadataCache, clock: Clock
) -> None:
    apply_answer(cache, T("orders", [P(0, 1, 7)], id=ORDERS_ID), broker=2)
    since = cache.version
    clock.advance(60.0)
    apply_answer(cache, T("orders", [P(0, 2, 8, (1, 2, 3), (2,))], id=ORDERS_ID), broker=3)
    changes = cache.changes(since)
    assert (changes.until, changes.resync, len(changes)) == (cache.version, False, 2)
    by_kind = {change.kind: change for change in changes}
    leader = by_kind["leader_changed"]
    assert (leader.version, leader.topic, leader.partition) == (cache.version, "orders", 0)
    assert (leader.cluster_id, leader.session) == ("cluster", cache.session)
    assert (leader.source, leader.source_broker, leader.offset) == ("poll", 3, None)
    assert leader.topic_id == cache.topic("orders").topic_id
    assert leader.observed_at == datetime.fromtimestamp(0, timezone.utc) + timedelta(
        seconds=clock.time()
    )
    assert (leader.old_leader, leader.new_leader) == (1, 2)
    assert (leader.old_leader_epoch, leader.new_leader_epoch) == (7, 8)
    isr = by_kind["isr_changed"]
    assert (isr.old_isr, isr.new_isr) == ((1, 2, 3), (2,))
    assert list(cache.changes(cache.version)) == []


def test_a_new_topic_and_new_brokers_are_one_record_each(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS)
    kinds = [change.kind for change in cache.changes()]
    assert kinds.count("topic_added") == 1
    assert kinds.count("broker_added") == len(frames.BROKERS)


def test_a_reader_that_falls_behind_must_resync(clock: Clock) -> None:
    cache = MetadataCache(clock=clock, ring_bytes=4096)
    for epoch in range(2000):
        apply_answer(cache, T("orders", [P(0, epoch % 3 + 1, epoch)]))
    changes = cache.changes(1)
    assert (changes.resync, list(changes), changes.until) == (True, [], cache.version)
    recent = cache.changes(cache.version - 1)
    assert (recent.resync, len(recent)) == (False, 1)


@pytest.mark.parametrize(
    ("since", "error"), [(-1, ValueError), (1 << 64, ValueError), ("1", TypeError)]
)
def test_an_impossible_version_is_refused(
    since: Any, error: type[Exception], cache: MetadataCache
) -> None:
    for call in (cache.changes, cache.wait_change):
        with pytest.raises(error):
            call(since)
