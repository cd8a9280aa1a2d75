"""The rules between the options of TLS and SASL: what is missing, and what contradicts what.

The options are checked one by one before. A rule's text names the options as the user gave them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rdmeta.config.option_table import MECHANISMS, OPTIONS
from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings, SaslSettings, TlsSettings

_KEYS = {option.field: option.key for option in OPTIONS if option.area}
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_METHOD = "sasl.oauthbearer.method"
_UNSECURED = "enable.sasl.oauthbearer.unsecure.jwt"
_EITHER = (
    ("ssl.ca.location", "ssl.ca.pem"),
    ("ssl.certificate.location", "ssl.certificate.pem"),
    ("ssl.key.location", "ssl.key.pem"),
    ("https.ca.location", "https.ca.pem"),
)


def has_effect(area: str, protocol: str | None, mechanism: str | None) -> bool:
    """Whether options of an area matter; None is a protocol or mechanism that is not known."""
    if not area or protocol is None:
        return True
    if area == "tls":
        return protocol.endswith("ssl")
    if not protocol.startswith("sasl"):
        return False
    if area == "sasl" or mechanism is None:
        return True
    if area == "oauth":
        return mechanism == "OAUTHBEARER"
    return area == "login" and mechanism != "OAUTHBEARER"


def problems_of(
    values: Mapping[str, Any], names: Mapping[str, str], protocol: str, wrong: set[str]
) -> list[str]:
    """Returns what is missing and what contradicts, for a known protocol.

    `values` are those set, by option. `names` has the names under which the user gave them. The
    options in `wrong` were given, and have values that are not allowed: none of them is missing.
    """

    def is_set(key: str) -> bool:
        return key in values or key in wrong

    def named(key: str) -> str:
        return names.get(key, key)

    found: list[str] = []
    if protocol.endswith("ssl"):
        found += _tls_problems(values, is_set, named)
    if protocol.startswith("sasl"):
        found += _sasl_problems(values, wrong, is_set, named)
    return found


def _tls_problems(
    values: Mapping[str, Any], is_set: Callable[[str], bool], named: Callable[[str], str]
) -> list[str]:
    found = _both(is_set, named, _EITHER[:3])
    keys = [each for each in _EITHER[2] if is_set(each)]
    certificates = [each for each in _EITHER[1] if is_set(each)]
    if keys and not certificates:
        found.append(
            f"{named(keys[0])} is set, and its certificate is missing:"
            " set ssl.certificate.location or ssl.certificate.pem"
        )
    if certificates and not keys:
        found.append(
            f"{named(certificates[0])} is set, and its key is missing: set ssl.key.location (it may"
            " be the same file) or ssl.key.pem"
        )
    if is_set("ssl.key.password") and not keys:
        found.append("ssl.key.password has no key: set ssl.key.location or ssl.key.pem")
    pem = values.get("ssl.key.pem")
    if isinstance(pem, Secret) and not is_set("ssl.key.password") and pem.is_encrypted_pem():
        found.append(f"{named('ssl.key.pem')} is encrypted, and ssl.key.password is missing")
    if any(sign in values.get("ssl.curves.list", "") for sign in ":,"):
        found.append("ssl.curves.list has several curves: Python's ssl takes one")
    if "_WITH_" in values.get("ssl.cipher.suites", ""):
        found.append(
            "ssl.cipher.suites has a name of Java's: `openssl ciphers -stdname` lists OpenSSL's"
            " name beside each"
        )
    return found


def _both(
    is_set: Callable[[str], bool], named: Callable[[str], str], pairs: tuple[tuple[str, str], ...]
) -> list[str]:
    return [
        f"{named(first)} and {named(second)} are both set: give one"
        for first, second in pairs
        if is_set(first) and is_set(second)
    ]


def _sasl_problems(
    values: Mapping[str, Any],
    wrong: set[str],
    is_set: Callable[[str], bool],
    named: Callable[[str], str],
) -> list[str]:
    if not is_set("sasl.mechanism"):
        return [
            "sasl.mechanism is missing: librdkafka's default, GSSAPI, is not supported;"
            f" expected {' or '.join(MECHANISMS)}"
        ]
    mechanism = values.get("sasl.mechanism")
    if mechanism is None or "sasl.jaas.config" in wrong:
        return []
    if mechanism == "OAUTHBEARER":
        return _oauth_problems(values, is_set, named)
    return [
        f"{key} is missing: {mechanism} needs it"
        for key in ("sasl.username", "sasl.password")
        if not is_set(key)
    ]


def _oauth_problems(
    values: Mapping[str, Any], is_set: Callable[[str], bool], named: Callable[[str], str]
) -> list[str]:
    found = _both(is_set, named, _EITHER[3:])
    method, is_unsecured = values.get(_METHOD), values.get(_UNSECURED, False)
    sources = ["oauth_cb"] if is_set("oauth_cb") else []
    sources += [f"{named(_METHOD)}=oidc"] if method == "oidc" else []
    sources += [_UNSECURED] if is_unsecured else []
    if len(sources) > 1:
        found.append(f"{' and '.join(sources)} are both set: tokens have one source")
    if sources == [_UNSECURED] and not is_set("sasl.oauthbearer.config"):
        found.append(
            f"sasl.oauthbearer.config is missing: {_UNSECURED} needs it, as principal=NAME"
        )
    if not sources and not is_set(_METHOD) and is_set(ENDPOINT):
        sources = [ENDPOINT]  # it can mean nothing else
    if not sources:
        found.append(
            "OAUTHBEARER has no source of tokens: set oauth_cb, or"
            f" {_METHOD}=oidc with {ENDPOINT}, sasl.oauthbearer.client.id and"
            " sasl.oauthbearer.client.secret"
        )
    if sources[:1] in ([f"{named(_METHOD)}=oidc"], [ENDPOINT]):
        found += [
            f"{key} is missing: {sources[0]} needs it"
            for key in (ENDPOINT, "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret")
            if not is_set(key)
        ]
    return found


# ---- settings -----------------------------------------------------------------------------------


def _fields(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Returns the values that are set, by the fields of one of the dataclasses."""
    return {
        field.removeprefix(prefix): values[key]
        for field, key in _KEYS.items()
        if field.startswith(prefix) and key in values
    }


def tls_settings(values: Mapping[str, Any], protocol: str) -> TlsSettings | None:
    """Returns the settings of TLS; None if the protocol has no TLS."""
    if not protocol.endswith("ssl"):
        return None
    fields = _fields(values, "tls.")
    versions = fields.pop("versions", ())
    if versions:
        fields |= {"lowest_version": versions[0], "highest_version": versions[-1]}
    if fields.get("ca_location") == "probe":  # librdkafka's word for the system's certificates
        del fields["ca_location"]
    fields["check_hostname"] = fields.get("verify", True) and (
        values.get("ssl.endpoint.identification.algorithm", "https") == "https"
    )
    return TlsSettings(**fields)


def unprotected(settings: TlsSettings | None, sasl: SaslSettings | None) -> str:
    """Returns a warning, with the option, if anyone on the way can act or listen; else "".

    A check of TLS is switched off, or PLAIN sends its password without TLS.
    """
    if settings is None:
        if sasl is None or sasl.mechanism != "PLAIN":
            return ""
        return (
            "security.protocol is sasl_plaintext and sasl.mechanism PLAIN: the password is sent in"
            " the clear, so anyone on the way can read it; use sasl_ssl, or a SCRAM mechanism"
        )
    if not settings.verify:
        return (
            "enable.ssl.certificate.verification is false: no broker's certificate is checked, so"
            " an attacker on the way can read and change all traffic, passwords included"
        )
    if not settings.check_hostname:
        return (
            "ssl.endpoint.identification.algorithm is none: a broker's host name is not checked, so"
            " any server with a certificate of a trusted CA can act as a broker"
        )
    return ""


def sasl_settings(values: Mapping[str, Any], protocol: str) -> SaslSettings | None:
    """Returns the settings of SASL; None if the protocol has no SASL."""
    if not protocol.startswith("sasl"):
        return None
    fields = _fields(values, "sasl.")
    if fields["mechanism"] != "OAUTHBEARER":
        return SaslSettings(**fields)
    oauth = _fields(values, "oauth.")
    if "endpoint" in oauth and "callback" not in oauth and not oauth.get("unsecured"):
        oauth.setdefault("method", "oidc")
    if oauth.get("https_ca_location") == "probe":
        del oauth["https_ca_location"]
    return SaslSettings(fields["mechanism"], oauth=OauthSettings(**oauth))
