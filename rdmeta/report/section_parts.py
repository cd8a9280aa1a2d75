"""The parts of a section of the report: tables, strips of bars, and what the model has of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rdmeta.report.facts import Facts, Row
from rdmeta.report.gold_files import HOUR_US
from rdmeta.report.wording import rounded_minutes, time_text

MOST_ROWS = 40
MOST_BINS = 96
BIN_HOURS = (1, 6, 24, 168)
_LEVELS = 8
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


def table(
    facts: Facts,
    title: str,
    shown: Sequence[ShownColumn],
    rows: Sequence[Row],
    *,
    every: int | None = None,
    before: Sequence[Row] | None = None,
) -> Part:
    """Returns a table of at most 40 rows; `every` counts the rows that there are.

    `before` has rows of an earlier span: each is beside the row with the same texts.
    """
    made = [_picked(facts, shown, row) for row in rows]
    if before is not None:
        keys = [each.name for each in shown if each.kind == "text"]
        numbers = [each.name for each in shown if each.kind != "text"]
        nothing = dict.fromkeys(numbers)
        there = {tuple(row[key] for key in keys): row for row in made}
        for old in (_picked(facts, shown, row) for row in before):
            texts = {key: old[key] for key in keys}
            row = there.get(tuple(texts.values()))
            if row is None:
                made.append(row := texts | nothing)
            row["before"] = {name: old[name] for name in numbers}
        for row in made:
            row.setdefault("before", nothing)
    kept = made[:MOST_ROWS]
    more = (len(made) if every is None else every) - len(kept)
    found = [each._asdict() for each in shown]
    return {"kind": "table", "title": title, "columns": found, "rows": kept, "more": more}


def _picked(facts: Facts, shown: Sequence[ShownColumn], row: Row) -> Row:
    """Returns the columns of a query's row as the JSON has them.

    Queries give minutes as microseconds, the time `x` as the microseconds `x_us`, and a cluster by
    its id.
    """
    found: Row = {}
    for name, _, kind in shown:
        value = row.get(name)
        if name == "cluster":
            value = facts.names.get(row["cluster_id"], "all clusters")
        elif kind == "minutes":
            value = rounded_minutes(value)
        elif kind == "time":
            value = time_text(row[f"{name}_us"])
        elif isinstance(value, float):
            value = round(value, 4 if kind == "share" else 3)
        found[name] = value
    return found


def strip(
    facts: Facts,
    title: str,
    unit: str,
    rows: Sequence[Row],
    *,
    hours: int | None = None,
    full: float | None = None,
    every: int | None = None,
    before: Sequence[Row] | None = None,
) -> Part:
    """Returns a strip of bars for each row, of at most 40.

    A row has `cells`, a number for each `hours`, None if it was not seen. `full` is the number of a
    full bar, by default the largest one. `heights` has a digit for each cell: 0 is empty, 8 full.
    `before` has rows of an earlier span, by their labels.
    """
    hours = hours or facts.hours
    kept = [dict(row) for row in rows[:MOST_ROWS]]
    if before is not None:
        earlier = {tuple(row["label"]): row for row in before}
        nothing = {"cells": [None] * facts.bins(hours), "total": None, "letters": ""}
        for row in kept:
            same = earlier.get(tuple(row["label"]), nothing)
            row["before"] = {name: same[name] for name in nothing.keys() & row.keys()}
    bars = [*kept, *(row["before"] for row in kept if "before" in row)]
    if full is None:
        full = max((cell for row in bars for cell in row["cells"] if cell is not None), default=0)
    for row in bars:
        row["heights"] = "".join(_height(cell, full) for cell in row["cells"])
    step = hours * HOUR_US
    return {
        "kind": "strip",
        "title": title,
        "unit": unit,
        "full": full,
        "rows": kept,
        "more": (len(rows) if every is None else every) - len(kept),
        "hours": hours,
        "begins": [time_text(each) for each in range(facts.span.begin, facts.span.end, step)],
    }


def cells_of(us: Mapping[int, int | None], seen: Mapping[int, int], bins: int) -> list[Any]:
    """Returns minutes for each bin; None where nothing was seen, or it is not known."""
    return [rounded_minutes(us.get(each, 0)) if seen.get(each) else None for each in range(bins)]


def _height(cell: float | None, most: float) -> str:
    if cell is None:
        return "-"
    return str(min(_LEVELS, -int(-cell * _LEVELS // most))) if cell > 0 and most > 0 else "0"
