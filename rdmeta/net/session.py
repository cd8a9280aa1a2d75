"""One connection's protocol without the connection: bytes in, bytes and responses out.

A session owns no socket, clock or thread, so a blocking driver, an asyncio one and a simulation
share it. It frames requests, matches answers to them, and begins by agreeing on versions.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Generator
from typing import NamedTuple, TypeAlias

from rdmeta.errors import (
    Error,
    MalformedError,
    TransportError,
    UnsupportedVersionError,
    from_code,
)
from rdmeta.net import api_versions
from rdmeta.net.api_versions import API_VERSIONS, Reader

__all__ = ["METADATA", "Call", "Response", "Session", "Steps"]

METADATA = 3

# The first version of an API whose headers have tagged fields (KIP-482).
_FIRST_FLEXIBLE = {METADATA: 9, API_VERSIONS: 3}

_LENGTH = struct.Struct(">i")
_REQUEST_HEADER = struct.Struct(">hhih")
_CORRELATION_SIZE = 4


class Call(NamedTuple):
    """A request: its API key, version, and body without header."""

    api_key: int
    version: int
    body: bytes


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


Steps: TypeAlias = Generator[Call, bytes, None]
"""Exchanges one after the other: yields a request and is sent its answer's body."""


class Session:
    """Kafka's protocol on one connection, from its first byte.

    Send what `data_to_send()` gives, hand what arrives to `receive()`, and say so by `closed()`
    when the other side is gone. When `ready`, `request()` may be called, also before earlier
    answers are in: brokers answer in order. After an exception the session is of no more use and
    raises it again. Not for several threads at once.
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
        self.versions: dict[int, tuple[int, int]] = {}
        self.is_librdkafka_mock = False
        self._steps: Steps = self._handshake()
        self._queue(next(self._steps))

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

    def closed(self) -> None:
        """The other side closed the connection: TransportError, always."""
        if self.ready:
            raise TransportError("the broker closed the connection")
        raise TransportError(
            "the broker closed the connection instead of telling its versions; "
            "its listener may want TLS or SASL"
        )

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

    def _handshake(self) -> Steps:
        """Everything before the first request. Authentication belongs here, as further steps."""
        yield from self._negotiate()

    def _negotiate(self) -> Steps:
        """Learn the broker's versions, from the highest ApiVersions down to one it speaks."""
        version = api_versions.HIGHEST
        while True:
            body = yield Call(API_VERSIONS, version, api_versions.encode_request(version))
            answer = api_versions.parse_response(body, version)
            self.is_librdkafka_mock |= answer.mock
            if not answer.error:
                self.versions = answer.ranges
                return
            if answer.error != api_versions.UNSUPPORTED_VERSION or version == 0:
                raise from_code(answer.error, "the broker does not tell its versions")
            highest = answer.ranges.get(API_VERSIONS, (0, 0))[1]
            version = max(0, min(version - 1, highest))

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
        if _CORRELATION_SIZE <= length <= self._max_frame:
            return
        first = _LENGTH.pack(length)
        if first[:2] == b"\x15\x03":
            raise MalformedError("the answer is a TLS alert: this listener wants TLS")
        if first == b"HTTP":
            raise MalformedError("the answer is HTTP: this is no Kafka broker")
        raise MalformedError(f"a frame of {length} bytes; accepted are 4 to {self._max_frame}")

    def _answer(self, frame: memoryview) -> Response | None:
        """The response in a frame, None if it belonged to the handshake."""
        if not self._sent:
            raise TransportError("the broker answered what it was not asked")
        sent = self._sent.popleft()
        reader = Reader(frame)
        correlation_id = reader.int32()
        if correlation_id != sent.correlation_id:
            raise TransportError(
                f"the broker answered request {correlation_id} instead of {sent.correlation_id}"
            )
        # ApiVersions answers keep the old header, so that any client can read them (KIP-511).
        if _is_flexible(sent.api_key, sent.version) and sent.api_key != API_VERSIONS:
            reader.skip_tags()
        body = bytes(frame[reader.position :])
        if self.ready:
            return Response(sent.api_key, sent.version, correlation_id, body)
        try:
            self._queue(self._steps.send(body))
        except StopIteration:
            self.ready = True
        return None


def _is_flexible(api_key: int, version: int) -> bool:
    first = _FIRST_FLEXIBLE.get(api_key)
    return first is not None and version >= first
