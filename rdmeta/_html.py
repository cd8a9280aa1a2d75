"""Tables as HTML, which notebooks show. Each text may come from a broker, and is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

from rdmeta._escaping import escaped

_MOST = 20


def html_text(value: object) -> str:
    """Returns a value as text that is no HTML."""
    return "" if value is None else escape(escaped(str(value)))


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]], count: int) -> str:
    """Returns the first 20 rows as a table of HTML, and the number of all rows."""
    lines = [_line("th", names)]
    lines += [_line("td", row) for row in islice(rows, _MOST)]
    shown = f"the first {_MOST} of {count} rows" if count > _MOST else f"rows: {count}"
    return f"<table>{''.join(lines)}</table><p>{shown}</p>"


def arrow_html(table: Any) -> str | None:
    """Returns a table of Arrow as HTML; None without pyarrow: notebooks then show the repr."""
    try:
        import pyarrow
    except ImportError:
        return None
    reader = pyarrow.RecordBatchReader.from_stream(table)
    rows: list[Sequence[object]] = []
    count = 0
    for batch in reader:
        wanted = batch.slice(0, _MOST - len(rows))
        rows += zip(*(column.to_pylist() for column in wanted.columns), strict=True)
        count += batch.num_rows
    return html_table(reader.schema.names, rows, count)


def _line(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html_text(cell)}</{tag}>' for cell in cells)}</tr>"
