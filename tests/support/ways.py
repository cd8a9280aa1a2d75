"""The ways to a real Kafka: a scenario runs once by PLAINTEXT, and once more by SASL_SSL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka_security import CUT, SECURE, KafkaSecurity
from proxy import Proxy
from real_kafka import BROKERS, CLIENT, RealKafka

WAYS = ("PLAINTEXT", "SASL_SSL")


class Way(NamedTuple):
    """How clients reach the brokers: by two listeners, one of them proxied, and what both need."""

    kafka: RealKafka
    direct: str
    proxied: str
    security: Mapping[str, object]

    def address(self, node: int) -> str:
        """Returns a node's address without a proxy."""
        return self.kafka.address(node, self.direct)

    def other_than(self, node: int) -> str:
        """Returns the address of another node."""
        return self.address(next(i for i in self.kafka.nodes if i != node))

    @property
    def bootstrap(self) -> str:
        """All addresses without a proxy."""
        return ",".join(self.address(node) for node in self.kafka.nodes)

    @property
    def ports(self) -> set[int]:
        """The ports of the listener without a proxy."""
        return set(self.kafka.ports_of[self.direct].values())

    @property
    def proxies(self) -> dict[int, Proxy]:
        """The proxy of each node."""
        return self.kafka.proxies_of[self.proxied]

    def conf(self, servers: str, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """Returns the configuration of a client of these servers."""
        return {"bootstrap.servers": servers, **self.security, **(more or {})}

    def proxied_conf(self, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """Returns the configuration of a client that reaches each node by its proxy."""
        return self.conf(",".join(proxy.address for proxy in self.proxies.values()), more)


def way_of(name: str, kafka: RealKafka, security: KafkaSecurity) -> Way:
    """Returns the way PLAINTEXT or SASL_SSL, the latter with SCRAM-SHA-512."""
    if name == "PLAINTEXT":
        return Way(kafka, BROKERS.name, CLIENT.name, {})
    return Way(kafka, SECURE, CUT, security.conf())
