"""A connection to one server in an event loop: it finds an address that answers, and shakes hands.

    connection = StreamConnection(listener)
    connection.open(Address("localhost", 9092), timeout=30.0)
    # the loop calls listener.on_connected(), then:
    connection.request(METADATA, version, body)
    # the loop calls listener.on_response(response)
    connection.close()

The listener is called in the loop's thread, and never before the method that causes it returns.

A Channel is one non-blocking socket to one endpoint, which the loop drives through one session. It
has no task: it adds its socket to the loop's readers and writers, and calls its owner. So close()
takes effect at once, and the child of a fork can close the socket without the loop.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import random
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from rdmeta.config.address import Address
from rdmeta.errors import AuthenticationError, Error, RequestTimedOutError, TransportError
from rdmeta.net import resolve
from rdmeta.net.resolve import Endpoint, Resolver
from rdmeta.net.session import CHUNK, Response, Session, Wire

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from rdmeta.net.sasl import Login
    from rdmeta.net.security import Prepared, Security
    from rdmeta.net.tls import Tunnel

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
        self._reported = (False, 0)
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
        was_ready, logins = self._reported
        self._reported = self.session.ready, self.session.logins
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


# Seconds of silence after which the next address is tried, too. RFC 8305 has 0.25 s; this is the
# time after which the client tries another server.
_SILENT = 1.0
# The part of a session's lifetime after which the client logs in again, as in Kafka's own client.
_LOGIN_AT = 0.85, 0.95
# Seconds: a broker refuses to log a connection in again sooner, and takes it also when the session
# has just ended. A token that is about to expire gives such a short session.
_SOONEST = 1.0
# Seconds before the end of a session: requests wait for the next login from then on, and a login
# that cannot be prepared is not tried again.
_LAST_TRY = 0.2
# Seconds by which a timer is late only if the loop was blocked.
_BLOCKED = 0.05


class StreamListener(Protocol):
    """The methods that a connection calls; nothing is called after `StreamConnection.close()`."""

    def on_connected(self) -> None:
        """Is called when the connection is ready for requests; `session.versions` is known."""

    def on_bytes(self) -> None:
        """Is called when bytes have arrived, before the calls about their answers."""

    def on_response(self, response: Response) -> None:
        """Takes the answer to the request with `response.correlation_id`."""

    def on_disconnected(self, error: Error) -> None:
        """Is called when the attempt failed or the connection broke; it is closed by then."""


class StreamConnection:
    """One connection, or one attempt to make it; it is used once, in its loop's thread.

    It has no task and no thread. `close()` takes effect at once, in any state. The listener's
    methods may call those of the connection.
    """

    def __init__(
        self,
        listener: StreamListener,
        *,
        client_id: str = "rdmeta",
        max_frame: int = 100_000_000,
        keepalive: bool = False,
        family: int = socket.AF_UNSPEC,
        resolver: Resolver | None = None,
        security: Security | None = None,
    ) -> None:
        """Touches no network.

        `max_frame` is the largest answer accepted, in bytes; `keepalive` sets SO_KEEPALIVE.
        `family` AF_INET or AF_INET6 leaves the other addresses out. Without `resolver` it is the
        one that the whole process shares. Without `security` there is neither TLS nor a login.
        Raises ValueError if the client id is too long.
        """
        Session(client_id, max_frame)  # checks the client id
        self._listener = listener
        self._client_id = client_id
        self._max_frame = max_frame
        self._keepalive = keepalive
        self._family = family
        self._resolver = resolve.shared() if resolver is None else resolver
        self._security = security
        self._prepared: Prepared | None = None
        self._preparing: asyncio.Future[Prepared] | None = None
        self._lookup: asyncio.Future[tuple[Endpoint, ...]] | None = None
        self._untried: deque[Endpoint] = deque()
        self._attempts: list[Channel] = []
        self._channel: Channel | None = None
        self._failure: tuple[bool, Error] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._next_try: asyncio.TimerHandle | None = None
        self._next_login: asyncio.TimerHandle | None = None
        # When the broker ends the session unless the client has logged in again.
        self._session_ends = math.inf
        self._was_blocked = False
        self._is_closed = False

    def open(self, address: Address, timeout: float) -> None:
        """Begins to resolve the name, to connect to its addresses, to shake hands, and to log in.

        TLS and the login are prepared meanwhile. All of that has `timeout` seconds. The connection
        tries the next address when the newest one fails, or is silent for its share of the time (1
        s at most). It keeps the address that is ready first. It reports success or failure to the
        listener later. Call it once, while the loop runs.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._host = address.host
        self._ends = loop.time() + timeout
        self._deadline = loop.call_at(self._ends, self._time_out)
        self._lookup = self._resolver.lookup(address, loop, self._family)
        self._lookup.add_done_callback(self._on_resolved)
        if self._security is not None:
            self._preparing = self._security.begin(loop)
            self._preparing.add_done_callback(self._on_prepared)

    @property
    def channel(self) -> Channel:
        """The socket and session of the connection; raises Error before `on_connected()`."""
        if self._channel is None:
            raise Error("the connection is not ready for requests")
        return self._channel

    @property
    def session(self) -> Session:
        """The session, for `versions`, `version_for()` and `is_librdkafka_mock`, once connected."""
        return self.channel.session

    @property
    def is_open(self) -> bool:
        """Whether the connection is ready for requests."""
        return self._channel is not None and self._channel.is_open

    def request(self, api_key: int, version: int, body: bytes) -> int:
        """Sends a request and returns its correlation id, which its Response has.

        A loop that was blocked, or a slow callable, makes a login late. Then the request waits for
        the login: at a request after the session's end the broker would close the connection.
        Raises Error if the connection is not ready, is closed, or has failed: then the request is
        not sent. A failure to send is reported to the listener.
        """
        if self._is_closed:
            raise Error("the connection is closed")
        if self._loop.time() > self._session_ends - _LAST_TRY:
            self.session.hold()
        return self.channel.request(api_key, version, body)

    def take_arrived(self) -> None:
        """Reads what has arrived already, and calls the listener before it returns.

        After the loop was blocked, a broker whose answer waits would look silent without this.
        """
        for channel in self._channels():
            channel.read()

    def close(self) -> None:
        """Closes the connection at once, or ends the attempt; a second call does nothing.

        It may be called after the loop was closed.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for timer in (self._deadline, self._next_try, self._next_login):
            if timer is not None:
                timer.cancel()
        if self._lookup is not None:
            _forget(self._lookup, self._on_resolved)
        if self._preparing is not None:
            _forget(self._preparing, self._on_prepared, self._log_in)
        for channel in self._channels():
            channel.close()

    def abandon(self) -> None:
        """Closes the inherited sockets in the child of a fork; the parent's connection goes on.

        It sends nothing and calls no method of the loop, whose epoll is the parent's too.
        """
        self._is_closed = True
        for channel in self._channels():
            channel.abandon()

    def channel_ready(self, channel: Channel) -> None:
        """Keeps this channel, and closes the slower ones."""
        for other in self._attempts:
            if other is not channel:
                other.close()
        self._attempts.clear()
        self._untried.clear()
        self._channel = channel
        for timer in (self._deadline, self._next_try):
            if timer is not None:
                timer.cancel()
        self._plan_login()
        self._listener.on_connected()

    def channel_logged_in(self, channel: Channel) -> None:
        """Plans the next login."""
        self._plan_login()

    def channel_bytes(self, channel: Channel) -> None:
        """Calls the listener."""
        self._listener.on_bytes()

    def channel_response(self, channel: Channel, response: Response) -> None:
        """Calls the listener."""
        self._listener.on_response(response)

    def channel_failed(self, channel: Channel, error: Error) -> None:
        """Tries the next address; without one, or on the connection itself, fails.

        A refused login fails, too: a wrong password would be refused at each address. The next
        connection begins with another address.
        """
        is_refused = isinstance(error, AuthenticationError)
        if is_refused and self._security is not None:
            self._security.refused(channel.endpoint)
        if is_refused or channel is self._channel:
            self._fail(error)
            return
        # The error of a port that accepted explains more than that of an unreachable address.
        if self._failure is None or channel.was_connected or not self._failure[0]:
            self._failure = channel.was_connected, error
        is_newest = channel is self._attempts[-1]
        self._attempts.remove(channel)
        if is_newest or not self._attempts:
            self._try_next_address()

    def _channels(self) -> list[Channel]:
        return [*self._attempts, *([self._channel] if self._channel else [])]

    def _on_resolved(self, lookup: asyncio.Future[tuple[Endpoint, ...]]) -> None:
        if self._is_closed:
            return
        self._lookup = None
        error = lookup.exception()
        if isinstance(error, Error):
            self._fail(error)
            return
        found = lookup.result()
        self._untried.extend(self._security.in_order(found) if self._security else found)
        if self._preparing is None:
            self._try_next_address()

    def _on_prepared(self, preparing: asyncio.Future[Prepared]) -> None:
        if self._is_closed:
            return
        self._preparing = None
        error = preparing.exception()
        if isinstance(error, Error):
            self._fail(error)
            return
        self._prepared = preparing.result()
        if self._lookup is None:
            self._try_next_address()

    def _try_next_address(self) -> None:
        """Begins to connect to the next address; fails if no address is left."""
        if self._next_try is not None:
            self._next_try.cancel()
        if not self._untried:
            if not self._attempts and self._failure is not None:
                self._fail(self._failure[1])
            return
        share = max(0.0, self._ends - self._loop.time()) / len(self._untried)
        endpoint = self._untried.popleft()
        login = tunnel = None
        if self._prepared is not None:
            login = self._prepared.login
            try:
                tunnel = self._prepared.tunnel(self._host)
            except Error as error:
                self._fail(error)
                return
        session = Session(self._client_id, self._max_frame, login, tls=tunnel is not None)
        channel = Channel(self._loop, endpoint, session, self, self._keepalive, tunnel)
        self._attempts.append(channel)
        if self._untried:
            self._next_try = self._loop.call_later(min(share, _SILENT), self._try_next_address)

    def _plan_login(self) -> None:
        """Plans the next login, if the broker ends sessions after a time (KIP-368)."""
        self._session_ends, lifetime = math.inf, self.channel.session.lifetime
        if lifetime is not None:
            now, share = self._loop.time(), random.uniform(*_LOGIN_AT)
            self._session_ends = self.channel.login_sent_at + lifetime
            at = now + max(share * lifetime, _SOONEST)
            self._next_login = self._loop.call_at(at, self._prepare_login)

    def _prepare_login(self) -> None:
        """Asks for the secrets of now: they may have changed since the last login."""
        if self._security is not None:
            self._preparing = self._security.begin(self._loop)
            self._preparing.add_done_callback(self._log_in)

    def _log_in(self, preparing: asyncio.Future[Prepared]) -> None:
        if self._is_closed:
            return
        self._preparing = None
        error = preparing.exception()
        left = self._session_ends - self._loop.time()
        if isinstance(error, Error):
            if left < _LAST_TRY:
                self._fail(error)
            else:
                self._next_login = self._loop.call_later(left / 2, self._prepare_login)
            return
        login = preparing.result().login
        try:
            if login is not None and self.is_open:
                self.channel.reauthenticate(login)
        except Error as failure:
            self._fail(failure)

    def _time_out(self) -> None:
        """Fails the attempt; the error says how far it came.

        A loop that was blocked has not read what arrived meanwhile. It has as long again, once.
        """
        late = self._loop.time() - self._ends
        if late > _BLOCKED and not self._was_blocked:
            self._was_blocked = True
            self._ends += 2 * late
            self._deadline = self._loop.call_at(self._ends, self._time_out)
            return
        if self._lookup is not None:
            self._fail(RequestTimedOutError("the name was not resolved in time"))
            return
        if self._preparing is not None and self._security is not None:
            self._fail(self._security.timed_out())
            return
        accepted = [each for each in self._attempts if each.was_connected]
        error: Error = RequestTimedOutError("the host did not accept a connection in time")
        try:
            for each in accepted:
                each.timed_out()
        except Error as silence:
            error = silence
        self._fail(error)

    def _fail(self, error: Error) -> None:
        if self._is_closed:
            return
        self.close()
        self._listener.on_disconnected(error)


def _forget(future: asyncio.Future[Any], *callbacks: Callable[[Any], object]) -> None:
    """Gives up a future, also in a loop that is closed."""
    for callback in callbacks:
        future.remove_done_callback(callback)  # a closed loop calls none
    if not future.cancel():
        future.exception()  # asyncio logs an exception that no code has read
