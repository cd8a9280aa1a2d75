"""A session on a blocking socket, with one deadline for all its steps."""

from __future__ import annotations

import errno
import math
import os
import selectors
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from rdmeta.config.address import Address
from rdmeta.errors import Error, RequestTimedOutError, TlsError, TransportError
from rdmeta.net.resolve import asked_for, unresolved
from rdmeta.net.session import Response, Session, Wire

if TYPE_CHECKING:
    from rdmeta.net.security import Prepared, Security

STEPS = ("name", "tcp", "tls", "versions", "sasl")
"""The steps until a connection is ready, in their order: tls and sasl where they are configured."""

# What getaddrinfo() returns.
_Endpoints: TypeAlias = "Sequence[tuple[Any, ...]]"

# Seconds: a bit below the longest time-out that poll() accepts.
_LONGEST = 2_000_000.0
STAGGER = 0.25
"""Seconds after which the next address, or server, is tried, too (RFC 8305)."""

LOGIN_STAGGER = 1.0
"""The same during a login: brokers delay a refusal, and too many logins could lock the account."""


class Deadline:
    """A point in time that several steps share."""

    def __init__(self, seconds: float) -> None:
        """Sets the deadline `seconds` from now; raises TypeError and ValueError."""
        if not isinstance(seconds, Real):
            raise TypeError(f"timeout must be a number of seconds, not {type(seconds).__name__}")
        if not seconds >= 0:
            raise ValueError(f"timeout must be seconds >= 0, not {seconds!r}")
        self.end: float = time.monotonic() + min(float(seconds), _LONGEST)

    def within(self, seconds: float) -> Deadline:
        """Returns the earlier one of this deadline and `seconds` from now."""
        other = Deadline(seconds)
        return other if other.end < self.end else self

    def left(self) -> float:
        """Returns the seconds left, at least 0."""
        return max(0.0, self.end - time.monotonic())

    def remaining(self) -> float:
        """Returns the seconds left; raises RequestTimedOutError if there are none."""
        seconds = self.left()
        if not seconds:
            raise RequestTimedOutError("the time-out is over")
        return seconds


class PendingSocket(NamedTuple):
    """What a connection that is being made waits for: one of its sockets, or a time."""

    sockets: tuple[socket.socket, ...]
    events: int
    until: float
    # Seconds of silence after which the next server is tried.
    stagger: float = STAGGER


Opening: TypeAlias = "Generator[PendingSocket, Sequence[socket.socket], Connection]"
"""The steps of a connection: each takes the sockets that are ready, and the last returns it."""


class Connection:
    """A connection to one broker, which is ready for requests once it is constructed.

    The system resolves names without a deadline, and callables of the configuration have none. Each
    other step keeps the deadline. Ctrl-C interrupts blocking calls. One thread at a time may use
    the connection.
    """

    def __init__(
        self,
        address: Address,
        deadline: Deadline,
        client_id: str,
        max_frame: int,
        family: int = socket.AF_UNSPEC,
        security: Security | Prepared | None = None,
        on_step: Callable[[str, Connection], object] | None = None,
    ) -> None:
        """Connects, shakes hands, and logs in as `security` says.

        `family` AF_INET or AF_INET6 tries no other addresses. `on_step` is called with the name of
        each step of STEPS that has ended, and the connection. Raises TransportError,
        RequestTimedOutError, the errors of `Security.prepare()`, and those of `Session.receive()`.
        """
        opening = self._open(address, deadline, client_id, max_frame, family, security, on_step)
        with closing(opening), suppress(StopIteration):
            wait = next(opening)
            while True:
                wait = opening.send(_ready([wait], wait.until))

    @classmethod
    def opening(cls, *arguments: Any) -> Opening:
        """Returns the steps of a connection with the constructor's arguments; none of them blocks.

        But the first one resolves the name and calls what the configuration has of callables.
        """
        return cls.__new__(cls)._open(*arguments)

    def _open(
        self,
        address: Address,
        deadline: Deadline,
        client_id: str,
        max_frame: int,
        family: int = socket.AF_UNSPEC,
        security: Security | Prepared | None = None,
        on_step: Callable[[str, Connection], object] | None = None,
    ) -> Opening:
        prepared = security.prepare(deadline.remaining()) if security is not None else None
        tunnel = prepared.tunnel(address.host) if prepared is not None else None
        login = prepared.login if prepared is not None else None
        self.session = Session(client_id, max_frame, login, tls=tunnel is not None)
        self.tunnel = tunnel
        self._wire = Wire(self.session, tunnel)
        self._how = "closed the connection"
        ended = on_step or (lambda step, connection: None)
        found = _resolved(address, family)
        ended("name", self)
        self._socket = yield from _race_addresses(found, deadline)
        try:
            ended("tcp", self)
            if tunnel is not None:
                yield from self._exchange_until(lambda: tunnel.is_ready, deadline)
                ended("tls", self)
            yield from self._exchange_until(lambda: bool(self.session.versions), deadline)
            ended("versions", self)
            stagger = LOGIN_STAGGER if login is not None else STAGGER
            yield from self._exchange_until(lambda: self.session.ready, deadline, stagger)
            if login is not None:
                ended("sasl", self)
        except BaseException:
            self.close()
            raise
        return self

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket; a second call does nothing."""
        self._socket.close()

    def request(self, api_key: int, version: int, body: bytes, deadline: Deadline) -> bytes:
        """Sends one request and returns its answer's body; raises the constructor's errors."""
        self.session.request(api_key, version, body)
        answers: list[Response] = []
        while not answers:
            answers = self._exchange(deadline)
        return bytes(answers[0].body)

    def _exchange_until(
        self, holds: Callable[[], bool], deadline: Deadline, stagger: float = STAGGER
    ) -> Generator[PendingSocket, Sequence[socket.socket], None]:
        while not holds():
            with self._explained():
                self._send(deadline)
            ready = yield PendingSocket(
                (self._socket,), selectors.EVENT_READ, deadline.end, stagger
            )
            with self._explained():
                if ready:
                    self._receive(deadline)
                elif not deadline.left():
                    raise TimeoutError

    def _exchange(self, deadline: Deadline) -> list[Response]:
        """Sends the bytes that wait, then returns the answers that one read completes."""
        with self._explained():
            self._send(deadline)
            return self._receive(deadline)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns the errors of the socket into those that say what they mean."""
        try:
            yield
        except TlsError:
            with suppress(OSError):
                self._socket.send(self._wire.last_words())
            raise
        except TimeoutError:
            self._wire.timed_out()
        except ConnectionError:
            self._wire.closed("reset the connection")
        except OSError as error:
            raise TransportError(f"the connection broke: {error.strerror or error}") from error

    def _send(self, deadline: Deadline) -> None:
        data = self._wire.data_to_send()
        if not data:
            return
        self._socket.settimeout(deadline.remaining())
        try:
            self._socket.sendall(data)
        except ConnectionError:  # the port may have said why, so that is read first
            self._how = "reset the connection"

    def _receive(self, deadline: Deadline) -> list[Response]:
        """Returns the answers that one read completes; without one it may have shaken hands."""
        self._socket.settimeout(deadline.remaining())
        received, count = self._wire.read(self._socket.recv, self._socket.recv_into)
        if not count:
            self._wire.closed(self._how)
        answers: list[Response] = []
        for some in self._wire.answers(received, count):
            answers += some
        if self._wire.is_over and not answers:
            self._wire.closed("closed the connection")
        return answers


class Race:
    """Connections to several servers, made side by side as RFC 8305 has it for addresses.

        with Race(begin, servers) as race:
            while (outcome := race.next()) is not None:
                server, found = outcome     # a Connection, or the Error of that server

    The next server is begun when the newest attempt has failed, or has been silent for 250 ms, or
    in a login for 1 s.
    """

    def __init__(self, begin: Callable[[Address], Opening], servers: Iterable[Address]) -> None:
        """Takes what begins a connection, and the servers in their order."""
        self._begin = begin
        self._untried = list(servers)
        self._attempts: dict[Address, tuple[Opening, PendingSocket]] = {}
        self._next_at = -math.inf

    def __enter__(self) -> Race:
        return self

    def __exit__(self, *raised: object) -> None:
        for opening, _ in self._attempts.values():
            opening.close()

    def __len__(self) -> int:
        """Returns how many servers have had no outcome."""
        return len(self._untried) + len(self._attempts)

    def add(self, servers: Iterable[Address]) -> None:
        """Adds servers at the end."""
        self._untried += servers

    def next(self) -> tuple[Address, Connection | Error] | None:
        """Returns the next server with its connection, or with its error; None after the last."""
        while self._untried or self._attempts:
            if self._untried and (not self._attempts or time.monotonic() >= self._next_at):
                server = self._untried.pop(0)
                opening = self._begin(server)
                found = self._step(server, opening, None)
                if found is not None:
                    return server, found
                continue
            waits = [wait for _, wait in self._attempts.values()]
            until = min(wait.until for wait in waits)
            ready = _ready(waits, min(until, self._next_at) if self._untried else until)
            newest = next(reversed(self._attempts))
            for server, (opening, wait) in list(self._attempts.items()):
                some = [each for each in wait.sockets if each in ready]
                if not some and time.monotonic() < wait.until:
                    continue
                found = self._step(server, opening, some, is_newest=server == newest)
                if found is not None:
                    return server, found
        return None

    def _step(
        self,
        server: Address,
        opening: Opening,
        ready: Sequence[socket.socket] | None,
        is_newest: bool = True,
    ) -> Connection | Error | None:
        """Takes the next step of an attempt; returns its outcome, None if it goes on."""
        try:
            wait = next(opening) if ready is None else opening.send(ready)
        except (StopIteration, Error) as end:
            self._attempts.pop(server, None)
            self._next_at = -math.inf if is_newest else self._next_at
            return end if isinstance(end, Error) else cast("Connection", end.value)
        self._attempts[server] = opening, wait
        if is_newest and ready != []:
            self._next_at = time.monotonic() + wait.stagger
        return None


def _ready(waits: Iterable[PendingSocket], until: float) -> list[socket.socket]:
    """Returns the sockets that are ready, none after that time."""
    with selectors.DefaultSelector() as selector:
        for wait in waits:
            for each in wait.sockets:
                selector.register(each, wait.events)
        found = selector.select(max(0.0, until - time.monotonic()))
        return [cast("socket.socket", key.fileobj) for key, _ in found]


def _resolved(address: Address, family: int) -> _Endpoints:
    """Returns the addresses of a host; raises TransportError."""
    try:
        return asked_for(*address, family)
    except (OSError, ValueError) as error:
        raise unresolved(error) from error


def _race_addresses(
    found: _Endpoints, deadline: Deadline
) -> Generator[PendingSocket, Sequence[socket.socket], socket.socket]:
    """Returns the socket that is connected first; addresses are raced as RFC 8305 has it."""
    failure: OSError | None = None
    untried = list(found)
    attempts: list[socket.socket] = []
    next_at = 0.0
    deadline.remaining()
    try:
        while untried or attempts:
            if untried and (not attempts or time.monotonic() >= next_at):
                family, kind, protocol, _, endpoint = untried.pop(0)
                next_at = time.monotonic() + STAGGER
                attempt = socket.socket(family, kind, protocol)
                attempts.append(attempt)
                attempt.setblocking(False)
                code = attempt.connect_ex(endpoint)
                if code not in (0, errno.EINPROGRESS):
                    failure = OSError(code, os.strerror(code))
                    attempts.remove(attempt)
                    attempt.close()
                    continue
            if not deadline.left():
                failure = TimeoutError()
                break
            until = min(deadline.end, next_at) if untried else deadline.end
            ready = yield PendingSocket(tuple(attempts), selectors.EVENT_WRITE, until)
            for attempt in ready:
                attempts.remove(attempt)
                code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if not code:
                    attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    return attempt
                attempt.close()
                failure = OSError(code, os.strerror(code))
    finally:
        for each in attempts:
            each.close()
    if isinstance(failure, TimeoutError):
        raise RequestTimedOutError("the host did not accept a connection in time") from failure
    reason = failure.strerror if failure else "the host has no address"
    raise TransportError(f"cannot connect: {reason}") from failure
