"""`rdmeta log diff`: what differs between two points of a metadata log, or between two logs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rdmeta.cli.log_opening import LogRequest
from rdmeta.cli.log_options import Point, point
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.output import Row, Table, TableColumn, json_text
from rdmeta.kraft import Difference, KraftState
from rdmeta.kraft.checking import registered

_COLUMNS = (
    TableColumn("what"),
    TableColumn("name"),
    TableColumn("field"),
    TableColumn("before"),
    TableColumn("after"),
)


def answer(request: LogRequest) -> int:
    """Prints the differences; returns 1 if there is one."""
    before, after = _states(request)
    found = _pairs(before.diff(after))
    if request.output.form == "json":
        sides = {"before": _summary(before), "after": _summary(after)}
        rows = [_object(each) for each in found]
        request.output.json([json_text({**request.head(), **sides, "differences": rows})])
    else:
        request.output.tables(Table(_COLUMNS, (row for each in found for row in _rows(each))))
    return UNMET if found else FINE


def _states(request: LogRequest) -> tuple[KraftState, KraftState]:
    """Returns the states of two logs, or of two points of one."""
    words = request.arguments
    if len(words) == 2 and all(Path(word).exists() for word in words):
        first, second = (request.state(request.log([word]), request.at) for word in words)
        return first, second
    if len(words) < 3 or request.at is not None:
        raise BadInputError("log diff takes PATH A B, two points of a log, or two PATHs")
    log = request.log(words[:-2])
    first, second = (request.state(log, _point(word)) for word in words[-2:])
    return first, second


def _point(word: str) -> Point:
    try:
        return point(word)
    except ValueError as error:
        raise BadInputError(f"log diff: {error}") from None


def _summary(state: KraftState) -> dict[str, Any]:
    names = ("cluster_id", "offset", "time", "epoch", "leader", "proven", "partial")
    return {name: getattr(state, name) for name in names}


def _fields(row: Any) -> dict[str, Any]:
    """Returns the fields of a row or a fact, without the record that made it."""
    if row is None:
        return {}
    found = dict(row.data) if hasattr(row, "data") else row._asdict()
    found.pop("mark", None)
    if "registration" in found:
        found |= registered(found.pop("registration"))
    return found


class _Pair(NamedTuple):
    """A difference with the fields of both sides; none on a side where it is absent."""

    kind: str
    key: tuple[Any, ...]
    before: dict[str, Any]
    after: dict[str, Any]

    def fields(self) -> list[str]:
        """Returns the fields that differ."""
        both = dict.fromkeys((*self.before, *self.after))
        if -1 in (self.before.get("brokerId"), self.after.get("brokerId")):
            # A snapshot does not say for whom the last producer ids were taken.
            both = dict.fromkeys(["nextProducerId"])
        return [name for name in both if self.before.get(name) != self.after.get(name)]


def _pairs(found: Iterable[Difference]) -> list[_Pair]:
    """Returns the differences without those that a snapshot makes by its form."""
    pairs = [_Pair(each.kind, each.key, *map(_fields, each[2:])) for each in found]
    return [pair for pair in pairs if pair.fields()]


def _rows(pair: _Pair) -> list[Row]:
    """Returns a row for each field that differs; one for what is on one side alone."""
    name = "/".join(map(str, pair.key))
    if not pair.before or not pair.after:
        sides = (json_text(each) if each else None for each in (pair.before, pair.after))
        return [(pair.kind, name, None, *sides)]
    return [
        (pair.kind, name, field, _cell(pair.before.get(field)), _cell(pair.after.get(field)))
        for field in pair.fields()
    ]


def _cell(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


def _object(pair: _Pair) -> dict[str, Any]:
    before, after = pair.before or None, pair.after or None
    return {"kind": pair.kind, "key": pair.key, "before": before, "after": after}
