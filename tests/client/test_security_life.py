"""Secured clients end at once, whatever hangs, and leave a fork's parent alone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from broker import METADATA, Brokers, Fault
from certificates import Authority
from login_server import LoginServer
from processes import environment, in_a_child, open_files
from secured import Guard
from shells import Maker
from waiting import PROMPT, until

import rdmeta
from rdmeta.errors import Error

ours = Authority()
PLAIN: dict[str, Any] = {
    "security.protocol": "sasl_ssl",
    "ssl.ca.pem": ours.pem,
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "secret",
}
OAUTH: dict[str, Any] = {
    "security.protocol": "sasl_ssl",
    "ssl.ca.pem": ours.pem,
    "sasl.mechanism": "OAUTHBEARER",
}


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Yields a broker that asks for TLS and SASL."""
    guard = Guard(ours.server("127.0.0.1"), LoginServer({"alice": "secret"}, tokens={"good"}))
    with Brokers(1, guard=guard) as one:
        one.truth.create("orders")
        yield one


@pytest.fixture
def hang() -> Iterator[Callable[..., Any]]:
    """Yields a callable that returns at the end of the test."""
    over = threading.Event()

    def hanging(*_: object) -> Any:
        over.wait(60)
        raise RuntimeError("the test is over")

    yield hanging
    over.set()


def closes_at_once(client: Any) -> None:
    """Checks that close() is prompt, and ends a wait."""
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            client.wait_for_topic("orders", timeout=60)
        except Error as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: client.stats()["waiters"] > 0)
    begin = time.monotonic()
    client.close()
    thread.join(10)
    assert time.monotonic() - begin < PROMPT
    assert "closed" in str(ended[0])


# ---- close() ------------------------------------------------------------------------------------


def test_close_is_prompt_while_tls_shakes_hands(make: Maker, brokers: Brokers) -> None:
    brokers[1].freeze()
    client = make(brokers.bootstrap, PLAIN)
    client.start()
    until(lambda: brokers[1].accepted)
    closes_at_once(client)
    brokers[1].thaw()
    until(lambda: brokers[1].open == 0)


def test_close_is_prompt_while_a_login_hangs(make: Maker, brokers: Brokers) -> None:
    brokers[1].handshake_fault = lambda: Fault(silent=True)
    client = make(brokers.bootstrap, PLAIN)
    client.start()
    until(lambda: brokers[1].requests)
    closes_at_once(client)
    until(lambda: brokers[1].open == 0)


def test_close_is_prompt_while_oauth_cb_hangs(
    make: Maker, brokers: Brokers, hang: Callable[..., Any]
) -> None:
    client = make(brokers.bootstrap, {**OAUTH, "oauth_cb": hang})
    client.start()
    closes_at_once(client)


def test_close_is_prompt_while_a_callable_of_a_password_hangs(
    make: Maker, brokers: Brokers, hang: Callable[..., Any]
) -> None:
    client = make(brokers.bootstrap, {**PLAIN, "sasl.password": hang})
    client.start()
    closes_at_once(client)


def test_close_is_prompt_while_a_later_login_hangs(make: Maker, brokers: Brokers) -> None:
    guard = brokers[1].guard
    assert guard is not None
    guard.lifetime = 1.5
    client = make(brokers.bootstrap, PLAIN)
    client.refresh()
    brokers[1].handshake_fault = lambda: Fault(silent=True)
    asked = len(brokers[1].requests)
    until(lambda: len(brokers[1].requests) > asked)
    begin = time.monotonic()
    client.close()
    assert time.monotonic() - begin < PROMPT
    until(lambda: brokers[1].open == 0)


def test_a_hanging_callable_costs_one_thread_and_holds_up_no_other_call(
    make: Maker, brokers: Brokers, hang: Callable[..., Any]
) -> None:
    before = threading.active_count()
    conf = {
        **OAUTH,
        "oauth_cb": hang,
        "socket.connection.setup.timeout.ms": 1000,
        "reconnect.backoff.max.ms": 100,
    }
    client = make(brokers.bootstrap, conf)
    with pytest.raises(Error, match="oauth_cb did not return in time") as caught:
        client.refresh(timeout=3)
    assert "bootstrap.servers" not in str(caught.value)
    assert client.stats()["nodes"]
    threads = [each.name for each in threading.enumerate()]
    assert threads.count("rdmeta-security") == 1
    assert threading.active_count() <= before + 2


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_a_hanging_callable_does_not_keep_a_process_alive(kind: str, brokers: Brokers) -> None:
    program = f"""
        import asyncio, threading, rdmeta

        def hang(conf):
            print("called", flush=True)
            threading.Event().wait()

        conf = {{"bootstrap.servers": {brokers.bootstrap!r}, "oauth_cb": hang, **{OAUTH!r}}}

        async def main():
            client = rdmeta.AsyncClient(conf)
            await client.start()
            await asyncio.sleep(0.5)
            await client.close()

        if {kind!r} == "AsyncClient":
            asyncio.run(main())
        else:
            client = rdmeta.Client(conf)
            client.start()
            threading.Event().wait(0.5)
    """
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "called" in done.stdout
    assert done.stderr == ""
    assert time.monotonic() - begin < 20


# ---- fork ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")
@pytest.mark.parametrize("lifetime", [None, 1.5])
def test_the_child_of_a_fork_ends_its_tls_sockets_without_a_byte(
    make: Maker, brokers: Brokers, lifetime: float | None
) -> None:
    guard = brokers[1].guard
    assert guard is not None
    guard.lifetime = lifetime
    client = make(brokers.bootstrap, PLAIN)
    client.refresh()
    assert sockets_to_broker(brokers)

    def has_no_socket() -> None:
        assert not sockets_to_broker(brokers)

    in_a_child(has_no_socket)
    # A byte of the child would break the parent's record numbers.
    for _ in range(3):
        client.refresh()
        time.sleep(0.1)
    if lifetime is not None:
        until(lambda: any(each.again for each in brokers[1].logins))
        client.refresh()
    assert len(brokers[1].accepted) == 1
    assert brokers[1].count(METADATA) >= 3


def sockets_to_broker(brokers: Brokers) -> list[str]:
    """Returns the descriptors of this process that are a client's sockets to the broker."""
    port = f":{brokers[1].port:04X}"
    # One pass over the machine's connections: after some tests there are thousands.
    with open("/proc/self/net/tcp") as table:
        rows = [line.split() for line in table if port in line]
    links = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(port)}
    return [fd for fd, link in open_files().items() if link in links]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")
def test_the_child_of_a_fork_makes_a_secured_client_of_its_own(brokers: Brokers) -> None:
    conf = {"bootstrap.servers": brokers.bootstrap, **PLAIN}
    with rdmeta.Client(conf) as client:
        client.refresh()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                with rdmeta.Client({**conf, "client.id": "child"}) as own:
                    own.refresh(timeout=20)
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.refresh()
        assert brokers[1].count(METADATA, client_id="child") == 1
        assert len(brokers[1].accepted) == 2
