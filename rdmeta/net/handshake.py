"""The exchanges before the first request, and errors for ports that are no plaintext Kafka.

A handshake does no I/O: the session sends the requests that it yields, and passes their answers to
it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias

from rdmeta.errors import Error, MalformedError, RequestTimedOutError, TransportError, from_code
from rdmeta.net import api_versions
from rdmeta.net.api_versions import API_VERSIONS

__all__ = [
    "LONGEST_ANSWER",
    "Call",
    "Handshake",
    "Steps",
    "no_answer",
    "no_broker",
    "not_served",
    "silence",
]

# Bytes: no broker sends a longer answer during the handshake.
LONGEST_ANSWER = 1 << 20

_SHOWN = 24
_TLS_ALERT = b"\x15\x03"
_PLAINTEXT_ONLY = "rdmeta speaks PLAINTEXT only"


class Call(NamedTuple):
    """A request: its API key, its version, and its body without the header."""

    api_key: int
    version: int
    body: bytes


Steps: TypeAlias = Generator[Call, bytes, None]
"""Exchanges in order: the generator yields a request and receives its answer's body."""


class Handshake:
    """Learns which versions a broker speaks: `versions` maps an API key to (lowest, highest).

    `is_librdkafka_mock` is true if the broker is librdkafka's mock.
    """

    def __init__(self) -> None:
        self.versions: dict[int, tuple[int, int]] = {}
        self.is_librdkafka_mock = False

    def steps(self) -> Steps:
        """Yields all requests that precede the caller's first one.

        Authentication belongs here, as further steps. Raises MalformedError. Raises
        UnsupportedVersionError or another Error with Kafka's code if the broker refuses.
        """
        yield from self._negotiate()

    def _negotiate(self) -> Steps:
        """Learns the broker's versions, from the highest ApiVersions down to one it speaks."""
        version = api_versions.HIGHEST
        while True:
            body = yield Call(API_VERSIONS, version, api_versions.encode_request(version))
            answer = api_versions.parse_response(body, version)
            self.is_librdkafka_mock |= answer.mock
            if not answer.error:
                self.versions = answer.ranges
                return
            if answer.error != api_versions.UNSUPPORTED_VERSION or version == 0:
                raise from_code(answer.error, "the broker refuses to list its API versions")
            highest = answer.ranges.get(API_VERSIONS, (0, 0))[1]
            version = max(0, min(version - 1, highest))


def no_broker(first: bytes) -> Error:
    """Returns the error for a port whose first bytes are not a broker's answer."""
    if first.startswith(_TLS_ALERT):
        return MalformedError(
            f"the port answers with a TLS alert: it wants TLS (SSL or SASL_SSL); {_PLAINTEXT_ONLY}"
        )
    shown = f"{first[:_SHOWN]!r}{'...' if len(first) > _SHOWN else ''}"
    return MalformedError(f"not a Kafka broker: its first bytes are {shown}")


def no_answer(first: bytes, how: str) -> Error:
    """Returns the error for a connection that ended before its first answer.

    `how` says how it ended; `first` are the bytes that had arrived. A broker's answer is short, so
    its first byte is 0.
    """
    if first.startswith(b"\0"):
        return TransportError(f"the broker {how} in the middle of an answer")
    if first:
        return no_broker(first)
    return TransportError(
        f"the port {how} instead of answering ApiVersions: it seems to want TLS (SSL or SASL_SSL),"
        f" or is not a Kafka broker (0.10 or later); {_PLAINTEXT_ONLY}",
        retriable=False,
    )


def not_served(how: str) -> Error:
    """Returns the error for a connection that ended at the first request after the handshake.

    A broker lists its versions for a client that has not authenticated, and answers nothing else.
    """
    return TransportError(
        f"the broker {how} at the first request after ApiVersions: it seems to want SASL"
        f" (SASL_PLAINTEXT); {_PLAINTEXT_ONLY}",
        retriable=False,
    )


def silence() -> Error:
    """Returns the error for a port that accepts a connection and does not answer in time."""
    return RequestTimedOutError("no answer to ApiVersions in time; it may not be a Kafka broker")
