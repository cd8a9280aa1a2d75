"""A real Kafka for the tests of commands: three nodes, by PLAINTEXT and by SASL_SSL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from real_kafka import RealKafka


class Commanded(NamedTuple):
    """A running cluster; `secured` is a file for -F, with which commands reach it by SASL_SSL."""

    kafka: RealKafka
    secured: Path

    @property
    def admin(self) -> AdminClient:
        """A client of confluent's that may do everything."""
        return AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})

    def create(
        self, topic: str, replicas: Sequence[list[int]], config: Mapping[str, str] = {}
    ) -> None:
        """Creates a topic with these replicas of its partitions; waits until they are in sync."""
        new = NewTopic(topic, len(replicas), replica_assignment=list(replicas), config=dict(config))
        admin = self.admin  # it must live until the result is here
        admin.create_topics([new])[topic].result(30)
        self.kafka.until_in_sync(topic)
