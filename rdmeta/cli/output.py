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

__all__ = ["Column", "Output", "Share", "Stream", "Table", "json_text", "rfc3339"]

_CHUNK = 1000
_ROW_GROUP = 100_000
_TIME_WIDTH = len("2026-01-31T12:00:00.000Z")

Row = Sequence[Any]


class Column(NamedTuple):
    """A column.

    `kind` is text, texts, integer, integers, number, flag, share or time (with a zone).
    """

    name: str
    kind: str = "text"


class Share(float):
    """A part of a whole; text shows it in percent, with its sign."""


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

    `path` is the file for parquet. Without `color`, with NO_COLOR in the environment, or if it is
    dumb, a terminal gets no escape sequences.
    """

    def __init__(self, form: str, path: str | None = None, color: bool = True) -> None:
        self.form = form
        self._path = path
        wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.is_colored = color and wanted

    def tables(self, *tables: Table) -> None:
        """Writes tables; an empty line separates them. CSV and Parquet hold only the last one."""
        if self.form == "csv":
            _write_csv(tables[-1])
        elif self.form == "parquet":
            assert self._path is not None
            _write_parquet(tables[-1], self._path)
        else:
            is_terminal = sys.stdout is not None and sys.stdout.isatty()
            for number, table in enumerate(tables):
                _write_chunks(["\n"] if number else [])
                _write_chunks(
                    _drawn_lines(table, self.is_colored) if is_terminal else _plain_lines(table)
                )

    def json(self, pieces: Iterable[str]) -> None:
        """Writes JSON that comes in pieces, and a newline."""
        _write_chunks(pieces)
        _write_chunks(["\n"])


class Stream:
    """Writes rows to stdout as they come, and flushes each.

    The form is that of an Output: text, csv or json. JSON has no header: a row is one object.
    """

    def __init__(self, output: Output, columns: Sequence[Column]) -> None:
        self._form, self._columns = output.form, columns
        self._is_terminal = sys.stdout is not None and sys.stdout.isatty()
        self._is_colored = self._is_terminal and output.is_colored
        # On a terminal later rows may only widen a column.
        self._widths = [_TIME_WIDTH if each.kind == "time" else 0 for each in columns]
        self._cell = _cells("", percent=False) if self._form == "csv" else _cells("-")

    def header(self) -> None:
        """Writes the names of the columns; call it before the first row."""
        if self._form != "json":
            bold, plain = ("\x1b[1m", "\x1b[0m") if self._is_colored else ("", "")
            self._write(bold + self._line([column.name for column in self._columns]) + plain)

    def write(self, row: Row) -> None:
        """Writes a row."""
        self._write(self._line(list(map(self._cell, row))))

    def write_json(self, value: object) -> None:
        """Writes an object of JSON."""
        self._write(json_text(value))

    def _line(self, texts: list[str]) -> str:
        """Returns a line without its end."""
        if self._form == "csv":
            return _csv_line(texts)
        if not self._is_terminal:
            return "\t".join(texts)
        self._widths = list(map(max, self._widths, map(_width, texts)))
        return "  ".join(map(_padded, texts, self._widths, self._columns)).rstrip()

    def _write(self, line: str) -> None:
        out = _stdout()
        out.write(line + "\n")
        out.flush()


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


def _cells(absent: str, percent: bool = True) -> Callable[[Any], str]:
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
        if kind is Share and percent:
            return f"{cell:+.1%}"
        return escaped(str(cell))

    return text_of


# ---- a terminal ---------------------------------------------------------------------------------


def _drawn_lines(table: Table, color: bool) -> Iterator[str]:
    """Yields the header and each row with the columns below each other.

    The first 1 000 rows decide how wide the columns are; later ones may only widen them. A line
    that is too long for the terminal is the terminal's to wrap, so that nothing is lost.
    """
    bold, plain = ("\x1b[1m", "\x1b[0m") if color else ("", "")
    cell = _cells("-")
    header = [column.name for column in table.columns]
    widths = [0] * len(header)
    rows = iter(table.rows)
    part = [header, *(list(map(cell, row)) for row in islice(rows, _CHUNK))]
    first: str | None = bold
    while part:
        widths = [
            max(widest, *map(_width, cells))
            for widest, cells in zip(widths, zip(*part, strict=True), strict=True)
        ]
        for texts in part:
            line = "  ".join(map(_padded, texts, widths, table.columns)).rstrip()
            yield line + "\n" if first is None else f"{first}{line}{plain}\n"
            first = None
        part = [list(map(cell, row)) for row in islice(rows, _CHUNK)]


def _width(text: str) -> int:
    """Returns the columns of the terminal that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def _padded(text: str, width: int, column: Column) -> str:
    spaces = " " * (width - _width(text))
    return spaces + text if column.kind in ("integer", "number", "share") else text + spaces


# ---- files --------------------------------------------------------------------------------------


def _csv_line(texts: Sequence[str]) -> str:
    import csv
    from io import StringIO

    buffer = StringIO()
    csv.writer(buffer, lineterminator="").writerow(texts)
    return buffer.getvalue()


def _write_csv(table: Table) -> None:
    """Writes CSV with a header; an absent cell is empty, and a list has commas in quotes."""
    import csv

    writer = csv.writer(_stdout(), lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    cell = _cells("", percent=False)
    writer.writerows(map(cell, row) for row in table.rows)


def _write_parquet(table: Table, path: str) -> None:
    """Writes a Parquet file; it appears under its name when it is whole."""
    from rdmeta.cli import parquet

    parquet.write(table.columns, table.rows, path, _ROW_GROUP)
