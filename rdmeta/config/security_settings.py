"""The checked settings of TLS and SASL, which are parts of a Config."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rdmeta.config.secret import Secret

OauthCallback: TypeAlias = Callable[[str], tuple[Any, ...]]
"""confluent-kafka's `oauth_cb`: from the text of sasl.oauthbearer.config to (token, expiry).

The expiry is in seconds since the epoch. A principal may follow, and then a dict of extensions."""


@dataclass(frozen=True)
class TlsSettings:
    """The settings of TLS connections; "" and None are "not set".

    Text in PEM stands in the `*_pem` fields, a path in the `*_location` fields; at most one of the
    two is set. Without `ca_location` and `ca_pem`, the system's certificates are trusted.
    `ca_location` is a file or a directory. `key_location` may be the file of the certificate.
    """

    ca_location: str = ""
    ca_pem: str = field(default="", repr=False)
    certificate_location: str = ""
    certificate_pem: str = field(default="", repr=False)
    key_location: str = ""
    key_pem: Secret | None = None
    key_password: Secret | None = None
    ciphers: str = ""
    curves: str = ""  # one curve's name
    crl_location: str = ""
    verify: bool = True
    check_hostname: bool = True  # False if `verify` is
    lowest_version: str = "TLSv1.2"  # TLSv1.2 or TLSv1.3, as the highest
    highest_version: str = "TLSv1.3"


@dataclass(frozen=True)
class OauthSettings:
    """Where the tokens of OAUTHBEARER come from.

    That is `callback` if it is set, else unsecured tokens of the principal in `config` if
    `unsecured`, else an OIDC server (`method` is "oidc").
    """

    callback: OauthCallback | None = field(default=None, repr=False)
    method: str = "default"  # default or oidc
    config: Secret | str = ""
    endpoint: str = field(default="", repr=False)  # a URL, which may have a password
    client_id: str = ""
    client_secret: Secret | None = None
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    https_ca_location: str = ""
    https_ca_pem: str = field(default="", repr=False)
    unsecured: bool = False


@dataclass(frozen=True)
class SaslSettings:
    """How the client logs in.

    `mechanism` is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. `oauth` is set for the last,
    `username` and `password` for the others.
    """

    mechanism: str
    username: str | Secret = ""
    password: Secret | None = None
    oauth: OauthSettings | None = None
