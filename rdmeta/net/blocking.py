"""A session on a blocking socket, with one deadline for all its steps."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Real
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from rdmeta.address import Address
from rdmeta.errors import RequestTimedOutError, TlsError, TransportError
from rdmeta.net.resolve import asked_for, unresolved
from rdmeta.net.session import Response, Session
from rdmeta.net.wire import Wire

if TYPE_CHECKING:
    from rdmeta.net.security import Prepared, Security

__all__ = ["STEPS", "Connection", "Deadline"]

STEPS = ("name", "tcp", "tls", "versions", "sasl")
"""The steps until a connection is ready, in their order: tls and sasl where they are configured."""

# What getaddrinfo() returns.
_Endpoints: TypeAlias = "Sequence[tuple[Any, ...]]"

# Seconds: a bit below the longest time-out that poll() accepts.
_LONGEST = 2_000_000.0
# Seconds after which the next address is tried, too (RFC 8305).
_STAGGER = 0.25


class Deadline:
    """A point in time that several steps share."""

    def __init__(self, seconds: float) -> None:
        """Sets the deadline `seconds` from now; raises TypeError and ValueError."""
        if not isinstance(seconds, Real):
            raise TypeError(f"timeout must be a number of seconds, not {type(seconds).__name__}")
        if not seconds >= 0:
            raise ValueError(f"timeout must be seconds >= 0, not {seconds!r}")
        self._end: float = time.monotonic() + min(float(seconds), _LONGEST)

    def within(self, seconds: float) -> Deadline:
        """Returns the earlier one of this deadline and `seconds` from now."""
        other = Deadline(seconds)
        return other if other._end < self._end else self

    def left(self) -> float:
        """Returns the seconds left, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def remaining(self) -> float:
        """Returns the seconds left; raises RequestTimedOutError if there are none."""
        seconds = self.left()
        if not seconds:
            raise RequestTimedOutError("the time-out is over")
        return seconds


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
        prepared = security.prepare(deadline.remaining()) if security is not None else None
        tunnel = prepared.tunnel(address.host) if prepared is not None else None
        login = prepared.login if prepared is not None else None
        self.session = Session(client_id, max_frame, login, tls=tunnel is not None)
        self.tunnel = tunnel
        self._wire = Wire(self.session, tunnel)
        ended = on_step or (lambda step, connection: None)
        found = _resolved(address, family)
        ended("name", self)
        self._socket = _connect(found, deadline)
        try:
            ended("tcp", self)
            if tunnel is not None:
                self._exchange_until(lambda: tunnel.is_ready, deadline)
                ended("tls", self)
            self._exchange_until(lambda: bool(self.session.versions), deadline)
            ended("versions", self)
            self._exchange_until(lambda: self.session.ready, deadline)
            if login is not None:
                ended("sasl", self)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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

    def _exchange_until(self, holds: Callable[[], bool], deadline: Deadline) -> None:
        while not holds():
            self._exchange(deadline)

    def _exchange(self, deadline: Deadline) -> list[Response]:
        """Sends the bytes that wait, then returns the answers that one read completes.

        Without an answer it may have shaken hands.
        """
        answers: list[Response] = []
        try:
            received, count = self._transfer(self._wire.data_to_send(), deadline)
            for some in self._wire.answers(received, count):
                answers += some
        except TlsError:
            with suppress(OSError):
                self._socket.send(self._wire.last_words())
            raise
        if self._wire.is_over and not answers:
            self._wire.closed("closed the connection")
        return answers

    def _transfer(self, data: bytes, deadline: Deadline) -> tuple[bytes, int]:
        """Sends `data`, and returns what one `read()` of the wire does."""
        how = "closed the connection"
        try:
            if data:
                self._socket.settimeout(deadline.remaining())
                try:
                    self._socket.sendall(data)
                except ConnectionError:  # the port may have said why, so that is read first
                    how = "reset the connection"
            self._socket.settimeout(deadline.remaining())
            received, count = self._wire.read(self._socket.recv, self._socket.recv_into)
        except TimeoutError:
            self._wire.timed_out()
        except ConnectionError:
            self._wire.closed("reset the connection")
        except OSError as error:
            raise TransportError(f"the connection broke: {error.strerror or error}") from error
        if not count:
            self._wire.closed(how)
        return received, count


def _resolved(address: Address, family: int) -> _Endpoints:
    """Returns the addresses of a host; raises TransportError."""
    try:
        return asked_for(*address, family)
    except (OSError, ValueError) as error:
        raise unresolved(error) from error


def _connect(found: _Endpoints, deadline: Deadline) -> socket.socket:
    """Returns the socket that is connected first; addresses are raced as RFC 8305 has it."""
    failure: OSError | None = None
    untried = list(found)
    attempts: list[socket.socket] = []
    next_at = 0.0
    deadline.remaining()
    with selectors.DefaultSelector() as selector:
        try:
            while untried or attempts:
                if untried and (not attempts or time.monotonic() >= next_at):
                    family, kind, protocol, _, endpoint = untried.pop(0)
                    next_at = time.monotonic() + _STAGGER
                    attempt = socket.socket(family, kind, protocol)
                    attempts.append(attempt)
                    attempt.setblocking(False)
                    code = attempt.connect_ex(endpoint)
                    if code not in (0, errno.EINPROGRESS):
                        failure = OSError(code, os.strerror(code))
                        attempts.remove(attempt)
                        attempt.close()
                        continue
                    selector.register(attempt, selectors.EVENT_WRITE)
                left = deadline.left()
                if not left:
                    failure = TimeoutError()
                    break
                pause = max(0.0, next_at - time.monotonic()) if untried else left
                for key, _ in selector.select(min(left, pause)):
                    attempt = next(each for each in attempts if each is key.fileobj)
                    selector.unregister(attempt)
                    code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if not code:
                        attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        attempts.remove(attempt)
                        return attempt
                    attempts.remove(attempt)
                    attempt.close()
                    failure = OSError(code, os.strerror(code))
        finally:
            for each in attempts:
                each.close()
    if isinstance(failure, TimeoutError):
        raise RequestTimedOutError("the host did not accept a connection in time") from failure
    reason = failure.strerror if failure else "the host has no address"
    raise TransportError(f"cannot connect: {reason}") from failure
