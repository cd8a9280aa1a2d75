"""Resolves names for event loops, in daemon threads that may hang without harm.

The system's resolver has no deadline. A lookup that hangs therefore costs a thread, and nothing
else: neither the loop nor the interpreter's exit waits for it. All clients of a process share two
threads, which end when there is nothing to look up. hand_out() gives what a thread found to the
futures of the loops.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from rdmeta.errors import Error, TransportError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from rdmeta.config.address import Address

T = TypeVar("T")


def hand_out(waiters: Iterable[tuple[AbstractEventLoop, Future[T]]], outcome: T | Error) -> None:
    """Settles each future in its own loop, and leaves out closed loops; any thread may call it."""
    for loop, future in waiters:
        try:
            loop.call_soon_threadsafe(complete, future, outcome)
        except RuntimeError:  # the loop is closed
            continue


def complete(future: Future[T], outcome: T | Error) -> None:
    """Gives `future` its result or exception, unless it is done; its loop's thread may call it."""
    if future.done():  # cancelled
        return
    if isinstance(outcome, Error):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


# The values of broker.address.family.
FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}

# The threads of one process that look up names, and so the number of lookups that can hang.
_THREADS = 2


class Endpoint(NamedTuple):
    """An address for `socket.connect()` and its family, AF_INET or AF_INET6."""

    family: int
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_Outcome: TypeAlias = "tuple[Endpoint, ...] | Error"
_EndpointsWaiter: TypeAlias = "tuple[AbstractEventLoop, Future[tuple[Endpoint, ...]]]"


class _Lookup(NamedTuple):
    """A name that is being looked up, or waits for a thread, and the futures that wait for it."""

    host: str
    port: int
    family: int
    waiters: list[_EndpointsWaiter]


class Resolver:
    """Looks up names in at most two daemon threads of its own; any thread may use it."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Forgets all lookups and threads, as the child of a fork has none of them."""
        self._lock = threading.Lock()
        self._lookups: dict[tuple[str, int, int], _Lookup] = {}
        self._queue: deque[_Lookup] = deque()
        self._threads = 0

    def lookup(
        self, address: Address, loop: AbstractEventLoop, family: int = socket.AF_UNSPEC
    ) -> Future[tuple[Endpoint, ...]]:
        """Returns a future of every endpoint of `address`, the families in turn (RFC 8305).

        A literal address needs no thread. `family` AF_INET or AF_INET6 leaves the others out.
        Equal lookups at one time share one call of the system's resolver. That call goes on if the
        future is cancelled. The future's exception is a TransportError.
        """
        future: Future[tuple[Endpoint, ...]] = loop.create_future()
        found = literal(address)
        if found is not None:
            complete(future, _chosen([found], family))
            return future
        key = (*address, family)
        with self._lock:
            lookup = self._lookups.get(key)
            if lookup is None:
                lookup = self._lookups[key] = _Lookup(*key, [])
                self._queue.append(lookup)
            lookup.waiters.append((loop, future))
            is_short = len(self._queue) > 0 and self._threads < _THREADS
            self._threads += is_short
        if is_short:
            self._start_thread()
        return future

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name="rdmeta-resolve", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the interpreter ends, or the process has too many threads
            with self._lock:
                self._threads -= 1
                lost = [] if self._threads else list(self._queue)
                if lost:
                    self._queue.clear()
            for lookup in lost:
                self._finish(lookup, TransportError(f"cannot look up a name: {error}"))

    def _run(self) -> None:
        """Looks up names until none is left; leaves out those that no future waits for."""
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                lookup = self._queue.popleft()
                if all(future.done() for _, future in lookup.waiters):
                    del self._lookups[lookup[:3]]
                    continue
            self._finish(lookup, _look_up(lookup))

    def _finish(self, lookup: _Lookup, outcome: _Outcome) -> None:
        """Hands the outcome to each waiter, in its own loop."""
        with self._lock:
            del self._lookups[lookup[:3]]
        hand_out(lookup.waiters, outcome)


def literal(address: Address) -> Endpoint | None:
    """Returns the endpoint of an IPv4 or IPv6 address, None for a name."""
    host, port = address
    for family, text in ((socket.AF_INET, host), (socket.AF_INET6, host.partition("%")[0])):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return Endpoint(family, (host, port))
    return None


def asked_for(host: str, port: int, family: int = 0) -> list[tuple[Any, ...]]:
    """Returns what the system's resolver says of a name; raises OSError or ValueError.

    A name with a character that does not print is not resolved: the system cuts
    "localhost\\0.other" at the NUL.
    """
    if not host.isprintable():
        raise ValueError(f"{host!r} has a character that does not print")
    return list(socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM))


def unresolved(error: OSError | ValueError) -> TransportError:
    """Returns the error for a name that the system's resolver refuses with `error`."""
    if isinstance(error, OSError):
        return TransportError(f"no such host: {error.strerror or error}")
    # For example a label of more than 63 letters.
    return TransportError(f"no host can have that name: {error}")


def _look_up(lookup: _Lookup) -> _Outcome:
    try:
        found = asked_for(lookup.host, lookup.port)
    except (OSError, ValueError) as error:
        return unresolved(error)
    return _chosen((Endpoint(each[0], each[4]) for each in found), lookup.family)


def _chosen(found: Iterable[Endpoint], family: int) -> _Outcome:
    """Returns the endpoints of a family, each once; those of AF_UNSPEC in turn."""
    endpoints = list(dict.fromkeys(found))
    wanted = [each for each in endpoints if family in (socket.AF_UNSPEC, each.family)]
    if not wanted:
        other = " of that family (broker.address.family)" if endpoints else ""
        return TransportError(f"the host has no address{other}")
    first = [each for each in wanted if each.family == wanted[0].family]
    second = [each for each in wanted if each.family != wanted[0].family]
    pairs = zip_longest(first, second)
    return tuple(each for pair in pairs for each in pair if each is not None)


# All clients of the process share it, because it bounds the lookups that hang in the process.
_of_this_process = Resolver()
os.register_at_fork(after_in_child=_of_this_process.start_anew)


def shared() -> Resolver:
    """Returns the resolver that all clients of this process share."""
    return _of_this_process
