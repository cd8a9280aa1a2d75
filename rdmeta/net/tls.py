"""The TLS settings as an `ssl.SSLContext`, which is made anew when a file or a secret has changed.

A certificate that was replaced on disk is used by the next connection, without a restart. Text in
PEM reaches OpenSSL through a file in memory, so that no key is ever written to a disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import ConfigError

__all__ = ["Tls"]

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
