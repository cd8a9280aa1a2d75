"""Wrong configurations of a client, each with the brokers that it meets and what must be said.

case = CASES["wrong password"]
with case.brokers() as brokers:
    client = Client({"bootstrap.servers": brokers.bootstrap, **case.conf})
    # its first call raises case.error; the text has every word of case.says
"""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable
from typing import Any, NamedTuple

from broker import API_VERSIONS, HTTP, TLS_ALERT, Brokers
from certificates import LONG_AGO, Authority, Identity
from login_server import LoginServer
from secured import Guard

from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    MalformedError,
    SaslError,
    TlsError,
    TransportError,
    UnsupportedVersionError,
)

__all__ = ["CASES", "Case", "ours", "theirs"]

ours, theirs = Authority(), Authority()
_SOON = datetime.datetime(2999, 1, 1, tzinfo=datetime.timezone.utc)
_VOTE = 52


class Case(NamedTuple):
    """A configuration, the security of the broker, and the error that must come.

    `change` makes a broker another server.
    """

    conf: dict[str, Any]
    guard: Callable[[], Guard | None]
    error: type[Error]
    says: tuple[str, ...]
    change: Callable[[Any], None] | None = None

    def brokers(self, n: int = 1) -> Brokers:
        """Returns the brokers, which do not run yet."""
        brokers = Brokers(n, guard=self.guard())
        for broker in brokers:
            if self.change is not None:
                self.change(broker)
        return brokers


def _sasl(
    mechanism: str = "SCRAM-SHA-512", password: str = "secret", **more: str
) -> dict[str, Any]:
    return {
        "security.protocol": "sasl_ssl",
        "ssl.ca.pem": ours.pem,
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def _tls(**more: str) -> dict[str, Any]:
    return {
        "security.protocol": "ssl",
        "ssl.ca.pem": ours.pem,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def _known_as(identity: Identity) -> dict[str, Any]:
    """Returns the configuration of a client with a certificate."""
    return _tls(ssl_certificate_pem=identity.certificate, ssl_key_pem=identity.key)


def _logins() -> LoginServer:
    return LoginServer({"alice": "secret"})


def _sasl_ssl() -> Guard:
    return Guard(ours.server("127.0.0.1"), _logins())


def _sasl_plaintext() -> Guard:
    return Guard(None, _logins())


def _ssl(**options: Any) -> Callable[[], Guard]:
    names = options.pop("names", ("127.0.0.1",))
    return lambda: Guard(ours.server(*names, **options))


def _mutual() -> Guard:
    return Guard(ours.server("127.0.0.1", clients=ours))


def _greets(greeting: bytes) -> Callable[[Any], None]:
    def change(broker: Any) -> None:
        broker.greeting = greeting

    return change


def _is_a_controller(broker: Any) -> None:
    broker.ranges = {_VOTE: (0, 1), API_VERSIONS: (0, 4)}


_PLAIN: dict[str, Any] = {}
_PASSWORD = ("sasl.username", "sasl.password", "SASL_AUTHENTICATION_FAILED")

CASES = {
    "wrong password of PLAIN": Case(
        _sasl("PLAIN", "wrong"), _sasl_ssl, AuthenticationError, (*_PASSWORD, "Invalid username")
    ),
    "wrong password of SCRAM-SHA-256": Case(
        _sasl("SCRAM-SHA-256", "wrong"), _sasl_ssl, AuthenticationError, _PASSWORD
    ),
    "wrong password of SCRAM-SHA-512": Case(
        _sasl("SCRAM-SHA-512", "wrong"), _sasl_ssl, AuthenticationError, _PASSWORD
    ),
    "unknown user": Case(_sasl(sasl_username="bob"), _sasl_ssl, AuthenticationError, _PASSWORD),
    "mechanism that is not enabled": Case(
        _sasl("SCRAM-SHA-256"),
        lambda: Guard(ours.server("127.0.0.1"), _logins(), mechanisms=("PLAIN", "OAUTHBEARER")),
        AuthenticationError,
        ("SCRAM-SHA-256", "it enables PLAIN, OAUTHBEARER", "sasl.mechanism"),
    ),
    "another CA": Case(
        _tls(ssl_ca_pem=theirs.pem), _ssl(), TlsError, ("not trusted", "ssl.ca.location")
    ),
    "the system's CAs": Case(
        {"security.protocol": "ssl"},
        _ssl(),
        TlsError,
        ("the system's are trusted", "ssl.ca.location"),
    ),
    "another host name": Case(
        _tls(),
        _ssl(names=("other.example",)),
        TlsError,
        ("'127.0.0.1'", "other.example", "bootstrap.servers", "advertised.listeners"),
    ),
    "expired certificate": Case(
        _tls(), _ssl(not_before=LONG_AGO, not_after=LONG_AGO), TlsError, ("expired", "renew")
    ),
    "certificate of the future": Case(
        _tls(),
        _ssl(not_before=_SOON - datetime.timedelta(1), not_after=_SOON),
        TlsError,
        ("not valid", "clock"),
    ),
    "no client certificate": Case(
        _tls(), _mutual, TlsError, ("wants a client certificate", "ssl.certificate.location")
    ),
    "client certificate of another CA": Case(
        _known_as(theirs.issue("alice@example.org")),
        _mutual,
        TlsError,
        ("refuses the client certificate", "ssl.certificate.pem", "ssl.truststore"),
    ),
    "expired client certificate": Case(
        _known_as(ours.issue("alice@example.org", not_before=LONG_AGO, not_after=LONG_AGO)),
        _mutual,
        TlsError,
        ("refuses the client certificate", "expired", "ssl.certificate.pem"),
    ),
    "no common version of TLS": Case(
        _tls(ssl_enabled_protocols="TLSv1.3"),
        _ssl(highest=ssl.TLSVersion.TLSv1_2),
        TlsError,
        ("version of TLS", "ssl.enabled.protocols"),
    ),
    "a CA's file that is missing": Case(
        {"security.protocol": "ssl", "ssl.ca.location": "/nonexistent/ca.pem"},
        _ssl(),
        ConfigError,
        ("ssl.ca.location = /nonexistent/ca.pem", "No such file"),
    ),
    "TLS to a port of PLAINTEXT": Case(
        _tls(), lambda: None, TlsError, ("not to speak TLS", "security.protocol")
    ),
    "PLAINTEXT to a port of TLS": Case(
        _PLAIN, _ssl(), TransportError, ("want TLS", "security.protocol=ssl")
    ),
    "PLAINTEXT to a port of TLS that sends an alert": Case(
        _PLAIN, lambda: None, TlsError, ("wants TLS", "security.protocol"), _greets(TLS_ALERT)
    ),
    "SASL_PLAINTEXT to a port of TLS": Case(
        {**_sasl(), "security.protocol": "sasl_plaintext"},
        _sasl_ssl,
        TransportError,
        ("want TLS", "security.protocol=sasl_ssl"),
    ),
    "SASL is missing": Case(
        _PLAIN, _sasl_plaintext, SaslError, ("want SASL", "security.protocol=sasl_plaintext")
    ),
    "SASL is missing beside TLS": Case(
        _tls(), _sasl_ssl, SaslError, ("want SASL", "security.protocol=sasl_ssl")
    ),
    "SASL to a port without": Case(
        {**_sasl(), "security.protocol": "sasl_plaintext"},
        lambda: None,
        AuthenticationError,
        ("expects no SASL", "security.protocol=plaintext"),
    ),
    "SASL_SSL to a port without SASL": Case(
        _sasl(), _ssl(), AuthenticationError, ("expects no SASL", "security.protocol=ssl")
    ),
    "HTTP": Case(
        _PLAIN, lambda: None, MalformedError, ("HTTP", "bootstrap.servers"), _greets(HTTP)
    ),
    "HTTP to TLS": Case(
        _tls(), lambda: None, TlsError, ("HTTP", "bootstrap.servers"), _greets(HTTP)
    ),
    "SSH": Case(
        _PLAIN,
        lambda: None,
        MalformedError,
        ("SSH", "bootstrap.servers"),
        _greets(b"SSH-2.0-OpenSSH_9.6\r\n"),
    ),
    "SSH to TLS": Case(
        _tls(),
        lambda: None,
        TlsError,
        ("SSH", "bootstrap.servers"),
        _greets(b"SSH-2.0-OpenSSH_9.6\r\n"),
    ),
    # ZooKeeper takes the frame's length for a four-letter word, or for a session that it closes.
    "ZooKeeper": Case(
        _PLAIN,
        lambda: None,
        TransportError,
        ("ZooKeeper", "security.protocol", "bootstrap.servers"),
        _greets(b""),
    ),
    "a controller's port": Case(
        _PLAIN,
        lambda: None,
        UnsupportedVersionError,
        ("controller", "bootstrap.servers"),
        _is_a_controller,
    ),
}
