"""The exchanges before the first request, and errors for ports that are no broker's or want more.

A handshake does no I/O: the session sends the requests that it yields, and passes their answers to
it.
"""

from __future__ import annotations

from collections.abc import Generator

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
from rdmeta.net import api_versions, sasl
from rdmeta.net.api_versions import API_VERSIONS
from rdmeta.net.call import Call, Steps
from rdmeta.net.sasl import Login

__all__ = [
    "LONGEST_ANSWER",
    "METADATA",
    "Handshake",
    "no_answer",
    "no_broker",
    "not_served",
    "silence",
]

METADATA = 3

# Bytes: no broker sends a longer answer before the client has authenticated.
LONGEST_ANSWER = 1 << 19

_SHOWN = 24
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


def no_broker(first: bytes, is_sasl: bool = False) -> Error:
    """Returns the error for a port whose first bytes are not a broker's answer.

    `is_sasl` is whether the client would log in.
    """
    if first.startswith(_TLS_ALERT):
        return TlsError(
            "the port answers with a TLS alert, so it wants TLS: set security.protocol="
            f"{'sasl_ssl' if is_sasl else 'ssl (sasl_ssl if it wants SASL, too)'}"
        )
    shown = f"{first[:_SHOWN]!r}{'...' if len(first) > _SHOWN else ''}"
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
