"""One connection's protocol without the connection: bytes in, bytes and responses out.

A session owns no socket, clock or thread, so a blocking driver, an asyncio one and a simulation
share it. It frames requests, matches answers to them, and begins by agreeing on versions.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import NamedTuple, NoReturn

from rdmeta.errors import (
    Error,
    MalformedError,
    RequestTimedOutError,
    TransportError,
    UnsupportedVersionError,
)
from rdmeta.net import handshake
from rdmeta.net.api_versions import API_VERSIONS, Reader
from rdmeta.net.handshake import Call, Handshake

__all__ = ["METADATA", "Response", "Session"]

METADATA = 3

# The first version of an API whose headers have tagged fields (KIP-482).
_FIRST_FLEXIBLE = {METADATA: 9, API_VERSIONS: 3}

_LENGTH = struct.Struct(">i")
_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_SIZE = 4


class Response(NamedTuple):
    """The answer to the request of that correlation id; `body` is without header."""

    api_key: int
    version: int
    correlation_id: int
    body: bytes


class _Sent(NamedTuple):
    api_key: int
    version: int
    correlation_id: int


class Session:
    """Kafka's protocol on one connection, from its first byte.

    Send what `data_to_send()` gives, hand what arrives to `receive()`, and call `closed()` when
    the other side is gone, `timed_out()` when nothing arrives in time. When `ready`, `request()`
    may be called, also before earlier answers are in: brokers answer in order. After an exception
    the session is of no more use and raises it again. Not for several threads at once.
    """

    def __init__(self, client_id: str = "rdmeta", max_frame: int = 100_000_000) -> None:
        """`max_frame` is the largest response accepted, in bytes. ValueError: too long an id."""
        self._client_id = client_id.encode()
        if len(self._client_id) > 32767:
            raise ValueError(f"client_id has {len(self._client_id)} bytes, more than 32767")
        self._max_frame = max_frame
        self._correlation_id = 0
        self._sent: deque[_Sent] = deque()
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._failure: Error | None = None
        self.ready = False
        # Whether an answer has arrived at all, and whether one to a request after the handshake.
        self._answered = False
        self._served = False
        self._handshake = Handshake()
        self._steps = self._handshake.steps()
        self._queue(next(self._steps))

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The lowest and highest version of each API that the broker speaks, by its key."""
        return self._handshake.versions

    @property
    def is_librdkafka_mock(self) -> bool:
        """Whether the broker is librdkafka's mock."""
        return self._handshake.is_librdkafka_mock

    def data_to_send(self) -> bytes:
        """What is to be sent and has not been asked for yet; empty if there is nothing."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def receive(self, data: bytes) -> list[Response]:
        """Take what arrived, split anywhere, and return the answers that it completes.

        MalformedError: a frame that cannot be; TransportError: an answer that was not asked for;
        UnsupportedVersionError or another Error with Kafka's code: the broker refuses us.
        """
        self._check()
        self._incoming += data
        answers = []
        position = 0
        try:
            while (end := self._frame_end(position)) is not None:
                start, position = position + _LENGTH.size, end
                with memoryview(self._incoming) as whole, whole[start:end] as frame:
                    answer = self._answer(frame)
                if answer is not None:
                    answers.append(answer)
        except Error as error:
            self._failure = error
            raise
        finally:
            del self._incoming[:position]
        return answers

    def closed(self, how: str = "closed the connection") -> NoReturn:
        """Raise why the other side ended the connection, as `how` says.

        TransportError, not retriable where the port seems to want TLS or SASL; MalformedError for
        what is not a Kafka broker.
        """
        if not self._answered:
            raise handshake.no_answer(bytes(self._incoming), how)
        waits = bool(self._sent) and not self._incoming
        if self.ready and waits and not self._served and not self.is_librdkafka_mock:
            raise handshake.not_served(how)
        raise TransportError(f"the broker {how}")

    def timed_out(self) -> NoReturn:
        """Raise RequestTimedOutError: nothing arrived in time."""
        if not self._answered:
            raise handshake.silence()
        raise RequestTimedOutError("no answer in time")

    def version_for(self, api_key: int, lowest: int, highest: int) -> int:
        """The highest version of an API that both sides speak, ours being `lowest`..`highest`.

        UnsupportedVersionError if there is none.
        """
        theirs = self.versions.get(api_key)
        if theirs is not None:
            version = min(highest, theirs[1])
            if version >= max(lowest, theirs[0]):
                return version
        said = f"{theirs[0]}-{theirs[1]}" if theirs else "no version"
        raise UnsupportedVersionError(
            f"the broker speaks {said} of API {api_key}, this client {lowest}-{highest}"
        )

    def request(self, api_key: int, version: int, body: bytes) -> int:
        """Queue a request and return its correlation id."""
        self._check()
        if not self.ready:
            raise Error("the session is not ready for requests yet")
        return self._queue(Call(api_key, version, body))

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _queue(self, call: Call) -> int:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = _REQUEST_HEADER.pack(
            call.api_key, call.version, self._correlation_id, len(self._client_id)
        )
        # The client id keeps its old encoding in the flexible header (KIP-482).
        tags = b"\0" if _is_flexible(call.api_key, call.version) else b""
        message = header + self._client_id + tags + call.body
        self._outgoing += _LENGTH.pack(len(message)) + message
        self._sent.append(_Sent(call.api_key, call.version, self._correlation_id))
        return self._correlation_id

    def _frame_end(self, position: int) -> int | None:
        """Where the frame at `position` ends, None if it has not arrived whole."""
        if len(self._incoming) - position < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._incoming, position)
        self._check_length(length)
        end: int = position + _LENGTH.size + length
        return end if end <= len(self._incoming) else None

    def _check_length(self, length: int) -> None:
        if not self._answered and not _CORRELATION_SIZE <= length <= handshake.LONGEST_ANSWER:
            raise handshake.no_broker(bytes(self._incoming))
        if not _CORRELATION_SIZE <= length <= self._max_frame:
            raise MalformedError(f"a frame of {length} bytes; accepted are 4 to {self._max_frame}")

    def _answer(self, frame: memoryview) -> Response | None:
        """The response in a frame, None if it belonged to the handshake."""
        if not self._sent:
            raise TransportError("the broker answered what it was not asked")
        sent = self._sent.popleft()
        reader = Reader(frame)
        correlation_id = reader.int32()
        if correlation_id != sent.correlation_id:
            if not self._answered:
                raise handshake.no_broker(bytes(frame))
            raise TransportError(
                f"the broker answered request {correlation_id} instead of {sent.correlation_id}"
            )
        # ApiVersions answers keep the old header, so that any client can read them (KIP-511).
        if _is_flexible(sent.api_key, sent.version) and sent.api_key != API_VERSIONS:
            reader.skip_tags()
        body = bytes(frame[reader.position :])
        self._answered = True
        if self.ready:
            self._served = True
            return Response(sent.api_key, sent.version, correlation_id, body)
        try:
            self._queue(self._steps.send(body))
        except StopIteration:
            self.ready = True
        return None


def _is_flexible(api_key: int, version: int) -> bool:
    first = _FIRST_FLEXIBLE.get(api_key)
    return first is not None and version >= first
