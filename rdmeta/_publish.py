"""Publishing a cache: its state in a file that other processes map.

`MetadataCache.publish` gives a Publisher. The cache is known here only by what it can do: this
module stands below it.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import re
import stat
import threading
import time
import weakref
from contextlib import suppress
from numbers import Real
from types import TracebackType
from typing import Any, Protocol

__all__ = ["Publisher"]

# How long a wait for a change lasts, so that an end is noticed.
_SLICE_S = 0.05
# How often to look whether an answer that changed nothing has moved the deadlines.
_LOOK_S = 1.0
# Between attempts after one that failed.
_RETRY_S = 0.5


class Claim:
    """That one path is published by one publisher: a lock on a file beside it, which stays.

    The lock goes with the process, however that ends, and is not the children's of a fork.
    """

    def __init__(self, path: str) -> None:
        self.fd = -1
        self.place = path + ".lock"
        _claims.add(self)  # first: another thread may fork
        try:
            self.fd = os.open(self.place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            error.filename = path
            if isinstance(error, BlockingIOError):
                error.strerror = "somebody else publishes"
            raise

    def stands(self) -> bool:
        """Whether others meet it: that the file is still there."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.stat(self.place))
        except OSError:
            return False

    def close(self) -> None:
        """Let go of it; a second time does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


_claims: weakref.WeakSet[Claim] = weakref.WeakSet()


def _in_child() -> None:
    for claim in list(_claims):
        claim.close()


os.register_at_fork(after_in_child=_in_child)


def leftovers(path: str) -> list[bytes]:
    """What may be left of saves to `path` that were killed before the file took its place."""
    directory, name = os.path.split(os.fsencode(path))
    aside = re.compile(rb"\." + re.escape(name[:200]) + rb"\.rdmeta-[0-9a-f]{16}").fullmatch
    return [os.path.join(directory, each) for each in os.listdir(directory) if aside(each)]


def place_of(path: str) -> tuple[int, ...] | None:
    """Which file lies there, as it was last written to, None for none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    # The number of one that is gone is soon another's.
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def remove_dead(path: bytes) -> None:
    """Remove a file aside, unless it has an owner: a save holds a lock on it to its end.

    What cannot be removed stays: it does no harm.
    """
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
        finally:
            os.close(fd)


class Saved(Protocol):
    """An image."""

    @property
    def version(self) -> int: ...
    def save(self, path: str | bytes | os.PathLike[Any]) -> None: ...


class Cache(Protocol):
    """What a publisher asks of a cache."""

    def image(self) -> Saved: ...
    def stats(self) -> dict[str, Any]: ...
    def wait_change(self, since: int, timeout: float | None = None) -> int | None: ...


class Publisher:
    """Keeps a file up to date with a cache, until it is closed or the cache is gone.

    A daemon thread waits for changes and saves an image, `interval` seconds apart at least: what
    changes meanwhile goes into the next. An answer that changed nothing is published within a
    second, as it makes everything younger. A file that was removed or written to, or in whose place
    another lies, is put back within a second, too. When it cannot be written, that is tried again;
    `error` says so meanwhile. One publisher at a time may have a path, on the whole host: that is
    held by a lock on the file `path`.lock, which is made again if it is removed. What an earlier
    one that was killed has left aside is removed. What is not closed when the interpreter exits is
    then, unless it is killed. In the child of a fork there is no thread, and close() does nothing.
    """

    def __init__(self, cache: Cache, path: str | bytes | os.PathLike[Any], interval: float) -> None:
        if not isinstance(interval, (float, Real)):
            raise TypeError(f"interval must be seconds, not {type(interval).__name__}")
        if not 0 <= interval <= threading.TIMEOUT_MAX:
            raise ValueError(f"interval must be seconds >= 0, not {interval!r}")
        self.path = os.path.abspath(os.fsdecode(path))
        # Before anything is left beside it.
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
        self.interval = float(interval)  # locks wait for no other Real
        self.error: Exception | None = None
        self._cache = weakref.ref(cache)
        self._pid = os.getpid()
        self._ended, self._done = threading.Event(), threading.Event()
        self._closed = False
        self._saved = (-1, -1)
        self._place: tuple[int, ...] | None = None
        self._claim = Claim(self.path)
        try:
            with suppress(OSError):  # of a directory that can be written to, and not listed
                for left in leftovers(self.path):
                    remove_dead(left)
            self._save(cache)
        except BaseException:
            self._claim.close()
            raise
        self._thread = threading.Thread(target=self._run, name="rdmeta-publisher", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def __enter__(self) -> Publisher:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"version={self._saved[0]}"
        return f"<rdmeta.Publisher {self.path!r} {state}>"

    @property
    def version(self) -> int:
        """The version that the file has."""
        return self._saved[0]

    def close(self) -> None:
        """Publish what is left, and stop; OSError if that did not go: then it can be called again.

        The file stays, for whoever reads it. Once it has gone, a second time does nothing.
        """
        if self._closed or os.getpid() != self._pid:
            return
        self._ended.set()
        # Not join() alone: before Python 3.13 one that Ctrl-C ended says that the thread is over,
        # so that two would save at once; and a signal just before it waits does not end it.
        while not self._done.wait(_SLICE_S):
            pass
        self._thread.join()
        cache = self._cache()
        if cache is not None:
            self._try(cache)
            if self.error is not None:
                raise self.error
        self._end()

    def _end(self) -> None:
        """Nothing is published any more."""
        self._closed = True
        self._claim.close()
        atexit.unregister(self.close)

    def _save(self, cache: Cache, anew: bool = False) -> None:
        """Save what the cache says, unless the file says so already. OSError, Error."""
        applied = cache.stats()["applies"]
        image = cache.image()
        if anew or (image.version, applied) != self._saved:
            if not self._claim.stands():
                self._claim = Claim(self.path)
            image.save(self.path)
            self._saved, self._place = (image.version, applied), place_of(self.path)
        self.error = None

    def _try(self, cache: Cache, anew: bool = False) -> None:
        """_save(), and what went wrong in `error`."""
        try:
            self._save(cache, anew)
        except Exception as error:  # also of a clock that the cache was given
            self.error = error

    def _wait(self, cache: Cache) -> int | None:
        """Wait for what the file does not say yet, not for long."""
        try:
            return cache.wait_change(self._saved[0], _SLICE_S)
        except Exception as error:
            self.error = error
            return None

    def _run(self) -> None:
        try:
            self._keep_up()
        finally:
            self._done.set()

    def _keep_up(self) -> None:
        """Publish until close(), or while there is a cache."""
        looked = time.monotonic()
        while not self._ended.is_set():
            cache = self._cache()
            if cache is None:
                self._end()
                return
            changed = self._wait(cache)
            saves = changed is not None or self.error or time.monotonic() - looked >= _LOOK_S
            if saves:
                looked = time.monotonic()
                self._try(cache, place_of(self.path) != self._place)
            del cache  # it may be the last that holds it
            if saves:
                self._ended.wait(_RETRY_S if self.error else self.interval)
