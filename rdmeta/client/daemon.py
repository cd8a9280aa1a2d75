"""Daemon threads that Ctrl-C in their starter or waiter does not disturb.

A KeyboardInterrupt within threading.Event or Thread.start() may leave a lock taken, and a thread
that never runs. So a helper starts the thread, and waiters use one lock.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable

__all__ = ["SLICE_S", "Daemon", "Latch"]

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
