"""A session on a blocking socket, under one deadline."""

from __future__ import annotations

import socket
import time
from numbers import Real
from types import TracebackType

from rdmeta.errors import RequestTimedOutError, TransportError
from rdmeta.net.address import Address
from rdmeta.net.session import Response, Session

__all__ = ["Connection", "Deadline"]

_CHUNK = 1 << 18
# Seconds, a bit below the longest time that poll() can be told.
_LONGEST = 2_000_000.0


class Deadline:
    """A point in time that several steps share; TypeError, ValueError for no length of time."""

    def __init__(self, seconds: float) -> None:
        if not isinstance(seconds, Real):
            raise TypeError(f"timeout must be a number of seconds, not {type(seconds).__name__}")
        if not seconds >= 0:
            raise ValueError(f"timeout must be seconds >= 0, not {seconds!r}")
        self._end: float = time.monotonic() + min(float(seconds), _LONGEST)

    def within(self, seconds: float) -> Deadline:
        """The earlier one of this and `seconds` from now."""
        other = Deadline(seconds)
        return other if other._end < self._end else self

    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def remaining(self) -> float:
        """Seconds left; RequestTimedOutError if there are none."""
        left = self.left()
        if not left:
            raise RequestTimedOutError("out of time")
        return left


class Connection:
    """A connection to one broker, ready for requests once constructed.

    Name resolution is the system's and knows no deadline; everything else keeps to it. Blocking
    calls answer Ctrl-C. Not for several threads at once.
    """

    def __init__(
        self, address: Address, deadline: Deadline, client_id: str, max_frame: int
    ) -> None:
        """Connect and agree on versions.

        TransportError, RequestTimedOutError, and what `Session.receive` raises.
        """
        self.session = Session(client_id, max_frame)
        self._socket = _connect(address, deadline)
        try:
            while not self.session.ready:
                self._exchange(deadline)
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
        """Close the socket; a second time does nothing."""
        self._socket.close()

    def request(self, api_key: int, version: int, body: bytes, deadline: Deadline) -> bytes:
        """Send one request and return its answer's body. Errors as of the constructor."""
        self.session.request(api_key, version, body)
        answers: list[Response] = []
        while not answers:
            answers = self._exchange(deadline)
        return answers[0].body

    def _exchange(self, deadline: Deadline) -> list[Response]:
        """Send what is due, then take what one read gives."""
        try:
            data = self.session.data_to_send()
            if data:
                self._socket.settimeout(deadline.remaining())
                self._socket.sendall(data)
            self._socket.settimeout(deadline.remaining())
            received = self._socket.recv(_CHUNK)
        except TimeoutError:
            self.session.timed_out()
        except ConnectionError:
            self.session.closed("reset the connection")
        except OSError as error:
            raise TransportError(f"the connection broke: {error.strerror or error}") from error
        if not received:
            self.session.closed()
        return self.session.receive(received)


def _connect(address: Address, deadline: Deadline) -> socket.socket:
    """A connected socket, each of the host's addresses tried within its share of the time."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError as error:
        raise TransportError(f"no such host: {error.strerror or error}") from error
    except ValueError as error:  # such as a label of more than 63 letters, or a NUL
        raise TransportError(f"no host can have that name: {error}") from error
    failure: OSError | None = None
    for untried, (family, kind, protocol, _, endpoint) in zip(
        range(len(found), 0, -1), found, strict=True
    ):
        attempt = socket.socket(family, kind, protocol)
        try:
            attempt.settimeout(deadline.remaining() / untried)
            attempt.connect(endpoint)
            attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return attempt
        except OSError as error:
            attempt.close()
            failure = error
        except BaseException:
            attempt.close()
            raise
    if isinstance(failure, TimeoutError):
        raise RequestTimedOutError("no connection in time") from failure
    reason = failure.strerror if failure else "it has no address"
    raise TransportError(f"cannot connect: {reason}") from failure
