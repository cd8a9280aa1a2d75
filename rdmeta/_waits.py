"""Waiting for changes: what of it is Python's, blocking and for asyncio.

The methods of `MetadataCache` and of `Attached` of the same names call these. Both are known here
only by what they can do: this module stands below them.

Blocking waits for a cache sleep in C; those for a file look at it, again and again. The waiters of
an event loop share one teller: of a cache a pipe, which a watch in C writes to after every change,
of a file a timer. What it tells is looked at once for all of them:

    teller --> LoopWaiters.wake     since --> waiters for any change      one comparison a version
                                    topic --> waiters for that topic      one look a topic
                                    waiters for any answer about a topic

The teller goes with the last waiter of the loop. Who keeps it is the loop, for which it tells, and
each waiter; the cache does not, so those of a loop that was closed go with its tasks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rdmeta.errors import RequestTimedOutError, error_name, from_code
from rdmeta.model import topic_fault

if TYPE_CHECKING:
    import asyncio
    from weakref import WeakValueDictionary

    from rdmeta.model import Partition, Topic

# What state() says.
NOT_CACHED = -100
WAITING = -101
STALE = -102
UNKNOWN_TOPIC = -103
DENIED = -105
INVALID = -106
NO_LEADER = -1
NOTHING_KNOWN = (NOT_CACHED, WAITING, UNKNOWN_TOPIC)
# Kafka's codes.
LEADER_NOT_AVAILABLE = 5
INVALID_TOPIC = 17
# A file is looked at so often at least, whatever its readers do: seconds.
LOOK_S = 0.05


class Closable(Protocol):
    """A watch."""

    def close(self) -> None: ...


class Source(Protocol):
    """What the waits ask of a cache, and of what is attached."""

    @property
    def version(self) -> int: ...
    @property
    def _loops(self) -> WeakValueDictionary[asyncio.AbstractEventLoop, LoopWaiters]: ...
    def _teller(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None], /) -> Teller: ...
    def _since(self, since: int, /) -> int: ...
    def _changed(self, topics: Any, since: int, /) -> list[int]: ...
    def _answer(self, topic: str, /) -> object: ...
    def _sleep(
        self, since: int, timeout: float | None, topic: str, told: object, /
    ) -> int | None: ...
    def state(self, topic: str, partition: int | None = None, /) -> int: ...
    def topic(self, topic: str, default: None) -> Topic | None: ...
    def partition(self, topic: str, partition: int, default: None) -> Partition | None: ...
    def wait_change(
        self, since: int, timeout: float | None = None, topics: Any = None
    ) -> int | None: ...


class Watched(Protocol):
    """A cache."""

    def _watch(self, fd: int, answers: bool = False, /) -> Closable: ...


class Followed(Protocol):
    """What is attached."""

    @property
    def _look_s(self) -> float: ...
    def _generation(self) -> object: ...
    def _since(self, since: int, /) -> int: ...
    def _passed(self, since: int, topics: Any, /) -> int | None: ...
    def _answer(self, topic: str, /) -> object: ...


# ---- event loops --------------------------------------------------------------------------------


class Teller(Protocol):
    """What tells a loop that something may be new."""

    def answers(self, wanted: bool) -> None:
        """Whether to tell of answers that change nothing as well."""

    def close(self) -> None: ...


class Pipe:
    """The teller of a cache."""

    def __init__(
        self, cache: Watched, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]
    ) -> None:
        self.cache = cache
        self.loop = loop
        self.wake = wake
        self.pid = os.getpid()
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.watches: list[Closable] = []
        try:
            self.watches.append(cache._watch(self.writer))
            loop.add_reader(self.reader, self.read)
        except BaseException:  # of a loop that watches no files, or no memory
            self._give_back()
            raise

    def read(self) -> None:
        os.read(self.reader, 65536)
        self.wake()

    def answers(self, wanted: bool) -> None:
        if wanted and len(self.watches) == 1:
            self.watches.append(self.cache._watch(self.writer, True))
        elif not wanted and len(self.watches) == 2:
            self.watches.pop().close()

    def close(self) -> None:
        """Leave nothing behind, also if the loop is closed already.

        But in the child of a fork, whose loop has the very epoll of its parent's, leave it that.
        """
        if os.getpid() == self.pid and not self.loop.is_closed():
            self.loop.remove_reader(self.reader)
        self._give_back()

    def _give_back(self) -> None:
        for watch in self.watches:
            watch.close()
        os.close(self.reader)
        os.close(self.writer)


class Ticker:
    """The teller of a file: looks at it, and tells of another state."""

    def __init__(
        self, attached: Followed, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]
    ) -> None:
        self.attached = attached
        self.loop = loop
        self.wake = wake
        self.generation = attached._generation()
        self.timer = loop.call_later(attached._look_s, self.tick)

    def tick(self) -> None:
        self.timer = self.loop.call_later(self.attached._look_s, self.tick)
        generation = self.attached._generation()
        if generation != self.generation:
            self.generation = generation
            self.wake()

    def answers(self, wanted: bool) -> None:
        """They come as states, as all else."""

    def close(self) -> None:
        self.timer.cancel()


def key_of(version: int) -> tuple[object, int]:
    """The session, if versions have one, and the version."""
    return getattr(version, "session", None), version


class Wait:
    """What one waits for: a change after `since`, of one of the topics if there are any."""

    __slots__ = ("future", "key", "since", "told", "topics")

    def __init__(
        self, since: int, topics: tuple[str, ...] | None = None, told: object = None
    ) -> None:
        self.since = since
        self.key = key_of(since)
        self.topics = topics
        # Or for another answer about topics[0] than this one, if it is not None.
        self.told = told
        self.future: asyncio.Future[None] | None = None  # while one sleeps

    def passed(self, source: Source) -> int | None:
        """The version, if the change is there."""
        return source.wait_change(self.since, 0, self.topics)

    def told_anew(self, source: Source) -> bool:
        """Whether there is another answer."""
        if self.told is None or self.topics is None:
            return False
        return source._answer(self.topics[0]) != self.told


class LoopWaiters:
    """The waiters of one event loop and its teller. Used in that loop's thread alone."""

    def __init__(self, source: Source, loop: asyncio.AbstractEventLoop) -> None:
        self.source = source
        self.loop = loop
        self.any: dict[tuple[object, int], set[Wait]] = {}
        self.topics: dict[str, set[Wait]] = {}
        self.told: set[Wait] = set()
        self.names: list[str] | None = []  # of `topics`, None when they are others by now
        self.users = 0
        self.seen = source.version  # what has changed up to it was looked at
        self.teller = source._teller(loop, self.wake)

    def wake(self) -> None:
        """End the sleep of those whose change it was."""
        try:
            woken = self.concerned()
        except Exception:  # of one topic, damaged in a file: who waits for it raises that himself
            woken = set().union(*self.any.values(), *self.topics.values())
        for wait in woken:
            if wait.future is not None:
                settle(wait.future)

    def concerned(self) -> set[Wait]:
        """Whose change it was, since the last look."""
        version = self.source.version
        woken = {wait for wait in self.told if wait.told_anew(self.source)}
        for waits in self.any.values():
            if next(iter(waits)).passed(self.source) is not None:
                woken |= waits
        if self.topics:
            session = key_of(self.seen)[0]
            if self.names is None:
                self.names = list(self.topics)
            for i in self.source._changed(self.names, self.seen):
                for wait in self.topics[self.names[i]]:
                    # Of those that wait from later on it may not be theirs.
                    if (
                        wait.key[0] == session
                        and wait.since <= self.seen
                        or wait.passed(self.source) is not None
                    ):
                        woken.add(wait)
        self.seen = version
        return woken

    def add(self, wait: Wait) -> None:
        if wait.topics is None:
            self.any.setdefault(wait.key, set()).add(wait)
        for topic in wait.topics or ():
            if topic not in self.topics:
                self.topics[topic], self.names = set(), None
            self.topics[topic].add(wait)
        if wait.told is not None:
            self.told.add(wait)
            self.teller.answers(True)

    def remove(self, wait: Wait) -> None:
        if wait.topics is None:
            waits = self.any[wait.key]
            waits.remove(wait)
            if not waits:
                del self.any[wait.key]
        for topic in wait.topics or ():
            waits = self.topics.get(topic, set())
            waits.discard(wait)  # one may be named twice
            if not waits and self.topics.pop(topic, None) is not None:
                self.names = None
        if wait.told is not None:
            self.told.remove(wait)
            if not self.told:
                self.teller.answers(False)

    async def sleep(self, wait: Wait, deadline: float | None) -> None:
        """Return once it may have come, or at the deadline, given by time.monotonic()."""
        left, timer = remaining(deadline), None
        wait.future = self.loop.create_future()
        if left is not None:
            timer = self.loop.call_later(left, settle, wait.future)
        try:
            await wait.future
        finally:
            wait.future = None
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Leave nothing behind."""
        self.teller.close()


def settle(waiter: asyncio.Future[None]) -> None:
    """End a waiter's sleep, once."""
    if not waiter.done():
        waiter.set_result(None)


@contextmanager
def waiting(source: Source) -> Iterator[LoopWaiters]:
    """The running loop's waiters, made for the first and closed by the last."""
    import asyncio  # slow to import, and `import rdmeta` need not be

    loop = asyncio.get_running_loop()
    mine = source._loops.get(loop)
    if mine is None:
        mine = source._loops[loop] = LoopWaiters(source, loop)
    mine.users += 1
    try:
        yield mine
    finally:
        mine.users -= 1
        if not mine.users:
            source._loops.pop(loop, None)
            mine.close()


# ---- changes ------------------------------------------------------------------------------------


def seconds_of(value: Any, what: str) -> float:
    """A length of time, whatever kind of number. TypeError, ValueError (negative, NaN)."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    seconds = float(value)  # a sum with another kind would be as coarse as that
    if not seconds >= 0:
        raise ValueError(f"{what} must be seconds >= 0, not {value!r}")
    return seconds


def deadline_of(timeout: float | None) -> float | None:
    """When a time-out is over, by time.monotonic(); errors as of seconds_of()."""
    return None if timeout is None else time.monotonic() + seconds_of(timeout, "timeout")


def remaining(deadline: float | None) -> float | None:
    """Seconds left, None for ever."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def nap(attached: Followed, deadline: float | None) -> None:
    """Sleep until the next look at a file. Answers Ctrl-C."""
    left = remaining(deadline)
    time.sleep(attached._look_s if left is None else min(left, attached._look_s))


def wait_change(
    attached: Followed, since: int, timeout: float | None, topics: Any | None
) -> int | None:
    """Attached.wait_change; `topics` is what it makes of the names."""
    deadline, start = deadline_of(timeout), attached._since(since)
    while (version := attached._passed(start, topics)) is None and remaining(deadline) != 0:
        nap(attached, deadline)
    return version


def sleep(
    attached: Followed, since: int, timeout: float | None, topics: Any, topic: str, told: object
) -> int | None:
    """Attached._sleep; `topics` is what it makes of the one name."""
    deadline = deadline_of(timeout)
    while (version := attached._passed(since, topics)) is None and remaining(deadline) != 0:
        if told is not None and attached._answer(topic) != told:
            break
        nap(attached, deadline)
    return version


async def sleep_async(source: Source, wait: Wait, deadline: float | None) -> int | None:
    """Sleep until what is waited for comes, or to the deadline; the version, None if it stayed."""
    version = wait.passed(source)  # ForkedError, where nothing changes
    if version is not None or remaining(deadline) == 0:
        return version
    with waiting(source) as waiters:
        waiters.add(wait)
        try:
            # Looked at once the teller is there: nothing falls in between.
            while (version := wait.passed(source)) is None and remaining(deadline) != 0:
                if wait.told_anew(source):
                    break
                await waiters.sleep(wait, deadline)
            return version
        finally:
            waiters.remove(wait)


async def wait_change_async(
    source: Source, since: int, timeout: float | None, topics: Iterable[str] | None
) -> int | None:
    """MetadataCache.wait_change_async, and that of what is attached."""
    deadline, start = deadline_of(timeout), source._since(since)
    if isinstance(topics, (str, bytes)):
        raise TypeError(f"topics must be names, not one {type(topics).__name__}")
    names = None if topics is None else tuple(topics)  # looked at more than once
    return await sleep_async(source, Wait(start, names), deadline)


# ---- topics -------------------------------------------------------------------------------------


def look(
    source: Source, topic: str, partition: int | None, before: object
) -> tuple[Topic | Partition | None, int]:
    """What is waited for, if it is there, and the topic's state. Raises what ends the wait.

    `before` is the topic's answer when the wait began: a denial no newer than that does not end it,
    as somebody may have been authorised since.
    """
    state = source.state(topic, partition)
    if state == INVALID or (state == DENIED and source._answer(topic) != before):
        raise from_code(state, f"topic {topic!r}")
    found: Topic | Partition | None = None
    if state == 0 and partition is None:
        found = source.topic(topic, None)
    elif state == 0 and partition is not None:
        found = source.partition(topic, partition, None)
        found = found if found and found.leader is not None else None
    if state in NOTHING_KNOWN and (fault := topic_fault(topic)):
        raise from_code(INVALID_TOPIC, f"there can be no topic {topic!r}: {fault}")
    return found, state


def timed_out(topic: str, partition: int | None, state: int) -> RequestTimedOutError:
    """What a wait for a topic raises at its end."""
    what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
    code = LEADER_NOT_AVAILABLE if state == NO_LEADER else state
    return RequestTimedOutError(f"{what} did not come in time: {error_name(code)}")


def told_of(state: int, answer: object) -> object:
    """The answer whose successor a wait must see although it may change nothing, None for none.

    A stale topic that is confirmed is back, and one that is denied again ends the wait; also where
    the first denial has been forgotten meanwhile.
    """
    return answer if state in (STALE, DENIED, NOT_CACHED) else None


def check_partition(partition: int | None) -> None:
    """What cannot come is not waited for."""
    if partition is not None and partition < 0:
        raise ValueError(f"partition must be >= 0, not {partition}")


def wait_for_topic(
    source: Source, topic: str, partition: int | None, timeout: float | None
) -> Topic | Partition:
    """MetadataCache.wait_for_topic, and that of what is attached."""
    deadline, before = deadline_of(timeout), source._answer(topic)
    check_partition(partition)
    while True:
        version, answer = source.version, source._answer(topic)
        found, state = look(source, topic, partition, before)
        if found is not None:
            return found
        if remaining(deadline) == 0:
            raise timed_out(topic, partition, state)
        source._sleep(version, remaining(deadline), topic, told_of(state, answer))


async def wait_for_topic_async(
    source: Source, topic: str, partition: int | None, timeout: float | None
) -> Topic | Partition:
    """MetadataCache.wait_for_topic_async, and that of what is attached."""
    deadline, before = deadline_of(timeout), source._answer(topic)
    check_partition(partition)
    while True:
        version, answer = source.version, source._answer(topic)
        found, state = look(source, topic, partition, before)
        if found is not None:
            return found
        if remaining(deadline) == 0:
            raise timed_out(topic, partition, state)
        await sleep_async(source, Wait(version, (topic,), told_of(state, answer)), deadline)
