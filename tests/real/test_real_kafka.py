"""The cache against Apache Kafka itself, if `make kafka-jars` has fetched it."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import UUID

import pytest
from commanded import Commanded
from commands import run
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from real_kafka import RealKafka
from scenario_run import rotated
from scrape import scraped, single

from rdmeta import (
    ALL,
    Client,
    InvalidTopicError,
    MetadataCache,
    UnknownTopicError,
    encode_metadata_request,
    fetch,
)
from rdmeta.config.address import parse_bootstrap
from rdmeta.model import operation_names
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.row_filter import RowFilter
from rdmeta.spark.source.schemas import arrow_schema
from rdmeta.spark.source.states import slices_of_state

pytestmark = pytest.mark.timeout(150)
# The Metadata versions that brokers speak.
SPOKEN = {"4.3.0": range(14), "3.9.1": range(13)}
SOON = 40.0


@pytest.fixture
def kafka(commanded: Commanded) -> RealKafka:
    return commanded.kafka


@pytest.fixture
def cache() -> MetadataCache:
    return MetadataCache()


def create(kafka: RealKafka, name: str, partitions: int = 3) -> None:
    """Creates a topic with replicas on all nodes; they lead its partitions in turn."""
    kafka.create(name, [rotated(kafka.nodes, p % 3) for p in range(partitions)])


@pytest.mark.proof
def test_everything_is_the_same_as_in_confluents_client(
    kafka: RealKafka, admin: AdminClient, cache: MetadataCache
) -> None:
    create(kafka, "orders", 6)
    create(kafka, "audit", 1)
    fetch(cache, kafka.bootstrap)
    theirs = admin.list_topics(timeout=SOON)
    assert cache.cluster_id == kafka.cluster_id == theirs.cluster_id
    brokers: list[Any] = list(theirs.brokers.values())
    assert {b.id: (b.host, b.port) for b in cache.brokers} == {
        b.id: (b.host, b.port) for b in brokers
    }
    assert [b.rack for b in cache.brokers] == [f"rack-{b.id}" for b in cache.brokers]
    assert {"orders", "audit"} <= set(cache) == set(theirs.topics)
    for name, topic in theirs.topics.items():
        assert sorted(topic.partitions) == [p.partition for p in cache.topic(name).partitions]
        for number, partition in topic.partitions.items():
            ours = cache.partition(name, number)
            assert (ours.leader, ours.error) == (partition.leader, 0)
            assert list(ours.replicas) == partition.replicas
            assert sorted(ours.isr) == sorted(partition.isrs)
            assert ours.leader_epoch is not None
    version = cache.version
    assert fetch(cache, kafka.bootstrap).changed == 0
    assert cache.version == version


@pytest.mark.proof
def test_every_version_of_the_protocol_says_the_same(kafka: RealKafka, admin: AdminClient) -> None:
    create(kafka, "versions")
    wanted = None
    for version in SPOKEN[kafka.version]:
        deadline = Deadline(SOON)
        address = parse_bootstrap(kafka.bootstrap)[0]
        with Connection(address, deadline, "rdmeta", 1 << 24) as connection:
            spoken = connection.session.version_for(METADATA, version, version)
            body = encode_metadata_request(spoken, ALL, allow_auto_create=version < 4)
            answer = connection.request(METADATA, spoken, body, deadline)
        cache = MetadataCache()
        cache.apply(answer, version, ALL)
        topic = cache.topic("versions")
        found = [(p.partition, p.leader, p.replicas, set(p.isr)) for p in topic.partitions]
        wanted = wanted or found
        assert (spoken, found) == (version, wanted)
        assert (topic.topic_id is not None) == (version >= 10)
        assert (topic.partitions[0].leader_epoch is not None) == (version >= 9)
        assert (cache.cluster_id is not None) == (version >= 2)


@pytest.mark.proof
def test_a_topic_deleted_and_made_again_is_another_one(
    kafka: RealKafka, admin: AdminClient, cache: MetadataCache
) -> None:
    create(kafka, "again", 2)
    fetch(cache, kafka.bootstrap, ["again"])
    first = cache.topic("again").topic_id
    assert first is not None
    since = cache.version
    admin.delete_topics(["again"])["again"].result(SOON)

    def is_unknown() -> bool:
        fetch(cache, kafka.bootstrap, ["again"])
        return "again" not in cache

    kafka.until(is_unknown, "the topic is gone")
    create(kafka, "again", 3)
    fetch(cache, kafka.bootstrap, ["again"])
    topic = cache.topic("again")
    assert topic.topic_id not in (None, first)
    assert len(topic.partitions) == 3
    kinds = [c.kind for c in cache.changes(since).records if c.topic == "again"]
    # The only broker, or a second one, that does not know the topic removes it.
    assert "topic_recreated" in kinds or kinds[-2:] == ["topic_removed", "topic_added"], kinds


@pytest.mark.slow
def test_a_topic_is_fetched_by_its_id(
    kafka: RealKafka, admin: AdminClient, cache: MetadataCache
) -> None:
    create(kafka, "by-id")
    fetch(cache, kafka.bootstrap, ["by-id"])
    known = cache.topic("by-id").topic_id
    other = MetadataCache()
    fetch(other, kafka.bootstrap, [UUID(bytes=base64.urlsafe_b64decode(f"{known}=="))])
    assert other.topic("by-id").topic_id == known


@pytest.mark.slow
def test_each_new_partition_has_a_change_record(
    kafka: RealKafka, admin: AdminClient, cache: MetadataCache
) -> None:
    create(kafka, "grows", 2)
    fetch(cache, kafka.bootstrap, ["grows"])
    since = cache.version
    admin.create_partitions([NewPartitions("grows", 5)])["grows"].result(SOON)

    def has_grown() -> bool:
        asked = (kafka.asked(node, ["grows"]) for node in kafka.nodes)
        return all(len(each.available("grows", ())) == 5 for each in asked)

    kafka.until(has_grown, "five partitions")
    fetch(cache, kafka.bootstrap, ["grows"])
    assert len(cache.topic("grows").partitions) == 5
    added = [c for c in cache.changes(since).records if c.kind == "partitions_added"]
    assert {c.topic for c in added} == {"grows"}


@pytest.mark.slow
@pytest.mark.kills
def test_a_broker_that_stops_leaves_isrs_and_its_leaders_move(
    kafka: RealKafka, admin: AdminClient, cache: MetadataCache
) -> None:
    create(kafka, "moves", 6)
    fetch(cache, kafka.bootstrap)
    before = {p.partition: p for p in cache.topic("moves").partitions}
    stopped = 3
    assert any(p.leader == stopped for p in before.values())
    since = cache.version
    kafka.stop(stopped)

    def has_left() -> bool:
        fetch(cache, kafka.bootstrap)
        return all(
            stopped not in p.isr and p.leader not in (None, stopped)
            for p in cache.topic("moves").partitions
        ) and stopped not in {b.id for b in cache.brokers}

    kafka.until(has_left, "the broker has left")
    for p in cache.topic("moves").partitions:
        was = before[p.partition]
        assert (p.leader_epoch or 0) >= (was.leader_epoch or 0)
        if was.leader == stopped:
            assert (p.leader_epoch or 0) > (was.leader_epoch or 0)
    kinds = {c.kind for c in cache.changes(since).records}
    assert {"leader_changed", "isr_changed", "broker_removed"} <= kinds
    kafka.start(stopped)

    def is_back() -> bool:
        fetch(cache, kafka.bootstrap)
        return all(len(p.isr) == 3 for p in cache.topic("moves").partitions)

    kafka.until(is_back, "the broker is back in every ISR")
    assert stopped in {b.id for b in cache.brokers}


@pytest.mark.proof
def test_the_least_in_sync_replicas_are_read_back(kafka: RealKafka, admin: AdminClient) -> None:
    config = {"min.insync.replicas": "2", "retention.ms": "7"}
    kafka.create("strict", [[1], [2]], config)
    create(kafka, "plain", 1)
    with Client({"bootstrap.servers": kafka.bootstrap}) as client:
        found = client.describe_configs(
            ["strict", "plain", "nope", "no topic"], ["min.insync.replicas"], timeout=SOON
        )
        assert found["strict"] == (None, {"min.insync.replicas": "2"})
        assert found["plain"] == (None, {"min.insync.replicas": "1"})
        assert isinstance(found["nope"].error, UnknownTopicError)
        assert isinstance(found["no topic"].error, InvalidTopicError)
        everything = client.describe_configs("strict", timeout=SOON)["strict"]
    assert everything.error is None
    assert everything.values["retention.ms"] == "7"
    assert everything.values["cleanup.policy"] == "delete"
    assert len(everything.values) > 20


@pytest.mark.slow
def test_the_data_source_of_spark_reads_the_configurations_of_topics(
    kafka: RealKafka, admin: AdminClient
) -> None:
    kafka.create("sourced", [[1]], {"min.insync.replicas": "2"})
    options = Options.parse(
        {"bootstrap.servers": kafka.bootstrap, "table": "configs", "topic": "sourced"}
    )
    tables = [
        rows
        for each in slices_of_state(options, RowFilter.of(options))
        for rows in each.rows(arrow_schema("configs"))
    ]
    found = {row["key"]: row for rows in tables for row in rows.to_pylist()}
    assert found["min.insync.replicas"]["value"] == "2"
    assert {(row["topic"], row["error"]) for row in found.values()} == {("sourced", None)}
    assert len(found) > 20


@pytest.mark.slow
def test_the_authorised_operations_are_read(
    kafka: RealKafka, admin: AdminClient, cache: MetadataCache
) -> None:
    """The client is a user who may do everything."""
    create(kafka, "allowed", 1)
    applied = fetch(cache, kafka.bootstrap, ["allowed"], operations=True)
    topic = cache.topic("allowed").operations
    assert topic is not None
    assert applied.cluster_operations is not None
    alterations = {"ALTER", "DESCRIBE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "CREATE"}
    assert {*operation_names(topic)} == alterations | {"READ", "WRITE", "DELETE"}
    assert {*operation_names(applied.cluster_operations)} == alterations | {
        "CLUSTER_ACTION",
        "IDEMPOTENT_WRITE",
    }


# The options of `rdmeta list`, and the metrics that count the same partitions.
CONDITIONS = {
    "--urp": "rdmeta_under_replicated_partitions",
    "--leaderless": "rdmeta_leaderless_partitions",
    "--offline": "rdmeta_offline_partitions",
    "--nonpreferred": "rdmeta_non_preferred_partitions",
}


def listed(kafka: RealKafka, condition: str) -> int:
    """Returns how many partitions `rdmeta list` shows with a condition."""
    done = run("list", "-b", kafka.bootstrap, condition, "--json")
    assert (done.code, done.err) == (0, "")
    return sum(len(topic["partitions"]) for topic in json.loads(done.out)["topics"])


@pytest.mark.slow
@pytest.mark.kills
def test_metrics_count_what_the_command_lists_while_a_broker_is_killed(
    kafka: RealKafka, admin: AdminClient
) -> None:
    create(kafka, "shared", 6)
    kafka.create("alone", [[3], [1]])
    conf = {"bootstrap.servers": kafka.bootstrap, "topic.metadata.refresh.interval.ms": 300}
    with Client(conf, topics=ALL) as client:

        def told() -> dict[str, float]:
            found = scraped(client)
            return {option: single(found, name) for option, name in CONDITIONS.items()}

        def are_the_same() -> bool:
            before, shown = told(), {each: listed(kafka, each) for each in CONDITIONS}
            return before == shown == told()

        client.wait_for_topic("alone", 1, timeout=SOON)
        kafka.until(lambda: not told()["--urp"], "every replica is in sync", SOON)
        kafka.until(are_the_same, "the command lists as many", SOON)
        found = scraped(client)
        assert single(found, "rdmeta_brokers") == 3
        kafka.kill(3)
        kafka.until(lambda: told()["--leaderless"] >= 1, "a partition has no leader", SOON)
        kafka.until(lambda: told()["--urp"] >= 7, "the broker has left each ISR", SOON)
        kafka.until(are_the_same, "the command lists as many", SOON)
        found = scraped(client)
        assert told()["--offline"] >= 7
        assert single(found, "rdmeta_brokers") == 2
        assert single(found, "rdmeta_up") == 1
        changes = found["rdmeta_changes_total"]
        assert changes["broker_removed",] == 1
        assert changes["isr_changed",] >= 6
        assert found["rdmeta_broker_leaders"]["3",] == 0
        kafka.start(3)
        kafka.until(lambda: not told()["--urp"], "the broker is back in every ISR", SOON)
        assert single(scraped(client), "rdmeta_brokers") == 3
