"""The failures of TLS in words: the cause, and the option or certificate to change."""

from __future__ import annotations

import math
import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import TlsError
from rdmeta.net.sasl import shown

__all__ = ["chain_of", "explain", "first_end", "no_handshake"]

# OpenSSL's codes of a certificate that does not pass (X509_V_ERR_*).
_NO_CRL, _NOT_YET, _EXPIRED, _CRL_EXPIRED, _REVOKED = 3, 9, 10, 12, 23
_UNTRUSTED = frozenset((2, 18, 19, 20, 21, 24, 27))
_WRONG_NAME = frozenset((62, 64))

# A record of TLS begins with its type (20 to 23) and the version's first byte.
_RECORD_TYPES = frozenset((20, 21, 22, 23))
_GREETINGS = (
    (b"HTTP/", "speaks HTTP"),
    (b"SSH-", "speaks SSH"),
    (b"220", "speaks SMTP or FTP"),
    (b"<", "speaks HTTP"),
    (b"-ERR", "speaks the protocol of Redis"),
)
_SHOWN = 24
_MOST_NAMES = 8


def chain_of(tls: ssl.SSLObject) -> list[dict[str, Any]]:
    """Returns the certificates that the other side sent, its own first, as `getpeercert()` does.

    Empty if Python cannot tell: it has no public method for a certificate that it refused.
    """
    get = getattr(getattr(tls, "_sslobj", None), "get_unverified_chain", None)
    try:
        return [each.get_info() for each in (get() if get else None) or ()]
    except (AttributeError, ValueError, ssl.SSLError):
        return []


def first_end(chain: Iterable[dict[str, Any]]) -> datetime | None:
    """Returns when the first certificate of a chain expires; None if no date is known."""
    end = min(map(_end_of, chain), default=math.inf)
    return None if end == math.inf else datetime.fromtimestamp(end, timezone.utc)


def explain(
    error: ssl.SSLError,
    settings: TlsSettings,
    host: str,
    chain: Sequence[dict[str, Any]],
    first: bytes,
) -> TlsError:
    """Returns the error of a handshake or of a connection in words that say what to change.

    `chain` has the broker's certificates; `first` has the first bytes that the port sent.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(_untrusted(error, settings, host, chain))
    if first and not _is_tls(first):
        return no_handshake(first, "")
    reason = error.reason or ""
    if "ALERT_" in reason:
        return TlsError(_alerted(reason.partition("ALERT_")[2], settings, bool(chain)))
    if "UNRECOGNIZED_NAME" in reason:
        return TlsError(f"the broker knows no host {host!r} (TLS alert: unrecognized name)")
    if reason in ("UNSUPPORTED_PROTOCOL", "WRONG_SSL_VERSION", "VERSION_TOO_LOW"):
        return TlsError(_no_version(settings))
    words = _words(reason) or str(error)
    return TlsError(f"TLS failed: {words}", retriable=bool(chain))


def no_handshake(first: bytes, how: str) -> TlsError:
    """Returns the error for a port that does not shake hands; `how` says how it ended.

    `first` has the first bytes that it sent.
    """
    if _is_tls(first):
        return TlsError(f"the broker {how} during the TLS handshake", retriable=True)
    advice = "set security.protocol to plaintext or sasl_plaintext, or use the port of TLS"
    if not first:
        return TlsError(
            f"the port {how} at the TLS handshake: it seems not to speak TLS; {advice}",
        )
    for greeting, what in _GREETINGS:
        if first.startswith(greeting):
            return TlsError(
                f"the port {what}, not TLS: it is not a Kafka broker's; check bootstrap.servers"
                f" (its first bytes are {_shown(first)})"
            )
    return TlsError(f"the port does not speak TLS (its first bytes are {_shown(first)}): {advice}")


def _untrusted(
    error: ssl.SSLCertVerificationError,
    settings: TlsSettings,
    host: str,
    chain: Sequence[dict[str, Any]],
) -> str:
    """Returns why the broker's certificate does not pass, and what to change."""
    code = error.verify_code
    leaf = chain[0] if chain else {}
    if code in _WRONG_NAME:
        names = ", ".join(_names(leaf)) or "no name"
        said = f"it is for {names}" if leaf else "it is for other names"
        return (
            f"the broker's certificate is not for {host!r}: {said}; use such a name in"
            " bootstrap.servers and in the brokers' advertised.listeners, or add the name to the"
            " certificate; ssl.endpoint.identification.algorithm=none turns this check off"
        )
    if code in _UNTRUSTED:
        issuer = f", issued by {_name(leaf['issuer'])}," if leaf else ""
        return (
            f"the broker's certificate{issuer} is not trusted ({error.verify_message}): set"
            f" ssl.ca.location to the certificate of its CA; now {_trusted(settings)} are trusted"
        )
    if code == _EXPIRED:
        expired = _ended(chain)
        at = f" ({_name(expired['subject'])}) expired on {expired['notAfter']}" if expired else ""
        return (
            f"a certificate of the broker{at or ' has expired'}: renew it on the broker, or"
            " correct this machine's clock"
        )
    if code == _NOT_YET:
        since = f" before {leaf['notBefore']}" if leaf else " yet"
        return (
            f"the broker's certificate is not valid{since}: correct the clock of this machine or"
            " of the one that issued it"
        )
    crl = f"ssl.crl.location = {settings.crl_location}"
    if code == _REVOKED:
        return f"the broker's certificate is revoked, says {crl}: renew it on the broker"
    if code == _NO_CRL:
        issuer = f" ({_name(leaf['issuer'])})" if leaf else ""
        return f"{crl} has no list of the CA{issuer} that issued the broker's certificate"
    if code == _CRL_EXPIRED:
        return f"{crl} is out of date: replace it with the CA's current list"
    return f"the broker's certificate does not pass: {error.verify_message}"


def _alerted(alert: str, settings: TlsSettings, has_met: bool) -> str:
    """Returns what an alert of the broker means; `has_met` says that it had sent its certificate.

    Before that, a broker refuses versions and ciphers; after it, the client certificate.
    """
    said = f"TLS alert: {_words(alert)}"
    if alert == "PROTOCOL_VERSION":
        return f"{_no_version(settings)} ({said})"
    if not has_met:
        return (
            f"the broker refuses the TLS handshake ({said}): it may share no version or cipher"
            " with this client; check ssl.cipher.suites and ssl.curves.list, and the broker's"
            " ssl.enabled.protocols and ssl.cipher.suites"
        )
    if alert not in _ABOUT_IDENTITY:
        return f"the broker ended TLS ({said})"
    if not _has_identity(settings):
        return (
            f"the broker wants a client certificate ({said}): set ssl.certificate.location and"
            " ssl.key.location"
        )
    where = settings.certificate_location
    which = f"ssl.certificate.location = {where}" if where else "ssl.certificate.pem"
    return (
        f"the broker refuses the client certificate ({said}): check that {which} has not expired,"
        " and that its CA is in the broker's ssl.truststore"
    )


_ABOUT_IDENTITY = frozenset(
    (
        "CERTIFICATE_REQUIRED",
        "BAD_CERTIFICATE",
        "UNSUPPORTED_CERTIFICATE",
        "CERTIFICATE_REVOKED",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_UNKNOWN",
        "UNKNOWN_CA",
        "ACCESS_DENIED",
        "DECRYPT_ERROR",
        "HANDSHAKE_FAILURE",
        "NO_CERTIFICATE",
    )
)


def _no_version(settings: TlsSettings) -> str:
    lowest, highest = settings.lowest_version, settings.highest_version
    spoken = lowest if lowest == highest else f"{lowest} and {highest}"
    return (
        f"the broker speaks no version of TLS that this client does ({spoken}): change"
        " ssl.enabled.protocols of the broker"
    )


def _has_identity(settings: TlsSettings) -> bool:
    return bool(settings.certificate_location or settings.certificate_pem)


def _trusted(settings: TlsSettings) -> str:
    if settings.ca_pem:
        return "those in ssl.ca.pem"
    return f"those in {settings.ca_location}" if settings.ca_location else "the system's"


def _is_tls(first: bytes) -> bool:
    return len(first) > 1 and first[0] in _RECORD_TYPES and first[1] == 3


def _names(certificate: dict[str, Any]) -> Iterator[str]:
    """Yields the host names and addresses of a certificate, but not too many."""
    names = [value for kind, value in certificate.get("subjectAltName", ()) if "email" not in kind]
    yield from map(shown, names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        yield f"and {len(names) - _MOST_NAMES} more"


def _name(parts: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Returns the common name of a subject or issuer on one line; without one, all of it."""
    found = {key: value for part in parts for key, value in part}
    name = found.get("commonName") or ", ".join(found.values())
    return shown(name) or "an issuer without a name"


def _ended(chain: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Returns the first certificate of a chain that has expired, None if none has."""
    now = time.time()
    return next((each for each in chain if _end_of(each) < now), None)


def _end_of(certificate: dict[str, Any]) -> float:
    """Returns when a certificate expires, in seconds since 1970; inf if its date is no date.

    The other side may send any date, and OpenSSL then gives "Bad time value".
    """
    try:
        return ssl.cert_time_to_seconds(certificate["notAfter"])
    except (KeyError, ValueError):
        return math.inf


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()


def _shown(first: bytes) -> str:
    return f"{first[:_SHOWN]!r}{'...' if len(first) > _SHOWN else ''}"
