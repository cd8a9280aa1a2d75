"""Listeners of a client: each gets what it has not seen, in threads or as tasks.

An *inbox* holds what a listener has not been given. A *delivery* empties it: a slow listener gets
fewer and larger batches. A delivery holds its listener weakly, so a listener that refers to its
client does not keep a client that the application has dropped.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from rdmeta.client.driver import Lines
from rdmeta.client.thread import Daemon

if TYPE_CHECKING:
    from rdmeta._core import MetadataCache

# The seconds that a client's close() leaves to listeners that are still running.
LISTENERS_S = 1.0

_log = logging.getLogger("rdmeta.client")

# The events that wait for a listener that hangs; the oldest ones are dropped beyond that.
_MOST_EVENTS = 10_000


class Inbox(Protocol):
    """The news that a listener has not been given yet."""

    def take(self) -> object | None:
        """Returns the next batch, None if there is nothing new."""


class ChangeInbox:
    """The changes of a cache since the last batch, as Changes."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._since = cache.version

    def take(self) -> object | None:
        """Returns the Changes after the last batch, None if there are none."""
        if self._cache.version == self._since:
            return None
        changes = self._cache.changes(self._since)
        self._since = changes.until
        return changes


class EventInbox:
    """Events in order, as a tuple; it keeps the newest 10 000."""

    def __init__(self) -> None:
        self._events: deque[object] = deque(maxlen=_MOST_EVENTS)

    def filling(self, wake: Callable[[], None]) -> Callable[[object], None]:
        """Returns a function that adds an event and calls `wake`."""

        def fill(event: object) -> None:
            self._events.append(event)
            wake()

        return fill

    def take(self) -> object | None:
        """Returns all events, None if there are none."""
        found = tuple(self._events.popleft() for _ in range(len(self._events)))
        return found or None


class Listener:
    """A function of the application, and the inbox that it is called with."""

    def __init__(self, function: Callable[[Any], object], inbox: Inbox) -> None:
        if not callable(function):
            raise TypeError(f"a listener must be callable, not {type(function).__name__}")
        self.function = function
        self.inbox = inbox
        self._lines = Lines(_log)

    def failed(self, error: BaseException) -> None:
        """Logs the exception of the function."""
        name = getattr(self.function, "__qualname__", repr(self.function))
        self._lines.write_or_count(logging.ERROR, f"the listener {name} failed: {error!r}", error)


class Delivery(Protocol):
    """Calls a listener when its inbox has something."""

    def start(self) -> None:
        """Begins; an inbox may have something already."""

    def wake(self) -> None:
        """Takes note that the inbox may have something; it does not block."""

    def close(self) -> None:
        """Ends the delivery: no further call begins."""


class ThreadDelivery:
    """Calls a listener in a daemon thread of its own."""

    def __init__(self, listener: Listener) -> None:
        self._listener = weakref.ref(listener)
        # A queue of C, as Ctrl-C in the middle of Event.set() would leave its lock taken.
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._is_started = False
        self._is_ending = False
        self._ended = False
        self._daemon = Daemon(self._run, "rdmeta-listener")
        weakref.finalize(listener, self.close).atexit = False

    def start(self) -> None:
        """Starts the thread; a second call does nothing."""
        if not self._is_started:
            self._is_started = True
            self._daemon.start()
            self.wake()

    def wake(self) -> None:
        """Wakes the thread; any thread may call it."""
        if self._wakes.empty():
            self._wakes.put(None)

    def drain(self) -> None:
        """Ends the thread once its inbox is empty, or this call of the listener; does not wait."""
        if self._daemon.is_current:
            self.close()
        self._is_ending = True
        self.wake()

    def close(self) -> None:
        """Ends the thread once the running call returns; it does not wait."""
        self._ended = True
        self._wakes.put(None)

    def join(self, timeout: float) -> bool:
        """Waits for the thread, unless it is the caller's; returns whether it has ended."""
        return not self._is_started or self._daemon.is_current or self._daemon.join(timeout)

    def _run(self) -> None:
        while not self._ended:
            self._wakes.get()
            is_last = self._is_ending
            self._deliver()
            self._ended |= is_last and self._wakes.empty()

    def _deliver(self) -> None:
        """Calls the listener until its inbox is empty."""
        listener = self._listener()
        if listener is None:
            self._ended = True
            return
        try:
            while not self._ended and (batch := listener.inbox.take()) is not None:
                listener.function(batch)
        except BaseException as error:  # SystemExit would end the thread without a word
            listener.failed(error)
            self.wake()  # the inbox may have more


class LoopDelivery:
    """Calls a listener in its event loop: a function at once, a coroutine function as a task."""

    def __init__(self, listener: Listener) -> None:
        self._listener = weakref.ref(listener)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._planned: asyncio.Handle | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def start(self) -> None:
        """Begins in the running loop."""
        self._loop = asyncio.get_running_loop()
        self.wake()

    def wake(self) -> None:
        """Plans a call in the loop's next round; call it in the loop's thread."""
        if self._loop and not (self._ended or self._planned or self._task):
            self._planned = self._loop.call_soon(self._deliver)

    async def drain(self) -> None:
        """Calls the listener until its inbox is empty, unless its task is the caller's."""
        while self._loop is not None and not self._ended:
            if self._task is not None:
                await asyncio.wait((self._task,))
            elif not self._deliver():
                return
            await asyncio.sleep(0)  # a listener may cause changes for ever

    def close(self) -> None:
        """Cancels the listener's task, unless that task calls close()."""
        self._ended = True
        if self._planned is not None:
            self._planned.cancel()
        if (task := self.running()) is not None:
            task.cancel()

    def running(self) -> asyncio.Task[None] | None:
        """Returns the listener's task, None if it is the caller's or its loop is closed."""
        if self._task is None or self._task.get_loop().is_closed():
            return None
        return None if self._task is _current_task() else self._task

    def _deliver(self) -> bool:
        """Calls the listener once, and plans the next call; returns whether it had news."""
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None
        listener = self._listener()
        if self._loop is None or self._ended or self._task is not None or listener is None:
            return False
        try:
            batch = listener.inbox.take()
            if batch is None:
                return False
            result = listener.function(batch)
            if inspect.isawaitable(result):
                task = self._loop.create_task(self._finish(listener, result))
                if not task.done():  # an eager task may have ended by now
                    self._task = task
                return True
        except Exception as error:
            listener.failed(error)
        self.wake()
        return True

    async def _finish(self, listener: Listener, result: Any) -> None:
        """Awaits a listener that is a coroutine function."""
        try:
            await result
        except Exception as error:
            listener.failed(error)
        finally:
            self._task = None
            self.wake()


async def drained_all(deliveries: Iterable[LoopDelivery], timeout: float) -> None:
    """Has all these listeners called with what they have not seen, for `timeout` seconds at most.

    It leaves out a listener whose task is the caller's.
    """
    own = _current_task()
    tasks = [asyncio.ensure_future(each.drain()) for each in deliveries if each._task is not own]
    if tasks:
        try:
            await asyncio.wait(tasks, timeout=timeout)
        finally:
            for task in tasks:
                task.cancel()


async def ended_all(deliveries: Iterable[LoopDelivery], timeout: float) -> None:
    """Returns when the tasks of all these listeners have ended, after `timeout` seconds at most."""
    tasks = [task for each in deliveries if (task := each.running()) is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=timeout)


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None
