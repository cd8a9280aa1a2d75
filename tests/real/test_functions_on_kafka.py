"""Spark writes to Apache Kafka by leader: the same partitions, fewer connections, fewer batches."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import spark_kafka_job
from confluent_kafka import Consumer, Producer
from processes import environment
from real_kafka import JARS, RealKafka
from spark_kafka_job import PLAN, ROWS, TASKS, key_of

from rdmeta import MetadataCache, fetch

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(240)]

PARTITIONS = 12
PRODUCE = 0
CONNECTOR = JARS.parent / "spark-kafka" / "4.2.0"
# A batch's head: base offset, length, leader epoch, magic.
_BATCH = struct.Struct(">qiib")


class Written(NamedTuple):
    """By topic: the partition of each key; connections that carried records; batches."""

    landed: dict[str, dict[bytes, int]]
    connections: dict[str, int]
    batches: dict[str, int]


def plain_producer(kafka: RealKafka, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2_random"})
    for number in range(ROWS):
        producer.produce(topic, str(number), key_of(number))
    assert producer.flush(60) == 0


def landed(kafka: RealKafka, topic: str) -> dict[bytes, int]:
    """Returns the partition of each key; fails if one came twice."""
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap, "group.id": f"of-{topic}",
        "auto.offset.reset": "earliest",
    })  # fmt: skip
    consumer.subscribe([topic])
    found: dict[bytes, int] = {}
    try:
        while len(found) < ROWS:
            message = consumer.poll(30)
            assert message is not None, f"{topic}: {len(found)} of {ROWS} records"
            assert message.error() is None
            key = message.key()
            assert isinstance(key, bytes)
            assert key not in found
            found[key] = message.partition() or 0
    finally:
        consumer.close()
    return found


def batches(kafka: RealKafka, topic: str) -> int:
    """Returns how many batches the brokers' logs have; each partition has one replica."""
    count = 0
    for log in kafka.directory.glob(f"n*/{topic}-*/*.log"):
        data, at = log.read_bytes(), 0
        while at + _BATCH.size <= len(data):
            _, length, _, magic = _BATCH.unpack_from(data, at)
            if magic != 2:
                break
            count, at = count + 1, at + 12 + length
    return count


def connections(kafka: RealKafka, topic: str) -> int:
    """Returns how many connections of the topic's producers carried records."""
    return len({
        (node, request.connection)
        for node, proxy in kafka.proxies.items()
        for request in proxy.requests
        if request.client_id == topic and request.api_key == PRODUCE
    })  # fmt: skip


@pytest.fixture
def result(kafka: RealKafka, tmp_path: Path) -> Written:
    """Runs the job after a plain producer has written the same records to the topic `plain`."""
    if not CONNECTOR.is_dir():
        maven = "" if shutil.which("mvn") else ", and Maven is not installed"
        pytest.skip(f"Spark's Kafka connector is not here: `make kafka-jars` fetches it{maven}")
    nodes = list(kafka.nodes)
    for topic in ("plain", *PLAN):
        kafka.create(topic, [[nodes[i % len(nodes)]] for i in range(PARTITIONS)])
    plain_producer(kafka, "plain")
    cache = MetadataCache()
    fetch(cache, kafka.address(1), list(PLAN), timeout=10)
    cache.image().save(tmp_path / "image")
    job = str(spark_kafka_job.__file__)
    words = [kafka.bootstrap, kafka.client_bootstrap, str(tmp_path / "image"), str(CONNECTOR)]
    done = subprocess.run(
        [sys.executable, job, *words], env=environment(), capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout.split() == [str(TASKS)] * 2
    topics = ("plain", *PLAN)
    return Written(
        {topic: landed(kafka, topic) for topic in topics},
        {topic: connections(kafka, topic) for topic in topics},
        {topic: batches(kafka, topic) for topic in topics},
    )


def test_records_by_leader_are_in_the_same_partitions_with_fewer_connections_and_batches(
    kafka: RealKafka, result: Written
) -> None:
    for topic in PLAN:
        assert result.landed[topic] == result.landed["plain"], topic
    print(result.connections, result.batches)
    brokers = len(kafka.nodes)
    # A producer in each task: each one talked to all brokers, and now talks to one.
    assert result.connections["tasks-plain"] == TASKS * brokers
    assert result.connections["tasks-by-leader"] == TASKS
    # A batch for each task and partition became one for each partition.
    assert result.batches["tasks-plain"] == TASKS * PARTITIONS
    assert result.batches["tasks-by-leader"] == PARTITIONS
    # Tasks of Spark's sink share a producer, and its sender decides when a batch is full.
    assert result.batches["sink-plain"] >= 0.5 * TASKS * PARTITIONS
    assert result.batches["sink-plain"] >= 3 * result.batches["sink-by-leader"]
