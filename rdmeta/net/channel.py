"""One non-blocking socket to one endpoint, which an event loop drives through one session.

A channel has no task. It adds its socket to the loop's readers and writers, and calls its owner.
So close() takes effect at once, and the child of a fork can close the socket without the loop.
"""

from __future__ import annotations

import errno
import math
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, Protocol

from rdmeta.errors import Error, TransportError
from rdmeta.net.session import Response, Session
from rdmeta.net.wire import CHUNK, Wire

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from rdmeta.net.resolve import Endpoint
    from rdmeta.net.sasl import Login
    from rdmeta.net.tunnel import Tunnel

__all__ = ["Channel", "Owner"]

# Reads in one turn of the loop, so that one long answer does not hold up the loop's other work.
_READS = 8


class Owner(Protocol):
    """The methods that a channel calls, in the loop's thread, until it is closed."""

    def channel_ready(self, channel: Channel) -> None:
        """Is called when the handshake is over."""

    def channel_bytes(self, channel: Channel) -> None:
        """Is called when bytes have arrived."""

    def channel_logged_in(self, channel: Channel) -> None:
        """Is called when a login by `reauthenticate()` is over."""

    def channel_response(self, channel: Channel, response: Response) -> None:
        """Takes an answer."""

    def channel_failed(self, channel: Channel, error: Error) -> None:
        """Is called when the channel has closed itself because of `error`."""


class Channel:
    """Connects to `endpoint` and drives `session` over the socket; use it in the loop's thread.

    With a `tunnel` the session's bytes are encrypted. No method calls the owner back before it
    returns, except `read()`.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        endpoint: Endpoint,
        session: Session,
        owner: Owner,
        keepalive: bool = False,
        tunnel: Tunnel | None = None,
    ) -> None:
        """Begins to connect; a failure is reported to the owner later."""
        self.endpoint = endpoint
        self.session = session
        self.bytes_received = 0
        self.bytes_sent = 0
        self.reauthentications = 0
        # The loop's time at which the last message of the last login was sent.
        self.login_sent_at = -math.inf
        self._loop = loop
        self._owner = owner
        self._wire = Wire(session, tunnel)
        # Whether the session was ready, and its logins, when the owner last heard of them.
        self._told = (False, 0)
        self._unsent = memoryview(b"")
        self._sent_at = -math.inf
        self._is_writing = False
        self._send_error: OSError | None = None
        self._is_closed = False
        self._socket: socket.socket | None = None
        # Whether the other side has accepted the connection.
        self.was_connected = False
        try:
            self._socket = _socket(endpoint, keepalive)
            code = self._socket.connect_ex(endpoint.sockaddr)
        except (OSError, OverflowError) as error:
            loop.call_soon(self._fail, _unreachable(error))
            return
        if code in (0, errno.EINPROGRESS):
            loop.add_writer(self._socket, self._on_connected)
        else:
            loop.call_soon(self._fail, _unreachable(OSError(code, os.strerror(code))))

    @property
    def is_open(self) -> bool:
        """Whether the channel has a socket: it is neither closed nor failed."""
        return self._socket is not None

    def close(self) -> None:
        """Closes the socket at once and calls the owner no more; a second call does nothing."""
        self._is_closed = True
        self.session.discard()
        sock, self._socket = self._socket, None
        if sock is None:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)
        sock.close()

    def abandon(self) -> None:
        """Closes the socket in the child of a fork, without a byte sent and without the loop.

        The parent's connection goes on, and its event loop keeps the socket.
        """
        sock, self._socket = self._socket, None
        if sock is not None:
            os.close(sock.detach())

    def request(self, api_key: int, version: int, body: bytes) -> int:
        """Sends a request and returns its correlation id; raises the errors of the session."""
        correlation_id = self.session.request(api_key, version, body)
        self._flush()
        return correlation_id

    def reauthenticate(self, login: Login) -> None:
        """Logs in again once nothing is in flight; raises the errors of the session."""
        self.session.reauthenticate(login)
        self._flush()

    def timed_out(self) -> NoReturn:
        """Raises RequestTimedOutError, which says what did not come in time."""
        self._wire.timed_out()

    def read(self, most: int = _READS) -> None:
        """Reads what has arrived, `most` times, and passes it to the owner.

        Does nothing before the other side has accepted the connection.
        """
        if not self.was_connected:
            return  # a read would take the error of connecting for one of the connection
        for _ in range(most):
            if self._socket is None or not self._read_once(self._socket):
                return

    def _on_connected(self) -> None:
        """Begins the handshake, or reports that the connection was refused."""
        sock = self._socket
        if sock is None:
            return
        self._loop.remove_writer(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        error = OSError(code, os.strerror(code))
        if code and not isinstance(error, ConnectionResetError):
            self._fail(_unreachable(error))
            return
        self.was_connected = True
        if code:  # the port accepted, and closed at once: it may have said why
            self._send_error = error
            self.read()
            return
        self._loop.add_reader(sock, self.read)
        self._flush()

    def _read_once(self, sock: socket.socket) -> bool:
        """Reads and handles one chunk; returns whether more may be waiting."""
        try:
            data, count = self._wire.read(sock.recv, sock.recv_into)
        except (BlockingIOError, InterruptedError):
            if self._send_error is not None:
                self._ended(self._send_error)
            return False
        except OSError as error:
            self._ended(error)
            return False
        if not count:
            self._ended(self._send_error)
            return False
        self.bytes_received += count
        self._owner.channel_bytes(self)
        self._take(data, count)
        return count >= CHUNK

    def _take(self, data: bytes, count: int) -> None:
        """Passes on what one read returned, and tells the owner what it brings."""
        steps = self._wire.answers(data, count)
        while self._socket is not None:
            sent_at = self._sent_at  # before the requests that waited for a login
            try:
                answers = next(steps, None)
                self._flush()
            except Error as error:
                self._fail(error)
                return
            if answers is None:
                if self._wire.is_over:
                    self._ended(None)
                return
            self._hand_on(answers, sent_at)

    def _hand_on(self, answers: list[Response], sent_at: float) -> None:
        """Tells the owner what the session made of some bytes; fails if the session has.

        The bytes before them were sent at `sent_at`.
        """
        was_ready, logins = self._told
        self._told = self.session.ready, self.session.logins
        has_logged_in = self.session.logins != logins
        if has_logged_in:
            self.login_sent_at = sent_at
        if self.session.ready and not was_ready:
            self._owner.channel_ready(self)
        elif has_logged_in:
            self.reauthentications += 1
            self._owner.channel_logged_in(self)
        for answer in answers:
            if self._socket is None:
                return
            self._owner.channel_response(self, answer)
        if self.session.failure is not None:
            self._fail(self.session.failure)

    def _flush(self) -> None:
        """Sends what the session has queued; the loop sends the rest later."""
        sock = self._socket
        if sock is None:
            return
        data = self._wire.data_to_send()
        if data:
            self._sent_at = self._loop.time()
            self._unsent = memoryview(bytes(self._unsent) + data)
        if not self._unsent or self._send_error is not None:
            return
        try:
            sent = sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            # The port may have said why before it closed the connection: that is read first.
            self._send_error = error
            self._loop.remove_writer(sock)
            self._loop.call_soon(self.read)
            return
        self.bytes_sent += sent
        self._unsent = self._unsent[sent:]
        if bool(self._unsent) != self._is_writing:
            self._is_writing = bool(self._unsent)
            if self._is_writing:
                self._loop.add_writer(sock, self._flush)
            else:
                self._loop.remove_writer(sock)

    def _ended(self, error: OSError | None) -> None:
        """Fails because the other side closed (None) or broke the connection."""
        try:
            if error is None or isinstance(error, ConnectionError):
                how = "closed the connection" if error is None else "reset the connection"
                self._wire.closed(how)
            self._fail(TransportError(f"the connection broke: {error.strerror or error}"))
        except Error as failure:
            self._fail(failure)

    def _fail(self, error: Error) -> None:
        if self._is_closed:
            return
        self._say_why()
        self.close()
        # The frames of a traceback would keep the bytes that arrived for as long as the error.
        self._owner.channel_failed(self, error.with_traceback(None))

    def _say_why(self) -> None:
        """Sends the tunnel's alert, so that the broker can log why its certificate is refused."""
        if self._socket is None or self._unsent:
            return
        alert = self._wire.last_words()
        if alert:
            with suppress(OSError):
                self._socket.send(alert)


def _socket(endpoint: Endpoint, keepalive: bool) -> socket.socket:
    """Returns a non-blocking socket."""
    sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if keepalive:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def _unreachable(error: OSError | OverflowError) -> TransportError:
    reason = error.strerror if isinstance(error, OSError) else None
    return TransportError(f"cannot connect: {reason or error}")
