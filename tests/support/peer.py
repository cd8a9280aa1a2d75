"""The broker's side of a connection; it uses kafka-python's codec instead of rdmeta's."""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeQuorumRequest
from kafka.protocol.api_header import RequestHeader
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from rdmeta.config.address import Address

UNSUPPORTED_VERSION = 35

REQUESTS = {
    request.API_KEY: request
    for request in (
        MetadataRequest,
        ApiVersionsRequest,
        SaslHandshakeRequest,
        SaslAuthenticateRequest,
        DescribeConfigsRequest,
        DescribeQuorumRequest,
        DescribeClusterRequest,
        SaslHandshakeRequest,
        SaslAuthenticateRequest,
    )
}

# The response of librdkafka 2.16's mock broker to ApiVersions v3 and above.
MOCK_REFUSAL = bytes.fromhex("00230100120000000200000000")


class Asked(NamedTuple):
    """A request as kafka-python reads it."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: Any
    # Whether its header, and then the header of its answer, has tagged fields (KIP-482).
    flexible: bool


def read_requests(data: bytes) -> list[Asked]:
    """Returns every request in `data`; `data` must end with the last one."""
    asked = []
    while data:
        (length,) = struct.unpack_from(">i", data)
        frame, data = data[4 : 4 + length], data[4 + length :]
        assert len(frame) == length
        key, version = struct.unpack_from(">hh", frame)
        message = REQUESTS[key]
        stream = io.BytesIO(frame)
        flexible = bool(message.flexible_version_q(version))
        header = RequestHeader.decode(stream, flexible=flexible)
        body = message.decode(stream, version=version)
        assert not stream.read(), "bytes after the request"
        number = header.correlation_id
        asked.append(Asked(key, version, number, header.client_id, body, flexible))
    return asked


def framed(correlation_id: int, body: bytes, header_tags: bytes = b"") -> bytes:
    """Returns a response frame; `header_tags` is the tag section of a flexible header."""
    message = struct.pack(">i", correlation_id) + header_tags + body
    return struct.pack(">i", len(message)) + message


def versions_body(version: int, ranges: dict[int, tuple[int, int]], error: int = 0) -> bytes:
    """Returns the body of an ApiVersions response."""
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in ranges.items()
    ]
    response = ApiVersionsResponse(error_code=error, api_keys=keys, throttle_time_ms=0)
    return bytes(response.encode(version=version))


def answer_handshake(
    data: bytes, ranges: dict[int, tuple[int, int]], spoken: int = 3
) -> tuple[bytes, list[int]]:
    """Returns a broker's answers to the requests in `data`, and the requests' versions.

    The broker supports ApiVersions up to `spoken`; it refuses higher versions as KIP-511 says.
    """
    answers, seen = b"", []
    for asked in read_requests(data):
        seen.append(asked.version)
        if asked.version <= spoken:
            body = versions_body(asked.version, ranges)
        else:
            body = versions_body(0, {18: (0, spoken)}, UNSUPPORTED_VERSION)
        answers += framed(asked.correlation_id, body)
    return answers, seen


@contextmanager
def listening(
    serve: Callable[[socket.socket], object], host: str = "127.0.0.1"
) -> Iterator[Address]:
    """Listens; passes each connection to `serve`, one after the other, and closes it."""

    def run() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                if stopping.is_set():
                    return
                connection.settimeout(30)
                try:
                    serve(connection)
                except OSError:  # The client closed the connection, which is allowed.
                    continue

    stopping = threading.Event()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        address = Address(host, listener.getsockname()[1])
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield address
        finally:
            stopping.set()
            socket.create_connection(address, timeout=30).close()
            thread.join(30)


def read_frame(connection: socket.socket) -> bytes:
    """Returns one request with its length; empty bytes at the connection's end."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        received = connection.recv(4096)
        if not received:
            return b""
        data += received
    return data
