"""One pipe per event loop: changes of the caches of all its clients wake the loop through it.

A watch in C writes to the pipe after every change. A thousand clients of one loop so need two
descriptors and no thread. A wake-up compares one version per client.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from rdmeta._core import MetadataCache
    from rdmeta.core.waits import Closable

__all__ = ["Wakeups", "of_loop"]


class Wakeups:
    """The pipe of one loop and the clients that it wakes. Only the loop's thread uses it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._wakes: dict[Callable[[], None], Closable] = {}
        self._reader = self._writer = -1
        _open.add(self)  # before the descriptors exist, as another thread may fork
        self._reader, self._writer = os.pipe()
        try:
            os.set_blocking(self._reader, False)
            os.set_blocking(self._writer, False)
            loop.add_reader(self._reader, self._read)
        except BaseException:  # the loop cannot watch files, or memory ran out
            self._release()
            raise

    def add(self, cache: MetadataCache, wake: Callable[[], None]) -> None:
        """Calls `wake` in the loop after changes of `cache`, or of another client's cache."""
        self._wakes[wake] = cache._watch(self._writer)

    def remove(self, wake: Callable[[], None]) -> None:
        """Ends the calls of `wake`; the last one closes the pipe, also if the loop is closed."""
        watch = self._wakes.pop(wake, None)
        if watch is not None:
            watch.close()
        if not self._wakes and self._reader >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._reader)
            _of_loops.pop(self._loop, None)
            self._release()

    def abandon(self) -> None:
        """Closes the pipe in the child of a fork; the loop's epoll is the parent's, and stays."""
        self._release()

    def _read(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._reader, 65536)
        for wake in list(self._wakes):
            wake()

    def _release(self) -> None:
        """Closes the pipe; a second call does nothing."""
        reader, writer, self._reader, self._writer = self._reader, self._writer, -1, -1
        if reader >= 0:
            os.close(reader)
            os.close(writer)

    def __del__(self) -> None:
        for watch in self._wakes.values():
            watch.close()
        self._release()


# A loop, its pipe's reader and its clients keep the pipe; these tables do not.
_of_loops: weakref.WeakValueDictionary[AbstractEventLoop, Wakeups] = weakref.WeakValueDictionary()
_open: weakref.WeakSet[Wakeups] = weakref.WeakSet()


def of_loop(loop: AbstractEventLoop) -> Wakeups:
    """Returns the pipe that all clients of the loop share; call it in the loop's thread."""
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Wakeups(loop)
    return found


def _in_child() -> None:
    for each in list(_open):
        each.abandon()
    _of_loops.clear()


os.register_at_fork(after_in_child=_in_child)
