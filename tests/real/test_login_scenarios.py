"""Scenarios on Apache Kafka: each way to log in, with the right secrets."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import pytest
from both_shells import KINDS, Shell
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from kafka_security import KEY_PASSWORD, MUTUAL, ONLY, SASL, SECURE, KafkaSecurity, principal_of
from loop_thread import LoopThread
from proxy import Proxy
from real_kafka import RealKafka
from scenario_run import Seen, rotated
from waiting import until

from rdmeta import MetadataCache, TopicAuthorizationError, fetch

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


class Entrance(NamedTuple):
    """A listener, a configuration for it, and the principal that the broker must see."""

    name: str
    listener: str
    principal: str
    conf: dict[str, object]

    @property
    def topic(self) -> str:
        """A topic of which no other principal may know."""
        return f"only-{self.principal.partition(',')[0].removeprefix('CN=')}"


def entrances(security: KafkaSecurity) -> list[Entrance]:
    """Returns each way to log in."""
    over_tls = [
        Entrance(f"SASL_SSL by {mechanism}", SECURE, user, security.only(mechanism))
        for mechanism, user in ONLY.items()
    ]
    plaintext = {"security.protocol": "sasl_plaintext"}
    without_tls = [
        Entrance(
            f"SASL_PLAINTEXT by {mechanism}",
            SASL,
            ONLY[mechanism],
            {**security.only(mechanism), **plaintext},
        )
        for mechanism in ("PLAIN", "SCRAM-SHA-512")
    ]
    mutual = security.certificate("charlie", password=KEY_PASSWORD)
    subject = principal_of("charlie")
    by_certificate = Entrance("SSL by a client certificate", MUTUAL, subject, mutual)
    return [*over_tls, *without_tls, by_certificate]


def grant(entrance: Entrance, kind: Any = AclBinding) -> Any:
    """Returns the rule that a principal may describe its topic; so no other one may."""
    return kind(
        ResourceType.TOPIC, entrance.topic, ResourcePatternType.LITERAL,
        f"User:{entrance.principal}", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW,
    )  # fmt: skip


@contextmanager
def topics_of(ways: list[Entrance], kafka: RealKafka, admin: AdminClient) -> Iterator[None]:
    """Gives each principal a topic for the time of the block."""
    by_topic = {way.topic: way for way in ways}
    for done in admin.create_acls([grant(way) for way in by_topic.values()]).values():
        done.result(30)
    # A broker that has a topic has the earlier rules, too.
    for topic in by_topic:
        kafka.create(topic, [rotated(kafka.nodes, i) for i in range(len(kafka.nodes))])
    yield
    for deleted in admin.delete_topics(list(by_topic)).values():
        deleted.result(30)
    filters = [grant(way, AclBindingFilter) for way in by_topic.values()]
    for removed in admin.delete_acls(filters).values():
        removed.result(30)


def check_known(cache: MetadataCache, topic: str, kafka: RealKafka) -> None:
    """Checks that a cache has the cluster, its brokers, and the leaders of a topic."""
    assert cache.cluster_id == kafka.cluster_id
    assert [broker.id for broker in cache.brokers] == list(kafka.nodes)
    leaders = [cache.leader(topic, i) for i in range(len(kafka.nodes))]
    assert leaders == list(kafka.nodes)


def has_gone_on(shell: Shell) -> bool:
    """Returns whether a client has logged in to a broker that it knows from an answer."""
    nodes = shell.call("stats")["nodes"]
    return any(node["state"] == "ready" for broker, node in nodes.items() if broker >= 0)


def check_client(kind: str, way: Entrance, other: str, door: Proxy, kafka: RealKafka) -> float:
    """Checks a client's first answers; returns the seconds until the first one."""
    conf = {**way.conf, "bootstrap.servers": door.address, "client.id": f"{kind}-let-in"}
    with Shell(kind, conf, starts=False) as shell:
        begin = time.monotonic()
        shell.call("wait_for_topic", way.topic, timeout=30)
        took = time.monotonic() - begin
        check_known(shell.cache, way.topic, kafka)
        assert shell.errors == []
        with pytest.raises(TopicAuthorizationError):
            shell.call("wait_for_topic", other, timeout=30)
        # The client goes on to the address that the broker told.
        until(partial(has_gone_on, shell), "a connection to a broker of the answer")
        nodes = shell.call("stats")["nodes"].values()
        assert max(node["attempts"] for node in nodes) == 1, nodes
        for key in ("failures", "reconnects"):
            assert {node[key] for node in nodes} == {0}, nodes
        assert {node["last_error"] for node in nodes} == {None}
    return took


def check_fetch(way: Entrance, other: str, door: Proxy, kafka: RealKafka) -> None:
    """Checks the answer to a fetch()."""
    cache, conf = MetadataCache(), {**way.conf, "bootstrap.servers": door.address}
    fetch(cache, topics=[way.topic, other], conf=conf, timeout=20)
    check_known(cache, way.topic, kafka)
    with pytest.raises(TopicAuthorizationError):
        cache.leader(other, 0)


@pytest.mark.parametrize("kafka", ["4.3.0", "3.9.1"], indirect=True)
def test_each_mechanism_and_a_client_certificate_let_both_clients_in(
    kafka: RealKafka,
    security: KafkaSecurity,
    admin: AdminClient,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ways = entrances(security)
    with topics_of(ways, kafka, admin), LoopThread("doors") as loop:
        for _ in rounds:
            for way, other in zip(ways, [*ways[1:], ways[0]], strict=True):
                target = kafka.address(kafka.nodes[0], way.listener)
                for kind in KINDS:
                    with Proxy(loop, target) as door:
                        took = check_client(kind, way, other.topic, door, kafka)
                        assert len(door.accepted) == 1
                    seen.add("let-in", f"{brokers_name}, {way.name}", kind, took)
                with Proxy(loop, target) as door:
                    check_fetch(way, other.topic, door, kafka)
                    assert len(door.accepted) == 1
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    lines = [line for line in lines if "DENIED: topic 'only-" not in line]
    # PLAIN without TLS warns once for each client, and once for fetch().
    assert len(lines) == (len(KINDS) + 1) * len(rounds)
    assert all("the password is sent in the clear" in line for line in lines)
    seen.check("let-in")
