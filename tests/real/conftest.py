"""Fixtures of tests on Apache Kafka: the clusters that they share, and what scenarios have seen."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from commanded import Commanded
from confluent_kafka.admin import AdminClient
from kafka_security import LISTENERS, SECURE, KafkaSecurity
from marked_secrets import LogKeeper
from real_kafka import RealKafka, missing
from scenario_run import NODES, ROUNDS, Seen, with_topics
from ways import Way, way_of


@pytest.fixture(scope="session")
def seen() -> Iterator[Seen]:
    """Takes the values; writes them at the end of the run."""
    seen = Seen()
    yield seen
    seen.write()


@pytest.fixture
def rounds() -> range:
    return range(ROUNDS)


@pytest.fixture(scope="session")
def security(tmp_path_factory: pytest.TempPathFactory) -> KafkaSecurity:
    """Returns the certificates and users of all clusters."""
    return KafkaSecurity(tmp_path_factory.mktemp("security"))


@pytest.fixture(scope="module", autouse=True)
def log(security: KafkaSecurity) -> Iterator[LogKeeper]:
    """Yields what keeps the log of a module: at DEBUG, what clients say, raise and count."""
    keeper, root = LogKeeper(), logging.getLogger()
    before = {logger: logger.level for logger in map(logging.getLogger, ("rdmeta", "both_shells"))}
    root.addHandler(keeper)
    for logger in before:
        logger.setLevel(logging.DEBUG)
    yield keeper
    for logger, level in before.items():
        logger.setLevel(level)
    root.removeHandler(keeper)
    security.secrets.check(keeper.taken())


@pytest.fixture(autouse=True)
def no_secret_is_shown(
    security: KafkaSecurity, log: LogKeeper, capfd: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """Searches all output of a test for secrets: the log, and what child processes print."""
    yield
    printed = "".join(capfd.readouterr())
    print(printed)  # pytest shows it if the test failed
    security.secrets.check(f"{log.taken()}\n{printed}")


@pytest.fixture(scope="session")
def running() -> Iterator[dict[tuple[str, int], RealKafka]]:
    """Yields the clusters of this run, by version and number of nodes."""
    found: dict[tuple[str, int], RealKafka] = {}
    yield found
    for cluster in found.values():
        cluster.end()


@pytest.fixture(scope="session")
def clusters(
    running: dict[tuple[str, int], RealKafka],
    tmp_path_factory: pytest.TempPathFactory,
    security: KafkaSecurity,
) -> Callable[[str, int], RealKafka]:
    """Returns a function that returns the one running cluster of a version and so many nodes."""

    def cluster(version: str, nodes: int) -> RealKafka:
        if reason := missing(version):
            pytest.skip(reason)
        if (version, nodes) not in running:
            made = RealKafka(
                version,
                nodes,
                tmp_path_factory.mktemp("kafka"),
                proxied=True,
                listeners=LISTENERS,
                settings=security.settings,
                of_last=security.last_node,
                format_options=security.format_options,
                java_options=security.java_options,
            )
            running[version, nodes] = made.__enter__()
        return running[version, nodes]

    return cluster


@pytest.fixture(scope="module", autouse=True)
def no_topic_stays(running: dict[tuple[str, int], RealKafka]) -> Iterator[None]:
    """Deletes the topics that a module has created."""
    yield
    for cluster in running.values():
        cluster.delete_topics()


@pytest.fixture(autouse=True)
def all_nodes_run(running: dict[tuple[str, int], RealKafka]) -> Iterator[None]:
    """Undoes what a test has done to nodes and proxies."""
    yield
    for cluster in running.values():
        cluster.recover()


@pytest.fixture(scope="session", params=["4.3.0", pytest.param("3.9.1", marks=pytest.mark.nightly)])
def commanded(
    request: pytest.FixtureRequest,
    clusters: Callable[[str, int], RealKafka],
    security: KafkaSecurity,
) -> Commanded:
    """Returns a cluster of three nodes, of each version of Kafka in turn."""
    kafka = clusters(request.param, 3)
    file = security.directory / f"client-{kafka.version}.properties"
    servers = ",".join(kafka.address(node, SECURE) for node in kafka.nodes)
    lines = {"bootstrap.servers": servers, **security.conf()}.items()
    file.write_text("".join(f"{key}={value}\n" for key, value in lines))
    return Commanded(kafka, file)


@pytest.fixture
def kafka(request: pytest.FixtureRequest, clusters: Callable[[str, int], RealKafka]) -> RealKafka:
    """Returns a cluster with the topics of the scenarios: Kafka 4.3.0, or as its parameter says."""
    version = getattr(request, "param", "4.3.0")
    return with_topics(clusters(version, NODES[version]))


@pytest.fixture
def way(request: pytest.FixtureRequest, kafka: RealKafka, security: KafkaSecurity) -> Way:
    """Returns the way of the clients to the cluster: PLAINTEXT, or as its parameter says."""
    return way_of(getattr(request, "param", "PLAINTEXT"), kafka, security)


@pytest.fixture
def brokers_name(kafka: RealKafka, way: Way) -> str:
    """Returns the name of the cluster, and of another way than PLAINTEXT, in the results."""
    name = f"Kafka {kafka.version} x {len(kafka.nodes)}"
    return f"{name}, SASL_SSL" if way.security else name


@pytest.fixture
def admin(kafka: RealKafka) -> AdminClient:
    return kafka.admin


@pytest.fixture
def resolved_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list to which each name is appended that the system resolves from now on."""
    resolve, names = socket.getaddrinfo, list[str]()

    def recording(host: str, *arguments: Any, **named: Any) -> Any:
        names.append(host)
        return resolve(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", recording)
    return names
