"""Publishing a cache: its state in a file that other processes map.

`MetadataCache.publish` returns a Publisher. This module lies below the cache, so it knows the
cache only by a protocol.
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
from operator import index
from typing import Any, Protocol

# The longest single wait for a change, so that the thread notices close() soon.
_SLICE_S = 0.05
# The time between two checks for answers that changed nothing but the deadlines.
_LOOK_S = 1.0
# The time between attempts after a failure.
_RETRY_S = 0.5


class Claim:
    """A lock that gives one path to one publisher: it is on a file beside the path, which stays.

    The lock ends with the process, in whatever way that ends. Children of a fork do not inherit it.
    The file has the id of the process, for the error that another publisher gets.
    """

    def __init__(self, path: str) -> None:
        self.fd = -1
        self.place = path + ".lock"
        _claims.add(self)  # before the descriptor exists, as another thread may fork
        try:
            self.fd = self._open()
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._holder()
            self.close()
            error.filename = path
            if isinstance(error, BlockingIOError):
                error.strerror = (
                    f"another publisher has this path{holder}: close it, or choose another path"
                )
            raise
        with suppress(OSError):  # the disk may be full, and the lock holds all the same
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, b"%d\n" % os.getpid(), 0)

    def _open(self) -> int:
        """Opens the lock file, which must be a regular file of this user, and no kind of link.

        A directory that others write to may have anything at that path. Raises OSError.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        wrong = f"{self.place} must be a regular file of this user with one name: remove it"
        try:
            fd = os.open(self.place, flags, 0o666)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                error.strerror = wrong
            raise
        found = os.fstat(fd)
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not is_ours or found.st_nlink > 1:  # a hard link would be another file, cut off
            os.close(fd)
            raise PermissionError(errno.EPERM, wrong)
        return fd

    def _holder(self) -> str:
        """Returns which process has the lock, for an error text; "" if that is not known."""
        try:
            pid = os.pread(self.fd, 32, 0)
        except OSError:
            return ""
        return f" (process {int(pid)})" if pid.strip().isdigit() else ""

    def is_effective(self) -> bool:
        """Returns whether other publishers meet the lock: the locked file is still at its path."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.lstat(self.place))
        except OSError:
            return False

    def close(self) -> None:
        """Releases the lock; a second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


_claims: weakref.WeakSet[Claim] = weakref.WeakSet()


def _in_child() -> None:
    for claim in list(_claims):
        claim.close()


os.register_at_fork(after_in_child=_in_child)


def permissions(mode: int | None) -> int:
    """Returns the mode of a new file, 0 for None: the umask decides. TypeError, ValueError."""
    if mode is None:
        return 0
    if not 0 < index(mode) <= 0o777:
        raise ValueError(f"mode must be the permissions of a file, such as 0o640, not {mode!r}")
    return index(mode)


def leftovers(path: str) -> list[bytes]:
    """Returns the temporary files that killed saves to `path` may have left beside it."""
    directory, name = os.path.split(os.fsencode(path))
    aside = re.compile(rb"\." + re.escape(name[:200]) + rb"\.rdmeta-[0-9a-f]{16}").fullmatch
    return [os.path.join(directory, each) for each in os.listdir(directory) if aside(each)]


def file_identity(path: str) -> tuple[int, ...] | None:
    """Returns the identity and the last write of the file at `path`, None if there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    # The inode number alone is not enough: a new file soon gets the number of a removed one.
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def remove_leftover(path: bytes) -> None:
    """Removes a temporary file unless a running save owns it, which locks it to its end.

    A file that cannot be removed stays: it does no harm.
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
    """An image that can be saved."""

    @property
    def version(self) -> int: ...
    def save(self, path: str | bytes | os.PathLike[Any], *, mode: int | None = None) -> None: ...


class SavedCache(Protocol):
    """The methods of a cache that a publisher needs."""

    def image(self) -> Saved: ...
    def stats(self) -> dict[str, Any]: ...
    def wait_change(self, since: int, timeout: float | None = None) -> int | None: ...


class Publisher:
    """Keeps a file up to date with a cache, until the publisher is closed or the cache is freed.

    A daemon thread waits for changes and saves an image, at least `interval` seconds apart. Changes
    in between go into the next image. An answer that changed nothing is published within a second,
    as it renews the deadlines. If the file is removed, written to or replaced, the publisher saves
    it again within a second. When a save fails, the publisher tries again; `error` is the reason
    until a save succeeds. One publisher on the host may have a path at a time. A lock on the file
    `path`.lock ensures that; the publisher makes that file again if it is removed. A new publisher
    removes the temporary files that a killed one left. At exit the interpreter closes publishers
    that are still open, unless it is killed. The child of a fork has no thread: close() does
    nothing there.
    """

    def __init__(
        self,
        cache: SavedCache,
        path: str | bytes | os.PathLike[Any],
        interval: float,
        mode: int | None = None,
    ) -> None:
        if not isinstance(interval, (float, Real)):
            raise TypeError(f"interval must be seconds, not {type(interval).__name__}")
        if not 0 <= interval <= threading.TIMEOUT_MAX:
            raise ValueError(f"interval must be seconds >= 0, not {interval!r}")
        permissions(mode)  # its check comes before the lock file is made
        self._mode = mode
        self.path = os.path.abspath(os.fsdecode(path))
        # This check comes before the lock file is made beside the path.
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
        self.interval = float(interval)  # Event.wait() takes no other kind of Real
        self.error: Exception | None = None
        self._cache = weakref.ref(cache)
        self._pid = os.getpid()
        self._ended, self._done = threading.Event(), threading.Event()
        self._closed = False
        self._saved = (-1, -1)
        self._identity: tuple[int, ...] | None = None
        self._claim = Claim(self.path)
        try:
            with suppress(OSError):  # the directory may be writable, but not readable
                for leftover in leftovers(self.path):
                    remove_leftover(leftover)
            self._save(cache)
        except BaseException:
            self._claim.close()
            raise
        self._thread = threading.Thread(target=self._run, name="rdmeta-publisher", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"version={self._saved[0]}"
        return f"<rdmeta.Publisher {self.path!r} {state}>"

    @property
    def version(self) -> int:
        """The version in the file."""
        return self._saved[0]

    def close(self) -> None:
        """Publishes the last state and stops; the file stays for its readers.

        Raises OSError if the last save fails; then close() can be called again. After a close()
        that succeeded, another call does nothing.
        """
        if self._closed or os.getpid() != self._pid:
            return
        self._ended.set()
        # join() alone is not enough. Before Python 3.13, after a join() that Ctrl-C interrupted,
        # the thread counts as ended, so two threads could save at once. And a signal that arrives
        # just before join() waits does not interrupt it.
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
        """Marks the publisher as closed and releases its lock."""
        self._closed = True
        self._claim.close()
        atexit.unregister(self.close)

    def _save(self, cache: SavedCache, again: bool = False) -> None:
        """Saves the cache's state, unless the file has it already and `again` is false.

        Raises OSError and Error.
        """
        applied = cache.stats()["applies"]
        image = cache.image()
        if again or (image.version, applied) != self._saved:
            if not self._claim.is_effective():
                self._claim = Claim(self.path)
            image.save(self.path, mode=self._mode)
            self._saved, self._identity = (image.version, applied), file_identity(self.path)
        self.error = None

    def _try(self, cache: SavedCache, again: bool = False) -> None:
        """Calls _save() and keeps its exception in `error`."""
        try:
            self._save(cache, again)
        except Exception as error:  # also from a clock= that the user gave the cache
            self.error = error

    def _wait(self, cache: SavedCache) -> int | None:
        """Waits up to _SLICE_S for a change that the file does not have yet."""
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
        """Publishes until close(), or until the cache is freed."""
        looked = time.monotonic()
        while not self._ended.is_set():
            cache = self._cache()
            if cache is None:
                self._end()
                return
            changed = self._wait(cache)
            due = changed is not None or self.error or time.monotonic() - looked >= _LOOK_S
            if due:
                looked = time.monotonic()
                self._try(cache, file_identity(self.path) != self._identity)
            del cache  # this may be the last reference
            if due:
                self._ended.wait(_RETRY_S if self.error else self.interval)
