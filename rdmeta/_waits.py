"""Waiting for a cache to change: what of it is Python's, blocking and for asyncio.

The methods of `MetadataCache` of the same names call these. The cache is known here only by what it
can do: this module stands below it.

Blocking waits sleep in C. Those of an event loop share one pipe, which a watch in C writes to after
every change; the loop reads it, asks the cache for each waiter whether this was its change, and
lets go on those for whom it was. The pipe and the watch go with the last waiter of the loop. Who
keeps them is the loop, for which they read, and each waiter; the cache does not, so those of a loop
that was closed go with its tasks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, Protocol

from rdmeta.errors import RequestTimedOutError, error_name, from_code

if TYPE_CHECKING:
    import asyncio
    from weakref import WeakValueDictionary

    from rdmeta.model import Partition, Topic

# What state() says.
STALE = -102
DENIED = -105
INVALID = -106
NO_LEADER = -1
LEADER_NOT_AVAILABLE = 5
# A stale topic that is confirmed, or one that is denied again, has not changed: look so often. To
# be told of that, each answer would have to wake those who wait for any of its topics.
LOOK_AGAIN_S = 0.05


class Closable(Protocol):
    """A watch."""

    def close(self) -> None: ...


class Cache(Protocol):
    """What the waits ask of a cache."""

    @property
    def version(self) -> int: ...
    @property
    def _loops(self) -> WeakValueDictionary[asyncio.AbstractEventLoop, LoopWaiters]: ...
    def _watch(self, fd: int, /) -> Closable: ...
    def state(self, topic: str, partition: int | None = None, /) -> int: ...
    def _answer(self, topic: str, /) -> int | None: ...
    def topic(self, topic: str, default: None) -> Topic | None: ...
    def partition(self, topic: str, partition: int, default: None) -> Partition | None: ...
    def wait_change(
        self, since: int, timeout: float | None = None, topics: Sequence[str] | None = None
    ) -> int | None: ...


class LoopWaiters:
    """The waiters of one event loop, its pipe and its watch. Used in that loop's thread alone."""

    def __init__(self, cache: Cache, loop: asyncio.AbstractEventLoop) -> None:
        self.cache = cache
        self.loop = loop
        # What each waits for a change of, and after which version.
        self.waiters: dict[asyncio.Future[None], tuple[int, Sequence[str] | None]] = {}
        self.users = 0
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.watch = cache._watch(self.writer)
        loop.add_reader(self.reader, self.wake)

    def wake(self) -> None:
        """End the sleep of those whose change it was."""
        os.read(self.reader, 65536)
        for waiter, (since, topics) in self.waiters.items():
            if self.cache.wait_change(since, 0, topics) is not None:
                settle(waiter)

    async def changed(
        self, since: int, topics: Sequence[str] | None, deadline: float | None
    ) -> None:
        """Return after a change of the topics, or at the deadline, given by time.monotonic()."""
        waiter = self.loop.create_future()
        self.waiters[waiter] = (since, topics)
        left = remaining(deadline)
        timer = None if left is None else self.loop.call_later(left, settle, waiter)
        try:
            await waiter
        finally:
            del self.waiters[waiter]
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Leave nothing behind, also if the loop is closed already."""
        self.watch.close()
        if not self.loop.is_closed():
            self.loop.remove_reader(self.reader)
        os.close(self.reader)
        os.close(self.writer)


def settle(waiter: asyncio.Future[None]) -> None:
    """End a waiter's sleep, once."""
    if not waiter.done():
        waiter.set_result(None)


@contextmanager
def waiting(cache: Cache) -> Iterator[LoopWaiters]:
    """The running loop's waiters, made for the first and closed by the last."""
    import asyncio  # slow to import, and `import rdmeta` need not be

    loop = asyncio.get_running_loop()
    mine = cache._loops.get(loop)
    if mine is None:
        mine = cache._loops[loop] = LoopWaiters(cache, loop)
    mine.users += 1
    try:
        yield mine
    finally:
        mine.users -= 1
        if not mine.users:
            cache._loops.pop(loop, None)
            mine.close()


def deadline_of(timeout: float | None) -> float | None:
    """When a time-out is over, by time.monotonic(). TypeError, ValueError (negative, NaN)."""
    if timeout is None:
        return None
    if not isinstance(timeout, Real):
        raise TypeError(f"timeout must be a number of seconds, not {type(timeout).__name__}")
    if not timeout >= 0:
        raise ValueError(f"timeout must be seconds >= 0, not {timeout!r}")
    return time.monotonic() + timeout


def remaining(deadline: float | None) -> float | None:
    """Seconds left, None for ever."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


async def wait_change_async(
    cache: Cache, since: int, timeout: float | None, topics: Iterable[str] | None
) -> int | None:
    """MetadataCache.wait_change_async."""
    deadline = deadline_of(timeout)
    if topics is not None and not isinstance(topics, (str, bytes)):  # those are refused as they are
        topics = tuple(topics)  # looked at more than once
    version = cache.wait_change(since, 0, topics)
    if version is not None or timeout == 0:
        return version
    with waiting(cache) as waiters:
        # Looked at again after the watch is there: nothing falls in between.
        while (version := cache.wait_change(since, 0, topics)) is None and remaining(deadline) != 0:
            await waiters.changed(since, topics, deadline)
    return version


def look(
    cache: Cache, topic: str, partition: int | None, before: int | None
) -> tuple[Topic | Partition | None, int]:
    """What is waited for, if it is there, and the topic's state. Raises what ends the wait.

    `before` is the topic's answer when the wait began: a denial no newer than that does not end it,
    as somebody may have been authorised since.
    """
    state = cache.state(topic, partition)
    if state == INVALID or (state == DENIED and cache._answer(topic) != before):
        raise from_code(state, f"topic {topic!r}")
    if state != 0:
        return None, state
    if partition is None:
        return cache.topic(topic, None), state
    found = cache.partition(topic, partition, None)
    return (found if found and found.leader is not None else None), state


def timed_out(topic: str, partition: int | None, state: int) -> RequestTimedOutError:
    """What a wait for a topic raises at its end."""
    what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
    code = LEADER_NOT_AVAILABLE if state == NO_LEADER else state
    return RequestTimedOutError(f"{what} did not come in time: {error_name(code)}")


def nap(deadline: float | None, state: int) -> float | None:
    """The time.monotonic() at which to look again without a change, None for never."""
    if state not in (STALE, DENIED):
        return deadline
    again = time.monotonic() + LOOK_AGAIN_S
    return again if deadline is None else min(again, deadline)


def wait_for_topic(
    cache: Cache, topic: str, partition: int | None, timeout: float | None
) -> Topic | Partition:
    """MetadataCache.wait_for_topic."""
    deadline, before = deadline_of(timeout), cache._answer(topic)
    while True:
        version = cache.version
        found, state = look(cache, topic, partition, before)
        if found is not None:
            return found
        if remaining(deadline) == 0:
            raise timed_out(topic, partition, state)
        cache.wait_change(version, remaining(nap(deadline, state)), [topic])


async def wait_for_topic_async(
    cache: Cache, topic: str, partition: int | None, timeout: float | None
) -> Topic | Partition:
    """MetadataCache.wait_for_topic_async."""
    deadline, before = deadline_of(timeout), cache._answer(topic)
    while True:
        version = cache.version
        found, state = look(cache, topic, partition, before)
        if found is not None:
            return found
        if remaining(deadline) == 0:
            raise timed_out(topic, partition, state)
        again = nap(deadline, state)
        await wait_change_async(cache, version, remaining(again), [topic])
