"""The options of the data source, checked, as one value.

An error names the option, its value and what is accepted. It shows no value of an option that may
be a credential: `rdmeta.config` checks those of a client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from rdmeta import config
from rdmeta._escaping import escaped
from rdmeta._moments import microseconds, moment, parse_moment
from rdmeta.config.option_values import shown
from rdmeta.errors import ConfigError
from rdmeta.history.schema import MOST_NUMBER
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.storage import FLAGS, PREFIX, Storage, split
from rdmeta.spark.source.schemas import CHANGES, HISTORY_TABLES, RECORDS, STATE_TABLES

Source: TypeAlias = Literal["bootstrap.servers", "image", "path"]

_SOURCES: tuple[Source, ...] = ("path", "bootstrap.servers", "image")
_TABLES: dict[Source, tuple[str, ...]] = {
    "path": (*HISTORY_TABLES, RECORDS, *STATE_TABLES),
    "bootstrap.servers": STATE_TABLES,
    "image": tuple(table for table in STATE_TABLES if table != "configs"),
}
# The options that a plan shows beside its table and its source.
_SHOWN = ("cluster", "topic", "at", "since", "until")
# The path of a file with options of the client.
_FILE = "client.properties"
_NOT_CLIENT = ("path", "image", "table", _FILE)
# A time after this one counts as this one: a day more must still be a time of Python.
LAST_US = microseconds(datetime(9999, 12, 30, tzinfo=timezone.utc))


@dataclass(frozen=True)
class Options:
    """What a read asks for; times are microseconds since 1970 in UTC.

    `where` is the path of the image or of the folder, and "" for a cluster. `client` has the
    client's options, credentials among them, so no repr shows it; `storage` has those of a store.
    `clusters` are ids or names. `since_us` is the first moment and `until_us` the first one after
    the time; None is no bound. `at` is an offset or a time of metadata logs, None for the end.
    """

    source: Source
    where: str
    table: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    clusters: frozenset[str] | None = None
    topics: frozenset[str] | None = None
    since_us: int | None = None
    until_us: int | None = None
    pushdown: bool = False
    max_files_per_trigger: int | None = None
    max_rows_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    starting_offsets: str = "earliest"
    storage: Storage = field(default_factory=Storage, repr=False)
    at: int | datetime | None = None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """Returns the checked options; names may have any case.

            Options.parse({"path": "history", "table": "changes", "since": "2026-11-22"})

        Raises ConfigError.
        """
        found = {str(name).lower(): value for name, value in given.items()}
        source = _source(found)
        values: dict[str, Any] = {}
        client: dict[str, str] = {}
        stored: dict[str, str] = {}
        for name, value in found.items():
            if name.startswith(PREFIX):
                stored[name.removeprefix(PREFIX)] = value
            elif name in _OWN:
                attribute, check = _OWN[name]
                values[attribute] = check(name, value)
            elif name not in _NOT_CLIENT:
                client[name] = value
        if _FILE in found:
            client = _with_file(source, found[_FILE], client)
        where = "" if source == "bootstrap.servers" else _without_credentials(source, found[source])
        table = _table(source, where, found.get("table"))
        values["storage"] = _storage(source, stored)
        options = cls(source, where, table, client, **values)
        _check_client(options)
        _check_choice(options, found)
        return options


def label(given: Mapping[str, str]) -> str:
    """Returns what a plan may show of a read: its table, its source and its choices.

        label({"path": "history", "topic": "orders"})  # rdmeta: changes of history, topic orders

    Nothing of another option is in it, nor the query of a URI. Raises ConfigError for a wrong
    source or table, and for a URI with credentials.
    """
    found = {str(name).lower(): value for name, value in given.items()}
    source = _source(found)
    where = _without_credentials(source, found[source])
    table = _table(source, where, found.get("table"))
    shown_where = where.partition("?")[0] if "://" in where else where
    choices = {name: str(found[name]) for name in _SHOWN if name in found}
    texts = [f", {name} {text[:60]}{'...' * (len(text) > 60)}" for name, text in choices.items()]
    return escaped(f"rdmeta: {table} of {shown_where}{''.join(texts)}")


def _source(found: Mapping[str, str]) -> Source:
    given = [each for each in _SOURCES if each in found]
    if len(given) != 1:
        problem = f"options {' and '.join(given)} are given" if given else "no source is given"
        raise ConfigError(f"{problem}: expected one of {', '.join(_SOURCES)}")
    return given[0]


def _with_file(source: Source, path: str, client: Mapping[str, str]) -> dict[str, str]:
    """Returns the client's options with those of a file, over which the others win."""
    if source != "bootstrap.servers":
        raise ConfigError(f"option {_FILE} = {shown(path)}: expected bootstrap.servers beside it")
    return {**config.load(path), **client}


def _without_credentials(name: str, value: object) -> str:
    """Returns a path, a URI or servers as given; raises ConfigError for what has credentials."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ConfigError(f"option {name} = {shown(value)}: expected a path or a URI")
    if split(value)[1]:
        raise ConfigError(
            f"option {name}: its URI has credentials, which plans would show; give them by options"
            " storage.*, or by the environment, such as AWS_ACCESS_KEY_ID"
        )
    return value


def _storage(source: Source, stored: Mapping[str, str]) -> Storage:
    if stored and source != "path":
        raise ConfigError(f"option {PREFIX}{next(iter(stored))}: expected a path beside it")
    return Storage.parse(stored)


def _table(source: Source, where: str, value: str | None) -> str:
    tables = _TABLES[source]
    if value is None and source == "path":
        return CHANGES
    if value in tables:
        return str(value)
    if value in MEASURES:
        folder = where or "OUT"
        problem = f"it is a measure: use spark.read.parquet('{folder}/gold/v1/{value}')"
    elif value == "configs" and source == "image":
        problem = "an image has no configurations; read them from bootstrap.servers"
    elif value in _TABLES["path"]:
        others = [each for each in _SOURCES if value in _TABLES[each]]
        problem = f"{source} has no such table; {' and '.join(others)} has"
    else:
        problem = "there is no such table"
    given = "option table is missing" if value is None else f"option table = {shown(value)}"
    reason = "" if value is None else f"{problem}; "
    raise ConfigError(f"{given}: {reason}{source} has {', '.join(tables)}")


def _check_client(options: Options) -> None:
    """Raises ConfigError for an option of nobody, and for what the client refuses."""
    if options.source == "bootstrap.servers":
        config.parse(options.client)
        return
    for name in options.client:
        if config.is_option(name):
            raise ConfigError(
                f"option {name}: it belongs to a client, and the source is {options.source};"
                " expected bootstrap.servers beside it"
            )
        near = get_close_matches(name, [*_OWN, *_SOURCES, "table"], 1, 0.7)
        advice = f", did you mean {near[0]}?" if near else ""
        raise ConfigError(f"unknown option {shown(name)}{advice} {_ACCEPTED}")


def _check_choice(options: Options, found: Mapping[str, str]) -> None:
    """Raises ConfigError for a choice that the table does not have."""
    if options.source != "path":
        for name in ("cluster", "at", "since", "until"):
            if name in found:
                raise ConfigError(
                    f"option {name} = {shown(found[name])}: {options.source} has one cluster as it"
                    " is now; only a path takes this option"
                )
    is_state = options.table in STATE_TABLES
    if options.at is not None and not is_state:
        raise ConfigError(
            f"option at = {shown(found['at'])}: the table {options.table} is of no moment; only"
            f" {', '.join(STATE_TABLES)} of metadata logs take it"
        )
    for name in ("since", "until"):
        if is_state and name in found:
            raise ConfigError(
                f"option {name} = {shown(found[name])}: the table {options.table} is of one moment;"
                " give that as at"
            )
    if options.topics is not None and options.table in _WITHOUT_TOPIC:
        raise ConfigError(
            f"option topic = {shown(found['topic'])}: the table {options.table} has no topics"
        )
    begin, end = options.since_us, options.until_us
    if begin is not None and end is not None and begin >= end:
        raise ConfigError(
            f"option until = {shown(found['until'])}: expected a time after"
            f" since = {shown(found['since'])}"
        )


def _names(name: str, value: object) -> frozenset[str]:
    """Returns the names in a text that separates them by commas."""
    if isinstance(value, str):
        names = [each.strip() for each in value.split(",")]
        if all(names):
            return frozenset(names)
    raise ConfigError(f"option {name} = {shown(value)}: expected NAME or NAME,NAME")


def _moment(name: str, value: object) -> int:
    """Returns a day or a time as microseconds; without an offset it is one of UTC."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        found = microseconds(parse_moment(text))
        if found < 0:
            raise ValueError(text)
        return min(found, LAST_US)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"option {name} = {shown(value)}: expected a day or a time, such as 2026-11-22 or"
            " 2026-11-22T03:05:00Z, from 1970 on"
        ) from None


def _point(name: str, value: object) -> int | datetime:
    """Returns an offset, or a day or a time."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        if re.fullmatch(r"[0-9]{1,19}", text) and int(text) <= MOST_NUMBER:
            return int(text)
        return moment(_moment(name, value))
    except ConfigError:
        raise ConfigError(
            f"option {name} = {shown(value)}: expected an offset, or a day or a time, such as"
            " 2026-11-22T03:05:00Z"
        ) from None


def _flag(name: str, value: object) -> bool:
    found = FLAGS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(f"option {name} = {shown(value)}: expected true or false")
    return found


def _count(name: str, value: object) -> int:
    text = value.strip() if isinstance(value, str) else ""
    if re.fullmatch(r"[1-9][0-9]{0,18}", text) and int(text) <= MOST_NUMBER:
        return int(text)
    raise ConfigError(f"option {name} = {shown(value)}: expected a number from 1 to {MOST_NUMBER}")


def _offsets(name: str, value: object) -> str:
    text = value.strip().lower() if isinstance(value, str) else ""
    if text not in ("earliest", "latest"):
        raise ConfigError(f"option {name} = {shown(value)}: expected earliest or latest")
    return text


_Check: TypeAlias = "Callable[[str, object], Any]"

_WITHOUT_TOPIC = ("brokers", "broker_interval", "observation", "config_interval")
# By the name in small letters: the attribute of Options, and the check.
_OWN: dict[str, tuple[str, _Check]] = {
    "cluster": ("clusters", _names),
    "topic": ("topics", _names),
    "at": ("at", _point),
    "since": ("since_us", _moment),
    "until": ("until_us", _moment),
    "pushdown": ("pushdown", _flag),
    "maxfilespertrigger": ("max_files_per_trigger", _count),
    "maxrowspertrigger": ("max_rows_per_trigger", _count),
    "failondataloss": ("fail_on_data_loss", _flag),
    "startingoffsets": ("starting_offsets", _offsets),
}
_ACCEPTED = (
    "(expected path, image, bootstrap.servers, table, cluster, topic, at, since, until,"
    " pushdown, maxFilesPerTrigger, maxRowsPerTrigger, failOnDataLoss, startingOffsets, or, beside"
    " bootstrap.servers, client.properties or an option of the client)"
)
