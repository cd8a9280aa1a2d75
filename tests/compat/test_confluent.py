"""confluent-kafka's users' idioms on `list_topics()`, asked of the same brokers by both."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import frames
import pytest
from answers import feed
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from frames import P, T

from rdmeta import EmbeddedCluster, MetadataCache, RequestTimedOutError, fetch
from rdmeta.compat.confluent import ClusterLister, list_topics


def tree(found: Any) -> Any:
    """Everything that is in a ClusterMetadata, and of which types it is."""
    return (
        type(found),
        found.cluster_id,
        {i: (type(b), b.id, b.host, b.port, str(b), repr(b)) for i, b in found.brokers.items()},
        {
            name: (
                type(t),
                t.topic,
                t.error and (type(t.error), t.error.code()),
                {
                    i: (type(p), p.id, p.leader, p.replicas, p.isrs, p.error and p.error.code())
                    for i, p in t.partitions.items()
                },
                str(t),
                repr(t),
            )
            for name, t in found.topics.items()
        },
    )


IDIOMS: dict[str, Callable[[Any], Any]] = {
    "all of it": lambda admin: tree(admin.list_topics(timeout=10)),
    "one topic": lambda admin: tree(admin.list_topics("orders", timeout=10)),
    "by keyword": lambda admin: tree(admin.list_topics(topic="orders", timeout=10)),
    "exists": lambda admin: "orders" in admin.list_topics(timeout=10).topics,
    "partitions": lambda admin: len(admin.list_topics("orders").topics["orders"].partitions),
    "by leader": lambda admin: [
        (t.topic, p.id)
        for t in admin.list_topics().topics.values()
        for p in t.partitions.values()
        if p.leader == 1
    ],
    "controller": lambda admin: admin.list_topics(timeout=10).controller_id,
    "cluster id": lambda admin: admin.cluster_id(timeout=10),
    "str": lambda admin: (str(admin.list_topics()), repr(admin.list_topics())),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_gives_what_confluent_kafka_gives(cluster: EmbeddedCluster, idiom: str) -> None:
    cluster.create_topic("orders", partitions=4, replication_factor=3)
    cluster.create_topic("payments", partitions=2, replication_factor=1)
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    theirs = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert IDIOMS[idiom](ClusterLister(cache)) == IDIOMS[idiom](theirs)


def test_who_told_it_is_named_as_confluent_kafka_does(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=1, replication_factor=1)
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    fetch(cache, cluster.bootstrap)  # by now the server's id is known
    found = list_topics(cache)
    broker = found.brokers[found.orig_broker_id]
    assert found.orig_broker_name == f"{broker.host}:{broker.port}/{broker.id}"


def test_a_topic_that_does_not_exist_is_there_with_its_error() -> None:
    cache = MetadataCache(negative_ttl=60)
    body = frames.response(12, topics=[T("gone", [], error=3), T("secret", [], error=29)])
    cache.apply(body, 12, ["gone", "secret"])
    for name, code in (
        ("gone", KafkaError.UNKNOWN_TOPIC_OR_PART),
        ("secret", KafkaError.TOPIC_AUTHORIZATION_FAILED),
    ):
        found = list_topics(cache, name, 0).topics[name]
        assert (found.error.code(), found.partitions) == (code, {})


def test_a_leaderless_partition_has_leader_minus_one_and_its_error() -> None:
    cache = MetadataCache()
    feed(cache, frames.response(12, topics=[T("orders", [P(0, 2, 1)])]), 12)
    feed(cache, frames.response(12, topics=[T("orders", [P(0, -1, 2, error=5)])]), 12)
    for found in (list_topics(cache), list_topics(cache, "orders")):
        partition = found.topics["orders"].partitions[0]
        assert (partition.leader, partition.error.code()) == (
            -1,
            KafkaError.LEADER_NOT_AVAILABLE,
        )


def test_a_topic_that_nobody_has_told_of_is_waited_for_and_asked_for() -> None:
    cache, asked = MetadataCache(), []

    def refresh(topic: str | None) -> None:
        asked.append(topic)
        body = frames.response(12, topics=[T("orders")])
        threading.Timer(0.05, feed, (cache, body, 12)).start()

    found = ClusterLister(cache, refresh).list_topics("orders", timeout=30)
    assert list(found.topics) == asked == ["orders"]


def test_a_wait_ends_with_its_time() -> None:
    with pytest.raises(RequestTimedOutError, match="orders"):
        list_topics(MetadataCache(), "orders", 0.05)
    with pytest.raises(RequestTimedOutError, match="broker"):
        list_topics(MetadataCache(), timeout=0)
