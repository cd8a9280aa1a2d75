"""Fixtures of the scenarios: running clusters, which they share, and what they have seen."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from commanded import Commanded
from confluent_kafka.admin import AdminClient
from kafka_security import LISTENERS, SECURE, KafkaSecurity
from marked_secrets import LogKeeper
from real_kafka import RealKafka, missing
from scenario_run import ALONE, LED, ROUNDS, Seen, create, rotated
from ways import Way, way_of

NODES = {"4.3.0": 3, "3.9.1": 1}


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


@pytest.fixture(scope="session", autouse=True)
def log(security: KafkaSecurity) -> Iterator[LogKeeper]:
    """Yields what keeps the log: at DEBUG, what clients say, raise and count."""
    keeper, root = LogKeeper(), logging.getLogger()
    levels = {logging.getLogger(name): logging.DEBUG for name in ("rdmeta", "both_shells")}
    before = {logger: logger.level for logger in levels}
    root.addHandler(keeper)
    for logger, level in levels.items():
        logger.setLevel(level)
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
def clusters(
    tmp_path_factory: pytest.TempPathFactory, security: KafkaSecurity
) -> Iterator[Callable[[str], RealKafka]]:
    """Yields a function that returns the running cluster of a version of Kafka."""
    running: dict[str, RealKafka] = {}
    with ExitStack() as stack:

        def cluster(version: str) -> RealKafka:
            if version not in running:
                directory: Path = tmp_path_factory.mktemp("kafka")
                made = RealKafka(
                    version,
                    NODES[version],
                    directory,
                    proxied=True,
                    listeners=LISTENERS,
                    settings=security.settings,
                    of_last=security.last_node,
                    format_options=security.format_options,
                    java_options=security.java_options,
                )
                running[version] = stack.enter_context(made)
                create(made, LED, [rotated(made.nodes, i) for i in range(len(made.nodes))])
                create(made, ALONE, [[node] for node in made.nodes])
            return running[version]

        yield cluster


@pytest.fixture(scope="session", params=NODES)
def commanded(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    security: KafkaSecurity,
) -> Iterator[Commanded]:
    """Yields a cluster of three nodes for the command's tests, of each version of Kafka in turn.

    A test leaves all nodes running.
    """
    version: str = request.param
    if reason := missing(version):
        pytest.skip(reason)
    directory: Path = tmp_path_factory.mktemp("commanded")
    with RealKafka(
        version,
        3,
        directory,
        listeners=LISTENERS,
        settings=security.settings,
        of_last=security.last_node,
        format_options=security.format_options,
        java_options=security.java_options,
    ) as kafka:
        file = directory / "client.properties"
        servers = ",".join(kafka.address(node, SECURE) for node in kafka.nodes)
        lines = {"bootstrap.servers": servers, **security.conf()}.items()
        file.write_text("".join(f"{key}={value}\n" for key, value in lines))
        yield Commanded(kafka, file)


@pytest.fixture
def kafka(
    request: pytest.FixtureRequest, clusters: Callable[[str], RealKafka]
) -> Iterator[RealKafka]:
    """Yields a cluster without faults: three nodes of Kafka 4.3.0, or as its parameter says."""
    version = getattr(request, "param", "4.3.0")
    if reason := missing(version):
        pytest.skip(reason)
    cluster = clusters(version)
    yield cluster
    cluster.recover(LED, ALONE)


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
    return AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})


@pytest.fixture
def resolved_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list to which each name is appended that the system resolves from now on."""
    resolve, names = socket.getaddrinfo, list[str]()

    def recording(host: str, *arguments: Any, **named: Any) -> Any:
        names.append(host)
        return resolve(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", recording)
    return names
