"""Waiting for changes: the parts that are written in Python, blocking and for asyncio.

The methods of `MetadataCache` and of `Attached` with the same names call these functions. This
module lies below both classes, so it knows them only by protocols.

Blocking waits for a cache sleep in C. Blocking waits for a file look at the file again and again.
The waiters of an event loop share one waker. The waker of a cache is a pipe: a watch in C writes
to it after every change. The waker of a file is a timer. When it fires, one check serves all
waiters of the loop:

    waker --> LoopWaiters.wake     since --> waiters for any change      one comparison per version
                                   topic --> waiters for that topic      one check per topic
                                   waiters for any answer about a topic

The last waiter of a loop closes the waker. The loop and each waiter keep references to it. The
cache does not: when a loop is closed, its waiters and its waker are freed with its tasks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rdmeta.errors import RequestTimedOutError, code_of, error_name, from_code
from rdmeta.model import topic_fault

if TYPE_CHECKING:
    import asyncio
    from weakref import WeakValueDictionary

    from rdmeta.model import Partition, Topic

# The codes that state() returns.
NOT_CACHED, WAITING, STALE = map(code_of, ("NOT_CACHED", "WAITING", "STALE"))
UNKNOWN_TOPIC, DENIED, INVALID = map(code_of, ("UNKNOWN_TOPIC", "DENIED", "INVALID"))
NO_LEADER = -1
NOTHING_KNOWN = (NOT_CACHED, WAITING, UNKNOWN_TOPIC)
# Kafka's codes.
LEADER_NOT_AVAILABLE = code_of("LEADER_NOT_AVAILABLE")
INVALID_TOPIC = code_of("INVALID_TOPIC_EXCEPTION")
# The longest time between two looks at a file, in seconds, whatever its readers do.
LOOK_S = 0.05


class Closable(Protocol):
    """A watch."""

    def close(self) -> None: ...


class WaitSource(Protocol):
    """The methods of a cache, and of an attached reader, that the waits need."""

    @property
    def version(self) -> int: ...
    @property
    def _loops(self) -> WeakValueDictionary[asyncio.AbstractEventLoop, LoopWaiters]: ...
    def _waker(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None], /) -> Waker: ...
    def _since(self, since: int, /) -> int: ...
    def _changed(self, topics: Any, since: int, /) -> list[int]: ...
    def _answer(self, topic: str, /) -> object: ...
    def _sleep(
        self, since: int, timeout: float | None, topic: str, old_answer: object, /
    ) -> int | None: ...
    def state(self, topic: str, partition: int | None = None, /) -> int: ...
    def topic(self, topic: str, default: None) -> Topic | None: ...
    def partition(self, topic: str, partition: int, default: None) -> Partition | None: ...
    def wait_change(
        self, since: int, timeout: float | None = None, topics: Any = None
    ) -> int | None: ...


class Watched(Protocol):
    """A cache that a watch can observe."""

    def _watch(self, fd: int, answers: bool = False, /) -> Closable: ...


class Followed(Protocol):
    """An attached reader, which follows a file."""

    @property
    def _look_s(self) -> float: ...
    def _generation(self) -> object: ...
    def _since(self, since: int, /) -> int: ...
    def _passed(self, since: int, topics: Any, /) -> int | None: ...
    def _answer(self, topic: str, /) -> object: ...


# ---- event loops --------------------------------------------------------------------------------


class Waker(Protocol):
    """Wakes a loop when something may have changed."""

    def watch_answers(self, wanted: bool) -> None:
        """Sets whether answers that change nothing wake the loop as well."""

    def close(self) -> None: ...


class Pipe:
    """The waker of a cache: a pipe that a watch in C writes to."""

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
        except BaseException:  # the loop cannot watch files, or memory ran out
            self._release()
            raise

    def read(self) -> None:
        os.read(self.reader, 65536)
        self.wake()

    def watch_answers(self, wanted: bool) -> None:
        if wanted and len(self.watches) == 1:
            self.watches.append(self.cache._watch(self.writer, True))
        elif not wanted and len(self.watches) == 2:
            self.watches.pop().close()

    def close(self) -> None:
        """Frees the watches and the pipe, also if the loop is closed already.

        In the child of a fork the loop shares its parent's epoll, so the child leaves the reader
        registered there.
        """
        if os.getpid() == self.pid and not self.loop.is_closed():
            self.loop.remove_reader(self.reader)
        self._release()

    def _release(self) -> None:
        for watch in self.watches:
            watch.close()
        os.close(self.reader)
        os.close(self.writer)


class Ticker:
    """The waker of a file: a timer that looks at it, and wakes the loop when its state changed."""

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

    def watch_answers(self, wanted: bool) -> None:
        """Does nothing: every answer makes a new state of the file."""

    def close(self) -> None:
        self.timer.cancel()


def key_of(version: int) -> tuple[object, int]:
    """Returns the version's session (None if it has none) and the version."""
    return getattr(version, "session", None), version


class Wait:
    """One waiter's condition: a change after `since`, of one of `topics` unless that is None."""

    __slots__ = ("future", "key", "old_answer", "since", "topics")

    def __init__(
        self, since: int, topics: tuple[str, ...] | None = None, old_answer: object = None
    ) -> None:
        self.since = since
        self.key = key_of(since)
        self.topics = topics
        # If not None, an answer about topics[0] other than this one ends the wait as well.
        self.old_answer = old_answer
        self.future: asyncio.Future[None] | None = None  # set while the waiter sleeps

    def passed(self, source: WaitSource) -> int | None:
        """Returns the version once the change has happened, otherwise None."""
        return source.wait_change(self.since, 0, self.topics)

    def has_new_answer(self, source: WaitSource) -> bool:
        """Returns whether an answer other than `old_answer` has arrived."""
        if self.old_answer is None or self.topics is None:
            return False
        return source._answer(self.topics[0]) != self.old_answer


class LoopWaiters:
    """The waiters of one event loop and their waker. Only that loop's thread uses it."""

    def __init__(self, source: WaitSource, loop: asyncio.AbstractEventLoop) -> None:
        self.source = source
        self.loop = loop
        self.any: dict[tuple[object, int], set[Wait]] = {}
        self.topics: dict[str, set[Wait]] = {}
        self.by_answer: set[Wait] = set()
        self.names: list[str] | None = []  # the keys of `topics`; None after those have changed
        self.users = 0
        self.seen = source.version  # changes up to this version have been checked
        self.waker = source._waker(loop, self.wake)

    def wake(self) -> None:
        """Ends the sleep of the waiters whose condition may hold now."""
        try:
            woken = self.waits_to_wake()
        except Exception:  # a topic is damaged in the file: its own waiter raises the error
            woken = set().union(*self.any.values(), *self.topics.values())
        for wait in woken:
            if wait.future is not None:
                end_sleep(wait.future)

    def waits_to_wake(self) -> set[Wait]:
        """Returns the waits whose condition came true since the last check."""
        version = self.source.version
        woken = {wait for wait in self.by_answer if wait.has_new_answer(self.source)}
        for waits in self.any.values():
            if next(iter(waits)).passed(self.source) is not None:
                woken |= waits
        if self.topics:
            session = key_of(self.seen)[0]
            if self.names is None:
                self.names = list(self.topics)
            for i in self.source._changed(self.names, self.seen):
                for wait in self.topics[self.names[i]]:
                    # A wait with a later `since` may need a later change than this one.
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
        if wait.old_answer is not None:
            self.by_answer.add(wait)
            self.waker.watch_answers(True)

    def remove(self, wait: Wait) -> None:
        if wait.topics is None:
            waits = self.any[wait.key]
            waits.remove(wait)
            if not waits:
                del self.any[wait.key]
        for topic in wait.topics or ():
            waits = self.topics.get(topic, set())
            waits.discard(wait)  # a topic may be named twice
            if not waits and self.topics.pop(topic, None) is not None:
                self.names = None
        if wait.old_answer is not None:
            self.by_answer.remove(wait)
            if not self.by_answer:
                self.waker.watch_answers(False)

    async def sleep(self, wait: Wait, deadline: float | None) -> None:
        """Returns when wake() ends the sleep, or at the deadline (in time.monotonic() seconds)."""
        seconds, timer = remaining(deadline), None
        wait.future = self.loop.create_future()
        if seconds is not None:
            timer = self.loop.call_later(seconds, end_sleep, wait.future)
        try:
            await wait.future
        finally:
            wait.future = None
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Closes the waker."""
        self.waker.close()


def end_sleep(waiter: asyncio.Future[None]) -> None:
    """Ends a waiter's sleep; a second call does nothing."""
    if not waiter.done():
        waiter.set_result(None)


@contextmanager
def waiting(source: WaitSource) -> Iterator[LoopWaiters]:
    """Yields the running loop's waiters: the first user makes them, the last one closes them."""
    import asyncio  # imported here because it is slow, and `import rdmeta` must be fast

    loop = asyncio.get_running_loop()
    waiters = source._loops.get(loop)
    if waiters is None:
        waiters = source._loops[loop] = LoopWaiters(source, loop)
    waiters.users += 1
    try:
        yield waiters
    finally:
        waiters.users -= 1
        if not waiters.users:
            source._loops.pop(loop, None)
            waiters.close()


# ---- changes ------------------------------------------------------------------------------------


def seconds_of(value: Any, what: str) -> float:
    """Returns a length of time as a float, from any kind of number.

    Raises TypeError if `value` is no number, ValueError if it is negative or NaN.
    """
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    seconds = float(value)  # a sum with another kind of number would have that kind's precision
    if not seconds >= 0:
        raise ValueError(f"{what} must be seconds >= 0, not {value!r}")
    return seconds


def deadline_of(timeout: float | None) -> float | None:
    """Returns the deadline of a time-out, on time.monotonic()'s clock; None for no limit.

    Raises the errors of seconds_of().
    """
    return None if timeout is None else time.monotonic() + seconds_of(timeout, "timeout")


def remaining(deadline: float | None) -> float | None:
    """Returns the seconds until a deadline, at least 0; None for no limit."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def nap(attached: Followed, deadline: float | None) -> None:
    """Sleeps until the next look at a file is due. Ctrl-C interrupts it."""
    seconds = remaining(deadline)
    time.sleep(attached._look_s if seconds is None else min(seconds, attached._look_s))


def wait_change(
    attached: Followed, since: int, timeout: float | None, topics: Any | None
) -> int | None:
    """Implements Attached.wait_change(); `topics` are the names as it has prepared them."""
    deadline, start = deadline_of(timeout), attached._since(since)
    while (version := attached._passed(start, topics)) is None and remaining(deadline) != 0:
        nap(attached, deadline)
    return version


def sleep(
    attached: Followed,
    since: int,
    timeout: float | None,
    topics: Any,
    topic: str,
    old_answer: object,
) -> int | None:
    """Implements Attached._sleep(); `topics` is the one name as it has prepared it."""
    deadline = deadline_of(timeout)
    while (version := attached._passed(since, topics)) is None and remaining(deadline) != 0:
        if old_answer is not None and attached._answer(topic) != old_answer:
            break
        nap(attached, deadline)
    return version


async def sleep_async(source: WaitSource, wait: Wait, deadline: float | None) -> int | None:
    """Sleeps until the wait's condition holds, or to the deadline.

    Returns the version, None if there was no change.
    """
    version = wait.passed(source)  # raises ForkedError in a child, where nothing changes
    if version is not None or remaining(deadline) == 0:
        return version
    with waiting(source) as waiters:
        waiters.add(wait)
        try:
            # The check follows the waker's start, so no change can be missed between the two.
            while (version := wait.passed(source)) is None and remaining(deadline) != 0:
                if wait.has_new_answer(source):
                    break
                await waiters.sleep(wait, deadline)
            return version
        finally:
            waiters.remove(wait)


async def wait_change_async(
    source: WaitSource, since: int, timeout: float | None, topics: Iterable[str] | None
) -> int | None:
    """Implements wait_change_async() of MetadataCache and of Attached."""
    deadline, start = deadline_of(timeout), source._since(since)
    if isinstance(topics, (str, bytes)):
        raise TypeError(f"topics must be a list of names, not one {type(topics).__name__}")
    names = None if topics is None else tuple(topics)  # the wait reads them more than once
    return await sleep_async(source, Wait(start, names), deadline)


# ---- topics -------------------------------------------------------------------------------------


def look(
    source: WaitSource, topic: str, partition: int | None, first_answer: object
) -> tuple[Topic | Partition | None, int]:
    """Returns the topic or partition waited for (None if it is not there yet) and the state.

    Raises the error that ends the wait. `first_answer` is the topic's answer when the wait began.
    A denial that is no newer does not end the wait, as access may have been granted since.
    """
    state = source.state(topic, partition)
    if state == INVALID or (state == DENIED and source._answer(topic) != first_answer):
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
    """Returns the error of a wait for a topic that has reached its deadline."""
    what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
    code = LEADER_NOT_AVAILABLE if state == NO_LEADER else state
    return RequestTimedOutError(f"{what} was not available in time: {error_name(code)}")


def answer_to_watch(state: int, answer: object) -> object:
    """Returns the answer whose successor must wake the wait although it may change nothing.

    None if no such answer matters. An answer that confirms a stale topic makes it valid again. An
    answer that denies a topic again ends the wait, even if the cache has forgotten the first one.
    """
    return answer if state in (STALE, DENIED, NOT_CACHED) else None


def check_partition(partition: int | None) -> None:
    """Raises ValueError for a negative partition, which can never appear."""
    if partition is not None and partition < 0:
        raise ValueError(f"partition must be >= 0, not {partition}")


def wait_for_topic(
    source: WaitSource, topic: str, partition: int | None, timeout: float | None
) -> Topic | Partition:
    """Implements wait_for_topic() of MetadataCache and of Attached."""
    deadline, first_answer = deadline_of(timeout), source._answer(topic)
    check_partition(partition)
    while True:
        version, answer = source.version, source._answer(topic)
        found, state = look(source, topic, partition, first_answer)
        if found is not None:
            return found
        if remaining(deadline) == 0:
            raise timed_out(topic, partition, state)
        source._sleep(version, remaining(deadline), topic, answer_to_watch(state, answer))


async def wait_for_topic_async(
    source: WaitSource, topic: str, partition: int | None, timeout: float | None
) -> Topic | Partition:
    """Implements wait_for_topic_async() of MetadataCache and of Attached."""
    deadline, first_answer = deadline_of(timeout), source._answer(topic)
    check_partition(partition)
    while True:
        version, answer = source.version, source._answer(topic)
        found, state = look(source, topic, partition, first_answer)
        if found is not None:
            return found
        if remaining(deadline) == 0:
            raise timed_out(topic, partition, state)
        await sleep_async(source, Wait(version, (topic,), answer_to_watch(state, answer)), deadline)
