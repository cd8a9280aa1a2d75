"""The parts of a section of the report: tables, strips of bars, and what the model has of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rdmeta.report.facts import Facts
from rdmeta.report.wording import rounded_minutes, time_text

MOST_ROWS = 40
MOST_BINS = 96
BIN_HOURS = (1, 6, 24, 168)
_LEVELS = 8
Row = dict[str, Any]
Part = dict[str, Any]


class ShownColumn(NamedTuple):
    """A column.

    `kind` is text, rank, count, minutes, seconds, share, number, time, flag or list.
    """

    name: str
    title: str
    kind: str = "count"


def columns(text: str) -> tuple[ShownColumn, ...]:
    """Returns columns by a text: "leaderless:minutes:without a leader; broker:count:broker"."""
    fields = (each.split(":") for each in text.split("; "))
    return tuple(ShownColumn(name, title, kind) for name, kind, title in fields)


def picked(facts: Facts, shown: Sequence[ShownColumn], row: Row, **values: Any) -> Row:
    """Returns the columns of a query's row as the JSON has them; `values` win over the row's.

    Queries give minutes as microseconds, the time `x` as the microseconds `x_us`, and a cluster by
    its id.
    """
    found: Row = {}
    for name, _, kind in shown:
        value = row.get(name)
        if name == "cluster":
            value = facts.names.get(row["cluster_id"])
        elif kind == "minutes":
            value = rounded_minutes(value)
        elif kind == "time":
            value = time_text(row[f"{name}_us"])
        elif isinstance(value, float):
            value = round(value, 4 if kind == "share" else 3)
        found[name] = values.get(name, value)
    return found


def table(
    title: str,
    shown: Sequence[ShownColumn],
    rows: Sequence[Row],
    *,
    every: int | None = None,
    before: Mapping[Any, Row] | None = None,
) -> Part:
    """Returns a table of at most 40 rows; `every` counts the rows that there are.

    `before` has rows of an earlier span by the row's key, all cells that are no numbers.
    """
    kept = [dict(row) for row in rows[:MOST_ROWS]]
    keys = [each.name for each in shown if each.kind == "text"]
    for row in kept if before is not None else ():
        earlier = (before or {}).get(tuple(row[key] for key in keys), {})
        numbers = [each.name for each in shown if each.name not in keys and each.name in earlier]
        row["before"] = {name: earlier[name] for name in numbers}
    more = (len(rows) if every is None else every) - len(kept)
    found = [each._asdict() for each in shown]
    return {"kind": "table", "title": title, "columns": found, "rows": kept, "more": more}


def by_texts(shown: Sequence[ShownColumn], rows: Iterable[Row]) -> dict[Any, Row]:
    """Returns rows by the cells that are texts, as `table` takes those of an earlier span."""
    keys = [each.name for each in shown if each.kind == "text"]
    return {tuple(row[key] for key in keys): row for row in rows}


def strip(
    title: str,
    unit: str,
    rows: Sequence[Row],
    *,
    full: float | None = None,
    every: int | None = None,
    before: Sequence[Row] | None = None,
) -> Part:
    """Returns a strip of bars for each row, of at most 40.

    A row has `cells`, a number for each bin, None if it was not seen. `full` is the number of a
    full bar, by default the largest one. `heights` has a digit for each cell: 0 is empty, 8 full.
    `before` has rows of an earlier span, by their labels.
    """
    kept = [dict(row) for row in rows[:MOST_ROWS]]
    for row in kept if before is not None else ():
        same = next((each for each in before or () if each["label"] == row["label"]), None)
        nothing = {"cells": [None] * len(row["cells"]), "total": None, "letters": ""}
        row["before"] = {name: (same or nothing)[name] for name in row if name in nothing}
    shown = [*kept, *(row["before"] for row in kept if "before" in row)]
    numbers = [cell for row in shown for cell in row["cells"] if cell is not None]
    most = full if full is not None else max(numbers, default=0)
    for row in shown:
        row["heights"] = "".join(_height(cell, most) for cell in row["cells"])
    more = (len(rows) if every is None else every) - len(kept)
    return {"kind": "strip", "title": title, "unit": unit, "full": most, "rows": kept, "more": more}


def cells_of(us: Mapping[int, int | None], seen: Mapping[int, int], bins: int) -> list[Any]:
    """Returns minutes for each bin; None where nothing was seen, or it is not known."""
    return [rounded_minutes(us.get(each, 0)) if seen.get(each) else None for each in range(bins)]


def _height(cell: float | None, most: float) -> str:
    if cell is None:
        return "-"
    return str(min(_LEVELS, -int(-cell * _LEVELS // most))) if cell > 0 and most > 0 else "0"
