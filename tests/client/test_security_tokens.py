"""OAUTHBEARER over a client's life: what happens while its token server fails in each way."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from broker import Brokers
from certificates import Authority
from login_server import LoginServer
from secured import Guard
from shells import Maker
from token_server import TokenServer
from waiting import PROMPT, until

from rdmeta import MetadataCache, fetch
from rdmeta.errors import AuthenticationError, Error

ours, theirs = Authority(), Authority()
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


@pytest.fixture
def server() -> Iterator[TokenServer]:
    """Yields a token server, whose tokens the guard's brokers take."""
    with TokenServer("app", "hidden", context=ours.server("127.0.0.1")) as running:
        yield running


def guard_of(server: TokenServer) -> Guard:
    """Returns the guard of brokers that take the server's tokens."""
    return Guard(ours.server("127.0.0.1"), LoginServer(tokens=server.tokens))


@pytest.fixture
def guarded(server: TokenServer) -> Iterator[Brokers]:
    """Yields a broker that takes the server's tokens."""
    with Brokers(1, guard=guard_of(server)) as brokers:
        brokers.truth.create("orders")
        yield brokers


def conf_for(server: TokenServer, **more: Any) -> dict[str, Any]:
    return {
        "security.protocol": "sasl_ssl",
        "ssl.ca.pem": ours.pem,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        ENDPOINT: server.url,
        "sasl.oauthbearer.client.id": "app",
        "sasl.oauthbearer.client.secret": "hidden",
        "https.ca.pem": ours.pem,
        "reconnect.backoff.ms": 400,
        "reconnect.backoff.max.ms": 1000,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def answered_in_the_end(client: Any) -> None:
    """Returns when a refresh succeeds; each before it raises an Error in time."""

    def is_answered() -> bool:
        try:
            client.refresh(timeout=20)
        except Error:
            return False
        return True

    until(is_answered)


def test_a_client_logs_in_by_client_credentials_and_keeps_its_token(
    make: Maker, server: TokenServer, guarded: Brokers
) -> None:
    client = make(guarded.bootstrap, conf_for(server))
    client.refresh()
    guarded[1].drop()
    client.refresh(timeout=20)
    assert [each.is_good for each in guarded[1].logins] == [True, True]
    assert len(server.given) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((500, b"<html>oops</html>"), ["HTTP 500"]),
        ((503, b'{"error": "busy"}'), ["HTTP 503", "busy"]),
        ((200, b"<html>log in</html>"), ["no access_token"]),
        ((200, b'{"access_token": "abc"}'), ["expires_in"]),
        ((200, b'{"access_token": "a b c", "expires_in": 60}'), ["characters"]),
        ((200, b'{"access_token": "abc", "expires_in": 0}'), ["expired"]),
        ((302, b""), ["HTTP 302"]),
    ],
)
def test_a_wrong_answer_of_the_server_is_raised_at_once_and_later_it_is_asked_again(
    make: Maker, server: TokenServer, guarded: Brokers, answer: tuple[int, bytes], says: list[str]
) -> None:
    server.answer = answer
    client = make(guarded.bootstrap, conf_for(server))
    begin = time.monotonic()
    with pytest.raises(AuthenticationError) as caught:
        client.refresh(timeout=60)
    assert time.monotonic() - begin < PROMPT
    assert len(server.asked) == 1
    for words in (*says, "sasl.oauthbearer", guarded[1].address):
        assert words in str(caught.value)
    assert guarded[1].logins == []
    server.answer = None
    answered_in_the_end(client)


def test_a_wrong_secret_names_its_key(make: Maker, server: TokenServer, guarded: Brokers) -> None:
    client = make(guarded.bootstrap, conf_for(server, sasl_oauthbearer_client_secret="another"))
    with pytest.raises(AuthenticationError, match=r"sasl\.oauthbearer\.client\.secret") as caught:
        client.refresh(timeout=60)
    assert "wrong secret" in str(caught.value)
    assert not caught.value.retriable


def test_a_server_that_is_down_is_asked_with_backoff_and_open_connections_live_on(
    make: Maker, server: TokenServer, guarded: Brokers
) -> None:
    other = make(guarded.bootstrap, conf_for(server))
    other.refresh()
    server.stop()
    client = make(guarded.bootstrap, conf_for(server))
    begin = time.monotonic()
    with pytest.raises(AuthenticationError, match="Connection refused") as caught:
        client.refresh(timeout=60)
    assert time.monotonic() - begin < PROMPT
    assert caught.value.retriable
    assert ENDPOINT in str(caught.value)
    other.refresh()
    assert len(guarded[1].logins) == 1
    server.start()
    answered_in_the_end(client)


@pytest.mark.slow
def test_a_failing_server_is_asked_with_backoff(
    make: Maker, server: TokenServer, guarded: Brokers
) -> None:
    server.answer = 500, b""
    conf = {**conf_for(server), "reconnect.backoff.ms": 50}
    client = make(guarded.bootstrap, conf, topics=["orders"])
    client.start()
    time.sleep(2)
    # At once, then after 50 ms, and twice as much each time, +-20 %: 6 until 1.55 s.
    assert 3 <= len(server.asked) <= 8


@pytest.mark.slow
def test_with_three_brokers_a_failing_server_is_asked_no_more_often_and_makes_one_line(
    make: Maker, server: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer = 500, b""
    with Brokers(3, guard=guard_of(server)) as brokers:
        conf = {**conf_for(server), "reconnect.backoff.ms": 50}
        client = make(brokers.bootstrap, conf, topics=["orders"])
        client.start()
        time.sleep(2)
        assert 3 <= len(server.asked) <= 8
        lines = [each.getMessage() for each in caplog.records]
        assert len([line for line in lines if ENDPOINT in line]) == 1, lines
        server.answer = None
        answered_in_the_end(client)


def test_a_slow_server_holds_up_neither_open_connections_nor_close(
    make: Maker, server: TokenServer, guarded: Brokers
) -> None:
    other = make(guarded.bootstrap, conf_for(server))
    other.refresh()
    server.delay = 60
    client = make(
        guarded.bootstrap,
        {**conf_for(server), "socket.connection.setup.timeout.ms": 1000},
        topics=["orders"],
    )
    client.start()
    until(lambda: len(server.asked) >= 2)
    begin = time.monotonic()
    other.refresh()
    with pytest.raises(Error, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        client.refresh(timeout=3)
    assert time.monotonic() - begin < PROMPT
    assert len(server.asked) <= 4
    client.close()
    asked = len(server.asked)
    patient = make(guarded.bootstrap, conf_for(server), topics=["orders"])
    patient.start()
    until(lambda: len(server.asked) > asked)
    begin = time.monotonic()
    patient.close()
    assert time.monotonic() - begin < PROMPT


def test_fetch_gives_a_slow_server_only_its_own_time_out(
    server: TokenServer, guarded: Brokers
) -> None:
    server.delay = 60
    begin = time.monotonic()
    with pytest.raises(Error, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        fetch(MetadataCache(), guarded.bootstrap, timeout=1.0, conf=conf_for(server))
    assert time.monotonic() - begin < PROMPT


def test_a_slow_server_is_awaited(make: Maker, server: TokenServer, guarded: Brokers) -> None:
    server.delay = 1.5
    client = make(guarded.bootstrap, conf_for(server))
    client.refresh(timeout=20)
    assert len(server.asked) == 1


def test_a_token_that_the_broker_refuses_is_not_used_again(
    make: Maker, server: TokenServer, guarded: Brokers
) -> None:
    guard = guarded[1].guard
    assert guard is not None
    guard.logins = LoginServer(tokens=set())
    client = make(guarded.bootstrap, conf_for(server))
    with pytest.raises(AuthenticationError, match="invalid_token") as caught:
        client.refresh(timeout=60)
    assert "sasl.oauthbearer" in str(caught.value)
    guard.logins = LoginServer(tokens=server.tokens)
    answered_in_the_end(client)
    assert len(server.given) >= 2


def test_a_server_with_another_certificate_names_https_ca_location(
    make: Maker, guarded: Brokers
) -> None:
    with TokenServer("app", "hidden", context=theirs.server("127.0.0.1")) as alien:
        client = make(guarded.bootstrap, conf_for(alien))
        with pytest.raises(AuthenticationError, match=r"https\.ca\.location"):
            client.refresh(timeout=60)


def test_a_server_that_answers_nothing_is_a_server_that_is_slow(
    make: Maker, guarded: Brokers
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, TokenServer("app", "hidden") as server:
        conf = conf_for(server)
        conf[ENDPOINT] = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        conf["socket.connection.setup.timeout.ms"] = 1000
        client = make(guarded.bootstrap, conf)
        begin = time.monotonic()
        with pytest.raises(Error, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
            client.refresh(timeout=3)
        assert time.monotonic() - begin < PROMPT


def test_sessions_that_end_get_a_new_token_when_the_old_one_is_old(
    make: Maker, server: TokenServer, guarded: Brokers
) -> None:
    guard = guarded[1].guard
    assert guard is not None
    guard.lifetime, server.life = 1.6, 3
    client = make(guarded.bootstrap, conf_for(server))
    client.refresh()
    until(lambda: len(guarded[1].logins) >= 4)
    assert all(each.is_good for each in guarded[1].logins)
    assert len(guarded[1].accepted) == 1
    assert 2 <= len(server.given) <= 4
