"""`OUT/lock`: one run at a time works on an output folder.

The file says which process holds it: its host, its number, and when that process began. So a later
process with the same number does not count as the holder. A run takes over the lock of a process
that is gone. Such a lock, and one of a run that failed, says that files of OUT may be newer than
the manifest.

An object store gives no exclusive file. There the lock only says that a run has begun and not
ended, and the user sees to it that runs do not overlap.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rdmeta.pipeline.errors import LockedError
from rdmeta.pipeline.store import Store

NAME = "lock"


def is_marked(out: Store) -> bool:
    """Returns whether a run works on `out`, or has ended without its manifest."""
    return out.read(NAME) is not None


def is_held(out: Store, token: str) -> bool:
    """Returns whether the run with that token still holds the lock of `out`."""
    found = _parsed(out.read(NAME))
    return found is not None and found.get("token") == token


def require_held(out: Store, token: str) -> None:
    """Raises LockedError if another run has taken over the output folder; "" is no run's token."""
    if token and not is_held(out, token):
        raise LockedError(f"{out.where}: another run has taken it over")


class Lock:
    """Holds the lock of an output folder while it is entered.

    Entering raises LockedError if another run holds it, and OSError. `was_marked` says whether an
    earlier run has not ended well. When the block ends by an exception, the mark stays.
    """

    def __init__(self, out: Store) -> None:
        self._out = out
        self.was_marked = False
        self.token = os.urandom(16).hex()

    def __enter__(self) -> Lock:
        with _alone(self._out):
            text = self._out.read(NAME)
            if text is not None and self._out.is_local:
                _refuse_holder(self._out, _parsed(text))
            self.was_marked = text is not None
            self._write({**_this_process(), "token": self.token})
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            self._out.remove(NAME)
        else:
            with contextlib.suppress(OSError):
                self._mark()

    def _mark(self) -> None:
        """Says that the run has failed; on a full disk, an empty file says it."""
        try:
            self._write({"failed": True})
        except OSError:
            if self._out.is_local:
                os.truncate(self._out.path(NAME), 0)

    def _write(self, values: dict[str, Any]) -> None:
        self._out.put(NAME, (json.dumps(values) + "\n").encode())


class NoLock:
    """Stands for the lock where the commits to the tables keep runs apart."""

    was_marked = False
    token = ""

    def __enter__(self) -> NoLock:
        return self

    def __exit__(self, *_: object) -> None: ...


@contextlib.contextmanager
def _alone(out: Store) -> Iterator[None]:
    """Keeps other processes of this host out, while one looks at the lock and takes it."""
    if not out.is_local:
        yield
        return
    Path(out.path()).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(out.path(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refuse_holder(out: Store, held: dict[str, Any] | None) -> None:
    """Raises LockedError if the process that the lock names may still run."""
    if held is None or held.get("failed"):
        return
    mine = _this_process()
    what = f"process {held.get('pid')} on {held.get('host')}"
    where = out.shown(NAME)
    if (held.get("host"), held.get("processes")) != (mine["host"], mine["processes"]):
        raise LockedError(
            f"{out.where}: {what} works on it; if that process has ended, remove {where}"
        )
    if held.get("boot") == mine["boot"] and held.get("began") == _began(held.get("pid")):
        raise LockedError(f"{out.where}: {what} works on it; wait for its end")


def _this_process() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": _began(os.getpid()),
        "boot": _system("/proc/sys/kernel/random/boot_id"),
        "processes": _namespace(),
    }


def _began(pid: object) -> str | None:
    """Returns when a process began, in ticks since the boot; None if there is no such process."""
    text = _system(f"/proc/{pid}/stat")
    return None if text is None else text.rpartition(")")[2].split()[19]


def _system(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _namespace() -> str | None:
    """Returns which processes this one sees: a container has numbers of its own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _parsed(text: bytes | None) -> dict[str, Any] | None:
    """Returns the values of a lock file, None for damage or no file."""
    try:
        found = json.loads(text or b"null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
