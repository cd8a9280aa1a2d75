"""The exchanges before the first request, and errors for ports that are no broker's or want more.

A handshake does no I/O: the session sends the requests that it yields, and passes their answers to
it.

The first exchange is ApiVersions (API key 18), v0-v3: a broker lists the versions of each API it
speaks. Versions above 3 add nothing that this package uses, and every broker since 2.4 speaks 3.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator
from typing import NamedTuple

from rdmeta._escaping import first_bytes
from rdmeta._version import __version__
from rdmeta.errors import (
    Error,
    MalformedError,
    RequestTimedOutError,
    SaslError,
    TlsError,
    TransportError,
    UnsupportedVersionError,
    from_code,
)
from rdmeta.net import sasl
from rdmeta.net.fields import Call, FieldReader, Steps
from rdmeta.net.sasl import Login

API_VERSIONS = 18
HIGHEST = 3  # of ApiVersions
UNSUPPORTED_VERSION = 35

_RANGE = struct.Struct(">hhh")


class ApiVersions(NamedTuple):
    """A broker's answer: `ranges` maps an API key to (lowest, highest) version.

    `mock` marks librdkafka's mock broker, which gives an answer that no other broker gives.
    """

    error: int
    ranges: dict[int, tuple[int, int]]
    mock: bool = False


def encode_request(version: int) -> bytes:
    """Returns the body of an ApiVersions request; from v3 on it names this software (KIP-511)."""
    if version < 3:
        return b""
    name, number = b"rdmeta", _legal(__version__).encode()
    return b"".join((bytes([len(name) + 1]), name, bytes([len(number) + 1]), number, b"\0"))


def _legal(version: str) -> str:
    """Returns a version that brokers accept: [a-zA-Z0-9]([a-zA-Z0-9\\-.]*[a-zA-Z0-9])?."""
    return re.sub(r"[^a-zA-Z0-9.]", "-", version).strip("-.")


def parse_response(body: bytes, version: int) -> ApiVersions:
    """Returns the parsed body of an answer to ApiVersions; raises MalformedError.

    A broker answers a version that it does not speak with UNSUPPORTED_VERSION in the layout of v0.
    That answer has the range of ApiVersions itself (KIP-511; before 2.4 it has none).
    """
    reader = FieldReader(body)
    error = reader.int16()
    if error == UNSUPPORTED_VERSION:
        if _is_mock(body):
            return ApiVersions(error, {API_VERSIONS: _range(FieldReader(body, 3))[1]}, mock=True)
        version = 0
    count = reader.uvarint() - 1 if version >= 3 else reader.int32()
    if not 0 <= count * _RANGE.size <= reader.left:
        raise MalformedError(f"the answer announces {count} API versions in {reader.left} bytes")
    ranges = {}
    for _ in range(count):
        key, ranges[key] = _range(reader)
        if version >= 3:
            reader.skip_tags()
    return ApiVersions(error, ranges)


def _is_mock(body: bytes) -> bool:
    """Returns whether librdkafka's mock broker sent this refusal.

    The mock counts its one API in one byte, where v0 has four, and adds the throttle time of v1.
    """
    return len(body) == 13 and body[2:5] == b"\1\0\x12"


def _range(reader: FieldReader) -> tuple[int, tuple[int, int]]:
    key, lowest, highest = reader.fields(_RANGE)
    return key, (lowest, highest)


METADATA = 3

# Bytes: no broker sends a longer answer before the client has authenticated.
LONGEST_ANSWER = 1 << 19

_TLS_ALERT = b"\x15\x03"
_VOTE = 52
# The first bytes of other servers' answers.
_OTHERS = {
    b"HTTP/": "an HTTP server",
    b"SSH-": "an SSH server",
    b"AMQP": "an AMQP broker, such as RabbitMQ",
    b"-ERR": "Redis",
    b"220 ": "a mail or FTP server",
}


class Handshake:
    """Learns which versions a broker speaks, then logs in if there is a login.

    `versions` maps an API key to (lowest, highest). `is_librdkafka_mock` is true if the broker is
    librdkafka's mock.
    """

    def __init__(self, login: Login | None = None, tls: bool = False) -> None:
        """Logs in by `login`; `tls` is whether the connection is encrypted."""
        self.versions: dict[int, tuple[int, int]] = {}
        self.is_librdkafka_mock = False
        self._login = login
        self._tls = tls

    def steps(self) -> Steps:
        """Yields all requests that precede the caller's first one.

        Raises MalformedError and AuthenticationError. Raises UnsupportedVersionError or another
        Error with Kafka's code if the broker refuses.
        """
        yield from self._negotiate()
        if METADATA not in self.versions:
            raise _no_metadata(self.versions)
        login, self._login = self._login, None
        if login is None:
            return None
        return (yield from sasl.steps(self.versions, login, tls=self._tls))

    def _negotiate(self) -> Generator[Call, bytes, None]:
        """Learns the broker's versions, from the highest ApiVersions down to one it speaks."""
        version = HIGHEST
        while True:
            body = yield Call(API_VERSIONS, version, encode_request(version))
            answer = parse_response(body, version)
            self.is_librdkafka_mock |= answer.mock
            if not answer.error:
                self.versions = answer.ranges
                return
            if answer.error != UNSUPPORTED_VERSION or version == 0:
                raise from_code(answer.error, "the broker refuses to list its API versions")
            highest = answer.ranges.get(API_VERSIONS, (0, 0))[1]
            version = max(0, min(version - 1, highest))


def no_broker(first: bytes, is_sasl: bool = False) -> Error:
    """Returns the error for a port whose first bytes are not a broker's answer.

    `is_sasl` is whether the client would log in.
    """
    if first.startswith(_TLS_ALERT):
        return TlsError(
            "the port answers with a TLS alert, so it wants TLS: set security.protocol="
            f"{'sasl_ssl' if is_sasl else 'ssl (sasl_ssl if it wants SASL, too)'}"
        )
    shown = first_bytes(first)
    for start, name in _OTHERS.items():
        if first.startswith(start):
            return MalformedError(
                f"not a Kafka broker but {name}: its first bytes are {shown};"
                " bootstrap.servers must name brokers' ports"
            )
    return MalformedError(f"not a Kafka broker: its first bytes are {shown}")


def no_answer(first: bytes, how: str, *, tls: bool = False, is_sasl: bool = False) -> Error:
    """Returns the error for a connection that ended before its first answer.

    `how` says how it ended; `first` are the bytes that had arrived. A broker's answer is short, so
    its first byte is 0. `tls` is whether the connection is encrypted.
    """
    if first.startswith(b"\0"):
        return TransportError(f"the broker {how} in the middle of an answer")
    if first:
        return no_broker(first, is_sasl)
    if tls:
        why = (
            "it speaks TLS, but is no Kafka broker (0.10 or later), or wants a client certificate"
            " (ssl.certificate.location and ssl.key.location)"
        )
    else:
        wanted = "sasl_ssl" if is_sasl else "ssl or sasl_ssl"
        why = (
            f"it seems to want TLS (set security.protocol={wanted}),"
            " or is no Kafka broker (0.10 or later) but perhaps ZooKeeper"
            " (bootstrap.servers must name brokers' ports)"
        )
    return TransportError(
        f"the port {how} instead of answering ApiVersions: {why}", retriable=False
    )


def not_served(how: str, tls: bool = False) -> Error:
    """Returns the error for a connection that ended at the first request after the handshake.

    A broker lists its versions for a client that has not authenticated, and answers nothing else.
    """
    return SaslError(
        f"the broker {how} at the first request after ApiVersions: it seems to want SASL; set"
        f" security.protocol={'sasl_ssl' if tls else 'sasl_plaintext'} and sasl.mechanism",
    )


def silence() -> Error:
    """Returns the error for a port that accepts a connection and does not answer in time."""
    return RequestTimedOutError("no answer to ApiVersions in time; it may not be a Kafka broker")


def _no_metadata(versions: dict[int, tuple[int, int]]) -> Error:
    """Returns the error for a port that does not serve Metadata, as that of a controller."""
    what = "it seems to be the port of a KRaft controller" if _VOTE in versions else "no broker"
    return UnsupportedVersionError(
        f"the port speaks no version of Metadata: {what};"
        " bootstrap.servers must name brokers' ports"
    )
