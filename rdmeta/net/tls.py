"""TLS: contexts from the settings, the tunnel of one connection, and failures in words.

A context is made anew when a file or a secret has changed. A certificate that was replaced on disk
is used by the next connection, without a restart. Text in PEM reaches OpenSSL through a file in
memory, so that no key is ever written to a disk.

A tunnel owns no socket, clock or thread, as a session owns none: encrypted bytes on one side, plain
on the other. So both drivers share it, and the child of a fork sends no word through it.

The error of a failure says the cause, and the option or certificate to change. For that the tunnel
keeps the first bytes of a port.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, TypeAlias

from rdmeta._escaping import first_bytes
from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import ConfigError, Error, RequestTimedOutError, TlsError
from rdmeta.net.sasl import shown

_Signature: TypeAlias = "tuple[object, ...]"

# The names that OpenSSL looks up in a directory of certificates: c_rehash makes them.
_HASHED = re.compile(r"[0-9a-f]{8}\.r?[0-9]+")
_CERTIFICATE, _CRL = b"-----BEGIN CERTIFICATE-----", b"-----BEGIN X509 CRL-----"
_TRUSTED = b"-----BEGIN TRUSTED CERTIFICATE-----"
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Tls:
    """Makes contexts from `settings`; one thread at a time may use it."""

    def __init__(self, settings: TlsSettings) -> None:
        """Reads no file yet."""
        self.settings = settings
        self._context: ssl.SSLContext | None = None
        self._signature: _Signature | None = None

    def context(self) -> ssl.SSLContext:
        """Returns the last context, or a new one if a file or a secret has changed since.

        It reads files and asks callables. Raises ConfigError, which names the option and the file.
        The error is retriable if an earlier context was good: the files may be being replaced.
        """
        signature = self._signed()
        if self._context is None or signature != self._signature:
            try:
                self._context, self._signature = _context(self.settings), signature
            except ConfigError as error:
                error.retriable |= self._context is not None
                raise
        return self._context

    def _signed(self) -> _Signature:
        """Returns a value that differs if a file or a secret does; it keeps no secret itself."""
        settings, digest = self.settings, hashlib.sha256()
        for secret in (settings.key_pem, settings.key_password):
            text = b"" if secret is None else secret.reveal().encode()
            digest.update(b"%d:" % len(text) + text)
        paths = (
            settings.ca_location,
            settings.certificate_location,
            settings.key_location,
            settings.crl_location,
        )
        states = [_state(path) for path in paths if path]
        if not settings.ca_location and not settings.ca_pem:
            system = ssl.get_default_verify_paths()  # a file that is missing is None
            states += [_stat(path) for path in (system.cafile, system.capath) if path]
        return (digest.digest(), *states)


def _state(path: str) -> object:
    """Returns what changes when a file, or a file of a directory, is replaced."""
    try:
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                names = sorted(entry.name for entry in entries)
            return tuple((name, _stat(os.path.join(path, name))) for name in names)
        return _stat(path)
    except OSError as error:
        return error.errno


def _stat(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError as error:
        return error.errno
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _context(settings: TlsSettings) -> ssl.SSLContext:
    """Returns a new context; raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _VERSIONS[settings.lowest_version]
    context.maximum_version = _VERSIONS[settings.highest_version]
    context.options |= ssl.OP_NO_RENEGOTIATION  # so that only reads read
    # A certificate in the file is trusted even if it is not a root, as in Java's trust stores.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = settings.verify and settings.check_hostname
    if not settings.verify:
        context.verify_mode = ssl.CERT_NONE
    _set_ciphers(context, settings)
    _trust(context, settings)
    _check_revocation(context, settings)
    _identify(context, settings)
    return context


def _set_ciphers(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.ciphers:
        try:
            context.set_ciphers(settings.ciphers)
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.cipher.suites = {settings.ciphers}: OpenSSL knows none of these; expected"
                " OpenSSL's names, as ECDHE-RSA-AES256-GCM-SHA384, separated by a colon"
            ) from None
    if settings.curves:
        try:
            context.set_ecdh_curve(settings.curves)
        except ValueError:
            raise ConfigError(
                f"ssl.curves.list = {settings.curves}: OpenSSL knows no curve of that name"
            ) from None


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Loads the CA certificates."""
    if settings.ca_pem:
        _load_ca(context, "ssl.ca.pem", text=settings.ca_pem)
    elif not settings.ca_location:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    elif os.path.isdir(settings.ca_location):
        _load_directory(context, settings.ca_location)
    else:
        _load_ca(context, f"ssl.ca.location = {settings.ca_location}", path=settings.ca_location)


def _load_ca(context: ssl.SSLContext, what: str, path: str = "", text: str = "") -> None:
    data = text.encode() if text else _read(what, path)
    if _CERTIFICATE not in data and _TRUSTED not in data:
        raise ConfigError(f"{what}: no certificate in PEM is in it{_is_not_pem(data)}")
    _load(context, data, f"{what}: a certificate in it")


def _load_directory(context: ssl.SSLContext, path: str) -> None:
    """Trusts a directory: by OpenSSL's links if it has them, else every certificate in PEM."""
    what = f"ssl.ca.location = {path}"
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror}") from None
    if any(_HASHED.fullmatch(name) for name in names):
        context.load_verify_locations(capath=path)
        return
    found = False
    for name in names:
        file = os.path.join(path, name)
        named = f"ssl.ca.location = {file}"
        if os.path.isfile(file) and _CERTIFICATE in _read(named, file):
            _load_ca(context, named, path=file)
            found = True
    if not found:
        raise ConfigError(f"{what}: no file of the directory has a certificate in PEM")


def _check_revocation(context: ssl.SSLContext, settings: TlsSettings) -> None:
    path = settings.crl_location
    if not path:
        return
    what = f"ssl.crl.location = {path}"
    data = _read(what, path)
    if _CRL not in data:
        raise ConfigError(f"{what}: no list of revoked certificates (X509 CRL) in PEM is in it")
    _load(context, data, f"{what}: the list in it")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load(context: ssl.SSLContext, data: bytes, what: str) -> None:
    """Loads certificates and lists in PEM; an error says that `what` is damaged."""
    try:
        with _in_memory(data) as file:
            context.load_verify_locations(cafile=file)
    except ssl.SSLError as error:
        raise ConfigError(f"{what} is damaged: {_reason(error)}") from None


def _identify(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Loads the client's certificate and key, if there are any."""
    certificate = "ssl.certificate.pem"
    if settings.certificate_location:
        certificate = f"ssl.certificate.location = {settings.certificate_location}"
    key = "ssl.key.pem"
    if settings.key_location:
        key = f"ssl.key.location = {settings.key_location}"
    has_key = bool(settings.key_location or settings.key_pem)
    if not settings.certificate_location and not settings.certificate_pem:
        if has_key:
            raise ConfigError(f"{key}: it needs ssl.certificate.location or ssl.certificate.pem")
        return
    chain = settings.certificate_pem.encode() or _read(certificate, settings.certificate_location)
    if settings.key_location:
        secret = _read(key, settings.key_location)
    elif settings.key_pem is not None:
        secret = settings.key_pem.reveal().encode()
    else:
        key, secret = certificate, chain
    if _CERTIFICATE not in chain:
        raise ConfigError(f"{certificate}: no certificate in PEM is in it{_is_not_pem(chain)}")
    if b"PRIVATE KEY-----" not in secret:
        more = "; set ssl.key.location" if not has_key else _is_not_pem(secret)
        raise ConfigError(f"{key}: no private key in PEM is in it{more}")
    _load_identity(context, settings, (certificate, chain), (key, secret))


def _load_identity(
    context: ssl.SSLContext,
    settings: TlsSettings,
    certificate: tuple[str, bytes],
    key: tuple[str, bytes],
) -> None:
    """Loads a chain and its key; each comes with the name of its option, for errors."""
    was_asked = False

    def password() -> str:
        nonlocal was_asked
        was_asked = True
        if settings.key_password is None:
            raise ConfigError(f"{key[0]}: the key is encrypted: set ssl.key.password")
        return settings.key_password.reveal()

    try:
        with _in_memory(certificate[1]) as chain_file, _in_memory(key[1]) as key_file:
            context.load_cert_chain(chain_file, key_file, password)
    except ssl.SSLError as error:
        if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            text = f"{key[0]}: the key is not the one of {certificate[0]}"
        elif was_asked:
            text = f"ssl.key.password: it does not open the key of {key[0]}"
        else:
            text = f"{certificate[0]}: it cannot be used with {key[0]}: {_reason(error)}"
        raise ConfigError(text) from None
    except ConfigError:
        raise
    except ValueError as error:  # a password that is too long
        raise ConfigError(f"ssl.key.password: {error}") from None


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """Yields the path of a file in memory that has `data`; it is gone afterwards."""
    try:
        descriptor = os.memfd_create("rdmeta", os.MFD_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"TLS needs a file in memory: {error.strerror}", retriable=True) from None
    with open(descriptor, "wb", buffering=0) as file:
        file.write(data)
        try:
            yield f"/proc/self/fd/{descriptor}"
        except FileNotFoundError:
            raise ConfigError("TLS needs a file in memory: /proc is not mounted") from None


def _read(what: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror}") from None


def _is_not_pem(data: bytes) -> str:
    """Returns what a file seems to be instead, as a clause for an error, with what to do."""
    if data.startswith((b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")):
        return "; it is a Java keystore: convert it with keytool -importkeystore and openssl pkcs12"
    if data.startswith(b"\x30"):
        return "; it is DER or PKCS#12: convert it with openssl x509 -inform DER or openssl pkcs12"
    return ""


def _reason(error: Exception) -> str:
    """Returns OpenSSL's reason, without the place in its code."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).partition(" (_ssl")[0]


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
                f" (its first bytes are {first_bytes(first)})"
            )
    return TlsError(
        f"the port does not speak TLS (its first bytes are {first_bytes(first)}): {advice}"
    )


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


# Bytes: the longest record of TLS, and so what one read returns.
_RECORD = 1 << 14
# Bytes that OpenSSL gets at a time: its memory for them never shrinks.
_PIECE = 1 << 16
# The first bytes of the other side that are kept, to say what it seems to be.
_KEPT = 64


class Tunnel:
    """The client's side of TLS, from its first byte.

    The driver sends the bytes of `data_to_send()` and passes the bytes that arrive to `receive()`.
    Once `is_ready`, it passes plain bytes to `write()`, and reads others by `read()` and
    `read_into()`. One thread at a time may use the tunnel. Its errors are TlsErrors.
    """

    def __init__(self, context: ssl.SSLContext, settings: TlsSettings, host: str) -> None:
        """Starts the handshake with `host`, whose name or address the certificate must have.

        `settings` are those of the context. They let an error say what to change. Raises TlsError
        if the name cannot be in a certificate.
        """
        self.is_ready = False
        # Whether the other side has ended its side of TLS.
        self.is_over = False
        self._settings = settings
        # A certificate has no final dot, and no zone of an IPv6 address.
        self._host = host.partition("%")[0].rstrip(".")
        self._first = b""
        # The encrypted bytes that OpenSSL is yet to get.
        self._arrived = memoryview(b"")
        self._failure: Error | None = None
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(self._in, self._out, server_hostname=self._host)
        except (ValueError, ssl.SSLError) as error:  # OpenSSL takes 255 characters at most
            why = error.reason if isinstance(error, ssl.SSLError) else error
            raise TlsError(f"no certificate can have the name {self._host!r}: {why}") from None
        self._shake()

    @property
    def version(self) -> str | None:
        """The version of TLS, such as TLSv1.3; None before the handshake is over."""
        return self._tls.version() if self.is_ready else None

    @property
    def expires(self) -> datetime | None:
        """When the first of the other side's certificates expires; None if it is not known.

        It is also known after a handshake that failed at a certificate.
        """
        return first_end(chain_of(self._tls))

    def data_to_send(self) -> bytes:
        """Returns the encrypted bytes to send that no earlier call returned."""
        return self._out.read()

    def receive(self, data: bytes) -> None:
        """Takes the encrypted bytes that arrived, and goes on with the handshake."""
        if len(self._first) < _KEPT:
            self._first += data[: _KEPT - len(self._first)]
        self._arrived = memoryview(bytes(self._arrived) + data if self._arrived else data)
        while not self.is_ready and self._feed():
            self._shake()

    def write(self, data: bytes) -> None:
        """Encrypts plain bytes, once the tunnel is ready."""
        if data:
            self._check(has_read=False)
            try:
                self._tls.write(data)
            except ssl.SSLError as error:
                self._note(error)
                self._check(has_read=False)

    def read(self, most: int) -> bytes:
        """Returns plain bytes that have arrived, about `most`; empty if there are none."""
        parts: list[bytes] = []
        while most > 0 and (part := self._read(_RECORD, None)):
            parts.append(part)
            most -= len(part)
        self._check(bool(parts))
        return b"".join(parts)

    def read_into(self, space: memoryview) -> int:
        """Reads plain bytes that have arrived into `space`; returns how many, 0 if none."""
        filled = 0
        while filled < len(space):
            count = self._read(len(space) - filled, space[filled:])
            if not count:
                break
            filled += count
        self._check(filled > 0)
        return filled

    def closed(self, how: str = "closed the connection") -> None:
        """Raises the error of a connection that ended during the handshake; `how` says how."""
        self._check(has_read=False)
        if not self.is_ready:
            raise no_handshake(self._first, how)

    def timed_out(self) -> None:
        """Raises RequestTimedOutError if the handshake is not over."""
        if self.is_ready:
            return
        if self._first:
            raise RequestTimedOutError("the TLS handshake was not over in time")
        raise RequestTimedOutError(
            "no answer to the TLS handshake in time; the port may not be a Kafka broker's, or not"
            " speak TLS (security.protocol)"
        )

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            self._note(error)
            self._check(has_read=False)
        self.is_ready = True

    def _read(self, most: int, space: memoryview | None) -> Any:
        """Returns the plain bytes of one record, or their number in `space`; falsy if none came."""
        if self._failure is not None or self.is_over or not self.is_ready:
            return None
        if not self._in.pending:
            self._feed()
        try:
            found = self._tls.read(most) if space is None else self._tls.read(most, space)
        except ssl.SSLWantReadError:
            return self._read(most, space) if self._feed() else None
        except ssl.SSLError as error:
            self._note(error)
            return None
        self.is_over = not found
        return found

    def _feed(self) -> bool:
        """Gives OpenSSL some of the bytes that arrived; returns whether there were any."""
        if not self._arrived:
            return False
        self._in.write(self._arrived[:_PIECE])
        # An empty part of the bytes would keep them all.
        self._arrived = self._arrived[_PIECE:] or memoryview(b"")
        return True

    def _check(self, has_read: bool) -> None:
        """Raises the failure, once all bytes before it were read."""
        if self._failure is not None and not has_read:
            raise self._failure.with_traceback(None)

    def _note(self, error: ssl.SSLError) -> None:
        """Keeps OpenSSL's error in words."""
        chain = chain_of(self._tls)
        self._failure = explain(error, self._settings, self._host, chain, self._first)
        self._failure.__cause__ = error.with_traceback(None)
