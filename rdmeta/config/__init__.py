"""The client's configuration: librdkafka's options, checked, as one value.

    config = rdmeta.config.parse({"bootstrap.servers": "kafka-1:9092,kafka-2:9092"})
    config = rdmeta.config.parse(rdmeta.config.load("client.properties"))

docs/reference/options.md lists the options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

from rdmeta._escaping import escaped
from rdmeta.config.address import parse_bootstrap
from rdmeta.config.java_keys import translated
from rdmeta.config.option_table import (
    INTERVAL,
    JAVA_KEYS,
    MAX_AGE,
    MECHANISMS,
    NOT_NEEDED,
    OPTIONS,
    REFUSED,
    Option,
)
from rdmeta.config.option_values import KINDS, shown
from rdmeta.config.properties import read_properties
from rdmeta.config.secret import MASK
from rdmeta.config.security_rules import (
    has_effect,
    problems_of,
    sasl_settings,
    tls_settings,
    unprotected,
)
from rdmeta.config.security_settings import SaslSettings, TlsSettings
from rdmeta.errors import ConfigError

if TYPE_CHECKING:
    import logging

__all__ = ["Config", "is_option", "load", "masked", "parse", "secret_keys"]


_BY_KEY = {key: option for option in OPTIONS for key in (option.key, option.alias) if key}
_SECURITY_PREFIXES = ("sasl.", "ssl.", "https.")
_MOST_PROBLEMS = 100
_JAVA_SECRETS = frozenset(
    (
        "sasl.jaas.config",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
    )
)
# None is "not set" for these kinds, as in confluent-kafka.
_MAY_BE_NONE = frozenset(KINDS) - {"integer", "flag", "choice"}
_PROTOCOL, _MECHANISM = "security.protocol", "sasl.mechanism"

_FAST = "topic.metadata.refresh.fast.interval.ms"
# The shortest max age that follows from the refresh interval.
_SHORTEST_AGE = 60_000
_RETRY, _LONGEST_RETRY = "retry.backoff.ms", "retry.backoff.max.ms"
# The first wait of each pair cannot be longer than the second.
_WAITS = (
    (_RETRY, _LONGEST_RETRY),
    (_FAST, _LONGEST_RETRY),
    ("reconnect.backoff.ms", "reconnect.backoff.max.ms"),
)


def _log() -> logging.Logger:
    """Returns the logger; a command that needs only addresses does not import logging."""
    import logging

    return logging.getLogger(__name__)


@dataclass(frozen=True)
class Config:
    """Checked settings. Times are in seconds; None means never or without limit.

    `blacklist` has patterns to search for in a topic's name. `family` is any, v4 or v6. `protocol`
    is plaintext, ssl, sasl_plaintext or sasl_ssl; `tls` and `sasl` are None where it has no TLS or
    no SASL.
    """

    bootstrap_servers: str = ""
    client_id: str = "rdmeta"
    refresh_interval: float | None = 300.0
    fast_interval: float = 0.1
    max_age: float | None = 900.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    reconnect_backoff: float = 0.1
    reconnect_backoff_max: float = 10.0
    setup_timeout: float = 30.0
    socket_timeout: float = 60.0
    max_block: float = 60.0
    propagation_max: float = 30.0
    max_idle: float = 0.0
    rebootstrap: bool = True
    rebootstrap_trigger: float = 300.0
    allow_auto_create: bool = False
    blacklist: tuple[re.Pattern[str], ...] = ()
    max_topics: int = 1_000_000
    max_frame: int = 100_000_000
    family: str = "any"
    keepalive: bool = False
    protocol: str = "plaintext"
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None

    @property
    def is_secured(self) -> bool:
        """Whether connections use TLS or SASL."""
        return self.tls is not None or self.sasl is not None


def load(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the options in a file of lines "key=value", for parse() or for a client.

    The file is UTF-8. Comments, escapes and continued lines are those of Java's properties files;
    the last value of a key counts. Raises ConfigError, which names the file and the line. The error
    shows no value, which may be a secret.

        client = rdmeta.Client(rdmeta.config.load("client.properties"))
    """
    return read_properties(path)


def parse(conf: Mapping[str, object], *, servers: bool = True) -> Config:
    """Returns the checked settings; nothing is resolved and no connection is made.

    Values may be text or native, as confluent-kafka takes them: "300000" or 300000, "true" or True.
    Options of librdkafka that metadata does not need are accepted, with one log line. So are those
    of TLS and SASL that have no effect with the protocol or the mechanism. A check of TLS that is
    switched off, or a password that is sent in the clear, gives one warning in the log. A secret
    may be text or a callable that returns it.
    The keys of Java's clients are understood as well: see docs/reference/options.md. With
    `servers=False` bootstrap.servers may be missing. No file is opened.

    Raises ConfigError, which lists every unknown option, wrong value and contradiction, with the
    allowed values or the nearest known option. It shows no secret. Raises TypeError if `conf` is
    no mapping.

        rdmeta.config.parse({"bootstrap.servers": "kafka-1:9092", "retry.backoff.ms": 50})
    """
    if not isinstance(conf, Mapping):
        raise TypeError(f"a configuration is a mapping, not {type(conf).__name__}")
    protocol, mechanism = _scope(conf)
    problems: list[str] = []
    ignored: list[str] = []
    effective: dict[object, object] = {}
    for each, given in conf.items():
        if has_effect(_area(each), protocol, mechanism):
            effective[each] = _plain(given)
        else:
            ignored.append(each)
    found = _Found({}, {}, set(), problems)
    for name, key, value in translated(effective, mechanism, found.wrong, problems):
        option = _BY_KEY.get(key) if isinstance(key, str) else None
        if option is None:
            _check_other(key, ignored, problems)
        elif value is not None or option.kind not in _MAY_BE_NONE:
            found.add(option, str(name), value)
    values, names = found.values, found.names
    problems += _server_problems(values, names, protocol, servers)
    problems += _contradictions(values)
    problems += _protocol_problems(effective, protocol)
    if protocol is not None:
        problems += problems_of(values, names, protocol, found.wrong)
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        rest = [f"and {more} more problems"] if more > 0 else []
        raise ConfigError("; ".join(problems[:_MOST_PROBLEMS] + rest))
    if ignored:
        names_ignored = escaped(", ".join(sorted(ignored)))
        _log().info("options that have no effect are ignored: %s", names_ignored)
    config = _config(values)
    if warning := unprotected(config.tls, config.sasl):
        _log().warning("%s", warning)
    return config


def masked(conf: Mapping[str, object]) -> dict[str, str]:
    """Returns the options as text for a log or a screen: a secret is ***, a certificate its size.

    The value of an unknown key is ***, too: it may be a secret with a slip in its name. Nothing is
    checked.

        rdmeta.config.masked({"client.id": "me", "sasl.password": "secret"})
    """
    return {key: _shown_value(key, value) for key, value in conf.items()}


def secret_keys() -> tuple[str, ...]:
    """Returns the options whose values are credentials, those of Java's clients among them."""
    own = (key for key, option in _BY_KEY.items() if option.kind in ("secret", "private key"))
    return tuple(sorted({*own, *_JAVA_SECRETS}))


def _shown_value(key: str, value: object) -> str:
    option, text = _BY_KEY.get(key), str(_plain(value))
    kind = "" if option is None else option.kind
    if option is None and (key in _JAVA_SECRETS or key not in {*JAVA_KEYS, *NOT_NEEDED}):
        return MASK
    if kind in ("secret", "private key") or "PRIVATE KEY" in text:
        return MASK
    if callable(value):
        return "a callable"
    if kind in ("servers", "url") and "@" in text:  # it has a password
        return MASK
    if kind == "certificates":
        return f"PEM of {len(text)} characters"
    return text.lower() if isinstance(value, bool) else text


class _Found(NamedTuple):
    """The findings of the check of the options so far.

    `values` are the checked values, and `names` the names under which the user gave them, both by
    option. `wrong` are the options whose values are not allowed.
    """

    values: dict[str, Any]
    names: dict[str, str]
    wrong: set[str]
    problems: list[str]

    def add(self, option: Option, name: str, value: object) -> None:
        """Checks a value of an option, and keeps it or the problem with it."""
        try:
            checked = KINDS[option.kind](option, value)
        except ValueError as error:
            self.names.setdefault(option.key, name)
            self.wrong.add(option.key)
            self.problems.append(f"{name}{error}")
            return
        if option.area and checked in ("", ()):
            return  # as in librdkafka, empty text is "not set"
        first = self.names.setdefault(option.key, name)
        if self.values.setdefault(option.key, checked) != checked:
            self.problems.append(f"{first} and {name} are one option, and have different values")


def _scope(conf: Mapping[Any, object]) -> tuple[str | None, str | None]:
    """Returns the protocol and the mechanism, None where it is missing or wrong.

    A configuration without security has the protocol plaintext.
    """
    protocol = conf.get(_PROTOCOL)
    mechanism = conf.get(_MECHANISM, conf.get("sasl.mechanisms"))
    found = mechanism.strip().upper() if isinstance(mechanism, str) else ""
    known = found if found in MECHANISMS else None
    if _PROTOCOL not in conf:
        return ("plaintext" if not any(map(_area, conf)) else None), known
    text = protocol.strip().lower() if isinstance(protocol, str) else ""
    return (text if text in _BY_KEY[_PROTOCOL].choices else None), known


def _area(key: object) -> str:
    """Returns the part of the security that a key belongs to; "" if it belongs to none."""
    if not isinstance(key, str):
        return ""
    for table in (_BY_KEY, REFUSED, JAVA_KEYS):
        if key in table:
            return table[key].area
    if key in NOT_NEEDED or not key.startswith(_SECURITY_PREFIXES):
        return ""
    return "tls" if key.startswith("ssl.") else "sasl"


def _protocol_problems(effective: Mapping[Any, object], protocol: str | None) -> list[str]:
    """Returns a problem if there are options of security without a protocol."""
    if protocol is not None or _PROTOCOL in effective:
        return []
    keys = sorted(key for key in effective if _area(key))
    has_tls, has_sasl = (
        any((_area(key) == "tls") is is_tls for key in keys) for is_tls in (True, False)
    )
    needed = "ssl or sasl_ssl" if not has_sasl else "sasl_ssl"
    needed = "sasl_ssl or sasl_plaintext" if not has_tls else needed
    first = ", ".join(keys[:3]) + (", ..." if len(keys) > 3 else "")
    verb = "needs" if len(keys) == 1 else "need"
    return [f"{_PROTOCOL} is missing: {first} {verb} {needed}"]


def _server_problems(
    values: Mapping[str, Any], names: Mapping[str, str], protocol: str | None, servers: bool
) -> list[str]:
    """Returns what is wrong with the bootstrap servers."""
    key = "bootstrap.servers"
    if key in values:
        try:
            parse_bootstrap(values[key], protocol)
        except ValueError as error:
            return [f"{names[key]}: {error}"]
    elif servers and key not in names:
        return [f"{key} is missing: expected host:port[,host:port...]"]
    return []


def _plain(value: object) -> object:
    """Returns text and integers as plain str and int: str() of an Enum's value is its name."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return value


def _check_other(key: object, ignored: list[str], problems: list[str]) -> None:
    """Adds a key that is not an option of the client to one of the lists."""
    if not isinstance(key, str):
        problems.append(f"an option's name is str, not {type(key).__name__}")
    elif _is_not_needed(key):
        ignored.append(key)
    elif key in REFUSED:
        problems.append(f"{key}: {REFUSED[key].reason}")
    else:
        nearest = _nearest(key) if len(problems) < _MOST_PROBLEMS else ""
        problems.append(f"unknown option {shown(key)}{nearest}")


def _is_not_needed(key: str) -> bool:
    return key in NOT_NEEDED or key.removeprefix("topic.") in NOT_NEEDED


def is_option(key: str) -> bool:
    """Returns whether a client knows an option of that name, also one that it refuses."""
    return any(key in table for table in (_BY_KEY, REFUSED, JAVA_KEYS)) or _is_not_needed(key)


def _nearest(key: str) -> str:
    from difflib import get_close_matches

    known = [*_BY_KEY, *NOT_NEEDED, *REFUSED, *JAVA_KEYS]
    found = get_close_matches(key.strip().lower().replace("_", "."), known, 1, 0.7)
    return f", did you mean {found[0]}?" if found else ""


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """Returns an error for each pair of waits that are both set, the first longer."""
    return [
        f"{first} = {values[first]} is more than {longest} = {values[longest]}"
        for first, longest in _WAITS
        if first in values and longest in values and values[first] > values[longest]
    ]


def _config(given: Mapping[str, Any]) -> Config:
    """Returns the Config; options that are set may change the defaults of others."""
    values: dict[str, Any] = {option.key: option.default for option in OPTIONS} | dict(given)
    if _FAST not in given:
        values[_FAST] = values[_RETRY]
    for first, longest in _WAITS:
        if longest not in given:
            values[longest] = max(values[first], values[longest])
        elif first not in given:
            values[first] = min(values[first], values[longest])
    if MAX_AGE not in given:
        never = values[INTERVAL] in _BY_KEY[INTERVAL].never
        values[MAX_AGE] = -1 if never else max(3 * values[INTERVAL], _SHORTEST_AGE)
    own = [each for each in OPTIONS if each.field and not each.area]
    fields = {each.field: _setting(each, values[each.key]) for each in own}
    protocol = fields["protocol"]
    tls, sasl = tls_settings(given, protocol), sasl_settings(given, protocol)
    config = Config(**fields, tls=tls, sasl=sasl)
    interval, max_age = config.refresh_interval, config.max_age
    if interval is None or max_age is None or max_age >= interval:
        return config
    shorter = max(max_age / 3, config.retry_backoff)
    _log().warning(
        "%s is below %s: the client refreshes every %.3g s instead of %.3g s, so that topics do not"
        " become stale between two refreshes",
        *(MAX_AGE, INTERVAL, shorter, interval),
    )
    return replace(config, refresh_interval=shorter)


def _setting(option: Option, value: Any) -> Any:
    """Returns the value of the Config's field."""
    if option.kind == "choice":
        return option.choices[value]
    if option.unit != "ms":
        return value
    return None if value in option.never else value / 1000
