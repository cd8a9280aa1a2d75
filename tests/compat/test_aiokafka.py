"""The usual calls on aiokafka's own object and on rdmeta's give the same for the same bytes."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import frames
import pytest
from aiokafka.cluster import ClusterMetadata as Original
from aiokafka.protocol.metadata import MetadataResponse_v5
from aiokafka.structs import TopicPartition
from cluster_answers import answer, feed
from frames import B, P, T

from rdmeta import EmbeddedCluster, MetadataCache
from rdmeta.compat.aiokafka import ClusterMetadata

VERSION = 5


def decoded(body: bytes) -> Any:
    """Returns an answer as aiokafka decodes it, which speaks v5 at most."""
    return MetadataResponse_v5.decode(io.BytesIO(body))


def pair(body: bytes) -> tuple[Any, Any]:
    """Returns (theirs, ours), both with the same answer."""
    theirs = Original(bootstrap_servers=["boot.example:9093"])
    theirs.need_all_topic_metadata = True
    theirs.update_metadata(decoded(body))
    cache = MetadataCache()
    feed(cache, body, VERSION)
    return theirs, ClusterMetadata(cache, bootstrap_servers=["boot.example:9093"])


IDIOMS: dict[str, Callable[[Any], Any]] = {
    "brokers": lambda c: c.brokers(),
    "types": lambda c: {type(b) for b in c.brokers()},
    "broker_metadata": lambda c: [c.broker_metadata(i) for i in (1, 3, 99, "bootstrap-0")],
    "is_bootstrap": lambda c: (c.is_bootstrap("bootstrap-0"), c.is_bootstrap(1)),
    "topics": lambda c: (c.topics(), c.topics(exclude_internal_topics=False)),
    "partitions_for_topic": lambda c: [c.partitions_for_topic(t) for t in ("orders", "nope")],
    "available": lambda c: [c.available_partitions_for_topic(t) for t in ("orders", "nope")],
    "leaders": lambda c: [
        c.leader_for_partition(TopicPartition(t, p))
        for t, p in (("orders", 0), ("orders", 3), ("orders", 99), ("nope", 0))
    ],
    "partitions_for_broker": lambda c: [c.partitions_for_broker(i) for i in (1, 2, 3, 99)],
    "controller": lambda c: c.controller,
    "internal_topics": lambda c: c.internal_topics,
    "unauthorized_topics": lambda c: c.unauthorized_topics,
    # what AIOKafkaConsumer.topics() and partitions_for_topic() call
    "a consumer": lambda c: {t: sorted(c.partitions_for_topic(t)) for t in c.topics()},
    # the brokers that a client asks for offsets
    "by leader": lambda c: {
        b.nodeId: sorted(c.partitions_for_broker(b.nodeId) or ()) for b in c.brokers()
    },
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_gives_what_aiokafka_s_own_object_gives(
    cluster: EmbeddedCluster, idiom: str
) -> None:
    cluster.create_topic("orders", partitions=4, replication_factor=3)
    cluster.create_topic("payments", partitions=2, replication_factor=1)
    theirs, ours = pair(answer(cluster, VERSION))
    assert IDIOMS[idiom](ours) == IDIOMS[idiom](theirs)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_leaderless_and_internal_topics_look_as_in_aiokafka(idiom: str) -> None:
    body = frames.response(
        VERSION,
        topics=[
            T("orders", [P(0, 1), P(3, -1, error=5)]),
            T("__consumer_offsets", [P(0, 2)], internal=True),
        ],
        brokers=[B(1), B(2, rack="a"), B(3)],
    )
    theirs, ours = pair(body)
    assert IDIOMS[idiom](ours) == IDIOMS[idiom](theirs)


def test_bootstrap_servers_are_the_brokers_while_none_is_known() -> None:
    both = [
        Original(bootstrap_servers="boot.example:9093"),
        ClusterMetadata(MetadataCache(), bootstrap_servers="boot.example:9093"),
    ]
    assert both[0].brokers() == both[1].brokers() != set()


def test_an_answer_that_aiokafka_decoded_updates_the_cache() -> None:
    ours = ClusterMetadata(MetadataCache())
    ours.update_metadata(decoded(frames.response(VERSION, topics=[T("orders", [P(0, 2)])])))
    assert ours.cache.leader("orders", 0) == 2


def test_a_listener_is_called_in_the_loop_that_it_was_added_in() -> None:
    cache = MetadataCache()
    ours = ClusterMetadata(cache)

    async def main() -> None:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()

        def listener(cluster: Any) -> None:
            assert asyncio.get_running_loop() is loop
            assert cluster is ours
            heard.set()

        ours.add_listener(listener)
        future = asyncio.wrap_future(ours.request_update())
        feed(cache, frames.response(VERSION, topics=[T("orders")]), VERSION)
        assert await asyncio.wait_for(future, 10) is ours
        await asyncio.wait_for(heard.wait(), 10)
        ours.remove_listener(listener)
        with pytest.raises(KeyError):
            ours.remove_listener(listener)

    asyncio.run(main())


def test_an_update_that_failed_raises_where_it_is_awaited() -> None:
    ours = ClusterMetadata(MetadataCache())
    future = ours.request_update()
    ours.failed_update(OSError("no route"))
    with pytest.raises(OSError, match="no route"):
        future.result(10)
