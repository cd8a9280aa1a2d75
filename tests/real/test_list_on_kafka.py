"""`rdmeta list` on Apache Kafka: everything as confluent's client has it, and a broker killed."""

from __future__ import annotations

from typing import Any

import commands
import pytest
from commanded import Commanded
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from real_kafka import RealKafka

pytestmark = pytest.mark.timeout(200)

DEAD = 3


TOPICS: dict[str, tuple[list[list[int]], dict[str, str]]] = {
    "orders": ([[3, 1, 2], [1, 2, 3]], {"min.insync.replicas": "2"}),
    "strict": ([[1, 3]], {"min.insync.replicas": "2"}),
    "lone": ([[3], [1]], {}),
    "well": ([[1, 2]], {}),
}


@pytest.fixture(scope="module")
def listed(commanded: Commanded) -> Commanded:
    """Returns the cluster with topics of all kinds."""
    for name, (replicas, config) in TOPICS.items():
        commanded.kafka.create(name, replicas, config)
    return commanded


def found(commanded: Commanded, *words: str, code: int = 0) -> dict[str, Any]:
    """Returns the JSON of a list by SASL_SSL, which is the same as that by PLAINTEXT."""
    secured = commands.run("list", "-F", str(commanded.secured), "--json", *words)
    plain = commands.run("list", "-b", commanded.kafka.bootstrap, "--json", *words)
    assert (secured.code, secured.err) == (plain.code, plain.err) == (code, "")
    answers: list[dict[str, Any]] = list(map(commands.checked_json, (secured.out, plain.out)))
    by_tls, by_plain = answers
    assert by_tls["topics"] == by_plain["topics"]
    assert [each["id"] for each in by_tls["brokers"]] == [
        each["id"] for each in by_plain["brokers"]
    ]
    return by_tls


def until_noticed(kafka: RealKafka) -> None:
    """Returns when each running broker says that the killed one is away and leads nothing."""

    def notices(node: int) -> bool:
        cache = kafka.asked(node, ["lone"])
        return DEAD not in {b.id for b in cache.brokers} and cache.leader("lone", 0, None) is None

    kafka.until(lambda: all(map(notices, kafka.running)), "every broker has noticed the loss")


def partitions(answer: dict[str, Any]) -> list[tuple[str, int]]:
    return [
        (topic["name"], each["partition"])
        for topic in answer["topics"]
        for each in topic["partitions"]
    ]


@pytest.mark.proof
def test_everything_is_as_confluents_client_has_it(listed: Commanded) -> None:
    answer = found(listed)
    admin = listed.kafka.admin
    theirs = admin.list_topics(timeout=30)
    assert answer["clusters"][0]["cluster_id"] == theirs.cluster_id
    assert [each["id"] for each in answer["brokers"]] == sorted(theirs.brokers)
    assert [topic["name"] for topic in answer["topics"]] == sorted(theirs.topics)
    for topic in answer["topics"]:
        for ours, partition in zip(
            topic["partitions"], theirs.topics[topic["name"]].partitions.values(), strict=True
        ):
            assert (ours["partition"], ours["leader"]) == (partition.id, partition.leader)
            assert ours["replicas"] == partition.replicas
            assert sorted(ours["isr"]) == sorted(partition.isrs)
    for words in commands.examples("list"):
        env = {"RDMETA_BOOTSTRAP": listed.kafka.bootstrap}
        assert commands.run(*words, env=env).code == 0


@pytest.mark.slow
@pytest.mark.kills
def test_a_killed_broker_leads_nothing_and_its_partitions_need_care(listed: Commanded) -> None:
    kafka = listed.kafka
    assert partitions(found(listed, "--urp", "--leaderless", "--offline", "--fail")) == []
    kafka.kill(DEAD)
    until_noticed(kafka)
    assert [each["id"] for each in found(listed)["brokers"]] == [1, 2]
    lost = [("orders", 0), ("orders", 1), ("strict", 0)]
    assert partitions(found(listed, "--urp", "-t", "/^(orders|strict|well)$/")) == lost
    assert partitions(found(listed, "--offline")) == sorted([("lone", 0), *lost])
    assert partitions(found(listed, "--leaderless", "--fail", code=1)) == [("lone", 0)]
    assert partitions(found(listed, "--nonpreferred")) == [("orders", 0)]
    assert partitions(found(listed, "--under-min-isr", "-t", "/^(orders|strict|well)$/")) == [
        ("strict", 0)
    ]
    assert partitions(found(listed, "--at-min-isr", "-t", "/^(orders|strict|well)$/")) == [
        ("orders", 0),
        ("orders", 1),
    ]
    assert partitions(found(listed, "--if-down", "1")) == [("lone", 1), ("strict", 0)]
    both = found(listed, "--if-down", "1", "--if-down", "2")
    assert partitions(both) == [
        ("lone", 1),
        ("orders", 0),
        ("orders", 1),
        ("strict", 0),
        ("well", 0),
    ]
    words = ("list", "-b", kafka.address(1), "--skew", "--json")
    skew = commands.checked_json(commands.run(*words).out)["skew"]
    by_id = {each["broker"]: each for each in skew["brokers"]}
    assert (by_id[DEAD]["leaders"], by_id[DEAD]["leaders_above"]) == (0, -1.0)
    assert by_id[DEAD]["replicas"] == 4
    assert {each["rack"] for each in skew["racks"]} == {"rack-1", "rack-2", None}


@pytest.mark.slow
def test_a_configuration_that_is_denied_is_unknown(listed: Commanded) -> None:
    admin = listed.kafka.admin
    rule: Any = (ResourceType.TOPIC, "strict", ResourcePatternType.LITERAL, "User:alice", "*")
    denied = (*rule, AclOperation.DESCRIBE_CONFIGS, AclPermissionType.DENY)
    allowed = (*rule, AclOperation.DESCRIBE, AclPermissionType.ALLOW)
    for created in admin.create_acls([AclBinding(*denied), AclBinding(*allowed)]).values():
        created.result(30)
    words = ("list", "-F", str(listed.secured), "-t", "strict", "--at-min-isr", "--json")
    expected = (
        "rdmeta: min.insync.replicas is unknown"
        " (TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS): strict\n"
    )
    said: list[commands.Done] = []

    def is_unknown() -> bool:
        """Each broker learns of the rules at a moment of its own."""
        said.append(commands.run(*words))
        return said[-1].err == expected

    try:
        listed.kafka.until(is_unknown, "the rules have an effect")
        assert (said[-1].code, commands.checked_json(said[-1].out)["topics"]) == (0, [])
    finally:
        rules = [AclBindingFilter(*denied), AclBindingFilter(*allowed)]
        for deleted in admin.delete_acls(rules).values():
            deleted.result(30)


@pytest.mark.slow
def test_operations_are_those_of_the_user(listed: Commanded) -> None:
    answer = found(listed, "--operations", "-t", "well")
    assert {"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"} <= {*answer["topics"][0]["operations"]}
    assert "CREATE" in answer["clusters"][0]["operations"]
