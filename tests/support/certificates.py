"""Certificates of a test's own authorities, and TLS servers that use them."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

__all__ = ["LONG_AGO", "Authority", "Identity", "over_tls"]

LONG_AGO = datetime.datetime(2001, 2, 3, tzinfo=datetime.timezone.utc)


class Identity(NamedTuple):
    """A certificate with its chain, and its key: PEM text."""

    certificate: str
    key: str

    def write(self, folder: Path, name: str) -> tuple[str, str]:
        """Writes both to files; returns their paths."""
        paths = folder / f"{name}.pem", folder / f"{name}.key"
        for path, text in zip(paths, self, strict=True):
            path.write_text(text)
        return str(paths[0]), str(paths[1])

    def encrypted(self, password: str) -> str:
        """Returns the key as PKCS#8, encrypted."""
        return self._pkcs8(serialization.BestAvailableEncryption(password.encode()))

    def pkcs8(self) -> str:
        """Returns the key as PKCS#8, as Kafka's brokers want it."""
        return self._pkcs8(serialization.NoEncryption())

    def _pkcs8(self, encryption: serialization.KeySerializationEncryption) -> str:
        key = serialization.load_pem_private_key(self.key.encode(), None)
        encoded = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )
        return encoded.decode()


class Authority:
    """A CA of a test: it issues certificates of servers and clients, and revokes them."""

    def __init__(self, name: str | None = None) -> None:
        self.ca = trustme.CA(organization_name=name and "Example", organization_unit_name=name)
        self.pem = self.ca.cert_pem.bytes().decode()

    def write(self, folder: Path, name: str = "ca.pem") -> str:
        """Writes the CA's certificate to a file; returns its path."""
        path = folder / name
        path.write_text(self.pem)
        return str(path)

    def issue(self, *names: str, **options: Any) -> Identity:
        """Returns a new certificate for `names`; `options` are those of trustme."""
        issued = self.ca.issue_cert(*names, **options)
        chain = "".join(each.bytes().decode() for each in issued.cert_chain_pems)
        return Identity(chain, issued.private_key_pem.bytes().decode())

    def server(
        self,
        *names: str,
        clients: Authority | None = None,
        highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        **options: Any,
    ) -> ssl.SSLContext:
        """Returns the context of a server with a new certificate.

        `clients` is the authority of the certificates that its clients must have.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = highest
        self.ca.issue_cert(*names, **options).configure_cert(context)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            clients.ca.configure_trust(context)
        return context

    def revocations(
        self, *revoked: str, until: datetime.datetime = datetime.datetime(2999, 1, 1)
    ) -> str:
        """Returns the CA's list of revoked certificates, given in PEM, as PEM text."""
        issuer = x509.load_pem_x509_certificate(self.pem.encode())
        key: Any = serialization.load_pem_private_key(self.ca.private_key_pem.bytes(), None)
        builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.subject)
        builder = builder.last_update(datetime.datetime(2000, 1, 1)).next_update(until)
        for text in revoked:
            certificate = x509.load_pem_x509_certificate(text.encode())
            entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
            entry = entry.revocation_date(datetime.datetime(2000, 1, 1))
            builder = builder.add_revoked_certificate(entry.build())
        found = builder.sign(key, hashes.SHA256())
        return found.public_bytes(serialization.Encoding.PEM).decode()


def over_tls(context: ssl.SSLContext, serve: Callable[[Any], object]) -> Callable[[Any], None]:
    """Returns a server that shakes hands, and passes the connection to `serve`."""

    def run(connection: Any) -> None:
        with context.wrap_socket(connection, server_side=True) as encrypted:
            serve(encrypted)

    return run
