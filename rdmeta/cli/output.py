"""The forms of a table: for a terminal, plain lines, CSV, Parquet; and JSON in pieces.

Rows are written as they come, so a table may be larger than memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from itertools import islice
from typing import Any, NamedTuple, TextIO

from rdmeta.cli.messages import escaped

__all__ = ["Column", "Output", "Table", "json_text", "rfc3339"]

_CHUNK = 1000
_ROW_GROUP = 100_000

Row = Sequence[Any]


class Column(NamedTuple):
    """A column. `kind` is text, integer, integers, flag or time (an aware datetime)."""

    name: str
    kind: str = "text"


class Table(NamedTuple):
    """A table whose rows are read once; a cell may be None."""

    columns: Sequence[Column]
    rows: Iterable[Row]


def rfc3339(time: datetime) -> str:
    """Returns a time as RFC 3339 in UTC, in milliseconds: 2026-01-31T12:00:00.000Z."""
    utc = time.astimezone(timezone.utc).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='milliseconds')}Z"


def json_text(value: object) -> str:
    """Returns a value as compact JSON in ASCII; tuples become lists, times RFC 3339."""
    from json import dumps

    return dumps(value, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return rfc3339(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


class Output:
    """Writes tables or JSON to stdout, in the `form` text, json, csv or parquet.

    `path` is the file for parquet. Without `color`, or with NO_COLOR in the environment, a
    terminal gets no escape sequences.
    """

    def __init__(self, form: str, path: str | None = None, color: bool = True) -> None:
        self.form = form
        self._path = path
        self._color = color and not os.environ.get("NO_COLOR")

    def tables(self, *tables: Table) -> None:
        """Writes tables; an empty line separates them. CSV and Parquet hold only the last one."""
        if self.form == "csv":
            _write_csv(tables[-1])
        elif self.form == "parquet":
            assert self._path is not None
            _write_parquet(tables[-1], self._path)
        elif sys.stdout is not None and sys.stdout.isatty():
            _draw(tables, self._color)
        else:
            for number, table in enumerate(tables):
                _write_chunks(["\n"] if number else [])
                _write_chunks(_plain_lines(table))

    def json(self, pieces: Iterable[str]) -> None:
        """Writes JSON that comes in pieces, and a newline."""
        _write_chunks(pieces)
        _write_chunks(["\n"])


def _write_chunks(pieces: Iterable[str]) -> None:
    """Writes many short texts to stdout with few calls."""
    write = _stdout().write
    remaining = iter(pieces)
    while chunk := "".join(islice(remaining, _CHUNK)):
        write(chunk)


def _stdout() -> TextIO:
    if sys.stdout is None:  # the caller closed it
        raise OSError(9, "stdout is closed")
    return sys.stdout


# ---- plain lines --------------------------------------------------------------------------------


def _plain_lines(table: Table) -> Iterator[str]:
    """Yields the header and each row as a line with tabs between the cells."""
    yield "\t".join(column.name for column in table.columns) + "\n"
    cell = _cells("-")
    for row in table.rows:
        yield "\t".join(map(cell, row)) + "\n"


def _cells(absent: str) -> Callable[[Any], str]:
    """Returns a function that gives a cell as text without control characters."""
    lists: dict[tuple[int, ...], str] = {}

    def text_of(cell: Any) -> str:
        kind = type(cell)
        if kind is str:
            return (cell if cell.isprintable() else escaped(cell)) or absent
        if kind is int:
            return str(cell)
        if cell is None:
            return absent
        if kind is tuple:
            text = lists.get(cell)
            if text is None:
                if len(lists) >= _ROW_GROUP:
                    lists.clear()
                text = lists[cell] = ",".join(map(text_of, cell)) or absent
            return text
        if kind is bool:
            return "true" if cell else "false"
        if kind is datetime:
            return rfc3339(cell)
        return escaped(str(cell))

    return text_of


# ---- a terminal ---------------------------------------------------------------------------------


def _draw(tables: Sequence[Table], color: bool) -> None:
    """Draws tables on a terminal: the cells that are too wide for it are folded."""
    from rich.console import Console

    console = Console(
        file=_stdout(),
        color_system="auto" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for number, table in enumerate(tables):
        if number:
            console.print()
        _draw_one(console, table)


def _draw_one(console: Any, table: Table) -> None:
    """Draws a table in parts of 1 000 rows, each with the header."""
    from rich.table import Table as Drawing

    cell = _cells("-")
    rows = iter(table.rows)
    part = list(islice(rows, _CHUNK))
    while True:
        drawing = Drawing(box=None, header_style="bold", pad_edge=False)
        for column in table.columns:
            drawing.add_column(
                column.name,
                justify="right" if column.kind == "integer" else "left",
                overflow="fold",
            )
        for row in part:
            drawing.add_row(*map(cell, row))
        console.print(drawing)
        part = list(islice(rows, _CHUNK))
        if not part:
            return


# ---- files --------------------------------------------------------------------------------------


def _write_csv(table: Table) -> None:
    """Writes CSV with a header; an absent cell is empty, and a list has commas in quotes."""
    import csv

    writer = csv.writer(_stdout(), lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    cell = _cells("")
    writer.writerows(map(cell, row) for row in table.rows)


def _write_parquet(table: Table, path: str) -> None:
    """Writes a Parquet file; it appears under its name when it is whole."""
    from rdmeta.cli import parquet

    parquet.write(table.columns, table.rows, path, _ROW_GROUP)
