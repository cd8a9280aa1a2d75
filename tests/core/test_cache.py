"""Lookups of a cache after answers, as Python sees them; staleness, errors, statistics."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import frames
import pytest
from answers import apply_answer
from clocks import Clock
from frames import B, P, T

from rdmeta import cache as codes
from rdmeta.cache import MetadataCache, Reading
from rdmeta.errors import (
    Error,
    InvalidTopicError,
    LeaderNotAvailableError,
    NoSuchPartitionError,
    NotCachedError,
    StaleError,
    TopicAuthorizationError,
    UnknownTopicError,
)
from rdmeta.model import ALL, Broker, Partition, TopicPartition

ORDERS = T("orders", [P(0, 1, 7), P(1, -1, 8, (2, 3), (3,), (2,), error=5)])
ORDERS_ID = frames.topic_id("orders")


# ---- lookups ------------------------------------------------------------------------------------


def test_an_empty_cache_knows_nothing(cache: MetadataCache) -> None:
    assert (len(cache), list(cache), cache.topics(), cache.brokers) == (0, [], [], ())
    assert (cache.version, cache.cluster_id, cache.controller) == (0, None, None)
    assert "orders" not in cache
    assert cache.state("orders") == codes.NOT_CACHED
    with pytest.raises(NotCachedError, match="partition 0 of 'orders'"):
        cache.leader("orders", 0)


def test_a_leader_is_found_by_topic_and_partition(cache: MetadataCache) -> None:
    assert apply_answer(cache, ORDERS).changed == 1
    assert cache.leader("orders", 0) == 1
    assert cache.leader("orders", 0, None) == 1
    assert cache.state("orders", 0) == 0


@pytest.mark.parametrize(
    ("topic", "partition", "error", "code"),
    [
        ("nothing", 0, NotCachedError, codes.NOT_CACHED),
        ("orders", 2, NoSuchPartitionError, codes.NO_PARTITION),
        ("orders", 1, LeaderNotAvailableError, codes.NO_LEADER),
        ("old", 0, StaleError, codes.STALE),
        ("unknown", 0, UnknownTopicError, codes.UNKNOWN_TOPIC),
        ("secret", 0, TopicAuthorizationError, codes.DENIED),
        ("in/valid", 0, InvalidTopicError, codes.INVALID),
        ("asked", 0, NotCachedError, codes.WAITING),
    ],
)
def test_each_kind_of_absence_has_its_exception_its_code_and_no_exception_with_a_default(
    topic: str, partition: int, error: type[Error], code: int, clock: Clock
) -> None:
    cache = MetadataCache(clock=clock, max_age=10.0, negative_ttl=5.0)
    apply_answer(cache, T("old"))
    clock.advance(10.1)
    apply_answer(cache, ORDERS, T("unknown", [], error=3), T("secret", [], error=29))
    apply_answer(cache, T("in/valid", [], error=17))
    cache.hint(["asked"])
    with pytest.raises(error) as raised:
        cache.leader(topic, partition)
    assert type(raised.value) is error
    assert raised.value.code is None or raised.value.code > 0
    assert cache.leader(topic, partition, None) is None
    assert cache.leader(topic, partition, -7) == -7
    assert cache.state(topic, partition) == code
    assert list(cache.leaders([topic], [partition])) == [code]
    if code not in (codes.NO_LEADER, codes.NO_PARTITION):
        assert cache.state(topic) == code
        assert cache.topic(topic, None) is None
        assert cache.partition(topic, partition, None) is None
        assert topic not in cache
        with pytest.raises(error):
            cache.topic(topic)
        with pytest.raises(error):
            cache.partition(topic, partition)
        with pytest.raises(error):
            cache.available(topic)
        assert cache.available(topic, None) is None


def test_a_partition_has_every_field_of_the_answer(cache: MetadataCache) -> None:
    apply_answer(cache, T("orders", ORDERS.partitions, id=ORDERS_ID))
    topic_id = cache.topic("orders").topic_id
    assert topic_id is not None
    assert cache.partition("orders", 0) == (
        ("orders", topic_id, 0, 1, 7, (1, 2, 3), (1, 2, 3), (), 0, False, False)  # fmt: skip
    )
    assert cache.partition("orders", 1) == (
        ("orders", topic_id, 1, None, 8, (2, 3), (3,), (2,), 5, False, True)  # fmt: skip
    )


def test_a_partition_with_500_replicas_has_all_of_them(cache: MetadataCache) -> None:
    many = tuple(range(1, 500))
    apply_answer(cache, T("orders", [P(0, 1, 0, many, many[:99], many[100:])]))
    for found in (cache.partition("orders", 0), cache.topic("orders").partitions[0]):
        assert (found.replicas, found.isr, found.offline_replicas) == (many, many[:99], many[100:])
    assert cache.partitions_on(499, "replica") == [TopicPartition("orders", 0)]


def test_a_topic_has_every_field_of_the_answer(cache: MetadataCache) -> None:
    apply_answer(cache, T("__offsets", [P(2, 3), P(0, 1)], internal=True, operations=0xF8))
    topic = cache.topic("__offsets")
    assert (topic.name, topic.internal, topic.error, topic.operations) == (
        "__offsets", True, 0, 0xF8
    )  # fmt: skip
    assert [(p.partition, p.leader) for p in topic.partitions] == [(0, 1), (2, 3)]
    assert topic.version == cache.version
    assert cache.topic("__offsets").partitions[1] == cache.partition("__offsets", 2)


def test_operations_that_were_not_asked_for_are_none(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS)
    assert cache.topic("orders").operations is None


def test_an_epoch_that_the_answer_lacks_is_none(cache: MetadataCache) -> None:
    cache.apply(frames.response(6, [ORDERS]), 6)
    assert cache.partition("orders", 0).leader_epoch is None


def test_names_come_in_the_order_of_their_bytes(cache: MetadataCache) -> None:
    apply_answer(cache, T("b"), T("ä"), T("a"), T("B"), T("注"), T("ab"))
    assert list(cache) == sorted(["b", "ä", "a", "B", "注", "ab"], key=str.encode)
    assert len(cache) == 6


def test_topics_are_picked_by_prefix_pattern_and_being_internal(cache: MetadataCache) -> None:
    apply_answer(cache, T("team.a"), T("team.b"), T("tea"), T("__team", internal=True))

    def names(**how: Any) -> list[str]:
        return [topic.name for topic in cache.topics(**how)]

    assert names() == ["__team", "tea", "team.a", "team.b"]
    assert names(prefix="team") == ["team.a", "team.b"]
    assert names(pattern="team") == []
    assert names(pattern=r"team\..") == ["team.a", "team.b"]
    assert names(prefix="team", pattern=re.compile(".*b")) == ["team.b"]
    assert names(internal=True) == ["__team"]
    assert names(internal=False, pattern=".*team.*") == ["team.a", "team.b"]
    with pytest.raises(re.error):
        cache.topics(pattern="(")


def test_partitions_are_found_by_broker(cache: MetadataCache) -> None:
    apply_answer(
        cache,
        T("a", [P(0, 1, 0, (1, 2)), P(1, 2, 0, (2, 3)), P(2, -1, 0, (3,))]),
        T("b", [P(5, 2, 0, (2, 1))]),
    )
    a0, a1, b5 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 5)
    assert cache.partitions_on(1) == [a0]
    assert cache.partitions_on(2) == [a1, b5]
    assert cache.partitions_on(1, role="replica") == [a0, b5]
    # -1 is not a broker's id: the third partition's -1 means that it has no leader.
    assert cache.partitions_on(9) == cache.partitions_on(-1) == []
    with pytest.raises(ValueError, match="role"):
        cache.partitions_on(1, role="follower")  # type: ignore[arg-type]


def test_a_partition_is_available_if_its_leader_is_among_the_brokers(cache: MetadataCache) -> None:
    apply_answer(cache, T("orders", [P(0, 1), P(1, -1), P(2, 99), P(3, 3)]))
    assert cache.available("orders") == (0, 3)
    assert cache.leader("orders", 2) == 99


def test_available_looks_at_the_topic_alone() -> None:
    class Torn(MetadataCache):
        """A cache whose brokers are newer than the topic, as during another thread's write."""

        @property
        def brokers(self) -> tuple[Broker, ...]:
            return (Broker(99, "h", 1),)

    cache = Torn()
    apply_answer(cache, T("orders", [P(0, 1), P(1, -1), P(2, 99), P(3, 3)]))
    assert cache.available("orders") == (0, 3)


def test_a_leader_that_is_not_among_the_brokers_now_is_marked_unreachable(
    cache: MetadataCache,
) -> None:
    applied = apply_answer(cache, T("orders", [P(0, 1), P(1, -1), P(2, 99)]))
    assert (applied.unreachable, applied.leaderless) == (1, 1)
    assert [p.unreachable for p in cache.topic("orders").partitions] == [False, False, True]
    assert [cache.partition("orders", i).unreachable for i in range(3)] == [False, False, True]
    assert not Partition("t", None, 0, 1, 0, (), (), (), 0).unreachable
    brokers = [*frames.BROKERS, B(99)]
    assert cache.apply(frames.response(12, [], brokers), 12, (), 1).unreachable == 0
    assert not cache.partition("orders", 2).unreachable


def test_brokers_come_with_the_cluster_and_a_controller(cache: MetadataCache) -> None:
    brokers = [B(3, "h3", 9093), B(1, "h1", 9091, "rack-1")]
    cache.apply(frames.response(12, [ORDERS], brokers, controller=3, cluster_id="abc"), 12)
    assert cache.brokers == (Broker(1, "h1", 9091, "rack-1"), Broker(3, "h3", 9093, None))
    assert cache.broker(3) == Broker(3, "h3", 9093)
    assert (cache.cluster_id, cache.controller) == ("abc", 3)
    assert cache.broker(2, None) is None
    with pytest.raises(NotCachedError, match="broker 2"):
        cache.broker(2)


# ---- staleness ----------------------------------------------------------------------------------


def test_a_topic_past_its_deadline_is_stale_and_readable_on_request(clock: Clock) -> None:
    cache = MetadataCache(clock=clock, max_age=10.0)
    apply_answer(cache, ORDERS, asked=ALL)
    clock.advance(10.0)
    assert cache.leader("orders", 0) == 1
    clock.advance(0.001)
    with pytest.raises(StaleError):
        cache.leader("orders", 0)
    assert cache.last_leader("orders", 0) == 1
    assert cache.partition("orders", 0, allow_stale=True).leader == 1
    assert cache.topic("orders", allow_stale=True).partitions[0].leader == 1
    assert list(cache.leaders(["orders"], [0], allow_stale=True)) == [1]
    assert cache.available("orders", allow_stale=True) == (0,)
    assert [topic.name for topic in cache.topics(allow_stale=True)] == ["orders"]
    assert (cache.topics(), list(cache), len(cache)) == ([], [], 0)


def test_the_last_leader_of_a_leaderless_partition_is_readable_on_request(
    cache: MetadataCache,
) -> None:
    apply_answer(cache, T("orders", [P(0, 1, 7)]))
    apply_answer(cache, T("orders", [P(0, -1, 8)]))
    assert cache.partition("orders", 0).leader is None
    with pytest.raises(LeaderNotAvailableError):
        cache.leader("orders", 0)
    assert cache.last_leader("orders", 0) == 1
    assert cache.partition("orders", 0, allow_stale=True).leader == 1


@pytest.mark.parametrize("error", [0, 5])
def test_a_partition_says_that_it_has_no_leader_beside_its_last_one(
    clock: Clock, error: int
) -> None:
    cache = MetadataCache(clock=clock, max_age=10.0)
    apply_answer(cache, T("orders", [P(0, 1, 7), P(1, 2, 7), P(2, -1, 7)]))
    apply_answer(cache, T("orders", [P(0, -1, 8, error=error), P(1, 2, 8), P(2, -1, 8)]))
    expected = [(1, True), (2, False), (None, True)]
    for _ in range(2):
        for topic in (cache.topic("orders", allow_stale=True), *cache.topics(allow_stale=True)):
            assert [(p.leader, p.leaderless) for p in topic.partitions] == expected
        found = [cache.partition("orders", i, allow_stale=True) for i in range(3)]
        assert [(p.leader, p.leaderless) for p in found] == expected
        assert found[0].error == error
        clock.advance(100)
    assert not Partition("t", None, 0, 1, 0, (), (), (), 0).leaderless


def test_a_change_has_none_for_no_leader_and_for_no_epoch(cache: MetadataCache) -> None:
    apply_answer(cache, T("orders", [P(0, 1, 7)]))
    version = cache.version
    apply_answer(cache, T("orders", [P(0, -1, 8)]))
    apply_answer(cache, T("orders", [P(0, 1, -1)]))
    assert [
        (c.old_leader, c.new_leader, c.old_leader_epoch, c.new_leader_epoch)
        for c in cache.changes(version)
    ] == [(1, None, 7, 8), (None, 1, 8, None)]


def test_a_partition_that_never_had_a_leader_has_no_last_one(cache: MetadataCache) -> None:
    apply_answer(cache, T("orders", [P(0, -1, 0)]))
    assert cache.last_leader("orders", 0, None) is None
    assert cache.partition("orders", 0, allow_stale=True).leader is None


def test_age_counts_from_the_last_answer_and_source_names_its_broker(clock: Clock) -> None:
    cache = MetadataCache(clock=clock, max_age=10.0)
    apply_answer(cache, ORDERS, asked=ALL, broker=2)
    clock.advance(4.0)
    assert cache.age("orders") == pytest.approx(4.0)
    apply_answer(cache, ORDERS, asked=["orders"], broker=3)
    assert cache.age("orders") == 0.0
    clock.advance(25.0)
    assert cache.age("orders") == pytest.approx(25.0)
    assert cache.source("orders") == 3
    for call in (cache.age, cache.source):
        with pytest.raises(NotCachedError):
            call("nothing")


def test_the_default_clock_moves() -> None:
    cache = MetadataCache(max_age=1e-6)
    apply_answer(cache, ORDERS)
    while cache.state("orders") != codes.STALE:
        pass
    assert cache.age("orders") > 0


# ---- the object ---------------------------------------------------------------------------------


@pytest.mark.parametrize("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_cache_is_not_copied(send: Callable[[object], object], cache: MetadataCache) -> None:
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        send(cache)


def test_the_repr_counts_valid_and_stale_topics_apart(clock: Clock) -> None:
    cache = MetadataCache(clock=clock, max_age=10.0)
    apply_answer(cache, T("old"), T("older"))
    clock.advance(10.1)
    apply_answer(cache, ORDERS)
    assert repr(cache) == (
        f"<rdmeta.MetadataCache cluster_id='cluster' version={cache.version}"
        " topics=1 stale=2 brokers=3>"
    )


def test_one_class_has_the_methods_and_its_base_has_the_lookups() -> None:
    assert MetadataCache.__bases__ == (Reading,)
    own = {"apply", "hint", "image", "load", "stats", "wait_change", "wait_for_topic", "leader"}
    assert own <= vars(MetadataCache).keys()


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [(("user:secret@host:9092",), {}), ((), {"bootstrap_servers": "user:secret@host:9092"})],
)
def test_the_error_of_servers_as_arguments_names_fetch_and_contains_no_secret(
    arguments: tuple[Any, ...], settings: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"use rdmeta\.fetch\(cache, ") as raised:
        MetadataCache(*arguments, **settings)
    assert "secret" not in str(raised.value)


def test_statistics_count_what_happened(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS, T("unknown", [], error=3))
    apply_answer(cache, ORDERS)
    cache.hint(["asked"])
    stats = cache.stats()
    assert stats["applies"] == 2
    assert (stats["topics"], stats["negatives"], stats["hints"]) == (1, 1, 1)
    assert (stats["partitions"], stats["topics_unchanged"]) == (2, 1)
    assert stats["bytes"] > 0
    assert stats["version"] == cache.version


def test_each_statistic_is_explained(cache: MetadataCache) -> None:
    explained = set(re.findall(r"`(\w+)`", str(MetadataCache.stats.__doc__)))
    assert explained == set(cache.stats())


def test_a_cache_frees_the_memory_of_removed_topics(clock: Clock) -> None:
    cache = MetadataCache(clock=clock, ring_bytes=0)
    topics = [T(f"topic-{k:05}", [P(0, 1, 1)]) for k in range(5000)]
    apply_answer(cache, *topics)
    full = cache.stats()
    apply_answer(cache, *topics[::20], asked=ALL)
    for _ in range(100):
        clock.advance(60.0)
        cache.sweep()
    after = cache.stats()
    assert after["retained"] == 0
    assert after["bytes"] < full["bytes"] - 4000 * 112  # each had a line of 64 bytes, and 48 more
    assert after["topics_moved"] > 0
    assert cache.last_leader("topic-00240", 0) == 1


def test_statistics_say_when_all_topics_were_answered(cache: MetadataCache, clock: Clock) -> None:
    apply_answer(cache, ORDERS)
    assert cache.stats()["all_topics_age"] is None
    apply_answer(cache, ORDERS, asked=ALL)
    clock.advance(4.0)
    assert cache.stats()["all_topics_age"] == pytest.approx(4.0)


def test_no_age_is_below_0_although_lookups_read_a_coarser_clock() -> None:
    cache = MetadataCache()
    for _ in range(20):
        apply_answer(cache, ORDERS, asked=ALL)
        assert cache.stats()["all_topics_age"] >= 0


def test_after_a_purge_there_was_no_all_topics_answer(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS, asked=ALL)
    before = cache.image()
    cache.purge()
    apply_answer(cache, ORDERS)
    assert cache.stats()["all_topics_age"] is None
    assert (before.age(), cache.age(), cache.image().age()) == (0.0, None, None)
    apply_answer(cache, ORDERS, asked=ALL)
    assert cache.age() == 0.0


def test_an_all_topics_answer_of_another_cluster_does_not_count(cache: MetadataCache) -> None:
    apply_answer(cache, ORDERS, asked=ALL)
    body = frames.response(12, [ORDERS], cluster_id="another")
    cache.apply(body, 12, ["orders"], rebootstrapped=True)
    assert cache.age() is None
    cache.apply(body, 12, ALL)
    assert cache.age() == 0.0


def test_each_cache_has_a_session_of_its_own() -> None:
    assert MetadataCache().session != MetadataCache().session
