"""The broker of canned answers with TLS and SASL, as librdkafka and the rules of KIP-368 see it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from broker import API_VERSIONS, METADATA, Brokers
from certificates import Authority
from clocks import RunningClock
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from login_server import MECHANISMS, LoginServer
from secured import SASL_HANDSHAKE, Guard
from token_server import TokenServer
from waiting import until

from rdmeta import config
from rdmeta.config.address import parse_bootstrap
from rdmeta.errors import AuthenticationError, TlsError, TransportError
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.oauth import TokenSource
from rdmeta.net.security import for_config

ours = Authority()
LONG = 20.0


def conf_for(brokers: Brokers, mechanism: str, password: str = "secret") -> dict[str, Any]:
    return {
        "bootstrap.servers": brokers.bootstrap,
        "security.protocol": "sasl_ssl",
        "ssl.ca.pem": ours.pem,
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
    }


def connect(brokers: Brokers, conf: dict[str, Any]) -> Connection:
    security = for_config(config.parse({"bootstrap.servers": brokers.bootstrap, **conf}))
    address = parse_bootstrap(brokers[1].address)[0]
    return Connection(address, Deadline(LONG), "tests", 1 << 24, security=security)


@pytest.fixture
def guard() -> Guard:
    return Guard(ours.server("127.0.0.1"), LoginServer({"alice": "secret"}))


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_librdkafka_logs_in(guard: Guard, mechanism: str) -> None:
    with Brokers(1, guard=guard) as brokers:
        brokers.truth.create("orders", partitions=3)
        client = AdminClient(conf_for(brokers, mechanism))
        assert len(client.list_topics(timeout=LONG).topics["orders"].partitions) == 3
        assert {each.is_good for each in brokers[1].logins} == {True}
        assert guard.mistakes == []


def test_a_wrong_password_is_refused_late_and_the_connection_closed(guard: Guard) -> None:
    guard.delay = 0.3
    with Brokers(1, guard=guard) as brokers:
        begin = time.monotonic()
        with pytest.raises(AuthenticationError):
            connect(brokers, conf_for(brokers, "PLAIN", "wrong"))
        assert time.monotonic() - begin > 0.29
        assert [each.is_good for each in brokers[1].logins] == [False]
        until(lambda: brokers[1].open == 0)
        with pytest.raises(KafkaException):
            AdminClient(conf_for(brokers, "PLAIN", "wrong")).list_topics(timeout=1)


def test_a_mechanism_that_is_not_enabled_is_refused_with_the_list(guard: Guard) -> None:
    guard.mechanisms = ("PLAIN", "OAUTHBEARER")
    with (
        Brokers(1, guard=guard) as brokers,
        pytest.raises(AuthenticationError, match="PLAIN, OAUTHBEARER") as caught,
    ):
        connect(brokers, conf_for(brokers, "SCRAM-SHA-256"))
    assert caught.value.code == 33


def test_a_broker_before_1_0_takes_the_bare_messages(guard: Guard) -> None:
    with Brokers(1, guard=guard) as brokers:
        brokers[1].ranges = {METADATA: (0, 4), API_VERSIONS: (0, 0), SASL_HANDSHAKE: (0, 0)}
        for mechanism in MECHANISMS[:3]:
            connect(brokers, conf_for(brokers, mechanism)).close()
            with pytest.raises(AuthenticationError):
                connect(brokers, conf_for(brokers, mechanism, "wrong"))
        assert [each.is_good for each in brokers[1].logins] == [True, False] * 3


def test_a_request_after_the_sessions_lifetime_ends_the_connection(guard: Guard) -> None:
    guard.clock = clock = RunningClock()
    guard.lifetime = 3600.0
    with (
        Brokers(1, guard=guard) as brokers,
        connect(brokers, conf_for(brokers, "PLAIN")) as connection,
    ):
        assert connection.session.lifetime == 3600
        connection.request(METADATA, 0, b"\0\0\0\0", Deadline(LONG))
        clock.advance(3600)
        with pytest.raises(TransportError):
            connection.request(METADATA, 0, b"\0\0\0\0", Deadline(LONG))


def test_a_client_without_a_certificate_gets_an_alert() -> None:
    guard = Guard(ours.server("127.0.0.1", clients=ours))
    conf = {"security.protocol": "ssl", "ssl.ca.pem": ours.pem}
    with Brokers(1, guard=guard) as brokers:
        with pytest.raises(TlsError, match="certificate required"):
            connect(brokers, conf)
        certificate, key = ours.issue("alice@example.org")
        connect(brokers, {**conf, "ssl.certificate.pem": certificate, "ssl.key.pem": key}).close()
        assert len(brokers[1].tls_errors) == 1


def test_the_token_server_gives_tokens_that_the_brokers_take(guard: Guard) -> None:
    assert guard.logins is not None
    with (
        Brokers(1, guard=guard) as brokers,
        TokenServer(
            "app", "s3cret", tokens=guard.logins.tokens, context=ours.server("127.0.0.1")
        ) as server,
    ):
        conf = {
            "security.protocol": "sasl_ssl",
            "ssl.ca.pem": ours.pem,
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": server.url,
            "sasl.oauthbearer.client.id": "app",
            "sasl.oauthbearer.client.secret": "s3cret",
            "https.ca.pem": ours.pem,
        }
        connect(brokers, conf).close()
        guard.logins.tokens = set()
        with pytest.raises(AuthenticationError, match="invalid_token"):
            connect(brokers, conf)
        assert [each.is_good for each in brokers[1].logins] == [True, False]
        assert len(server.given) == 2
        settings = config.parse(
            {"bootstrap.servers": "x:1", **conf, "sasl.oauthbearer.client.secret": "no"}
        ).sasl
        assert settings is not None
        assert settings.oauth is not None
        with pytest.raises(AuthenticationError, match="wrong secret"):
            TokenSource(settings.oauth).token()
