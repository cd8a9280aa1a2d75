"""The proxy between clients and brokers: what it passes on, each of its faults, what it counts."""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Iterator

import pytest
from broker import METADATA, Brokers
from loop_thread import LoopThread
from proxy import Proxy
from waiting import until

from rdmeta import ALL, RequestTimedOutError, TransportError, encode_metadata_request
from rdmeta.config.address import parse_bootstrap
from rdmeta.net.blocking_session import Connection, Deadline

LONG = 20.0


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers(2) as brokers:
        yield brokers


@pytest.fixture
def proxy(brokers: Brokers) -> Iterator[Proxy]:
    with LoopThread("proxy") as loop, Proxy(loop, brokers[1].address) as proxy:
        yield proxy


def connect(proxy: Proxy, timeout: float = LONG, client_id: str = "tests") -> Connection:
    address = parse_bootstrap(proxy.address)[0]
    return Connection(address, Deadline(timeout), client_id, 1 << 24)


def ask(connection: Connection, timeout: float = LONG) -> bytes:
    return connection.request(METADATA, 12, encode_metadata_request(12, ALL), Deadline(timeout))


def test_it_counts_requests_by_api_and_client(brokers: Brokers, proxy: Proxy) -> None:
    with connect(proxy, client_id="a") as a, connect(proxy, client_id="b") as b:
        ask(a)
        since = time.monotonic()
        ask(a)
        ask(b)
    assert (proxy.count(METADATA), proxy.count(METADATA, "a"), len(proxy.accepted)) == (3, 2, 2)
    assert proxy.count(METADATA, "a", since) == 1
    assert proxy.count() == 5
    assert [p.version for p in proxy.passed(METADATA)] == [12, 12, 12]
    assert brokers[1].count() == 5


def test_a_cut_resets_connections_and_refuses_new_ones_until_it_heals(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.cut()
        with pytest.raises(TransportError):
            ask(connection)
    with pytest.raises(TransportError, match="refused"):
        connect(proxy)
    proxy.heal()
    with connect(proxy) as connection:
        assert ask(connection)


def talk(client: socket.socket) -> None:
    """Sends and receives until the other side resets the connection, or ends it in good order."""
    while client.send(b"x") and client.recv(1):
        pass
    raise ConnectionError("it ended")


def test_a_connection_that_is_made_during_a_cut_ends(brokers: Brokers, proxy: Proxy) -> None:
    host, port = parse_bootstrap(proxy.address)[0]
    for _ in range(300):
        with socket.socket() as client:
            client.setblocking(False)
            client.connect_ex((host, port))
            proxy.cut()
            client.setblocking(True)
            client.settimeout(LONG)
            with pytest.raises(ConnectionError):
                talk(client)
            proxy.heal()
    gc.collect()
    until(lambda: brokers[1].open == 0 == proxy.open)


def test_a_frozen_connection_is_silent_and_goes_on_when_it_heals(
    brokers: Brokers, proxy: Proxy
) -> None:
    with connect(proxy) as connection:
        proxy.freeze()
        with pytest.raises(RequestTimedOutError):
            ask(connection, 0.2)
        assert brokers[1].count(METADATA) == 0
        with pytest.raises(RequestTimedOutError):
            connect(proxy, 0.2)
        proxy.heal()
        connection._socket.settimeout(LONG)
        assert connection._socket.recv(4096)
        assert brokers[1].count(METADATA) == 1


def test_healing_may_lose_the_frozen_connections(brokers: Brokers, proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.freeze()
        with pytest.raises(RequestTimedOutError):
            ask(connection, 0.1)
        proxy.heal(lose=True)
        with pytest.raises(ConnectionError):
            connection._socket.recv(4096)
        assert brokers[1].count(METADATA) == 0


def test_answers_drip(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        whole = ask(connection)
        proxy.drip(7, 0.001)
        begin = time.monotonic()
        assert ask(connection) == whole
        assert time.monotonic() - begin > 0.001 * len(whole) / 7


def test_a_connection_is_cut_inside_a_frame(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.cut_inside_next_answer()
        with pytest.raises(TransportError):
            ask(connection)
    with connect(proxy) as connection:
        assert ask(connection)


def test_new_connections_go_to_another_target(brokers: Brokers, proxy: Proxy) -> None:
    with connect(proxy) as old:
        proxy.retarget(brokers[2].address)
        with connect(proxy) as new:
            ask(new)
        ask(old)
    assert (brokers[1].count(METADATA), brokers[2].count(METADATA)) == (1, 1)
