"""The client's configuration: librdkafka's options, checked, as one value.

    config = rdmeta.config.parse({"bootstrap.servers": "kafka-1:9092,kafka-2:9092"})
    config = rdmeta.config.parse(rdmeta.config.load("client.properties"))

docs/options.md lists the options.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from rdmeta._options import LONGEST_TEXT, NOT_NEEDED, OPTIONS, SECURITY, Option, allowed
from rdmeta._properties import read_properties
from rdmeta.address import parse_bootstrap
from rdmeta.errors import ConfigError

__all__ = ["Config", "load", "parse"]

_log = logging.getLogger(__name__)

_BY_KEY = {key: option for option in OPTIONS for key in (option.key, option.alias) if key}
_SECURITY_PREFIXES = ("sasl.", "ssl.", "https.")
_FLAGS: dict[str | int, bool] = {
    **dict.fromkeys(("true", "t", "1", 1), True),
    **dict.fromkeys(("false", "f", "0", 0), False),
}
# Text such as "010" is refused: it is 8 for librdkafka, and 10 for Java.
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,19})")
_PATTERN = re.compile(r"(?:[^,]|,,)+")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_LONGEST_SHOWN = 60
_MOST_PROBLEMS = 100
_MAY_BE_NONE = ("servers", "text", "patterns")  # None is "not set", as in confluent-kafka

_INTERVAL = "topic.metadata.refresh.interval.ms"
_FAST = "topic.metadata.refresh.fast.interval.ms"
_AGE = "metadata.max.age.ms"
_RETRY, _LONGEST_RETRY = "retry.backoff.ms", "retry.backoff.max.ms"
# The first wait of each pair cannot be longer than the second.
_WAITS = (
    (_RETRY, _LONGEST_RETRY),
    (_FAST, _LONGEST_RETRY),
    ("reconnect.backoff.ms", "reconnect.backoff.max.ms"),
)


@dataclass(frozen=True)
class Config:
    """Checked settings. Times are in seconds; None means never or without limit.

    `blacklist` has patterns to search for in a topic's name. `family` is any, v4 or v6.
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
    Options of librdkafka that metadata does not need are accepted, with one log line.
    With `servers=False` bootstrap.servers may be missing.

    Raises ConfigError, which lists every unknown option, wrong value and contradiction, with the
    allowed values or the nearest known option. It shows no secret. Raises TypeError if `conf` is
    no mapping.

        rdmeta.config.parse({"bootstrap.servers": "kafka-1:9092", "retry.backoff.ms": 50})
    """
    if not isinstance(conf, Mapping):
        raise TypeError(f"a configuration is a mapping, not {type(conf).__name__}")
    problems: list[str] = []
    values: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    ignored: list[str] = []
    secured: list[str] = []
    for key, given in conf.items():
        option = _BY_KEY.get(key) if isinstance(key, str) else None
        value = _plain(given)
        if option is None:
            _check_other(key, ignored, secured, problems)
        elif value is not None or option.kind not in _MAY_BE_NONE:
            first = spelled.setdefault(option.key, key)
            try:
                checked = _KINDS[option.kind](option, value)
            except ValueError as error:
                problems.append(f"{key}{error}")
                continue
            if values.setdefault(option.key, checked) != checked:
                problems.append(f"{first} and {key} are one option, and have different values")
    if "security.protocol" in values:  # it is plaintext, so the others have no effect
        ignored += secured
    else:
        problems += [
            f"{key} is not supported: rdmeta does not speak TLS or SASL yet" for key in secured
        ]
    if servers and "bootstrap.servers" not in spelled:
        problems.append("bootstrap.servers is missing: expected host:port[,host:port...]")
    problems += _contradictions(values)
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        rest = [f"and {more} more problems"] if more > 0 else []
        raise ConfigError("; ".join(problems[:_MOST_PROBLEMS] + rest))
    if ignored:
        _log.info("options that metadata does not need are ignored: %s", ", ".join(sorted(ignored)))
    return _config(values)


def _plain(value: object) -> object:
    """Returns text and integers as plain str and int: str() of an Enum's value is its name."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return value


def _check_other(key: object, ignored: list[str], secured: list[str], problems: list[str]) -> None:
    """Adds a key that is not an option of the client to one of the lists."""
    if not isinstance(key, str):
        problems.append(f"an option's name is str, not {type(key).__name__}")
    elif key in NOT_NEEDED or key.removeprefix("topic.") in NOT_NEEDED:
        ignored.append(key)
    elif key in SECURITY or key.startswith(_SECURITY_PREFIXES):
        secured.append(key)
    else:
        nearest = _nearest(key) if len(problems) < _MOST_PROBLEMS else ""
        problems.append(f"unknown option {_shown(key)}{nearest}")


def _nearest(key: str) -> str:
    from difflib import get_close_matches

    known = [*_BY_KEY, *NOT_NEEDED, *SECURITY]
    found = get_close_matches(key.strip().lower().replace("_", "."), known, 1, 0.7)
    return f", did you mean {found[0]}?" if found else ""


def _shown(value: object) -> str:
    """Returns a value as an error may show it: short, and only of simple types."""
    if not isinstance(value, (str, int, float)) and value is not None:
        return f"of type {type(value).__name__}"
    if isinstance(value, int) and value.bit_length() > 4 * _LONGEST_SHOWN:
        return f"an integer of {value.bit_length()} bits"  # repr() may refuse it
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _wrong(option: Option, value: object) -> ValueError:
    return ValueError(f" = {_shown(value)}: expected {allowed(option)}{option.hint}")


def _servers(option: Option, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(option, value)
    try:
        parse_bootstrap(value)
    except ValueError as error:
        raise ValueError(f": {error}") from None
    return value


def _text(option: Option, value: object) -> str:
    if not isinstance(value, (str, int)):
        raise _wrong(option, value)
    try:
        text = str(value)
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f" = {_shown(value)}: not UTF-8") from None
    except ValueError:  # an integer with more digits than str() writes
        raise _wrong(option, value) from None
    if size > LONGEST_TEXT:
        raise _wrong(option, value)
    return text


def _integer(option: Option, value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    else:
        raise _wrong(option, value)
    if number not in option.never and not option.lowest <= number <= option.highest:
        raise _wrong(option, value)
    return number


def _flag(option: Option, value: object) -> bool:
    text = value.strip().lower() if isinstance(value, str) else value
    found = _FLAGS.get(text) if isinstance(text, (str, int)) else None
    if found is None:
        raise _wrong(option, value)
    return found


def _choice(option: Option, value: object) -> str:
    found = value.strip().lower() if isinstance(value, str) else ""
    if found not in option.choices:
        raise _wrong(option, value)
    return found


def _patterns(option: Option, value: object) -> tuple[re.Pattern[str], ...]:
    if not isinstance(value, str):
        raise _wrong(option, value)
    return tuple(_pattern(part.replace(",,", ",")) for part in _PATTERN.findall(value))


def _pattern(text: str) -> re.Pattern[str]:
    if posix := _POSIX_CLASS.search(text):  # Python gives it another meaning, without an error
        raise ValueError(f": {_shown(text)} has {posix[0]}, which Python's expressions lack")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f": {_shown(text)} is no regular expression: {error}") from None


_KINDS: dict[str, Callable[[Option, object], object]] = {
    "servers": _servers,
    "text": _text,
    "integer": _integer,
    "flag": _flag,
    "choice": _choice,
    "patterns": _patterns,
}


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
    if _AGE not in given:
        never = values[_INTERVAL] in _BY_KEY[_INTERVAL].never
        values[_AGE] = -1 if never else 3 * values[_INTERVAL]
    fields = {each.field: _setting(each, values[each.key]) for each in OPTIONS if each.field}
    config = Config(**fields)
    interval, max_age = config.refresh_interval, config.max_age
    if interval is None or max_age is None or max_age >= interval:
        return config
    shorter = max(max_age / 3, config.retry_backoff)
    _log.warning(
        "%s is below %s: the client refreshes every %.3g s instead of %.3g s, so that topics do not"
        " become stale between two refreshes",
        *(_AGE, _INTERVAL, shorter, interval),
    )
    return replace(config, refresh_interval=shorter)


def _setting(option: Option, value: Any) -> Any:
    """Returns the value of the Config's field."""
    if option.kind == "choice":
        return option.choices[value]
    if option.unit != "ms":
        return value
    return None if value in option.never else value / 1000
