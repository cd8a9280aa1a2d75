"""A connection by name through TLS and logins: preparing it, its time-outs, logging in again."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from broker import METADATA, Broker, Brokers
from certificates import Authority
from clocks import RunningClock
from login_server import LoginServer
from loops import LOOPS, run
from secured import Guard
from test_stream import METADATA_V1_ALL, Heard, connected, frozen, opened

from rdmeta.config import Config
from rdmeta.config.address import Address
from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings, SaslSettings, TlsSettings
from rdmeta.errors import AuthenticationError, ConfigError, RequestTimedOutError, TlsError
from rdmeta.net.security import Security
from rdmeta.net.stream import StreamConnection

ours, theirs = Authority(), Authority()
FOR_NAME = ours.server("name")


def secured(
    password: str | Callable[[], str] = "secret",
    mechanism: str = "SCRAM-SHA-512",
    tls: TlsSettings | None = TlsSettings(ca_pem=ours.pem),  # noqa: B008 - it is frozen
) -> Security:
    secret = Secret(password, "sasl.password")
    return Security(Config(tls=tls, sasl=SaslSettings(mechanism, "alice", secret)))


@pytest.fixture
def clock() -> RunningClock:
    return RunningClock()


@pytest.fixture
def guard(clock: RunningClock) -> Guard:
    logins = LoginServer({"alice": "secret"})
    return Guard(context=FOR_NAME, logins=logins, delay=0.01, clock=clock)


@pytest.fixture
def brokers(guard: Guard) -> Iterator[Brokers]:
    with Brokers(3, guard=guard) as running:
        running.truth.create("orders", partitions=3)
        yield running
        assert guard.mistakes == []


@pytest.fixture
def broker(brokers: Brokers) -> Broker:
    return brokers[1]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_connection_through_tls_and_a_login_carries_requests(
    loop: str, mechanism: str, broker: Broker
) -> None:
    async def main() -> None:
        heard = Heard()
        security = secured(mechanism=mechanism)
        connection = await connected(heard, broker.address, security=security)
        number = connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response")
        assert heard.answers[0].correlation_id == number
        connection.close()

    run(loop, main())
    assert [each.mechanism for each in broker.logins] == [mechanism]


def test_the_certificate_must_be_for_the_name_and_not_for_the_address(broker: Broker) -> None:
    broker.guard = Guard(context=ours.server("127.0.0.1"))

    async def main() -> None:
        heard = Heard()
        opened(heard, broker.address, security=secured())
        await heard.wait("disconnected")
        assert "is not for 'name': it is for 127.0.0.1;" in str(heard.error)

    asyncio.run(main())


def test_the_next_address_is_tried_after_one_whose_certificate_is_refused(brokers: Brokers) -> None:
    brokers[1].guard = Guard(context=theirs.server("name"))

    async def main() -> None:
        heard = Heard()
        hosts = brokers[1].address, brokers[2].address
        connection = await connected(heard, *hosts, security=secured())
        assert str(connection.channel.endpoint) == brokers[2].address
        connection.close()

    asyncio.run(main())


def test_a_refused_certificate_explains_more_than_an_address_without_a_listener(
    brokers: Brokers,
) -> None:
    brokers[1].guard = Guard(context=theirs.server("name"))
    brokers[2].refuse()

    async def main() -> None:
        heard = Heard()
        opened(heard, brokers[1].address, brokers[2].address, security=secured())
        await heard.wait("disconnected")
        assert isinstance(heard.error, TlsError)

    asyncio.run(main())


def test_a_refused_login_is_reported_once_with_its_key(broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        opened(heard, broker.address, security=secured("wrong"))
        await heard.wait("disconnected")
        assert isinstance(heard.error, AuthenticationError)
        assert "check sasl.username and sasl.password" in str(heard.error)
        await asyncio.sleep(0.05)
        assert heard.events.count("disconnected") == 1

    asyncio.run(main())
    assert len(broker.logins) == 1


def test_a_wrong_password_is_tried_at_one_address_of_a_host(brokers: Brokers) -> None:
    async def main() -> None:
        heard = Heard()
        hosts = [each.address for each in brokers]
        opened(heard, *hosts, security=secured("wrong"))
        await heard.wait("disconnected")
        assert isinstance(heard.error, AuthenticationError)

    asyncio.run(main())
    assert [len(each.logins) for each in brokers] == [1, 0, 0]


def test_the_connection_after_a_refused_login_begins_with_another_address(
    guard: Guard, brokers: Brokers
) -> None:
    brokers[1].guard = replace(guard, logins=LoginServer({"alice": "another"}))

    async def main() -> None:
        security, hosts = secured(), (brokers[1].address, brokers[2].address)
        heard = Heard()
        opened(heard, *hosts, security=security)
        await heard.wait("disconnected")
        connection = await connected(Heard(), *hosts, security=security)
        assert str(connection.channel.endpoint) == brokers[2].address
        connection.close()

    asyncio.run(main())
    assert len(brokers[1].logins) == 1


# ---- preparing ----------------------------------------------------------------------------------


def test_an_error_of_preparing_is_reported_without_a_connection(broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        tls = TlsSettings(ca_location="/nowhere")
        opened(heard, broker.address, security=secured(tls=tls))
        await heard.wait("disconnected")
        assert isinstance(heard.error, ConfigError)

    asyncio.run(main())
    assert broker.accepted == []


@pytest.mark.parametrize("ends", ["close", "time-out"])
def test_a_callable_that_hangs_holds_up_neither_the_time_out_nor_close(
    ends: str, broker: Broker
) -> None:
    go_on = threading.Event()

    def password() -> str:
        go_on.wait(30)
        return "secret"

    async def main() -> None:
        heard = Heard()
        connection = opened(heard, broker.address, timeout=0.2, security=secured(password))
        if ends == "close":
            await asyncio.sleep(0.05)
            connection.close()
            await asyncio.sleep(0.3)
            assert heard.events == []
        else:
            await heard.wait("disconnected")
            assert isinstance(heard.error, RequestTimedOutError)
            assert "callables of the configuration took too long" in str(heard.error)
        go_on.set()
        await asyncio.sleep(0.05)
        assert heard.events.count("disconnected") == (ends == "time-out")

    asyncio.run(main())
    assert broker.accepted == []


def test_preparing_and_resolving_may_end_in_either_order(broker: Broker) -> None:
    async def main() -> None:
        for pause in (0.0, 0.05):
            heard = Heard()

            def password(pause: float = pause) -> str:
                time.sleep(pause)
                return "secret"

            connection = StreamConnection(heard, security=secured(password, "PLAIN"))
            broker.guard = Guard(
                context=ours.server("localhost"), logins=LoginServer({"alice": "secret"})
            )
            connection.open(Address("localhost", broker.port), 20.0)
            assert await heard.wait("connected", "disconnected") == "connected", heard.error
            connection.close()

    asyncio.run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_the_time_out_covers_the_handshake_of_tls(loop: str, broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        begun = time.monotonic()
        opened(heard, broker.address, timeout=0.3, security=secured())
        await heard.wait("disconnected")
        assert time.monotonic() - begun < 5
        assert "no answer to the TLS handshake in time" in str(heard.error)

    with frozen(broker):
        run(loop, main())


def test_a_refused_token_is_not_used_again(guard: Guard, broker: Broker) -> None:
    assert guard.logins is not None
    guard.logins.tokens.add("token2")
    given = iter(("token1", "token2"))
    oauth = OauthSettings(callback=lambda _: (next(given), time.time() + 100))
    security = Security(
        Config(tls=TlsSettings(ca_pem=ours.pem), sasl=SaslSettings("OAUTHBEARER", oauth=oauth))
    )

    async def main() -> None:
        heard = Heard()
        opened(heard, broker.address, security=security)
        await heard.wait("disconnected")
        assert isinstance(heard.error, AuthenticationError)
        (await connected(Heard(), broker.address, security=security)).close()

    asyncio.run(main())


# ---- logging in again ---------------------------------------------------------------------------

# A session on a clock that the test moves on; on uvloop's own clock it lasts some seconds.
HOUR = 3600.0
BOTH_LOOPS = ["asyncio", pytest.param("uvloop", marks=pytest.mark.slow)]


@pytest.mark.parametrize("loop", BOTH_LOOPS)
def test_a_connection_logs_in_again_before_its_session_ends_and_loses_no_answer(
    loop: str,
    clock: RunningClock,
    guard: Guard,
    broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard.lifetime, times = (HOUR, 3) if loop == "asyncio" else (3.0, 1)
    shares: list[float] = []

    def uniform(low: float, high: float) -> float:
        assert (low, high) == (0.85, 0.95)
        shares.append(low + (high - low) * random.random())
        return shares[-1]

    monkeypatch.setattr("rdmeta.net.stream.random.uniform", uniform)

    async def main() -> None:
        if loop == "asyncio":
            clock.rule()
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured())
        sent = 0
        while connection.channel.reauthentications < times and heard.error is None:
            connection.request(METADATA, 1, METADATA_V1_ALL)
            sent += 1
            while len(heard.answers) < sent - 1 and heard.error is None:
                await asyncio.sleep(0.001)  # the broker may be slow
            if loop == "asyncio":
                clock.advance(HOUR / 100)
            await asyncio.sleep(0.01)
        while len(heard.answers) < sent and heard.error is None:
            await asyncio.sleep(0.01)
        assert heard.error is None
        assert connection.channel.session.logins == times + 1
        connection.close()

    run(loop, main())
    at = [each.at for each in broker.logins]
    assert all(each.is_good for each in broker.logins)
    # A request after the end of a session would have ended the connection.
    assert len(broker.accepted) == 1
    assert len(shares) == len(at) == times + 1
    assert all(0.85 <= share <= 0.95 for share in shares)
    for one, two, share in zip(at, at[1:], shares, strict=False):
        # A timer may be early by a millisecond.
        assert (share - 0.01) * guard.lifetime < two - one < guard.lifetime


@pytest.mark.parametrize("loop", BOTH_LOOPS)
def test_after_a_loop_was_blocked_beyond_the_session_the_login_comes_before_the_next_request(
    loop: str, clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = HOUR if loop == "asyncio" else 1.2

    async def main() -> None:
        heard = Heard()
        if loop == "asyncio":
            clock.rule()
        connection = await connected(heard, broker.address, security=secured())
        if loop == "asyncio":
            clock.advance(1.2 * HOUR)
        else:
            time.sleep(1.4)
        number = connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response", "disconnected")
        assert [each.correlation_id for each in heard.answers] == [number], heard.error
        assert connection.channel.reauthentications == 1
        connection.close()

    run(loop, main())
    assert len(broker.accepted) == 1


def test_requests_wait_for_a_password_that_comes_only_after_the_session(
    clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = HOUR
    asked, hangs, go_on = [0.0], threading.Event(), threading.Event()

    def password() -> str:
        asked.append(time.monotonic())
        if len(asked) > 2:
            hangs.set()
            go_on.wait(30)
        return "secret"

    async def main() -> None:
        clock.rule()
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured(password))
        clock.advance(1.1 * HOUR)
        await asyncio.to_thread(hangs.wait, 30)
        connection.request(METADATA, 1, METADATA_V1_ALL)
        await asyncio.sleep(0.1)
        assert (heard.answers, heard.error) == ([], None)
        go_on.set()
        await heard.wait("response", "disconnected")
        assert heard.error is None
        connection.close()

    asyncio.run(main())
    assert len(broker.accepted) == 1


def test_a_session_counts_from_the_login_and_not_from_when_its_answer_was_read(
    clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.context, guard.lifetime = None, HOUR

    async def main() -> None:
        clock.rule()
        heard = Heard()

        def on_event(_: str) -> None:
            if heard.events == ["bytes"] * 3:  # ApiVersions, SaslHandshake, SaslAuthenticate
                clock.advance(0.8 * HOUR)  # the loop was blocked

        heard.hook = on_event
        security = secured(mechanism="PLAIN", tls=None)
        connection = await connected(heard, broker.address, security=security)
        clock.advance(0.3 * HOUR)
        connection.request(METADATA, 1, METADATA_V1_ALL)
        clock.advance(HOUR)  # the next login
        await heard.wait("response", "disconnected")
        assert heard.error is None
        connection.close()

    asyncio.run(main())
    assert len(broker.accepted) == 1


def test_a_session_that_is_very_short_is_logged_in_again_as_soon_as_brokers_allow(
    clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = 0.2
    asked: list[float] = []

    def password() -> str:
        asked.append(clock())
        return "secret"

    async def main() -> None:
        clock.rule()
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured(password))
        while connection.channel.reauthentications < 2 and heard.error is None:
            if len(asked) == connection.channel.session.logins:
                clock.advance(0.05)  # not while a login is under way: the broker may be slow
            await asyncio.sleep(0.01)
        assert heard.error is None
        connection.close()

    asyncio.run(main())
    at = [each.at for each in broker.logins]
    assert all(1.0 <= two - one < 5.0 for one, two in zip(at, at[1:], strict=False))


def test_a_password_that_was_changed_meanwhile_breaks_the_connection_with_one_clear_error(
    clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = HOUR
    assert guard.logins is not None
    logins = guard.logins

    async def main() -> None:
        clock.rule()
        heard = Heard()
        await connected(heard, broker.address, security=secured())
        logins.users["alice"] = "another"
        clock.advance(0.96 * HOUR)
        await heard.wait("disconnected")
        assert isinstance(heard.error, AuthenticationError)
        assert "check sasl.username and sasl.password" in str(heard.error)

    asyncio.run(main())
    assert [each.is_good for each in broker.logins] == [True, False]


def test_the_secret_of_the_next_login_is_that_of_now(
    clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = HOUR
    assert guard.logins is not None
    users = guard.logins.users

    async def main() -> None:
        clock.rule()
        heard = Heard()
        security = secured(lambda: users["alice"])
        connection = await connected(heard, broker.address, security=security)
        users["alice"] = "another"
        clock.advance(0.96 * HOUR)
        while connection.channel.reauthentications < 1 and heard.error is None:
            await asyncio.sleep(0.01)
        assert heard.error is None
        connection.close()

    asyncio.run(main())


def test_a_login_that_cannot_be_prepared_is_tried_until_the_session_is_almost_over(
    clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = HOUR
    asked: list[float] = []

    def password() -> str:
        asked.append(clock())
        if len(asked) == 2:
            raise OSError("the vault is down")
        return "secret"

    async def main() -> None:
        clock.rule()
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured(password))
        while connection.channel.reauthentications < 1 and heard.error is None:
            clock.advance(HOUR / 1000)
            await asyncio.sleep(0.001)
        assert heard.error is None
        connection.close()

    asyncio.run(main())
    assert len(asked) == 3
    assert asked[2] < asked[0] + HOUR


def test_a_login_that_cannot_be_prepared_at_all_says_why_the_connection_ends(
    clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = HOUR
    asked: list[float] = []

    def password() -> str:
        asked.append(time.monotonic())
        if len(asked) > 1:
            raise OSError("the vault is down")
        return "secret"

    async def main() -> None:
        clock.rule()
        heard = Heard()
        await connected(heard, broker.address, security=secured(password))
        while heard.error is None:
            clock.advance(HOUR / 1000)
            await asyncio.sleep(0.001)
        assert str(heard.error).startswith("sasl.password: its callable raised OSError in password")

    asyncio.run(main())
    assert len(asked) > 3


@pytest.mark.parametrize("when", ["waits", "prepares"])
def test_close_ends_the_wait_for_the_next_login(
    when: str, clock: RunningClock, guard: Guard, broker: Broker
) -> None:
    guard.lifetime = HOUR
    hangs, go_on = threading.Event(), threading.Event()
    asked: list[float] = []

    def password() -> str:
        asked.append(time.monotonic())
        if len(asked) > 1:
            hangs.set()
            go_on.wait(30)
        return "secret"

    async def main() -> None:
        clock.rule()
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured(password))
        if when == "prepares":
            clock.advance(0.96 * HOUR)
            await asyncio.to_thread(hangs.wait, 30)
        connection.close()
        go_on.set()
        clock.advance(HOUR)
        await asyncio.sleep(0.1)
        assert "disconnected" not in heard.events

    asyncio.run(main())
    assert len(asked) == (1 if when == "waits" else 2)
    assert len(broker.logins) == 1


def test_a_session_without_an_end_is_not_logged_in_again(broker: Broker) -> None:
    async def main() -> None:
        connection = await connected(Heard(), broker.address, security=secured())
        assert connection._next_login is None
        connection.close()

    asyncio.run(main())


# ---- ends ---------------------------------------------------------------------------------------


def test_the_child_of_a_fork_sends_nothing_and_the_parents_connection_goes_on(
    broker: Broker,
) -> None:
    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured())
        child = os.fork()
        if not child:
            with suppress(BaseException):
                connection.abandon()
                del connection
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response", "disconnected")
        assert heard.error is None
        connection.close()

    asyncio.run(main())
    assert broker.tls_errors == []


def test_an_answer_of_a_blocked_loop_is_taken_through_tls(broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured())
        connection.request(METADATA, 1, METADATA_V1_ALL)
        deadline = time.monotonic() + 30
        while not heard.answers and time.monotonic() < deadline:
            time.sleep(0.01)  # the loop is blocked
            connection.take_arrived()
        assert len(heard.answers) == 1
        connection.close()

    asyncio.run(main())


@pytest.mark.slow
def test_a_certificate_that_expires_while_connected_ends_no_connection(broker: Broker) -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=2)
    broker.guard = Guard(
        context=ours.server("name", not_after=soon), logins=LoginServer({"alice": "secret"})
    )

    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, broker.address, security=secured())
        await asyncio.sleep(3.1)
        connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response", "disconnected")
        assert heard.error is None
        connection.close()
        late = Heard()
        opened(late, broker.address, security=secured())
        await late.wait("disconnected")
        assert "expired on" in str(late.error)

    asyncio.run(main())
