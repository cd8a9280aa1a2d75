"""The public names of the originals, and the functions that take a name."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import aiokafka.cluster
import frames
import kafka.cluster
import pytest
from aiokafka.structs import PartitionMetadata, TopicPartition
from cluster_answers import feed
from frames import P, T
from kafka.protocol.metadata import MetadataResponse

from rdmeta import MetadataCache
from rdmeta.compat import aiokafka as ours_aiokafka
from rdmeta.compat import kafka_python as ours_kafka

# The names that the originals have and rdmeta's classes do not have, with the reason.
MISSING = {
    kafka.cluster.ClusterMetadata: {
        "attach": "ties it to kafka-python's connection manager, which ours does not use",
        "refresh_metadata": "asks by that manager; ours is fed by rdmeta.fetch() or a client",
        "start_refresh_loop": "runs in that manager's loop",
    },
    aiokafka.cluster.ClusterMetadata: {},
}
PAIRS = [
    (kafka.cluster.ClusterMetadata, ours_kafka.ClusterMetadata),
    (aiokafka.cluster.ClusterMetadata, ours_aiokafka.ClusterMetadata),
]


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize(("original", "ours"), PAIRS)
def test_every_public_name_of_the_original_is_there_or_has_a_reason(
    original: Any, ours: Any
) -> None:
    theirs, mine = original(), ours(MetadataCache())
    assert public(theirs) - public(mine) == set(MISSING[original])
    for name in public(theirs) & public(mine):
        method = getattr(theirs, name)
        if callable(method):
            parameters = inspect.signature(method).parameters
            assert [*inspect.signature(getattr(mine, name)).parameters] == [*parameters], name
        assert callable(method) == callable(getattr(mine, name)), name


@pytest.mark.parametrize("name", ["bad topic", "", ".", "..", "x" * 250, "a/b", 5, None, b"a"])
def test_an_illegal_topic_name_is_refused_as_in_kafka_python(name: Any) -> None:
    for each in (kafka.cluster.ClusterMetadata(), ours_kafka.ClusterMetadata(MetadataCache())):
        wrong = ValueError if isinstance(name, str) else TypeError
        with pytest.raises(wrong):
            each.add_topic(name)
        with pytest.raises(wrong):
            each.set_topics(["fine", name])
        assert each.metadata_request().topics == []


def test_the_request_is_the_same_as_kafka_python_s() -> None:
    for wanted in ([], ["orders"], ["x" * 249, "a.b_c-D"]):
        for everything in (False, True):
            results: list[str] = []
            theirs, ours = (
                kafka.cluster.ClusterMetadata(),
                ours_kafka.ClusterMetadata(MetadataCache()),
            )
            both: tuple[Any, ...] = (theirs, ours)
            for each in both:
                each.set_topics(wanted)
                each.need_all_topic_metadata = everything
                request = each.metadata_request()
                request.topics = request.topics and sorted(request.topics, key=repr)
                results.append(repr(request))
            assert results[0] == results[1]


def test_leader_hints_give_the_same_leaders_as_in_kafka_python() -> None:
    body = frames.response(12, topics=[T("orders", [P(0, 1, 5), P(1, 1, 5)])])
    theirs, ours = kafka.cluster.ClusterMetadata(), ours_kafka.ClusterMetadata(MetadataCache())
    results: list[list[Any]] = [[], []]
    for each, log in zip((theirs, ours), results, strict=True):
        each.update_metadata(MetadataResponse.decode(body, version=12))
        for topic, id, leader, epoch in (
            ("orders", 0, 2, 6),
            ("orders", 0, 3, 6),
            ("orders", 0, -1, 7),
            ("orders", 0, -1, 7),
            ("orders", 0, 2, 6),
            ("orders", 9, 1, 9),
            ("nope", 0, 1, 1),
            ("orders", 0, 2, -1),
            ("orders", 0, 3, 8),
            ("orders", 0, -1, 9),
        ):
            at = TopicPartition(topic, id)
            log.append((topic, id, leader, epoch, each.update_partition_leader(at, leader, epoch)))
            log.append(each.leader_for_partition(at))
            log.append(each.leader_epoch_for_partition(at))
            log.append(each.available_partitions_for_topic("orders"))
            log.append([set(each.partitions_for_broker(broker) or ()) for broker in (1, 2, 3)])
        each.update_metadata(MetadataResponse.decode(body, version=12))
        log.append(each.leader_for_partition(TopicPartition("orders", 1)))
    assert results[1] == results[0]
    for each in (theirs, ours):  # no epoch is known before v7
        body = frames.response(5, topics=[T("old", [P(0, 1)])])
        each.update_metadata(MetadataResponse.decode(body, version=5))
        assert each.update_partition_leader(TopicPartition("old", 0), -1, 0) is True
        assert each.leader_for_partition(TopicPartition("old", 0)) == -1
    # An answer ends a hint that removed a leader; newer leaders in the cache stay.
    assert ours.leader_for_partition(TopicPartition("orders", 0)) == 3


def test_a_copy_with_more_partitions_is_the_same_as_aiokafka_s() -> None:
    body = frames.response(5, topics=[T("orders", [P(0, 1)]), T("other", [P(0, 2)])])
    cache = MetadataCache()
    feed(cache, body, 5)
    ours = ours_aiokafka.ClusterMetadata(cache)
    theirs = aiokafka.cluster.ClusterMetadata()
    import io

    from aiokafka.protocol.metadata import MetadataResponse_v5

    theirs.update_metadata(MetadataResponse_v5.decode(io.BytesIO(body)))
    more = [
        PartitionMetadata("orders", 1, 2, [2], [2], None),
        PartitionMetadata("orders", 2, -1, [2], [], None),
    ]
    results = []
    for each in (theirs, ours):
        copy = each.with_partitions(more[:1]).with_partitions(more[1:])
        results.append(
            (
                copy.topics(),
                copy.brokers(),
                copy.partitions_for_topic("orders"),
                copy.available_partitions_for_topic("orders"),
                [copy.leader_for_partition(TopicPartition("orders", id)) for id in range(4)],
                [copy.partitions_for_broker(id) for id in (1, 2, 3)],
                copy.partitions_for_topic("other"),
                each.partitions_for_topic("orders"),
            )
        )
        with pytest.raises(KeyError):
            each.with_partitions([PartitionMetadata("nope", 0, 1, [1], [1], None)])
    assert results[0] == results[1]
    before = ours.with_partitions(more)
    feed(cache, frames.response(5, topics=[T("new")]), 5)
    assert "new" not in before.topics()


SERVERS = [
    "a",
    "a:1",
    "a:1,b:2",
    " a:1 , b ",
    ["a:1", "b"],
    ("a:1", "a:1"),
    "::1",
    "[::1]",
    "[::1]:9093",
    "fe80::1,b:2",
    "127.0.0.1:9093",
    "PLAINTEXT://a:1",
    "SASL_SSL://a:1,PLAINTEXT://[::1]:2",
    ["PLAINTEXT://::1", "x://y://a"],
    "a:-1",
    "",
    [],
    "a:1,",
    "a:b",
    "a:",
    "[::1",
    "[::1]:",
    "::x",
]


@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize(("original", "ours"), PAIRS)
def test_bootstrap_servers_are_read_as_the_original_reads_them(
    original: Any, ours: Any, servers: Any
) -> None:
    results: list[Any] = []
    for make in (original, partial(ours, MetadataCache())):
        try:
            made = make(bootstrap_servers=servers)
        except ValueError:
            results.append("ValueError")
            continue
        found = [made.broker_metadata(f"bootstrap-{i}") for i in range(3)]
        results.append(sorted((b.host, b.port) for b in found if b is not None))
    assert results[1] == results[0]


@pytest.mark.parametrize(("_original", "ours"), PAIRS)
def test_a_bootstrap_server_that_cannot_be_read_is_named(_original: Any, ours: Any) -> None:
    with pytest.raises(ValueError, match=r"not a bootstrap server: 'b:x'; expected host"):
        ours(MetadataCache(), bootstrap_servers="a:1,b:x")
    with pytest.raises(TypeError, match="must be a str, not int"):
        ours(MetadataCache(), bootstrap_servers=[5])


@pytest.mark.parametrize(("_original", "ours"), PAIRS)
@pytest.mark.parametrize("servers", ["u:very,secret@b:x", ["u:secret@b:x"], "a:1?p=secret"])
def test_no_secret_of_a_bootstrap_server_is_repeated(
    _original: Any, ours: Any, servers: Any
) -> None:
    with pytest.raises(ValueError, match="bootstrap server") as raised:
        ours(MetadataCache(), bootstrap_servers=servers)
    assert not any(word in str(raised.value) for word in ("very", "secret"))
