"""The usual calls on kafka-python's own object and on rdmeta's give the same results."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import frames
import pytest
from cluster_answers import answer, feed
from frames import B, P, T
from kafka.cluster import ClusterMetadata as Original
from kafka.protocol.metadata import MetadataResponse
from kafka.structs import TopicPartition

from rdmeta import NOT_CACHED, WAITING, EmbeddedCluster, MetadataCache
from rdmeta.compat.kafka_python import ClusterMetadata

VERSION = 8


def decoded(body: bytes, version: int) -> Any:
    """Returns an answer as kafka-python decodes it."""
    return MetadataResponse.decode(body, version=version)


def pair(body: bytes, version: int) -> tuple[Any, Any]:
    """Returns (theirs, ours), both with the same answer."""
    theirs = Original(bootstrap_servers=["boot.example:9093"])
    theirs.update_metadata(decoded(body, version))
    cache = MetadataCache()
    feed(cache, body, version)
    return theirs, ClusterMetadata(cache, bootstrap_servers=["boot.example:9093"])


def fields(broker: Any) -> Any:
    """Returns a broker's type and values, None for None."""
    if broker is None:
        return None
    return type(broker), broker.node_id, broker.host, broker.port, broker.rack


IDIOMS: dict[str, Callable[[Any], Any]] = {
    "brokers": lambda c: sorted(map(fields, c.brokers()), key=repr),
    "broker_metadata": lambda c: [fields(c.broker_metadata(i)) for i in (1, 3, 99)],
    "a bootstrap server": lambda c: fields(c.broker_metadata("bootstrap-0")),
    "bootstrap_brokers": lambda c: [fields(b) for b in c.bootstrap_brokers()],
    "is_bootstrap": lambda c: (c.is_bootstrap("bootstrap-0"), c.is_bootstrap(1)),
    "topics": lambda c: (c.topics(), c.topics(exclude_internal_topics=False)),
    "partitions_for_topic": lambda c: [c.partitions_for_topic(t) for t in ("orders", "nope")],
    "available": lambda c: [c.available_partitions_for_topic(t) for t in ("orders", "nope")],
    "leaders": lambda c: [
        c.leader_for_partition(TopicPartition(t, p))
        for t, p in (("orders", 0), ("orders", 3), ("orders", 99), ("nope", 0))
    ],
    "leader_epochs": lambda c: [
        c.leader_epoch_for_partition(TopicPartition(t, p)) for t, p in (("orders", 99), ("no", 0))
    ],
    "partitions_for_broker": lambda c: [c.partitions_for_broker(i) for i in (1, 2, 3, 99)],
    "is_replica_node": lambda c: fields(c.is_replica_node(TopicPartition("orders", 0), 99)),
    "controller": lambda c: fields(c.controller),
    "cluster_id": lambda c: c.cluster_id,
    "unauthorized_topics": lambda c: c.unauthorized_topics,
    "internal_topics": lambda c: c.internal_topics,
    "get_coordinator": lambda c: c.get_coordinator("group"),
    "refresh_backoff": lambda c: c.refresh_backoff(),
    # from a partitioner: every partition when none has a leader
    "a partitioner": lambda c: sorted(
        c.available_partitions_for_topic("orders") or c.partitions_for_topic("orders")
    ),
    # from an assignor: topic -> number of partitions
    "an assignor": lambda c: {t: len(c.partitions_for_topic(t)) for t in c.topics()},
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_gives_what_kafka_python_s_own_object_gives(
    cluster: EmbeddedCluster, idiom: str
) -> None:
    cluster.create_topic("orders", partitions=4, replication_factor=3)
    cluster.create_topic("payments", partitions=2, replication_factor=1)
    theirs, ours = pair(answer(cluster, VERSION), VERSION)
    assert IDIOMS[idiom](ours) == IDIOMS[idiom](theirs)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_leaderless_internal_and_denied_topics_look_as_in_kafka_python(idiom: str) -> None:
    body = frames.response(
        12,
        topics=[
            T("orders", [P(0, 1, 7), P(3, -1, 8, error=5)], id=frames.topic_id(1)),
            T("__consumer_offsets", [P(0, 2)], internal=True, id=frames.topic_id(2)),
        ],
        brokers=[B(1), B(2, rack="a"), B(3)],
    )
    theirs, ours = pair(body, 12)
    assert IDIOMS[idiom](ours) == IDIOMS[idiom](theirs)


def test_epochs_and_ids_are_the_same_as_kafka_python_s() -> None:
    raw = frames.topic_id(1)
    theirs, ours = pair(frames.response(12, topics=[T("orders", [P(0, 1, 7)], id=raw)]), 12)
    for each in (theirs, ours):
        assert each.leader_epoch_for_partition(TopicPartition("orders", 0)) == 7
        assert each.topic_id("orders") == uuid.UUID(bytes=raw)
        assert each.topic_name_for_id(uuid.UUID(bytes=raw)) == "orders"
        assert each.topic_id("nope") is None
        assert each.topic_name_for_id(uuid.UUID(int=1)) is None
        assert fields(each.is_replica_node(TopicPartition("orders", 0), 2))[1] == 2
        assert each.update_partition_leader(TopicPartition("orders", 0), 3, 8) is True
        assert each.update_partition_leader(TopicPartition("orders", 0), 2, 8) is False
        assert each.leader_for_partition(TopicPartition("orders", 0)) == 3


def test_an_answer_that_kafka_python_decoded_updates_the_cache() -> None:
    body = frames.response(12, topics=[T("orders", [P(0, 2, 7)], id=frames.topic_id(1))])
    ours = ClusterMetadata(MetadataCache())
    assert ours.ttl() == 0
    ours.update_metadata(decoded(body, 12))
    assert ours.cache.leader("orders", 0) == 2
    assert 0 < ours.ttl() <= 300_000


def test_an_answer_ends_and_removes_nothing_that_came_after_its_request() -> None:
    orders = T("orders", [P(0, 2, 7)])
    body = frames.response(12, topics=[orders])
    cache = MetadataCache()
    ours = ClusterMetadata(cache)
    ours.need_all_topic_metadata = True
    ours.update_metadata(decoded(body, 12))
    ours.metadata_request()
    cache.apply(frames.response(12, topics=[T("news", [P(0, 3)])]), 12)
    cache.hint(["later"])
    ours.metadata_request()
    ours.update_metadata(decoded(body, 12))
    assert ours.topics() == {"orders", "news"}
    assert cache.state("later") == WAITING
    ours.update_metadata(decoded(body, 12))
    assert ours.topics() == {"orders"}
    assert cache.state("later") == NOT_CACHED


def test_a_partial_answer_ends_no_hint_that_came_after_its_request() -> None:
    body = frames.response(12, topics=[T("orders", [P(0, 2, 7)])])
    cache = MetadataCache()
    ours = ClusterMetadata(cache)
    ours.metadata_request()
    cache.hint(["orders"])
    ours.update_metadata(decoded(body, 12))
    assert cache.stats()["hints"] == 1
    ours.update_metadata(decoded(body, 12))
    assert cache.stats()["hints"] == 0


def test_a_requested_update_ends_the_future_and_calls_listeners() -> None:
    asked: list[set[str] | None] = []
    cache = MetadataCache()
    ours = ClusterMetadata(cache, refresh=asked.append)
    heard, called = [], threading.Event()

    def listener(cluster: Any) -> None:
        heard.append(cluster)
        called.set()

    ours.add_listener(listener)
    future = ours.add_topic("orders")
    assert (asked, ours.need_update, future.is_done, ours.ttl()) == ([{"orders"}], True, False, 0)
    feed(cache, frames.response(12, topics=[T("orders")]), 12)
    assert called.wait(10)
    assert future.succeeded()
    assert future.value is ours
    assert heard[0] is ours
    assert not ours.need_update
    assert ours.add_topic("orders").succeeded()
    assert len(asked) == 1
    ours.remove_listener(listener)
    ours.remove_listener(listener)


def test_an_answer_that_changes_nothing_ends_a_future_too() -> None:
    cache = MetadataCache()
    feed(cache, frames.response(12, topics=[T("orders")]), 12)
    ours, done = ClusterMetadata(cache), threading.Event()
    ours.request_update().add_callback(lambda _: done.set())
    feed(cache, frames.response(12, topics=[T("orders")]), 12)
    assert done.wait(10)


def test_a_failed_update_ends_the_future() -> None:
    ours = ClusterMetadata(MetadataCache())
    future = ours.request_update()
    ours.failed_update(OSError("no route"))
    assert future.failed()
    assert str(future.exception) == "no route"


def test_the_thread_ends_when_there_are_no_listeners() -> None:
    before = threading.enumerate()
    ours = ClusterMetadata(MetadataCache())
    ours.add_listener(print)
    (thread,) = set(threading.enumerate()) - set(before)
    assert thread.name == "rdmeta-compat"
    ours.close()
    thread.join(10)
    assert not thread.is_alive()


def test_a_coordinator_is_kept_as_in_kafka_python() -> None:
    class Found:
        error_code, node_id, host, port = 0, 2, "b2.example", 9092

    for each in (Original(), ClusterMetadata(MetadataCache())):
        assert each.add_coordinator(Found, "GROUP", "billing") == "coordinator-2"
        assert each.get_coordinator("billing") == "coordinator-2"
        assert each.broker_metadata("coordinator-2").host == "b2.example"
        assert each.get_coordinator("other") is None


def test_a_stale_topic_is_returned_as_in_kafka_python() -> None:
    from clocks import Clock

    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10)
    feed(cache, frames.response(12, topics=[T("orders", [P(0, 2)])]), 12)
    ours = ClusterMetadata(cache)
    clock.advance(100)
    assert ours.topics() == {"orders"}
    assert ours.partitions_for_topic("orders") == {0}
    assert ours.leader_for_partition(TopicPartition("orders", 0)) == 2
    assert str(ours).startswith("ClusterMetadata(brokers: 3")
