"""The exchanges before the first request, and errors for ports that are no plaintext Kafka.

A handshake does no I/O: a session sends the requests that it yields, and gives it their answers.
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

# Bytes: no broker answers a request of a handshake at more length.
LONGEST_ANSWER = 1 << 20

_SHOWN = 24
_TLS_ALERT = b"\x15\x03"
_PLAINTEXT_ONLY = "rdmeta speaks PLAINTEXT only"


class Call(NamedTuple):
    """A request: its API key, version, and body without header."""

    api_key: int
    version: int
    body: bytes


Steps: TypeAlias = Generator[Call, bytes, None]
"""Exchanges one after the other: yields a request and is sent its answer's body."""


class Handshake:
    """Learns what a broker speaks: `versions` maps an API key to its lowest and highest version.

    `is_librdkafka_mock` tells whether the broker is librdkafka's mock.
    """

    def __init__(self) -> None:
        self.versions: dict[int, tuple[int, int]] = {}
        self.is_librdkafka_mock = False

    def steps(self) -> Steps:
        """Yield all requests before the first one of the caller.

        Authentication belongs here, as further steps. MalformedError; UnsupportedVersionError or
        another Error with Kafka's code where the broker refuses.
        """
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


def no_broker(first: bytes) -> Error:
    """Return the error for a port whose first bytes are no answer of a broker."""
    if first.startswith(_TLS_ALERT):
        return MalformedError(
            f"the port answers with a TLS alert: it wants TLS (SSL or SASL_SSL); {_PLAINTEXT_ONLY}"
        )
    shown = f"{first[:_SHOWN]!r}{'...' if len(first) > _SHOWN else ''}"
    return MalformedError(f"not a Kafka broker: its first bytes are {shown}")


def no_answer(first: bytes, how: str) -> Error:
    """Return the error for a connection that ended, as `how` says, before its first answer.

    `first` is what had arrived. The answer of a broker is short: its first byte is 0.
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
    """Return the error for a connection that ended at the first request after the handshake.

    Brokers tell their versions to a client that has not authenticated, and nothing else.
    """
    return TransportError(
        f"the broker {how} at the first request after ApiVersions: it seems to want SASL"
        f" (SASL_PLAINTEXT); {_PLAINTEXT_ONLY}",
        retriable=False,
    )


def silence() -> Error:
    """Return the error for a port that takes a connection and does not answer in time."""
    return RequestTimedOutError("no answer to ApiVersions in time; it may not be a Kafka broker")
