"""`rdmeta log diff`: what differs between two points of a metadata log, or between two logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rdmeta.cli.log_opening import LogRequest
from rdmeta.cli.log_options import LogPoint, point
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.output import Row, Table, columns, json_text
from rdmeta.kraft import Difference, KraftState
from rdmeta.kraft.log_state import fields_of

_COLUMNS = columns("what name field before after")


def answer(request: LogRequest) -> int:
    """Prints the differences; returns 1 if there is one."""
    before, after = _states(request)
    found = before.diff(after)
    sides = {"before": _summary(before), "after": _summary(after)}
    rows = Table(_COLUMNS, (row for each in found for row in _rows(each)))
    request.answer({**sides, "differences": list(map(_object, found))}, rows)
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


def _point(word: str) -> LogPoint:
    try:
        return point(word)
    except ValueError as error:
        raise BadInputError(f"log diff: {error}") from None


def _summary(state: KraftState) -> dict[str, Any]:
    names = ("cluster_id", "offset", "time", "epoch", "leader", "proven", "partial")
    return {name: getattr(state, name) for name in names}


def _rows(found: Difference) -> Iterator[Row]:
    """Yields a row for each field that differs; one for what is on one side alone."""
    name = "/".join(map(str, found.key))
    before, after = (None if row is None else fields_of(row) for row in found[2:4])
    if before is None or after is None:
        sides = (each if each is None else json_text(each) for each in (before, after))
        yield (found.kind, name, None, *sides)
        return
    for field in found.fields:
        yield (found.kind, name, field, _cell(before.get(field)), _cell(after.get(field)))


def _cell(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


def _object(found: Difference) -> dict[str, Any]:
    before, after = (None if row is None else fields_of(row) for row in found[2:4])
    sides = {"before": before, "after": after}
    return {"kind": found.kind, "key": found.key, **sides, "fields": found.fields}
