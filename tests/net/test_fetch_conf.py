"""A fetch with a client's configuration: what it takes from it, and what contradicts it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from broker import METADATA, Brokers, Fault
from login_server import LoginServer
from secured import Guard

from rdmeta import MetadataCache, fetch
from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    MalformedError,
    RequestTimedOutError,
    TransportError,
)

KEY = "bootstrap.servers"


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers(1) as running:
        running.truth.create("orders")
        yield running


def test_a_fetch_takes_servers_and_client_id_from_a_configuration(brokers: Brokers) -> None:
    cache = MetadataCache()
    conf = {KEY: brokers.bootstrap, "client.id": "recorder", "acks": "all"}
    assert fetch(cache, conf=conf).topics == 1
    assert {seen.asked.client_id for seen in brokers[1].requests} == {"recorder"}


def test_arguments_complete_a_configuration_and_may_repeat_it(brokers: Brokers) -> None:
    cache = MetadataCache()
    fetch(cache, brokers.bootstrap, conf={}, client_id="one", max_frame=1 << 20)
    assert brokers[1].requests[-1].asked.client_id == "one"
    fetch(cache, brokers.bootstrap, conf={KEY: brokers.bootstrap, "client.id": "one"})
    fetch(
        cache,
        brokers.bootstrap,
        conf={"client.id": "one", "allow.auto.create.topics": "false"},
        client_id="one",
        allow_auto_create=False,
    )


@pytest.mark.parametrize(
    ("conf", "arguments", "said"),
    [
        ({KEY: "one:9092"}, {"bootstrap": "two:9092"}, "bootstrap.servers is 'one:9092'"),
        ({"metadata.broker.list": "one"}, {"bootstrap": "two"}, "bootstrap.servers is 'one'"),
        ({"client.id": "one"}, {"client_id": "two"}, "client.id is 'one' in conf, and 'two'"),
        ({"client.id": "rdmeta"}, {"client_id": "two"}, "client.id is 'rdmeta'"),
        ({"receive.message.max.bytes": 2000}, {"max_frame": 3000}, "is 2000 in conf, and 3000"),
        ({"allow.auto.create.topics": "true"}, {"allow_auto_create": False}, "is True in conf"),
    ],
)
def test_an_argument_that_contradicts_the_configuration_is_refused(
    conf: dict[str, Any], arguments: dict[str, Any], said: str
) -> None:
    cache = MetadataCache()
    cache.hint(["orders"])
    with pytest.raises(ConfigError, match=said):
        fetch(cache, **{"bootstrap": "127.0.0.1:1", **arguments}, topics=["orders"], conf=conf)
    assert cache.stats()["hints"] == 0


def test_a_wrong_configuration_or_none_with_servers_is_refused() -> None:
    cache = MetadataCache()
    for wrong in ({"bootstrap.server": "h"}, {KEY: "h", "security.protocol": "sasl_ssl"}, {}):
        with pytest.raises(ConfigError):
            fetch(cache, conf=wrong)
    with pytest.raises(TypeError, match="a configuration is a mapping"):
        fetch(cache, conf=[(KEY, "h")])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bootstrap servers must be str"):
        fetch(cache)


def test_an_address_has_the_protocol_of_the_configuration_or_none() -> None:
    text = "has the protocol sasl_ssl, but security.protocol is plaintext"
    with pytest.raises(ValueError, match=text):
        fetch(MetadataCache(), "SASL_SSL://h:1")
    with pytest.raises(ValueError, match="has the protocol plaintext, .* is ssl"):
        fetch(MetadataCache(), "PLAINTEXT://h:1", conf={"security.protocol": "ssl"})


def test_addresses_are_those_of_the_configurations_family(brokers: Brokers) -> None:
    server = f"localhost:{brokers[1].port}"
    fetch(MetadataCache(), server, conf={"broker.address.family": "v4"})
    with pytest.raises(TransportError):
        fetch(MetadataCache(), server, conf={"broker.address.family": "v6"})


@pytest.mark.parametrize("allowed", [False, True])
def test_topics_are_created_as_the_configuration_says(brokers: Brokers, allowed: bool) -> None:
    conf = {KEY: brokers.bootstrap, "allow.auto.create.topics": allowed}
    fetch(MetadataCache(), topics=["orders"], conf=conf)
    (seen,) = brokers[1].seen(METADATA)
    assert seen.asked.body.allow_auto_topic_creation is allowed


def test_the_largest_answer_is_the_configurations(brokers: Brokers) -> None:
    for number in range(100):
        brokers.truth.create(f"topic-{number}")
    conf = {KEY: brokers.bootstrap, "receive.message.max.bytes": 1000}
    with pytest.raises(MalformedError, match="4 to 1000"):
        fetch(MetadataCache(), conf=conf)
    fetch(MetadataCache(), brokers.bootstrap)


@pytest.mark.parametrize(
    ("fault", "option"),
    [(Fault(silent=True), "socket.timeout.ms"), (None, "socket.connection.setup.timeout.ms")],
)
def test_the_configurations_time_outs_end_a_wait_before_the_fetchs_own(
    brokers: Brokers, fault: Fault | None, option: str
) -> None:
    if fault is None:
        brokers[1].freeze()
    else:
        brokers[1].next(fault)
    begun = time.monotonic()
    try:
        with pytest.raises(RequestTimedOutError):
            fetch(MetadataCache(), timeout=30.0, conf={KEY: brokers.bootstrap, option: 1000})
        assert 0.9 < time.monotonic() - begun < 15
    finally:
        brokers[1].thaw()


# ---- servers that are not tried in vain ---------------------------------------------------------

PLAIN: dict[str, Any] = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "secret",
}


def guarded(password: str) -> Guard:
    return Guard(None, LoginServer({"alice": password}), delay=0.0)


@contextmanager
def guarded_brokers(*passwords: str) -> Iterator[Brokers]:
    """Yields brokers that take one password each."""
    with Brokers(len(passwords), guard=guarded("")) as running:
        for broker, password in zip(running, passwords, strict=True):
            broker.guard = guarded(password)
        yield running


def attempts(brokers: Brokers) -> list[int]:
    return [len(broker.accepted) for broker in brokers]


@pytest.mark.parametrize("delay", [0.0, 0.4])
def test_a_login_that_two_servers_refuse_alike_is_not_tried_at_a_third(delay: float) -> None:
    with guarded_brokers("another", "another", "another", "another") as brokers:
        for broker in brokers:
            broker.guard = replace(guarded("another"), delay=delay)
        with pytest.raises(AuthenticationError) as caught:
            fetch(MetadataCache(), brokers.bootstrap, conf=PLAIN)
        assert attempts(brokers) == [1, 1, 0, 0]
        assert str(caught.value).endswith("; 2 more servers were not tried")
        assert str(caught.value).count("sasl.username and sasl.password") == 2


def test_a_password_that_is_wrong_on_one_server_only_is_tried_at_the_next() -> None:
    with guarded_brokers("another", "secret", "another") as brokers:
        assert fetch(MetadataCache(), brokers.bootstrap, conf=PLAIN).brokers_changed
        assert attempts(brokers) == [1, 1, 0]


def test_two_refusals_of_different_causes_do_not_end_the_turn() -> None:
    with guarded_brokers("another", "another", "secret") as brokers:
        brokers[2].guard = Guard(None, LoginServer({}), mechanisms=("SCRAM-SHA-256",))
        assert fetch(MetadataCache(), brokers.bootstrap, conf=PLAIN).brokers_changed
        assert attempts(brokers) == [1, 1, 1]


def test_two_servers_that_are_down_do_not_end_the_turn() -> None:
    with guarded_brokers("", "", "secret") as brokers:
        brokers[1].refuse()
        brokers[2].refuse()
        assert fetch(MetadataCache(), brokers.bootstrap, conf=PLAIN).brokers_changed


def test_a_token_that_two_servers_refuse_is_not_tried_at_a_third() -> None:
    asked: list[str] = []

    def token(config: str) -> tuple[str, float]:
        asked.append(config)
        return f"token-{len(asked)}", 2e10

    conf = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    with guarded_brokers("", "", "") as brokers:
        with pytest.raises(AuthenticationError, match="; 1 more server was not tried"):
            fetch(MetadataCache(), brokers.bootstrap, conf={**conf, "oauth_cb": token})
        assert attempts(brokers) == [1, 1, 0]


def test_a_wrong_file_fails_once_and_no_server_is_tried() -> None:
    conf = {"security.protocol": "ssl", "ssl.ca.location": "/nonexistent/ca.pem"}
    with guarded_brokers("", "", "") as brokers:
        with pytest.raises(ConfigError, match="ca.pem: No such file") as caught:
            fetch(MetadataCache(), brokers.bootstrap, conf=conf)
        assert str(caught.value).count("No such file") == 1
        assert attempts(brokers) == [0, 0, 0]


def test_a_callable_that_fails_once_is_asked_again_for_the_next_server() -> None:
    asked: list[float] = []

    def password() -> str:
        asked.append(time.monotonic())
        if len(asked) == 1:
            raise OSError("the vault is busy")
        return "secret"

    with guarded_brokers("secret", "secret") as brokers:
        conf = {**PLAIN, "sasl.password": password}
        assert fetch(MetadataCache(), brokers.bootstrap, conf=conf).brokers_changed
