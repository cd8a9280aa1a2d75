"""Translates the keys of Java's clients to librdkafka's, before the configuration is checked.

The keys are those of a properties file that works with Java. A file in JKS or PKCS#12 is an error,
which has the commands that convert it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rdmeta.config.jaas import read_jaas
from rdmeta.config.option_table import JAVA_KEYS


class Given(NamedTuple):
    """A value that the user gave: under which name, and for which option."""

    name: object
    key: object
    value: object


_CLIENT_ID, _CLIENT_SECRET = "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_URLENCODE = "sasl.oauthbearer.header.urlencode"
_MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
}
_OTHER_MODULES = {
    "Krb5LoginModule": "GSSAPI (Kerberos) is not supported",
    "IAMLoginModule": (
        "only Amazon's library for Java has it; set OAUTHBEARER and oauth_cb, as"
        " examples/msk_iam.py does"
    ),
}
_CLASSES = {
    "sasl.login.callback.handler.class": "OAuthBearerLoginCallbackHandler",
    "sasl.oauthbearer.jwt.retriever.class": "ClientCredentialsJwtRetriever",
}
_CLAIM = "unsecuredLoginStringClaim_"
_LONGEST_PATH = 300


def translated(
    conf: Mapping[object, object], mechanism: str | None, wrong: set[str], problems: list[str]
) -> list[Given]:
    """Returns all values for librdkafka's options; keys that are not Java's pass through.

    Adds to `problems` what cannot be translated, and to `wrong` a login that cannot be read: what
    it would have set is not missing. `mechanism` is None if the configuration has none that rdmeta
    speaks.
    """
    found: list[Given] = []
    stores: set[str] = set()
    for key, value in conf.items():
        if key == _HOST_CHECK and isinstance(value, str) and not value.strip():
            found.append(Given(key, key, "none"))
        elif not isinstance(key, str) or key not in JAVA_KEYS:
            found.append(Given(key, key, value))
        elif value is None:
            continue
        elif key.startswith(("ssl.truststore.", "ssl.keystore.")):
            stores.add(key.split(".")[1])
        elif key == "sasl.jaas.config":
            found += _login(value, mechanism, wrong, problems)
        else:
            _check_harmless(key, value, problems)
    for store, of in _STORES.items():
        if store in stores:
            found += of(conf, problems)
    return found


def _check_harmless(key: str, value: object, problems: list[str]) -> None:
    """Adds a problem if a key without an effect in rdmeta has a value that needs one."""
    text = value if isinstance(value, str) else ""
    if key in _CLASSES and text.rpartition(".")[2] != _CLASSES[key]:
        problems.append(f"{key}: no class of Java but Kafka's own is known: use oauth_cb")
    if key == "ssl.protocol" and text.strip() not in ("TLS", "TLSv1.2", "TLSv1.3"):
        problems.append("ssl.protocol: expected TLS or TLSv1.2 or TLSv1.3")
    if key == _URLENCODE and str(value).strip().lower() != "false":
        problems.append(f"{key}: expected false")


# ---- sasl.jaas.config ---------------------------------------------------------------------------


def _login(
    value: object, mechanism: str | None, wrong: set[str], problems: list[str]
) -> list[Given]:
    """Returns what the login module's options mean; checks that the mechanism is the module's."""
    name = "sasl.jaas.config"
    try:
        if not isinstance(value, str):
            raise ValueError(f" of type {type(value).__name__}: expected text")
        module, options = read_jaas(value)
        if module in _OTHER_MODULES:
            raise ValueError(f" has {module}: {_OTHER_MODULES[module]}")
        if module not in _MODULES:
            expected = ", ".join(_MODULES)
            raise ValueError(f" has a login module that is not known: expected one of {expected}")
        if mechanism is not None and mechanism not in _MODULES[module]:
            raise ValueError(f" has {module}, but sasl.mechanism is {mechanism}")
        if module == "OAuthBearerLoginModule":
            pairs = _oauth(options)
        else:
            pairs = _password(module, options)
    except ValueError as error:
        problems.append(f"{name}{error}")
        wrong.add(name)
        return []
    return [Given(name, key, given) for key, given in pairs.items()]


def _password(module: str, options: Mapping[str, str]) -> dict[str, object]:
    """Returns the options of PLAIN and SCRAM; raises ValueError if one is missing."""
    missing = [each for each in ("username", "password") if not options.get(each)]
    if missing:
        raise ValueError(f": the {module} has no {' and no '.join(missing)}")
    if options.get("tokenauth", "").lower() == "true":
        raise ValueError(" has tokenauth: delegation tokens are not supported")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _oauth(options: Mapping[str, str]) -> dict[str, object]:
    """Returns the options of OAUTHBEARER: those of client credentials, or of unsecured tokens."""
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in options.items()
        if name.startswith("extension_")
    }
    if any(name.startswith("unsecuredLogin") for name in options):
        return {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": _unsecured(options, extensions),
        }
    found: dict[str, object] = {}
    if extensions:
        if any("," in value for value in extensions.values()):
            raise ValueError(": the value of an extension has a comma")
        pairs = [f"{name}={value}" for name, value in extensions.items()]
        found["sasl.oauthbearer.extensions"] = ",".join(pairs)
    named = {"clientId": _CLIENT_ID, "clientSecret": _CLIENT_SECRET}
    named["scope"] = "sasl.oauthbearer.scope"
    found |= {key: options[name] for name, key in named.items() if name in options}
    return found


def _unsecured(options: Mapping[str, str], extensions: Mapping[str, str]) -> str:
    """Returns the value of sasl.oauthbearer.config that makes the same unsecured token."""
    claim = options.get("unsecuredLoginPrincipalClaimName", "sub")
    words = {
        "principalClaimName": claim if claim != "sub" else "",
        "principal": options.get(_CLAIM + claim, ""),
        "lifeSeconds": options.get("unsecuredLoginLifetimeSeconds", ""),
        "scope": ",".join(options.get(_CLAIM + "scope", "").split()),
        **{f"extension_{name}": value for name, value in extensions.items()},
    }
    if not words["principal"]:
        raise ValueError(f': the OAuthBearerLoginModule has no {_CLAIM}sub="NAME"')
    if any(" " in value for value in words.values()):
        raise ValueError(": a claim or an extension of an unsecured token has a space")
    return " ".join(f"{name}={value}" for name, value in words.items() if value)


# ---- stores -------------------------------------------------------------------------------------


def _truststore(conf: Mapping[object, object], problems: list[str]) -> list[Given]:
    """Returns the certificates that are trusted, if they are in PEM."""
    place, text = "ssl.truststore.location", "ssl.truststore.certificates"
    if _is_pem("ssl.truststore", conf, problems):
        return _renamed(conf, {place: ("ssl.ca.location",), text: ("ssl.ca.pem",)})
    if _lacks_type("ssl.truststore", conf, problems):
        return []
    if conf.get(place) is not None:
        path, kind = _shown_path(conf[place]), _kind("ssl.truststore", conf)
        command = f"keytool -list -rfc -keystore {path} > ca.pem"
        if kind == "PKCS12":
            command = f"openssl pkcs12 -in {path} -nokeys -out ca.pem"
        problems.append(
            f"{place} is a file of type {kind}, which Python cannot read; convert it with"
            f" `{command}`, and set ssl.ca.location=ca.pem in its place"
        )
    elif conf.get(text) is not None:
        problems.append(f"{text} needs ssl.truststore.type=PEM")
    return []


def _keystore(conf: Mapping[object, object], problems: list[str]) -> list[Given]:
    """Returns the client's certificate and key, if they are in PEM."""
    place = "ssl.keystore.location"
    chain, key = "ssl.keystore.certificate.chain", "ssl.keystore.key"
    if _is_pem("ssl.keystore", conf, problems):
        both = ("ssl.certificate.location", "ssl.key.location")
        return _renamed(conf, {place: both, chain: ("ssl.certificate.pem",), key: ("ssl.key.pem",)})
    if _lacks_type("ssl.keystore", conf, problems):
        return []
    if conf.get(place) is not None:
        path, kind = _shown_path(conf[place]), _kind("ssl.keystore", conf, "PKCS12")
        command = f"openssl pkcs12 -in {path} -out client.pem"
        if kind != "PKCS12":
            to = "-destkeystore client.p12 -deststoretype PKCS12"
            command = f"keytool -importkeystore -srckeystore {path} {to}"
            command += " && openssl pkcs12 -in client.p12 -out client.pem"
        problems.append(
            f"{place} is a file of type {kind}, which Python cannot read; convert it with"
            f" `{command}`, and set ssl.certificate.location=client.pem,"
            " ssl.key.location=client.pem and ssl.key.password in its place"
        )
    elif conf.get(chain) is not None or conf.get(key) is not None:
        problems.append(f"{chain} and {key} need ssl.keystore.type=PEM")
    elif conf.get("ssl.keystore.password") is not None:
        problems.append("ssl.keystore.password has no ssl.keystore.location")
    return []


_STORES: dict[str, Callable[[Mapping[object, object], list[str]], list[Given]]] = {
    "truststore": _truststore,
    "keystore": _keystore,
}


def _is_pem(store: str, conf: Mapping[object, object], problems: list[str]) -> bool:
    """Whether the store's type is PEM; adds a problem for a password, which Java refuses then."""
    if _kind(store, conf) != "PEM":
        return False
    if conf.get(f"{store}.password") is not None:
        problems.append(
            f"{store}.password is set, but a file in PEM has none"
            + (": its key has ssl.key.password" if store == "ssl.keystore" else "")
        )
    return True


def _kind(store: str, conf: Mapping[object, object], default: str = "JKS") -> str:
    """Returns the store's type, or else what the file's name says."""
    given, path = conf.get(f"{store}.type"), str(conf.get(f"{store}.location", "")).lower()
    kind = given.strip().upper() if isinstance(given, str) else ""
    if kind.isalnum() and len(kind) < 10:
        return kind
    if path.endswith((".p12", ".pfx", ".pkcs12")):
        return "PKCS12"
    return "JKS" if path.endswith(".jks") else default


def _lacks_type(store: str, conf: Mapping[object, object], problems: list[str]) -> bool:
    """Whether the name of the file is one of PEM, and no type says so; adds a problem then."""
    path = str(conf.get(f"{store}.location", "")).lower()
    if conf.get(f"{store}.type") is not None or not path.endswith((".pem", ".crt", ".cer")):
        return False
    problems.append(f"{store}.type is missing: a file in PEM needs {store}.type=PEM")
    return True


def _renamed(conf: Mapping[object, object], names: Mapping[str, tuple[str, ...]]) -> list[Given]:
    """Returns the values under librdkafka's keys."""
    return [
        Given(name, key, conf[name])
        for name, keys in names.items()
        if conf.get(name) is not None
        for key in keys
    ]


def _shown_path(value: object) -> str:
    """Returns a path for a command line; PATH if the value may be something else."""
    text = value if isinstance(value, str) else ""
    if not text or len(text) > _LONGEST_PATH or not text.isprintable() or "-----" in text:
        return "PATH"
    return shlex.quote(text)
