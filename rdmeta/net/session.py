"""One connection's protocol without the connection: bytes in, bytes and responses out.

A session owns no socket, clock or thread, so a blocking driver, an asyncio driver and a simulation
can share it. It frames requests, matches answers to them, agrees on versions first, and logs in.

A Wire has the bytes between a session and a socket: plain ones, or encrypted ones through a tunnel.
It owns no socket either.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from rdmeta.errors import (
    Error,
    MalformedError,
    RequestTimedOutError,
    TransportError,
    UnsupportedVersionError,
)
from rdmeta.net import handshake, sasl
from rdmeta.net.describe_cluster import DESCRIBE_CLUSTER
from rdmeta.net.describe_configs import DESCRIBE_CONFIGS
from rdmeta.net.describe_quorum import DESCRIBE_QUORUM
from rdmeta.net.fields import RAW, Call, FieldReader, Steps
from rdmeta.net.handshake import API_VERSIONS, LONGEST_ANSWER, METADATA, Handshake
from rdmeta.net.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, Login

if TYPE_CHECKING:
    from rdmeta.net.tls import Tunnel

_NAMES = {
    METADATA: "Metadata",
    DESCRIBE_CONFIGS: "DescribeConfigs",
    DESCRIBE_QUORUM: "DescribeQuorum",
    DESCRIBE_CLUSTER: "DescribeCluster",
}
# The first version of an API whose headers have tagged fields (KIP-482).
_FIRST_FLEXIBLE = {
    METADATA: 9,
    API_VERSIONS: 3,
    SASL_AUTHENTICATE: 2,
    DESCRIBE_CONFIGS: 4,
    DESCRIBE_QUORUM: 0,
    DESCRIBE_CLUSTER: 0,
}

_LENGTH = struct.Struct(">i")
_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_SIZE = 4


# The requests of a login.
_OF_LOGIN = (SASL_HANDSHAKE, SASL_AUTHENTICATE, RAW)
# Bytes: a longer frame has a buffer of its own, into which the driver reads.
_LONG = 1 << 18
# The session makes that buffer once a 32nd of the frame has arrived. A length alone, which may be
# garbage, takes no memory.
_SHARE = 32


class Response(NamedTuple):
    """The answer to the request with that correlation id; `body` excludes the header.

    The body of a long answer is not copied: it is a view of the buffer that it was read into.
    """

    api_key: int
    version: int
    correlation_id: int
    body: bytes | memoryview


class _Sent(NamedTuple):
    api_key: int
    version: int
    correlation_id: int


class Session:
    """Kafka's protocol on one connection, from its first byte.

    The driver sends the bytes of `data_to_send()` and passes the bytes that arrive to `receive()`.
    It calls `closed()` when the other side ends the connection, and `timed_out()` when nothing
    arrives in time. Once the session is `ready`, it may call `request()`, also before earlier
    answers have arrived: brokers answer in order. After an exception the session raises it again at
    each call. One thread at a time may use the session.

    `lifetime` is the number of seconds, since the last login, after which the broker closes the
    connection if `reauthenticate()` has not logged in again (KIP-368). It is None without a limit.
    `logins` counts the logins that succeeded.
    """

    def __init__(
        self,
        client_id: str = "rdmeta",
        max_frame: int = 100_000_000,
        login: Login | None = None,
        *,
        tls: bool = False,
    ) -> None:
        """Starts the handshake; `max_frame` is the largest response accepted, in bytes.

        With `login`, the handshake ends with a login by SASL. Before that an answer has at most 512
        KiB. `tls` is whether the connection is encrypted: errors say what to change. Raises
        ValueError if the client id is too long.
        """
        self._client_id = client_id.encode()
        if len(self._client_id) > 32767:
            raise ValueError(f"client_id has {len(self._client_id)} bytes, the maximum is 32767")
        self._max_frame = max_frame
        self._correlation_id = 0
        self._sent: deque[_Sent] = deque()
        self._incoming = bytearray()
        # The long frame that is arriving, and how much of it has arrived.
        self._long: bytearray | None = None
        self._filled = 0
        self._outgoing = bytearray()
        self._failure: Error | None = None
        self.ready = False
        # True once any answer has arrived.
        self._answered = False
        # True once an answer to a request after the handshake has arrived.
        self._served = False
        self.lifetime: float | None = None
        self.logins = 0
        self._is_sasl = login is not None
        self._tls = tls
        # The login that is under way, and the one that begins when nothing is in flight.
        self._login = login
        self._next_login: Login | None = None
        # Whether requests wait for a login that `reauthenticate()` is yet to begin.
        self._is_holding = False
        # The requests that leave when that login has ended.
        self._held: list[tuple[_Sent, bytes]] = []
        self._handshake = Handshake(login, tls)
        self._steps: Steps | None = self._handshake.steps()
        self._queue(next(self._steps))

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The lowest and highest version of each API that the broker speaks, by its key."""
        return self._handshake.versions

    @property
    def is_librdkafka_mock(self) -> bool:
        """Whether the broker is librdkafka's mock."""
        return self._handshake.is_librdkafka_mock

    @property
    def failure(self) -> Error | None:
        """The error that each further call raises, None while the session works."""
        return self._failure

    def data_to_send(self) -> bytes:
        """Returns the bytes to send that no earlier call returned; empty if there are none."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def receive(self, data: bytes) -> list[Response]:
        """Takes the bytes that arrived, split anywhere, and returns the answers they complete.

        Raises MalformedError for an impossible frame, and TransportError for an answer without a
        request. Raises UnsupportedVersionError or another Error with Kafka's code if the broker
        refuses the handshake, AuthenticationError if it refuses the login. If whole answers come
        before the error, they are returned; `failure` has the error, and the next call raises it.
        """
        self._check()
        if self._long is not None:
            end = self._filled + len(data)
            rest = data[len(self._long) - self._filled :]
            self._long[self._filled : end] = data[: len(data) - len(rest)]
            self._filled = min(end, len(self._long))
            data = rest
        self._incoming += data
        return self._answers()

    def space(self) -> memoryview | None:
        """Returns the part of a long frame that is yet to arrive, None if no such frame arrives.

        The driver reads the next bytes into it, from its start, and calls `received()`.
        Otherwise it passes them to `receive()`.
        """
        return None if self._long is None else memoryview(self._long)[self._filled :]

    def received(self, count: int) -> list[Response]:
        """Takes the `count` bytes that were read into `space()`.

        Returns and raises as `receive()`.
        """
        self._check()
        self._filled += count
        return self._answers()

    def _answers(self) -> list[Response]:
        """Returns the answers in the bytes that have arrived, and removes them there."""
        answers: list[Response] = []
        position = 0
        try:
            if self._long is not None:
                if self._filled < len(self._long):
                    return answers
                whole, self._long = memoryview(self._long), None
                answers += self._answer(whole, is_long=True)
            while (end := self._frame_end(position)) is not None:
                start, position = position + _LENGTH.size, end
                with memoryview(self._incoming) as arrived, arrived[start:end] as frame:
                    answers += self._answer(frame)
        except Error as error:
            self._failure = error
            position = 0
            self.discard()
            if not answers:
                raise
        finally:
            del self._incoming[:position]
        return answers

    def discard(self) -> None:
        """Frees the bytes of a frame that has not arrived whole; its connection is over."""
        self._incoming.clear()
        self._long = None

    def closed(self, how: str = "closed the connection") -> NoReturn:
        """Raises the error of a connection that the other side ended; `how` says how.

        Raises TransportError, which is not retriable if the port seems to want TLS or SASL. Raises
        MalformedError if the port is not a Kafka broker's, and AuthenticationError if an old broker
        refuses the login so.
        """
        if not self._answered:
            first = bytes(self._incoming)
            raise handshake.no_answer(first, how, tls=self._tls, is_sasl=self._is_sasl)
        is_waiting = bool(self._sent) and not self._incoming and self._long is None
        if is_waiting and self._login is not None and self._sent[0].api_key in _OF_LOGIN:
            raise sasl.cut(self._sent[0].api_key, self._login, how)
        is_first = self.ready and not self._served and not self._is_sasl
        if is_waiting and is_first and not self.is_librdkafka_mock:
            raise handshake.not_served(how, self._tls)
        raise TransportError(f"the broker {how}")

    def timed_out(self) -> NoReturn:
        """Raises RequestTimedOutError: nothing arrived in time."""
        if not self._answered:
            raise handshake.silence()
        if self._login is not None:
            raise RequestTimedOutError(
                f"no answer to the {self._login.mechanism} login in time (SaslAuthenticate)"
            )
        raise RequestTimedOutError("no answer in time")

    def version_for(self, api_key: int, lowest: int, highest: int) -> int:
        """Returns the highest version of an API that both sides speak.

        This side speaks `lowest`..`highest`. Raises UnsupportedVersionError if there is none.
        """
        theirs = self.versions.get(api_key)
        if theirs is not None:
            version = min(highest, theirs[1])
            if version >= max(lowest, theirs[0]):
                return version
        spoken = f"versions {theirs[0]}-{theirs[1]}" if theirs else "no version"
        api = _NAMES.get(api_key, f"API {api_key}")
        error = UnsupportedVersionError(
            f"the broker speaks {spoken} of {api}, this client speaks {lowest}-{highest}"
        )
        error.api_key = api_key
        raise error

    def request(self, api_key: int, version: int, body: bytes) -> int:
        """Queues a request and returns its correlation id; raises Error before the handshake.

        While the session logs in again, or after `hold()`, the request waits, and leaves after the
        login.
        """
        self._check()
        if not self.ready:
            raise Error("the session is not ready for requests yet: finish the handshake first")
        sent, frame = self._framed(Call(api_key, version, body))
        if self._is_holding or self.is_reauthenticating:
            self._held.append((sent, frame))
        else:
            self._send(sent, frame)
        return sent.correlation_id

    def hold(self) -> None:
        """Has each request from now on wait for the next login, which the driver must begin.

        A broker closes the connection at a request after `lifetime`, but takes a login then.
        """
        self._is_holding = True

    @property
    def is_reauthenticating(self) -> bool:
        """Whether a login by `reauthenticate()` is under way or waits to begin."""
        return self.ready and (self._steps is not None or self._next_login is not None)

    def reauthenticate(self, login: Login) -> None:
        """Logs in again on this connection (KIP-368), once nothing else is in flight.

        Then `logins` and `lifetime` are new. A refusal breaks the session as another error does.
        The principal must be the same. A broker refuses a second time within one second of the
        last. Raises Error before the handshake, during another login, or on a broker before 1.0.
        """
        self._check()
        if not self.ready or self.is_reauthenticating:
            raise Error("the session cannot log in again: another login is under way")
        if SASL_AUTHENTICATE not in self.versions:
            raise Error("the session cannot log in again: the broker knows no SaslAuthenticate")
        self._next_login = login
        try:
            self._log_in_if_idle()
        except Error as error:
            self._failure = error
            raise

    def _log_in_if_idle(self) -> None:
        if self._next_login is None or self._sent:
            return
        self._login, self._next_login = self._next_login, None
        self._steps = sasl.steps(self.versions, self._login, tls=self._tls, again=True)
        self._queue(next(self._steps))

    def _end_steps(self, lifetime: float | None) -> None:
        """Ends the handshake, or a later login, and sends the requests that waited for it."""
        if self._login is not None:
            self.logins += 1
            self.lifetime = lifetime
        self._steps = self._login = None
        self.ready = True
        self._is_holding = False
        held, self._held = self._held, []
        for sent, frame in held:
            self._send(sent, frame)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def _queue(self, call: Call) -> None:
        self._send(*self._framed(call))

    def _send(self, sent: _Sent, frame: bytes) -> None:
        self._outgoing += frame
        self._sent.append(sent)

    def _framed(self, call: Call) -> tuple[_Sent, bytes]:
        """Returns a request with its header and length, and what its answer is compared to."""
        if call.api_key == RAW:
            return _Sent(RAW, 0, 0), _LENGTH.pack(len(call.body)) + call.body
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = _REQUEST_HEADER.pack(
            call.api_key, call.version, self._correlation_id, len(self._client_id)
        )
        # The client id keeps its old encoding in the flexible header (KIP-482).
        tags = b"\0" if _is_flexible(call.api_key, call.version) else b""
        message = header + self._client_id + tags + call.body
        sent = _Sent(call.api_key, call.version, self._correlation_id)
        return sent, _LENGTH.pack(len(message)) + message

    def _frame_end(self, position: int) -> int | None:
        """Returns the end of the frame at `position`, None if it has not arrived whole."""
        if len(self._incoming) - position < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._incoming, position)
        self._check_length(length)
        end: int = position + _LENGTH.size + length
        if end <= len(self._incoming):
            return end
        arrived = len(self._incoming) - position
        if self._answered and length > _LONG and arrived * _SHARE > length:
            self._begin_long(length, position)
        return None

    def _begin_long(self, length: int, position: int) -> None:
        """Moves what has arrived of the last frame, which begins there, into its own buffer."""
        start = position + _LENGTH.size
        self._filled = len(self._incoming) - start
        self._long = bytearray(length)
        with memoryview(self._incoming) as arrived:
            self._long[: self._filled] = arrived[start:]
        del self._incoming[position:]

    def _check_length(self, length: int) -> None:
        if not self._answered and not _CORRELATION_SIZE <= length <= LONGEST_ANSWER:
            raise handshake.no_broker(bytes(self._incoming), self._is_sasl)
        if not self.ready:
            least = 0 if self._sent and self._sent[0].api_key == RAW else _CORRELATION_SIZE
            if not least <= length <= LONGEST_ANSWER:
                raise MalformedError(
                    f"the frame has {length} bytes;"
                    f" {least} to {LONGEST_ANSWER} are accepted before the handshake ends"
                )
        elif not _CORRELATION_SIZE <= length <= self._max_frame:
            raise MalformedError(
                f"the frame has {length} bytes; 4 to {self._max_frame} (max_frame) are accepted"
            )

    def _answer(self, frame: memoryview, is_long: bool = False) -> list[Response]:
        """Returns the response in a frame, none if it belongs to the handshake or a login.

        The body of a long one is not copied.
        """
        if not self._sent:
            raise TransportError("the broker sent an answer without a request")
        sent = self._sent.popleft()
        if sent.api_key == RAW and self._steps is not None:
            self._go_on(self._steps, bytes(frame))
            return []
        reader = FieldReader(frame)
        correlation_id = reader.int32()
        if correlation_id != sent.correlation_id:
            if not self._answered:
                raise handshake.no_broker(bytes(frame), self._is_sasl)
            raise TransportError(
                f"the broker answered request {correlation_id} instead of {sent.correlation_id}"
            )
        # ApiVersions answers keep the old header so that any client can read them (KIP-511).
        if _is_flexible(sent.api_key, sent.version) and sent.api_key != API_VERSIONS:
            reader.skip_tags()
        body = frame[reader.position :] if is_long else bytes(frame[reader.position :])
        self._answered = True
        if self._steps is None:
            self._served = True
            self._log_in_if_idle()
            return [Response(sent.api_key, sent.version, correlation_id, body)]
        self._go_on(self._steps, bytes(body))
        return []

    def _go_on(self, steps: Steps, body: bytes) -> None:
        """Gives an answer to the handshake or login, which yields the next request or ends."""
        try:
            self._queue(steps.send(body))
        except StopIteration as end:
            self._end_steps(end.value)


def _is_flexible(api_key: int, version: int) -> bool:
    first = _FIRST_FLEXIBLE.get(api_key)
    return first is not None and version >= first


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
