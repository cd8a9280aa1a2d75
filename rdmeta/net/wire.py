"""The bytes between a session and a socket: plain ones, or encrypted ones through a tunnel.

A wire owns no socket, so the blocking driver and the one of an event loop share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rdmeta.net.session import Response, Session
    from rdmeta.net.tunnel import Tunnel

__all__ = ["CHUNK", "Wire"]

# Bytes: what one read of the socket asks for.
CHUNK = 1 << 18


class Wire:
    """Joins `session` to a driver's socket; with a `tunnel` the bytes of both ways are encrypted.

    The driver sends the bytes of `data_to_send()`, reads by `read()`, and passes what that returns
    to `answers()`. The methods raise the errors of the session and the tunnel.
    """

    def __init__(self, session: Session, tunnel: Tunnel | None = None) -> None:
        self._session = session
        self._tunnel = tunnel

    @property
    def is_over(self) -> bool:
        """Whether the other side has ended its side of TLS."""
        return self._tunnel is not None and self._tunnel.is_over

    def data_to_send(self) -> bytes:
        """Returns the bytes that the socket is to send; the session's wait for the tunnel."""
        if self._tunnel is None:
            return self._session.data_to_send()
        if self._tunnel.is_ready:
            self._tunnel.write(self._session.data_to_send())
        return self._tunnel.data_to_send()

    def last_words(self) -> bytes:
        """Returns the alert of a tunnel that failed, for the broker's log."""
        return b"" if self._tunnel is None else self._tunnel.data_to_send()

    def read(
        self, recv: Callable[[int], bytes], recv_into: Callable[[memoryview], int]
    ) -> tuple[bytes, int]:
        """Reads once by one of both functions; returns what arrived and how many bytes these are.

        Bytes that were read into the space of the session are only counted.
        """
        return _read(None if self._tunnel is not None else self._session.space(), recv, recv_into)

    def answers(self, data: bytes, count: int) -> Iterator[list[Response]]:
        """Passes on what `read()` returned, and yields the session's answers in several steps.

        The session keeps a failure that comes after answers; it ends the steps.
        """
        if self._tunnel is None:
            yield self._pass_on(data, count)
            return
        self._tunnel.receive(data)
        while self._session.failure is None:
            plain, count = _read(self._session.space(), self._tunnel.read, self._tunnel.read_into)
            if not count:
                break
            yield self._pass_on(plain, count)

    def closed(self, how: str) -> NoReturn:
        """Raises the error of a connection that the other side ended; `how` says how."""
        if self._tunnel is not None:
            self._tunnel.closed(how)
        self._session.closed(how)

    def timed_out(self) -> NoReturn:
        """Raises RequestTimedOutError, which says what did not come in time."""
        if self._tunnel is not None:
            self._tunnel.timed_out()
        self._session.timed_out()

    def _pass_on(self, data: bytes, count: int) -> list[Response]:
        return self._session.receive(data) if data else self._session.received(count)


def _read(
    space: memoryview | None,
    read: Callable[[int], bytes],
    read_into: Callable[[memoryview], int],
) -> tuple[bytes, int]:
    """Reads into `space`, or without one returns bytes; also returns how many there are."""
    if space is None:
        data = read(CHUNK)
        return data, len(data)
    return b"", read_into(space)
