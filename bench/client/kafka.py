"""Apache Kafka for the client's benches, from the tests' tools: three nodes, or a secured one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import real_kafka
from kafka_security import LISTENERS, SECURE, KafkaSecurity
from real_kafka import RealKafka

from bench.figure import Missing

VERSION = "4.3.0"
NODES = 3
PATIENCE = 60.0
DELAY_MS = 100


@contextmanager
def started(proxied: bool = False) -> Iterator[RealKafka]:
    """Yields a running cluster; raises Missing without Java or without Kafka."""
    _check()
    with (
        tempfile.TemporaryDirectory() as directory,
        RealKafka(VERSION, NODES, Path(directory), proxied=proxied) as cluster,
    ):
        yield cluster


@contextmanager
def secured() -> Iterator[tuple[RealKafka, KafkaSecurity]]:
    """Yields a node with a listener of SASL_SSL, and what its clients need; raises Missing.

    The node waits as long as brokers do by default before it says that a login failed.
    """
    _check()
    with tempfile.TemporaryDirectory() as directory:
        security = KafkaSecurity(Path(directory, "security"))
        with RealKafka(
            VERSION,
            1,
            Path(directory),
            listeners=[each for each in LISTENERS if each.name == SECURE],
            settings={**security.settings, "connection.failed.authentication.delay.ms": DELAY_MS},
            format_options=security.format_options,
        ) as cluster:
            yield cluster, security


def _check() -> None:
    reason = real_kafka.missing(VERSION)
    if reason is not None:
        raise Missing(reason)


def create(cluster: RealKafka, topics: Sequence[str], nodes: Sequence[int]) -> None:
    """Creates topics of one partition with replicas on these nodes."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    made = [NewTopic(topic, 1, replica_assignment=[list(nodes)]) for topic in topics]
    for future in admin.create_topics(made, operation_timeout=PATIENCE).values():
        future.result(PATIENCE)
