"""AsyncClient: a client in the caller's event loop."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from rdmeta.client.actions import Finish
from rdmeta.client.driver import Act, Driver, closed
from rdmeta.client.listeners import (
    LISTENERS_S,
    Delivery,
    Listener,
    LoopDelivery,
    drained_all,
    ended_all,
)
from rdmeta.client.shell import Refreshed, Shell, WaitingCall, names_of, nothing
from rdmeta.errors import Error, RequestTimedOutError
from rdmeta.model import Changes, Partition, Topic

if TYPE_CHECKING:
    from rdmeta.net.describe_cluster import ClusterDescription
    from rdmeta.net.describe_configs import TopicConfig
    from rdmeta.net.describe_quorum import Quorum

R = TypeVar("R")

# How long another thread waits for a busy event loop to read the statistics.
_STATS_S = 1.0


class AsyncClient(Shell):
    """Keeps a cache of a cluster's metadata true, in the event loop that it is first used in.

        async with rdmeta.AsyncClient({"bootstrap.servers": "localhost:9092"}) as client:
            await client.leader("orders", 3)                # a broker id

    Its methods are those of `Client`; those that can wait are awaited. need(), forget(),
    subscribe(), leader_unavailable(), epoch_seen(), leader_hint(), least_loaded() and stats() do
    not wait, and are no coroutines. It has no thread, and no task unless a listener is a coroutine
    function. It runs in asyncio's loops and in uvloop's.
    """

    _loop: asyncio.AbstractEventLoop | None = None
    _dropped: weakref.finalize[Any, Any] | None = None

    async def __aenter__(self) -> AsyncClient:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts the client in the running loop; a second call does nothing.

        It waits for no connection. Raises Error if the client is closed, or runs in another loop.
        """
        self._running()

    async def close(self) -> None:
        """Ends every wait with an error and closes all connections; a second call does nothing.

        First it has listeners called with what they have not seen, but not the one that calls it.
        After a second it cancels their tasks, and waits a second at most for them. In the child of
        a fork it does nothing. Raises Error if the client runs in another loop.
        """
        if os.getpid() != self._pid:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._check_loop()
        listeners = self._taken_listeners()
        tasks = [each for each in listeners.values() if isinstance(each, LoopDelivery)]
        try:
            await drained_all(tasks, LISTENERS_S)
        finally:
            self._lookup = nothing
            self._driver.close()
            if self._dropped is not None:
                self._dropped.detach()
            for each in tasks:
                each.close()
        await ended_all(tasks, LISTENERS_S)

    # ---- topics ---------------------------------------------------------------------------------

    @overload
    async def refresh(
        self,
        topics: Refreshed = None,
        *,
        force: bool = False,
        timeout: float | None = None,
        wait: Literal[True] = True,
    ) -> int: ...
    @overload
    async def refresh(
        self,
        topics: Refreshed = None,
        *,
        force: bool = False,
        timeout: float | None = None,
        wait: bool,
    ) -> int | None: ...
    async def refresh(
        self,
        topics: Refreshed = None,
        *,
        force: bool = False,
        timeout: float | None = None,
        wait: bool = True,
    ) -> int | None:
        """See `Client.refresh`."""
        call = self._refreshing(topics, force, timeout)
        if wait:
            return await self._wait(call)
        self._begin_only(call)
        return None

    async def leader(self, topic: str, partition: int, timeout: float | None = None) -> int:
        """See `Client.leader`."""
        found = self._lookup(topic, partition, None)
        if found is None:
            found = self._missed(topic, partition, timeout)
            while found is None:
                await self.wait_for_topic(topic, partition, timeout)
                found = self._cache.leader(topic, partition, None)
        elif self._touched is not None:
            self._touched.add(topic)
        return found

    async def topic(self, name: str, timeout: float | None = None) -> Topic:
        """See `Client.topic`."""
        return await self.wait_for_topic(name, None, timeout)

    @overload
    async def wait_for_topic(
        self, topic: str, partition: None = None, timeout: float | None = None
    ) -> Topic: ...
    @overload
    async def wait_for_topic(
        self, topic: str, partition: int, timeout: float | None = None
    ) -> Partition: ...
    async def wait_for_topic(
        self, topic: str, partition: int | None = None, timeout: float | None = None
    ) -> Topic | Partition:
        """See `Client.wait_for_topic`."""
        found, call = self._finding(topic, partition, timeout)
        while found is None:
            found = await self._wait(call)
        self._note((topic,))
        return found

    # ---- the cluster ----------------------------------------------------------------------------

    async def quorum(self, timeout: float | None = None) -> Quorum:
        """See `Client.quorum`."""
        return await self._wait(self._quorum_call(timeout))

    async def describe_cluster(
        self, *, fenced: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """See `Client.describe_cluster`."""
        return await self._wait(self._cluster_call(fenced, timeout))

    async def describe_configs(
        self,
        topics: str | Iterable[str],
        keys: str | Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> dict[str, TopicConfig]:
        """See `Client.describe_configs`."""
        found, calls = self._configs_call(topics, keys, timeout)
        for call in calls:
            found |= await self._wait(call)
        return found

    def _stats_anywhere(self) -> dict[str, Any]:
        self._check_not_forked()
        loop = self._loop
        if loop is None or not loop.is_running() or asyncio._get_running_loop() is loop:
            return self._driver.stats()
        found: Future[dict[str, Any]] = Future()
        try:
            loop.call_soon_threadsafe(lambda: found.set_result(self._driver.stats()))
            return found.result(_STATS_S)
        except RuntimeError:  # the loop was closed a moment ago
            return self._driver.stats()
        except FutureTimeoutError:
            raise RequestTimedOutError("the client's event loop is blocked") from None

    def changes(self, topics: Iterable[str] | None = None) -> AsyncIterator[Changes]:
        """Returns an iterator over the Changes from now on, in `topics` only if they are given.

            async for changes in client.changes():
                for change in changes:
                    print(change.kind, change.topic)

        It waits while there are none. When the client is closed, it gives those that the cache
        already has, and ends. If `.resync` is set, the reader was too slow: it must read the whole
        cache anew.
        """
        names = None if topics is None else frozenset(names_of(topics))
        return self._changes(self._running(), self.cache.version, names)

    async def _changes(
        self, driver: Driver, since: int, names: frozenset[str] | None
    ) -> AsyncIterator[Changes]:
        filled = asyncio.Event()
        loop = asyncio.get_running_loop()

        def fill() -> None:
            if not loop.is_closed():
                filled.set()

        driver.on_change.append(fill)
        try:
            is_open = True
            while is_open:
                is_open = not driver.is_closed
                filled.clear()
                if self.cache.version == since:
                    if is_open:
                        await filled.wait()
                    continue
                changes = only(names, self.cache.changes(since))
                since = changes.until
                if len(changes) or changes.resync:
                    yield changes
        finally:
            driver.on_change.remove(fill)

    # ---- the loop -------------------------------------------------------------------------------

    def _running(self) -> Driver:
        """Returns the driver, started; raises Error, ForkedError."""
        self._check_not_forked()
        if self._driver.is_closed:
            raise closed()
        if self._loop is None:
            loop = asyncio.get_running_loop()
            self._driver.start(loop)
            self._loop = loop
            self._dropped = weakref.finalize(self, _dropped, self._pid, self._loop, self._driver)
            self._start_listeners()
        else:
            self._check_loop()
        self._look_up()
        return self._driver

    def _check_loop(self) -> None:
        if asyncio._get_running_loop() is not self._loop:
            raise Error("the client runs in another event loop: make one client for each loop")

    def _check_caller(self) -> None:
        if self._loop is not None:
            self._check_loop()

    def _is_running(self) -> bool:
        return self._loop is not None and not self._driver.is_closed

    def _delivery(self, listener: Listener) -> Delivery:
        return LoopDelivery(listener)

    def _ask(self, act: Act[R]) -> R:
        return self._running().do(act)

    async def _wait(self, call: WaitingCall[R]) -> R:
        """Begins a call and returns its result; raises its error."""
        driver, (begin, parse) = self._running(), call
        future = asyncio.get_running_loop().create_future()
        waiter = driver.begin(begin, partial(_complete, future))
        try:
            return parse(await future)
        except BaseException:  # cancelled, or its coroutine was closed
            driver.cancel(waiter)
            raise


def only(names: frozenset[str] | None, changes: Changes) -> Changes:
    """Returns the changes of those topics, or all of them."""
    if names is None or changes.resync:
        return changes
    found = tuple(change for change in changes if change.topic in names)
    return Changes(found, changes.until, False)


def _complete(future: asyncio.Future[Finish], finish: Finish) -> None:
    if not future.done() and not future.get_loop().is_closed():
        future.set_result(finish)


def _dropped(pid: int, loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
    """Closes the driver of a client that nothing refers to any more, from any thread."""
    if os.getpid() != pid:
        return
    if not loop.is_running():  # it may be closed before it runs again
        driver.close()
        return
    with suppress(RuntimeError):  # the loop was closed a moment ago
        loop.call_soon_threadsafe(driver.close)
