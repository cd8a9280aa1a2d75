"""A client on brokers with TLS: replaced files, wrong certificates, close(), logins again."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import METADATA, Brokers
from certificates import Authority
from login_server import LoginServer
from secured import Guard
from shells import Maker
from waiting import PROMPT, until

from rdmeta import ALL, Client, MetadataCache, fetch
from rdmeta.errors import TlsError

ours, theirs = Authority(), Authority()


@pytest.fixture
def guard() -> Guard:
    return Guard(context=ours.server("127.0.0.1", clients=ours))


@pytest.fixture
def brokers(guard: Guard) -> Iterator[Brokers]:
    with Brokers(3, guard=guard) as running:
        running.truth.create("orders", partitions=3)
        yield running


@pytest.fixture
def conf(tmp_path: Path) -> dict[str, Any]:
    certificate, key = ours.issue("client").write(tmp_path, "client")
    return {
        "security.protocol": "ssl",
        "ssl.ca.location": ours.write(tmp_path),
        "ssl.certificate.location": certificate,
        "ssl.key.location": key,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 50,
    }


def test_a_client_with_a_certificate_refreshes(
    make: Maker, brokers: Brokers, conf: dict[str, Any]
) -> None:
    client = make(brokers.bootstrap, conf)
    client.refresh(ALL)
    assert client.cache.leader("orders", 1) == 2
    (node,) = [each for each in client.stats()["nodes"].values() if each["answers"]]
    assert node["bytes_received"] > 500
    assert node["reauthentications"] == 0


@pytest.mark.parametrize(
    ("off", "trusted"),
    [
        ({"enable.ssl.certificate.verification": "false"}, theirs),
        ({"ssl.endpoint.identification.algorithm": "none"}, ours),
    ],
)
def test_a_check_that_is_switched_off_is_warned_of_once(
    off: dict[str, str], trusted: Authority, make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rdmeta")
    conf = {"security.protocol": "ssl", "ssl.ca.pem": trusted.pem, **off}
    (key,) = off
    with Brokers(1, guard=Guard(ours.server("other.example"))) as brokers:
        client = make(brokers.bootstrap, conf)
        for _ in range(3):
            client.refresh(timeout=20)
            brokers[1].drop()
        until(lambda: len(brokers[1].accepted) > 2)
        lines = [each.getMessage() for each in caplog.records if each.name == "rdmeta.config"]
        assert [line.split()[0] for line in lines] == [key]
        caplog.clear()
        fetch(MetadataCache(), brokers.bootstrap, conf=conf)
        assert [each.getMessage() for each in caplog.records if key in each.getMessage()] == lines


def test_files_that_were_replaced_count_from_the_next_connection_on(
    brokers: Brokers, guard: Guard, conf: dict[str, Any], tmp_path: Path, make: Maker
) -> None:
    client = make(brokers.bootstrap, conf)
    client.refresh()
    accepted = sum(len(broker.accepted) for broker in brokers)
    # Both authorities are in the file for a while, and then the old one is not.
    (tmp_path / "ca.pem").write_text(ours.pem + theirs.pem)
    theirs.issue("client").write(tmp_path, "client")
    client.refresh()
    assert sum(len(broker.accepted) for broker in brokers) == accepted, "no connection was closed"
    guard.context = theirs.server("127.0.0.1", clients=theirs)
    theirs.write(tmp_path)
    for broker in brokers:
        broker.drop()
    client.refresh(timeout=30)
    errors = [each["last_error"] for each in client.stats()["nodes"].values()]
    refused = re.compile("is not trusted|refuses the client certificate")
    assert not [each for each in errors if each and refused.search(each)]
    guard.context = ours.server("127.0.0.1")
    for broker in brokers:
        broker.drop()
    with pytest.raises(Exception, match="issued by trustme .* is not trusted"):
        client.refresh(timeout=1)


def test_a_wrong_certificate_of_one_broker_keeps_no_client_from_the_others(
    make: Maker, brokers: Brokers, conf: dict[str, Any]
) -> None:
    brokers[1].guard = Guard(context=theirs.server("127.0.0.1"))
    client = make(brokers.bootstrap, conf)
    for _ in range(3):
        client.refresh(timeout=20)
    assert brokers[1].count(METADATA) == 0


def test_all_wrong_certificates_are_named_with_their_servers(
    brokers: Brokers, guard: Guard, conf: dict[str, Any]
) -> None:
    guard.context = ours.server("kafka.example")
    with Client({"bootstrap.servers": brokers.bootstrap, **conf}) as client:
        begin = time.monotonic()
        with pytest.raises(TlsError) as caught:
            client.refresh(timeout=60)
        assert time.monotonic() - begin < 10
    for broker in brokers:
        assert f"{broker.address}: the broker's certificate is not for" in str(caught.value)


@pytest.mark.parametrize("frozen", [False, True])
def test_closing_during_a_handshake_does_not_wait(
    frozen: bool, make: Maker, brokers: Brokers, conf: dict[str, Any]
) -> None:
    for broker in brokers:
        if frozen:
            broker.freeze()
    client = make(brokers.bootstrap, conf)
    client.need("orders")
    until(lambda: any(broker.accepted for broker in brokers))
    begin = time.monotonic()
    client.close()
    assert time.monotonic() - begin < PROMPT
    for broker in brokers:
        broker.thaw()


def test_the_logins_after_the_first_are_counted_per_node(
    make: Maker, brokers: Brokers, guard: Guard, conf: dict[str, Any]
) -> None:
    guard.logins, guard.lifetime = LoginServer({"alice": "secret"}), 1.2
    login = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    client = make(brokers.bootstrap, {**conf, **login})
    client.refresh()

    def counts() -> list[int]:
        return [each["reauthentications"] for each in client.stats()["nodes"].values()]

    until(lambda: sum(counts()) >= 2)
    assert sum(each["reconnects"] for each in client.stats()["nodes"].values()) == 0
    assert guard.mistakes == []
