"""`rdmeta quorum` and `rdmeta config --check` on Apache Kafka, with a node killed; on ZooKeeper."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import commands
import pytest
from commanded import Commanded
from kafka.admin import KafkaAdminClient
from kafka_security import PASSWORD, SECURE
from listener import free_ports
from other_servers import zookeeper
from real_kafka import JARS, START_S, missing

import rdmeta
from rdmeta.net.check import STEPS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def quorum(commanded: Commanded, *words: str) -> dict[str, Any]:
    """Returns the quorum by SASL_SSL."""
    done = commands.run("quorum", "-F", str(commanded.secured), "--json", *words)
    assert (done.code, done.err) == (0, "")
    (found,) = commands.checked_json(done.out)["quorums"]
    assert isinstance(found, dict)
    return found


def theirs(commanded: Commanded) -> dict[str, Any]:
    """Returns what kafka-python says of the quorum."""
    client = KafkaAdminClient(bootstrap_servers=commanded.kafka.bootstrap)
    try:
        (topic,) = client.describe_metadata_quorum()["topics"]
        (partition,) = topic["partitions"]
        assert isinstance(partition, dict)
        return partition
    finally:
        client.close()


def ends(replicas: list[dict[str, Any]], id: str) -> dict[int, int]:
    return {each[id]: each["log_end_offset"] for each in replicas}


def test_the_quorum_is_as_kafka_python_has_it(commanded: Commanded) -> None:
    before, ours, after = theirs(commanded), quorum(commanded), theirs(commanded)
    assert (ours["leader"], ours["leader_epoch"]) == (after["leader_id"], after["leader_epoch"])
    assert before["high_watermark"] <= ours["high_watermark"] <= after["high_watermark"]
    lowest, highest = (ends(each["current_voters"], "replica_id") for each in (before, after))
    found = ends(ours["voters"], "node")
    assert list(found) == sorted(commanded.kafka.nodes)
    assert all(lowest[node] <= found[node] <= highest[node] for node in found)
    assert max(each["lag"] for each in ours["voters"]) == ours["max_lag"] <= 10
    assert all(0 <= each["last_fetch_s"] < 10 for each in ours["voters"])
    assert ours["observers"] == []


def test_the_examples_run(commanded: Commanded) -> None:
    for words in commands.examples("quorum"):
        done = commands.run(*words, env={"RDMETA_BOOTSTRAP": commanded.kafka.bootstrap})
        assert (done.code, done.err) == (0, "")
        assert "leader" in done.out


@pytest.mark.kills
def test_a_killed_controller_falls_behind(commanded: Commanded) -> None:
    kafka, leader = commanded.kafka, quorum(commanded)["leader"]
    dead = next(node for node in kafka.nodes if node != leader)
    words = ("quorum", "-b", kafka.address(leader), "--watch", "--every", "0.5", "--max-lag", "6")
    with commands.started(*words, "--csv") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("time,")
        assert ",leader," in process.stdout.readline()
        kafka.kill(dead)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith(f"rdmeta: voter {dead} is ")
    assert err.endswith(" records behind, more than --max-lag 6\n")
    by_node = {each["node"]: each for each in quorum(commanded)["voters"]}
    assert by_node[dead]["lag"] > 6
    assert by_node[dead]["last_fetch_s"] > 1
    assert by_node[leader]["lag"] == by_node[leader]["last_fetch_s"] == 0


@pytest.mark.kills
def test_a_check_finds_the_killed_broker(commanded: Commanded) -> None:
    kafka = commanded.kafka
    dead = next(node for node in kafka.nodes if node != quorum(commanded)["leader"])
    kafka.kill(dead)
    words = ("config", "--check", "-F", str(commanded.secured))
    done = commands.run(*words, "--json")
    servers = {each["server"]: each for each in commands.checked_json(done.out)["servers"]}
    assert list(servers) == [kafka.address(node, SECURE) for node in kafka.nodes]
    bad = servers.pop(kafka.address(dead, SECURE))
    assert (done.code, bad["result"]) == (1, "tcp")
    assert done.err == (
        f"rdmeta: 1 of 3 fail: {bad['server']} at tcp: cannot connect: Connection refused;"
        " check bootstrap.servers\n"
    )
    for each in servers.values():
        assert (each["result"], each["cluster_id"]) == ("ok", kafka.cluster_id)
        assert (each["tls"], each["days"] > 0) == ("TLSv1.3", True)
        assert all(each[f"{step}_ms"] >= 0 for step in STEPS if step != "metadata")
        assert 0 < each["round_trip_ms"] < 10_000
    refused = commands.run(*words, "-X", "sasl.password=wrong")
    assert refused.code == 3
    assert " at sasl: the broker refuses the SCRAM-SHA-512 login" in refused.err
    assert PASSWORD not in done.out + done.err + refused.out + refused.err


@contextmanager
def kafka_with_zookeeper(directory: Path, version: str = "3.9.1") -> Iterator[str]:
    """Yields the address of a broker of Kafka that runs with ZooKeeper."""
    (port,) = free_ports(1)
    with zookeeper(directory / "zookeeper", version) as address:
        settings = {
            "broker.id": 1,
            "zookeeper.connect": address,
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": directory / "log",
            "log.cleaner.dedupe.buffer.size": 2097152,
        }
        path = directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with (directory / "output").open("wb") as output:
            process = subprocess.Popen(
                ["java", "-Xmx300m", "-cp", f"{JARS / version}/*", "kafka.Kafka", path],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            words = ("wait", "-b", f"127.0.0.1:{port}", "--broker", "1", "--timeout", str(START_S))
            done = commands.run_process(*words, timeout=2 * START_S)
            assert done.code == 0, done.err + (directory / "output").read_text()
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


@pytest.mark.nightly
def test_a_cluster_with_zookeeper_is_named(tmp_path: Path) -> None:
    if reason := missing("3.9.1"):
        pytest.skip(reason)
    with kafka_with_zookeeper(tmp_path) as address:
        done = commands.run("quorum", "-b", address)
        assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
        assert "the cluster has no quorum: it seems to run with ZooKeeper" in done.err
        (server,) = rdmeta.check({"bootstrap.servers": address})
        assert (server.broker, server.error) == (1, None)


def test_list_names_the_quorums_leader_each_time(commanded: Commanded) -> None:
    leader = quorum(commanded)["leader"]
    for _ in range(8):
        done = commands.run("list", "-b", commanded.kafka.bootstrap, "--json")
        (found,) = commands.checked_json(done.out)["clusters"]
        assert found["controller"] == leader
