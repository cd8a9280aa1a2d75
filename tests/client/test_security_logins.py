"""Logins over a client's life: again and again, with new secrets, and never in a storm."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from both_shells import both
from broker import METADATA, Brokers
from certificates import Authority
from login_server import LoginServer
from secured import Guard, LoggedIn
from shells import Maker
from waiting import until

from rdmeta.errors import AuthenticationError, Error

ours = Authority()
PLAIN: dict[str, Any] = {
    "security.protocol": "sasl_ssl",
    "ssl.ca.pem": ours.pem,
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "secret",
}
SCRAM = {**PLAIN, "sasl.mechanism": "SCRAM-SHA-512"}
# Seconds. A client logs in again after 1.36 to 1.52 s; a broker allows that after 1 s.
LIFETIME = 1.6


def guarded(password: str = "secret", **more: Any) -> Guard:
    """Returns the guard of brokers that know alice, by TLS and SASL."""
    return Guard(ours.server("127.0.0.1"), LoginServer({"alice": password}), **more)


def logins_of(guard: Guard) -> LoginServer:
    assert guard.logins is not None
    return guard.logins


def refused(brokers: Brokers) -> list[LoggedIn]:
    """Returns the logins that the brokers refused."""
    return [each for broker in brokers for each in broker.logins if not each.is_good]


def is_answered(client: Any) -> bool:
    """Returns whether a refresh succeeds."""
    try:
        client.refresh(timeout=20)
    except AuthenticationError:
        return False
    return True


# ---- re-authentication --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_client_logs_in_again_10_times_and_keeps_its_connection() -> None:
    guard = guarded(lifetime=LIFETIME)
    with Brokers(1, guard=guard) as brokers:
        brokers.truth.create("orders")
        conf = {"bootstrap.servers": brokers.bootstrap, **SCRAM, "client.id": "again"}
        with both({**conf, "topic.metadata.refresh.interval.ms": 100}, "again", ["orders"]) as two:
            until(lambda: len([e for e in brokers[1].logins if e.again]) >= 20)
            end = time.monotonic()
            problems = [problem for shell in two for problem in shell.errors]
        assert problems == []
        assert guard.mistakes == []
        assert refused(brokers) == []
        assert len(brokers[1].accepted) == 2
        for connection in (1, 2):
            own = [each.at for each in brokers[1].logins if each.connection == connection]
            assert len(own) >= 10
            waits = [late - early for early, late in zip(own, own[1:], strict=False)]
            assert all(wait >= 0.84 * LIFETIME for wait in waits)
            assert len({round(wait, 3) for wait in waits}) > 3  # at random
            assert brokers[1].count(METADATA, end - 5) > 20


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_password_that_changed_meanwhile_gives_one_clear_error(
    mechanism: str, make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rdmeta")
    guard = guarded(lifetime=LIFETIME)
    with Brokers(3, guard=guard) as brokers:
        brokers.truth.create("orders")
        given = {"password": "secret"}
        secret = {"sasl.mechanism": mechanism, "sasl.password": lambda: given["password"]}
        conf = {**PLAIN, **secret}
        client = make(brokers.bootstrap, {**conf, "reconnect.backoff.max.ms": 1000})
        client.refresh(["orders"])
        logins_of(guard).users["alice"] = "another"
        until(lambda: refused(brokers))
        with pytest.raises(AuthenticationError, match=r"127\.0\.0\.1:.*sasl\.password"):
            client.refresh(timeout=20)
        until(lambda: len(refused(brokers)) > 2)  # also on new connections, in other words
        lines = [each.getMessage() for each in caplog.records]
        assert len(lines) == 1, lines
        words = {"PLAIN": "Invalid username or password", "SCRAM-SHA-512": "during re-authent"}
        assert words[mechanism] in lines[0]
        assert "sasl.password" in lines[0]
        given["password"] = "another"
        until(lambda: is_answered(client))  # a login of before may be under way
        assert client.cache.leader("orders", 0) == 1


# ---- rotation -----------------------------------------------------------------------------------


def test_a_new_password_is_used_by_the_next_connection(make: Maker) -> None:
    guard = guarded()
    given, asked = ["secret"], []

    def password() -> str:
        asked.append(time.monotonic())
        return given[0]

    with Brokers(1, guard=guard) as brokers:
        client = make(brokers.bootstrap, {**SCRAM, "sasl.password": password})
        client.refresh()
        first = len(asked)
        given[0] = logins_of(guard).users["alice"] = "another"
        client.refresh()
        assert len(brokers[1].accepted) == 1
        brokers[1].drop()
        client.refresh(timeout=20)
        assert refused(brokers) == []
        assert len(brokers[1].accepted) >= 2
        assert len(asked) > first


def test_certificates_that_were_replaced_on_disk_are_used_by_the_next_connection(
    make: Maker, tmp_path: Path
) -> None:
    old, new = Authority(), Authority()
    ca = Path(old.write(tmp_path))
    certificate, key = old.issue("alice@example.org").write(tmp_path, "alice")
    conf = {
        "security.protocol": "ssl",
        "ssl.ca.location": str(ca),
        "ssl.certificate.location": certificate,
        "ssl.key.location": key,
    }
    guard = Guard(old.server("127.0.0.1", clients=old))
    with Brokers(1, guard=guard) as brokers:
        client = make(brokers.bootstrap, conf)
        client.refresh()
        ca.write_text(old.pem + new.pem)
        client.refresh()
        assert len(brokers[1].accepted) == 1

        guard.context = new.server("127.0.0.1", clients=old)
        brokers[1].drop()
        client.refresh(timeout=20)
        guard.context = new.server("127.0.0.1", clients=new)
        new.issue("alice@example.org").write(tmp_path, "alice")
        ca.write_text(new.pem)
        brokers[1].drop()
        client.refresh(timeout=20)
        assert brokers[1].tls_errors == []


# ---- storms -------------------------------------------------------------------------------------


def test_each_broker_gets_few_logins_with_a_wrong_password(make: Maker) -> None:
    with Brokers(3, guard=guarded("another")) as brokers:
        backoff = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 1000}
        client = make(brokers.bootstrap, {**PLAIN, **backoff}, topics=["orders"])
        begin = time.monotonic()
        while (seconds := time.monotonic() - begin) < 2.5:
            with pytest.raises(Error, match="Invalid username or password"):
                client.refresh(timeout=0.5)
        for broker in brokers:
            assert 2 <= len(broker.logins) <= 1 + seconds / 0.8


def test_a_password_that_is_wrong_on_one_broker_only_leaves_the_others_in_use(make: Maker) -> None:
    good, bad = guarded(), guarded("another")
    with Brokers(3, guard=good) as brokers:
        brokers[2].guard = bad
        brokers.truth.create("orders")
        backoff = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 1000}
        often = {"retry.backoff.ms": 20, "retry.backoff.max.ms": 100}
        client = make(brokers.bootstrap, {**PLAIN, **backoff, **often})
        begin = time.monotonic()
        answers = errors = 0
        while (seconds := time.monotonic() - begin) < 2.5:
            try:
                client.refresh(["orders"], force=True, timeout=5)
                answers += 1
            except AuthenticationError:  # the first one, if that broker was asked first
                errors += 1
        assert answers > 8
        assert errors <= 1
        assert len(brokers[2].logins) <= 1 + seconds / 0.8
        assert all(each.is_good for each in brokers[1].logins + brokers[3].logins)
        assert client.cache.leader("orders", 0) == 1


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_200_clients_with_a_wrong_password_make_no_storm_of_logins(make: Maker) -> None:
    guard = guarded("another", delay=1.0)
    with Brokers(1, guard=guard) as brokers:
        conf = {**PLAIN, "reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 5000}
        clients = [make(brokers.bootstrap, conf) for _ in range(200)]

        def ask(client: Any) -> Error:
            with pytest.raises(AuthenticationError, match="Invalid username") as caught:
                client.refresh(timeout=60)
            return caught.value

        begin = time.monotonic()
        with ThreadPoolExecutor(200) as pool:
            assert len(list(pool.map(ask, clients))) == 200
        until(lambda: time.monotonic() > begin + 4)
        seconds = time.monotonic() - begin
        assert 200 <= len(brokers[1].logins) <= 200 * (1 + seconds / 5)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_200_clients_log_in_at_once(make: Maker) -> None:
    with Brokers(1, guard=guarded()) as brokers:
        clients = [make(brokers.bootstrap, PLAIN) for _ in range(200)]
        with ThreadPoolExecutor(200) as pool:
            list(pool.map(lambda client: client.refresh(timeout=60), clients))
        assert refused(brokers) == []
        assert brokers[1].open == 200
        for client in clients:  # none of them is to look for the broker when it is gone
            client.close()
