"""The forms of a table: for a terminal, plain lines, CSV, Parquet; and JSON in pieces.

Rows are written as they come, so a table may be larger than memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, TextIO

from rdmeta._escaping import escaped

_CHUNK = 1000
_ROW_GROUP = 100_000
_MOST_TEXTS = 10_000
_TIME_WIDTH = len("2026-01-31T12:00:00.000Z")

# A spreadsheet runs a text that begins with one of these; some also run the full-width signs.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")

Row = Sequence[Any]


class TableColumn(NamedTuple):
    """A column.

    `kind` is text, texts, integer, integers, number, flag, share or time (with a zone).
    """

    name: str
    kind: str = "text"


def columns(text: str) -> tuple[TableColumn, ...]:
    """Returns columns by their names and kinds: "offset:integer topic" are a number and a text."""
    return tuple(TableColumn(*each.split(":")) for each in text.split())


class Share(float):
    """A part of a whole; text shows it in percent, with its sign."""


class Table(NamedTuple):
    """A table whose rows are read once; a cell may be None, and a list is a tuple."""

    columns: Sequence[TableColumn]
    rows: Iterable[Row]


def clusters_table(
    columns: Sequence[TableColumn], found: Sequence[tuple[str | None, Iterable[Row]]]
) -> Table:
    """Returns a table of the rows of clusters, with the column cluster if they have names."""
    if all(name is None for name, _ in found):
        return Table(columns, chain.from_iterable(rows for _, rows in found))
    named = ((name, *row) for name, rows in found for row in rows)
    return Table([TableColumn("cluster"), *columns], named)


def label(cluster: str | None) -> dict[str, str]:
    """Returns the member of an object of JSON that names its cluster; none without a name."""
    return {} if cluster is None else {"cluster": cluster}


def members(columns: Sequence[TableColumn], row: Row) -> dict[str, Any]:
    """Returns a row as an object of JSON."""
    return {column.name: cell for column, cell in zip(columns, row, strict=True)}


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
    """Writes tables or JSON to stdout, in the `form` text, json, csv, csv-raw or parquet.

    csv has a ' before a text that a spreadsheet would run as a formula; csv-raw has each text as it
    is. `path` is the file for parquet. Without `color`, with NO_COLOR in the environment, or if it
    is dumb, a terminal gets no escape sequences.
    """

    def __init__(self, form: str, path: str | None = None, color: bool = True) -> None:
        self.form = "csv" if form == "csv-raw" else form
        self.cells = _CELLS.get(form, _PLAIN_CELLS)
        self._path = path
        wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.is_colored = color and wanted

    def tables(self, *tables: Table) -> None:
        """Writes tables; an empty line separates them. CSV and Parquet hold only the last one."""
        if self.form == "csv":
            _write_csv(tables[-1], self.cells)
        elif self.form == "parquet":
            assert self._path is not None
            _write_parquet(tables[-1], self._path)
        else:
            is_terminal = sys.stdout is not None and sys.stdout.isatty()
            write = open_stdout().write
            for number, table in enumerate(tables):
                if number:
                    write("\n")
                drawn = _drawn_lines(table, self.is_colored) if is_terminal else _plain_lines(table)
                for lines in drawn:
                    write(lines)

    def answer(self, found: Mapping[str, object], *tables: Table) -> None:
        """Writes an object of JSON, or in the other forms tables."""
        if self.form == "json":
            self.json([json_text(found)])
        else:
            self.tables(*tables)

    def json(self, pieces: Iterable[str]) -> None:
        """Writes JSON that comes in many short pieces, and a newline; it makes few calls."""
        write = open_stdout().write
        remaining = iter(pieces)
        while chunk := "".join(islice(remaining, _CHUNK)):
            write(chunk)
        write("\n")


class Stream:
    """Writes rows to stdout as they come, and flushes each.

    The form is that of an Output, but not parquet. JSON has no header: a row is one object.
    """

    def __init__(self, output: Output, columns: Sequence[TableColumn]) -> None:
        self._form, self._columns = output.form, columns
        self._is_terminal = sys.stdout is not None and sys.stdout.isatty()
        self._is_colored = self._is_terminal and output.is_colored
        # On a terminal later rows may only widen a column.
        self._widths = [_TIME_WIDTH if each.kind == "time" else 0 for each in columns]
        self._cell = partial(_text, cells=output.cells)

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
        return _line(texts, self._widths, self._columns)

    def _write(self, line: str) -> None:
        out = open_stdout()
        out.write(line + "\n")
        out.flush()


def open_stdout() -> TextIO:
    """Returns stdout; raises OSError if the caller closed it."""
    if sys.stdout is None:
        raise OSError(9, "stdout is closed")
    return sys.stdout


# ---- cells --------------------------------------------------------------------------------------


class _Cells(NamedTuple):
    """How cells are shown: what is absent, shares in percent, texts that are no formulas."""

    absent: str = "-"
    percent: bool = True
    guarded: bool = False

    def guarded_text(self, text: str) -> str:
        """Returns how a text, or a list of texts, is shown."""
        return f"'{text}" if self.guarded and text.startswith(_FORMULA) else text or self.absent


_PLAIN_CELLS = _Cells()
_CELLS = {
    "csv": _Cells(absent="", percent=False, guarded=True),
    "csv-raw": _Cells(absent="", percent=False),
}


def _text(cell: Any, cells: _Cells = _PLAIN_CELLS) -> str:
    """Returns a cell as text without control characters."""
    kind = type(cell)
    if kind is str:
        return cells.guarded_text(cell if cell.isprintable() else escaped(cell))
    if cell is None:
        return cells.absent
    if kind is tuple:
        if cell and type(cell[0]) is int:
            return ",".join(map(str, cell))
        return cells.guarded_text(",".join(map(_text, cell)))
    if kind is bool:
        return "true" if cell else "false"
    if kind is datetime:
        return rfc3339(cell)
    if kind is Share and cells.percent:
        return f"{cell:+.1%}"
    return escaped(str(cell))


class _Texts(dict[Any, str]):
    """The texts of the cells of some kind, made when they are first asked for: many are equal.

    Only those are kept of which equal ones have the same text, unlike 1 and True.
    """

    def __init__(self, kind: str, cells: _Cells) -> None:
        self._kept = (str, int, tuple) if kind == "integer" else (str, tuple)
        self._cells = cells

    def __missing__(self, cell: Any) -> str:
        text = _text(cell, self._cells)
        if type(cell) in self._kept:
            self._keep(cell, text)
        return text

    def _keep(self, cell: Any, text: str) -> None:
        if len(self) >= _MOST_TEXTS:
            self.clear()
        self[cell] = text


class _Lists(_Texts):
    """The same for lists of integers, which may all differ."""

    def __missing__(self, cell: Any) -> str:
        text = self._cells.absent if not cell else ",".join(map(str, cell))
        self._keep(cell, text)
        return text


def _text_columns(table: Table, cells: _Cells = _PLAIN_CELLS) -> Iterator[list[list[str]]]:
    """Yields the texts of 1 000 rows at a time, column by column."""
    of_kind = {
        kind: (_Lists if kind == "integers" else _Texts)(kind, cells)
        for kind in {column.kind for column in table.columns}
    }
    texts = [of_kind[column.kind].__getitem__ for column in table.columns]
    rows = iter(table.rows)
    while part := list(islice(rows, _CHUNK)):
        columns = zip(*part, strict=True)
        yield [list(map(text, cells)) for text, cells in zip(texts, columns, strict=True)]


def _plain_lines(table: Table) -> Iterator[str]:
    """Yields the header, and lines of rows with tabs between the cells."""
    yield "\t".join(column.name for column in table.columns) + "\n"
    for columns in _text_columns(table):
        yield "\n".join(map("\t".join, zip(*columns, strict=True))) + "\n"


# ---- a terminal ---------------------------------------------------------------------------------


def _drawn_lines(table: Table, color: bool) -> Iterator[str]:
    """Yields the header, and lines of rows with the columns below each other.

    The first 1 000 rows decide how wide the columns are; later ones may only widen them. A line
    that is too long for the terminal is the terminal's to wrap, so that nothing is lost.
    """
    bold, plain = ("\x1b[1m", "\x1b[0m") if color else ("", "")
    header = [column.name for column in table.columns]
    widths = list(map(_width, header))
    parts = _text_columns(table)
    columns = next(parts, None)
    widths = _widened(widths, columns or [])
    yield f"{bold}{_line(header, widths, table.columns)}{plain}\n"
    while columns is not None:
        rows = zip(*columns, strict=True)
        yield "".join(_line(texts, widths, table.columns) + "\n" for texts in rows)
        columns = next(parts, None)
        widths = _widened(widths, columns or [])


def _widened(widths: list[int], columns: Sequence[Sequence[str]]) -> list[int]:
    """Returns the widths of columns that also have these texts."""
    found = (max(map(_width, texts)) for texts in columns)
    return list(map(max, widths, found)) if columns else widths


def _line(texts: Sequence[str], widths: Sequence[int], columns: Sequence[TableColumn]) -> str:
    return "  ".join(map(_padded, texts, widths, columns)).rstrip()


def _width(text: str) -> int:
    """Returns the columns of the terminal that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def _padded(text: str, width: int, column: TableColumn) -> str:
    spaces = " " * (width - _width(text))
    return spaces + text if column.kind in ("integer", "number", "share") else text + spaces


# ---- files --------------------------------------------------------------------------------------


def _csv_line(texts: Sequence[str]) -> str:
    import csv
    from io import StringIO

    buffer = StringIO()
    csv.writer(buffer, lineterminator="").writerow(texts)
    return buffer.getvalue()


def _write_csv(table: Table, cells: _Cells) -> None:
    """Writes CSV with a header; an absent cell is empty, and a list has commas in quotes."""
    import csv

    writer = csv.writer(open_stdout(), lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for columns in _text_columns(table, cells):
        writer.writerows(zip(*columns, strict=True))


def _write_parquet(table: Table, path: str) -> None:
    """Writes a Parquet file; it appears under its name when it is whole."""
    from rdmeta.cli import parquet

    parquet.write(table.columns, table.rows, path, _ROW_GROUP)
