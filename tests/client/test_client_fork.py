"""The child of a fork reads the cache of its parent's client, and disturbs nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import processes
import pytest
from broker import METADATA, Brokers
from certificates import Authority
from secured import Guard
from shells import Maker
from waiting import until

import rdmeta
from rdmeta import AsyncClient, Client
from rdmeta.client import driver as drivers
from rdmeta.errors import ForkedError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")


in_a_child = partial(processes.in_a_child, collects=True)


def the_driver(client: Any) -> drivers.Driver:
    found: drivers.Driver = getattr(client, "client", client)._driver
    return found


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def call_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ForkedError, match=r"attach\(\)"):
        call()


def test_in_a_child_the_cache_reads_and_calls_are_refused(brokers: Brokers) -> None:
    with Client({"bootstrap.servers": brokers.bootstrap}, topics=["orders"]) as client:
        remove = client.on_change(print)
        client.refresh()

        def child() -> None:
            assert client.cache.leader("orders", 1) == 2
            remove()
            for call in (
                client.start,
                client.refresh,
                client.stats,
                client.least_loaded,
                client.quorum,
                lambda: client.need("other"),
                lambda: client.forget("orders"),
                lambda: client.subscribe(None),
                lambda: client.leader("orders", 1),
                lambda: client.leader("other", 0),
                lambda: client.wait_for_topic("orders"),
                lambda: client.leader_unavailable("orders", 0, 6),
                lambda: client.epoch_seen("orders", 0, 6),
                lambda: client.leader_hint("orders", 0, 1, 6),
                lambda: client.on_change(print),
            ):
                call_refused(call)
            client.close()
            client.close()

        in_a_child(child)
        client.refresh()


def test_a_client_of_the_child_needs_a_cache_of_its_own(brokers: Brokers) -> None:
    with Client({"bootstrap.servers": brokers.bootstrap}) as client:
        client.refresh()

        def child() -> None:
            with pytest.raises(ForkedError, match="make a new MetadataCache"):
                Client({"bootstrap.servers": brokers.bootstrap}, cache=client.cache)

        in_a_child(child)


def test_in_a_child_an_async_client_is_refused(brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient({"bootstrap.servers": brokers.bootstrap}) as client:
            client.need("orders")
            await client.wait_for_topic("orders")

            def child() -> None:
                assert client.cache.leader("orders", 1) == 2
                with pytest.raises(ForkedError):
                    client.need("other")
                with pytest.raises(ForkedError):
                    client.stats()
                with pytest.raises(StopIteration):
                    client.close().send(None)

            in_a_child(child)
            await client.refresh()

    asyncio.run(main())


def test_a_child_has_none_of_the_sockets_and_the_parent_keeps_them(
    make: Maker, brokers: Brokers
) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    client.refresh()
    driver = the_driver(client)
    sockets = [link.connection.channel._socket for link in driver.links.values()]
    found = [each.fileno() for each in sockets if each is not None]
    pipes = [fd for each in list(drivers._open) for fd in (each._reader, each._writer)]
    pipes = [fd for fd in pipes if fd >= 0]  # those of closed clients wait for the collector
    assert found
    assert len(pipes) >= 2
    accepted = [len(each.accepted) for each in brokers]

    def child() -> None:
        assert [is_open(fd) for fd in found + pipes] == [False] * len(found + pipes)
        del client.__dict__  # as if the child dropped everything
        gc.collect()

    in_a_child(child)
    n = len(brokers.requests(None))
    brokers.truth.lead("orders", 0, 3)
    client.refresh()
    assert client.cache.leader("orders", 0) == 3
    assert len(brokers.requests(None)) == n + 1
    assert [len(each.accepted) for each in brokers] == accepted
    assert [is_open(fd) for fd in found + pipes] == [True] * len(found + pipes)


def test_the_parent_s_loop_is_still_woken_after_a_fork(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh()
    seen: list[Any] = []
    client.on_change(seen.append)
    in_a_child(lambda: None)
    client.cache.purge()
    until(lambda: seen, "a change by another door wakes the loop")


@pytest.mark.slow
def test_forks_while_clients_come_and_go_hang_no_child(brokers: Brokers) -> None:
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            with Client({"bootstrap.servers": brokers.bootstrap}, topics=["orders"]) as client:
                client.on_change(len)
                client.refresh()
                client.stats()

    threads = [threading.Thread(target=come_and_go) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with Client({"bootstrap.servers": brokers.bootstrap}, topics=["orders"]) as client:
            client.refresh()

            def child() -> None:
                call_refused(client.refresh)
                client.close()
                with Client({"bootstrap.servers": brokers.bootstrap}) as mine:
                    assert mine.leader("orders", 1) == 2

            for _ in range(20):
                in_a_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    until(lambda: sum(each.open for each in brokers) == 0)


def test_a_child_that_exits_closes_nothing_of_its_parent(brokers: Brokers) -> None:
    with Client({"bootstrap.servers": brokers.bootstrap}, topics=["orders"]) as client:
        client.refresh()
        n = brokers.requests(METADATA)[-1].connection
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import multiprocessing

            process = multiprocessing.get_context("fork").Process(target=rdmeta.MetadataCache)
            process.start()
        process.join(30)
        assert process.exitcode == 0
        client.refresh()
        assert brokers.requests(METADATA)[-1].connection == n


# ---- TLS ----------------------------------------------------------------------------------------

ours = Authority()
TLS = {"security.protocol": "ssl", "ssl.ca.pem": ours.pem}


@pytest.fixture
def encrypted() -> Iterator[Brokers]:
    """Yields three brokers with TLS."""
    with Brokers(3, guard=Guard(context=ours.server("127.0.0.1"))) as three:
        three.truth.create("orders", partitions=6)
        yield three


def test_a_child_closes_its_sockets_and_the_parents_tls_goes_on(encrypted: Brokers) -> None:
    """A word of the child, as the end of TLS, would end the parent's connections."""
    with Client({"bootstrap.servers": encrypted.bootstrap, **TLS}) as client:
        client.refresh(rdmeta.ALL)
        sockets = [
            channel._socket.fileno()
            for link in the_driver(client).links.values()
            for channel in link.connection._channels()
            if channel._socket is not None
        ]
        assert sockets

        def child() -> None:
            assert client.cache.leader("orders", 1) == 2
            assert not any(map(is_open, sockets))

        accepted = sum(len(broker.accepted) for broker in encrypted)
        in_a_child(child)
        for _ in range(3):
            client.refresh()
        assert sum(len(broker.accepted) for broker in encrypted) == accepted
    assert [broker.tls_errors for broker in encrypted] == [[], [], []]


def test_a_client_of_the_child_makes_connections_with_tls_of_its_own(encrypted: Brokers) -> None:
    with Client({"bootstrap.servers": encrypted.bootstrap, **TLS}) as client:
        client.refresh()

        def child() -> None:
            with Client({"bootstrap.servers": encrypted.bootstrap, **TLS}) as own:
                own.refresh()

        in_a_child(child)
        client.refresh()
