"""A client's threads: a driver in an event loop of its own, in one daemon thread.

Callers in other threads put work into a mailbox, and wake the loop if it is not awake already. They
take no lock that the thread needs: a signal handler may call the client whatever it interrupts.

A KeyboardInterrupt within threading.Event or Thread.start() may leave a lock taken, and a thread
that never runs. So a helper starts each Daemon, and its waiters use one lock.
"""

from __future__ import annotations

import _thread
import asyncio
import atexit
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from rdmeta.client.actions import Finish
from rdmeta.client.driver import Act, Begin, Driver, closed
from rdmeta.errors import Error

# A waiter looks again after this time: a signal just before a sleep does not interrupt it.
SLICE_S = 0.05


class Latch:
    """A flag that threads wait for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._is_set = False

    def set(self) -> None:
        """Sets the flag; call it once."""
        self._is_set = True
        self._lock.release()

    def wait(self) -> bool:
        """Returns whether the flag is set; it waits for a slice of time at most."""
        if not self._is_set:
            self._lock.acquire(timeout=SLICE_S)
        return self._is_set


class Daemon:
    """A daemon thread that calls `target` once."""

    def __init__(self, target: Callable[[], None], name: str) -> None:
        self._target = target
        self._name = name
        self._thread: threading.Thread | None = None
        self._begun = Latch()
        self._ended = Latch()
        self._failure: RuntimeError | None = None

    def start(self) -> None:
        """Starts the thread and waits until it runs; call it once.

        Raises RuntimeError if the process has too many threads. After Ctrl-C the thread runs,
        unless that came before its start.
        """
        try:
            _thread.start_new_thread(self._launch, ())
        except RuntimeError:
            self._ended.set()
            raise
        while not self._begun.wait():
            pass
        if self._failure is not None:
            raise self._failure

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in the thread."""
        return self._thread is threading.current_thread()

    def join(self, timeout: float) -> bool:
        """Waits until the thread has ended; returns whether it has, or never ran."""
        end = time.monotonic() + timeout
        while not self._ended.wait():
            if time.monotonic() > end:
                return self._thread is None
        if self._thread is not None:
            self._thread.join()
        return True

    def _launch(self) -> None:
        """Starts the thread from a helper, which gets no signals."""
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._failure = error
            self._begun.set()
            self._ended.set()

    def _run(self) -> None:
        self._thread = threading.current_thread()
        self._begun.set()
        try:
            self._target()
        finally:
            self._ended.set()


_log = logging.getLogger("rdmeta.client")

R = TypeVar("R")

# The time after which close() reports that it still waits, and the time after which it gives up.
_PROMPT_S = 1.0
_LONGEST_S = 10.0


class Outcome(Generic[R]):
    """The result of a piece of work in another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._value: R
        self._error: BaseException | None = None

    def set(self, value: R) -> None:
        """Ends the wait with a value."""
        self._value = value
        self._lock.release()

    def fail(self, error: BaseException) -> None:
        """Ends the wait with an exception."""
        self._error = error
        self._lock.release()

    def wait(self) -> R:
        """Returns the value or raises the exception; Ctrl-C interrupts it."""
        is_main = threading.current_thread() is threading.main_thread()
        while not self._lock.acquire(timeout=SLICE_S if is_main else -1):
            pass
        if self._error is not None:
            raise self._error
        return self._value


class DriverThread:
    """Runs a driver; any thread may use it. It knows nothing of the client that owns it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._pid = os.getpid()
        self._mail: deque[Callable[[], object]] = deque()
        self._starting = threading.RLock()
        self._is_started = False
        self._is_ending = False
        self._has_ended = False
        self._has_loop = Latch()
        self._failure: OSError | None = None
        self._loop: asyncio.SelectorEventLoop | None = None
        self._daemon: Daemon | None = None

    @property
    def is_running(self) -> bool:
        """Whether the driver is started and not closed."""
        return self._is_started and not self._is_ending

    # ---- any thread -----------------------------------------------------------------------------

    def start(self) -> bool:
        """Starts the thread unless it is started; returns whether it did.

        Raises Error once the driver is closed.
        """
        if self._is_ending:
            raise closed()
        if self._is_started:
            return False
        with self._starting:
            if self._is_started:
                return False
            if self._is_ending:
                raise closed()
            if sys.is_finalizing():  # a thread would not run, and its starter would wait for ever
                raise Error("the interpreter ends: no client can start")
            self._is_started = True
            try:
                self._launch()
            except RuntimeError:  # there is no thread
                self._is_ending = True
                self._end()
                raise
            except BaseException:  # Ctrl-C while the thread started
                self._is_ending = True
                self._wake()
                raise
            return True

    def _launch(self) -> None:
        """Starts the thread and waits until it has a loop.

        Raises OSError if it can have none, RuntimeError if the process has too many threads.
        """
        atexit.register(self.close)
        self._daemon = Daemon(self._run, "rdmeta-client")
        self._daemon.start()
        while not self._has_loop.wait():
            pass
        if self._failure is not None:
            raise self._failure

    def tell(self, act: Act[object]) -> None:
        """Gives the policy something to do, soon. Raises Error once the driver is closed."""
        self._post(lambda: self._driver.do(act))

    def ask(self, act: Act[R]) -> R:
        """Returns what `act` returns for the policy, or raises its exception."""
        return self.call(lambda: self._driver.do(act))

    def call(self, work: Callable[[], R]) -> R:
        """Returns what `work` returns in the thread, or raises its exception."""
        outcome: Outcome[R] = Outcome()

        def run() -> None:
            try:
                outcome.set(work())
            except BaseException as error:
                outcome.fail(error)

        self._check_thread()
        self._post(run)
        return outcome.wait()

    def wait(self, begin: Begin) -> Finish:
        """Begins a wait of the driver and returns its Finish; Ctrl-C ends the wait."""
        outcome: Outcome[Finish] = Outcome()
        waiters: list[int] = []

        def run() -> None:
            try:
                waiters.append(self._driver.begin(begin, outcome.set))
            except BaseException as error:
                outcome.fail(error)

        def cancel() -> None:
            for waiter in waiters:
                self._driver.cancel(waiter)

        self._check_thread()
        self._post(run)
        try:
            return outcome.wait()
        except BaseException:
            with suppress(Error):
                self._post(cancel)
            raise

    def end(self) -> None:
        """Begins to close, and does not wait. In the child of a fork it does nothing."""
        if os.getpid() != self._pid:
            return
        self._is_ending = True
        if self._is_started:
            self._wake()
        else:
            self._driver.close()

    def close(self) -> None:
        """Closes the driver and the thread; a second call does nothing.

        It waits for the thread, unless the thread calls it. It reports when that takes more than a
        second. In the child of a fork it does nothing.
        """
        if os.getpid() != self._pid:  # another thread may have had the lock at the fork
            return
        with self._starting:  # a start in another thread comes first
            self.end()
        daemon = self._daemon
        if daemon is None or daemon.is_current:
            return
        if not daemon.join(_PROMPT_S):
            _log.warning("the client's thread has not ended within %.0f s", _PROMPT_S)
            if not daemon.join(_LONGEST_S):
                return
        self._end()  # does nothing, unless the thread never ran

    def _post(self, work: Callable[[], object]) -> None:
        """Has `work` called in the thread, soon. Raises Error once the driver is closed."""
        self.start()
        self._mail.append(work)
        self._wake()
        if self._has_ended:  # after it emptied the mailbox, perhaps
            self._read()

    def _wake(self) -> None:
        """Has the loop read the mailbox, once it runs.

        Each call does so: a flag that spares some would keep a signal handler waiting that
        interrupts its setter.
        """
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it is closed: _post() sees that
                loop.call_soon_threadsafe(self._read)

    def _check_thread(self) -> None:
        if self._daemon is not None and self._daemon.is_current:
            raise Error("the client's own thread cannot wait for itself")

    # ---- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        loop = None
        try:
            loop = asyncio.SelectorEventLoop()
            self._driver.start(loop)
            self._loop = loop
        except OSError as error:  # no descriptor is left
            self._failure = error
        self._has_loop.set()
        try:
            if loop is not None and self._failure is None:
                loop.call_soon(self._read)  # the mail that came before there was a loop
                loop.run_forever()
        finally:
            self._is_ending = True
            self._end()
            if loop is not None:
                loop.close()

    def _end(self) -> None:
        """Closes the driver and ends each wait in the mailbox; a second call does nothing."""
        self._driver.close()
        self._has_ended = True
        self._read()
        atexit.unregister(self.close)  # it would keep the driver of a dropped client

    def _read(self) -> None:
        """Does the work in the mailbox, and stops the loop once it is to end."""
        while self._mail:
            try:
                self._mail.popleft()()
            except Exception as error:
                # A late caller emptied the mailbox beside the thread, or the driver is closed.
                if not self._has_ended:
                    _log.error("a call of the client failed: %r", error, exc_info=error)
        if self._is_ending and not self._has_ended and self._loop is not None:
            self._loop.stop()
