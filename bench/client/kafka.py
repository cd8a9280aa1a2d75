"""Apache Kafka for the client's benches: a cluster of three nodes, from the tests' tools."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import real_kafka
from real_kafka import RealKafka

from bench.figure import Missing

VERSION = "4.3.0"
NODES = 3
PATIENCE = 60.0


@contextmanager
def started(proxied: bool = False) -> Iterator[RealKafka]:
    """Yields a running cluster; raises Missing without Java or without Kafka."""
    reason = real_kafka.missing(VERSION)
    if reason is not None:
        raise Missing(reason)
    with (
        tempfile.TemporaryDirectory() as directory,
        RealKafka(VERSION, NODES, Path(directory), proxied=proxied) as cluster,
    ):
        yield cluster


def create(cluster: RealKafka, topics: Sequence[str], nodes: Sequence[int]) -> None:
    """Creates topics of one partition with replicas on these nodes."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    made = [NewTopic(topic, 1, replica_assignment=[list(nodes)]) for topic in topics]
    for future in admin.create_topics(made, operation_timeout=PATIENCE).values():
        future.result(PATIENCE)
