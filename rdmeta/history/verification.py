"""Checks all of one history file: its rows against its footer, and its digest."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta._change_table import COLUMNS, KINDS
from rdmeta.history.opening import HistoryFile, opened_source, rows_in
from rdmeta.history.schema import HistoryError, microseconds

__all__ = ["Verified", "verify"]

_KINDS = frozenset(kind.name for kind in KINDS)


class Verified(NamedTuple):
    """A file that is whole: what its footer says, and its SHA-256 in hexadecimal.

    `unknown_kinds` are kinds of change that a later version wrote, with their numbers of rows.
    """

    file: HistoryFile
    sha256: str
    unknown_kinds: dict[str, int]


def verify(path: str | os.PathLike[str], content: bytes | None = None) -> Verified:
    """Returns what a file holds after checking every row of it.

        verified = rdmeta.history.verify(path)
        print(verified.sha256, verified.file.rows)

    `content` is the file's content if the caller has it; then only the name of `path` counts.
    Raises HistoryError, which names the file and the first fault:

    * A row is of another cluster or recording, or lacks a value that each row has.
    * A version or a time runs backwards, or lies outside of what the footer says.
    * The first file of a recording does not begin with `observed_from`, or a row ends the recording
      before its end.
    * Text is not UTF-8, or a list of ids has nulls.
    """
    path = Path(path)
    try:
        content = path.read_bytes() if content is None else content
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(content).hexdigest()
    file = opened_source(path, pa.BufferReader(content), len(content))
    try:
        rows = rows_in(pa.BufferReader(content), len(content))
        rows.validate(full=True)
        _check(file, rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise HistoryError(f"{path}: not a whole Parquet file: {error}") from error
    except HistoryError as error:
        raise HistoryError(f"{path}: {error}") from error
    return Verified(file, digest, _unknown_kinds(rows))


def _check(file: HistoryFile, rows: pa.Table) -> None:
    if len(rows) != file.rows:
        raise HistoryError(f"it has {len(rows)} rows, and its metadata says {file.rows}")
    _check_values(rows)
    for name, wanted in (("cluster_id", file.cluster_id), ("session", file.session)):
        if not _all(pc.equal(rows[name], wanted), null_counts=name == "cluster_id"):
            raise HistoryError(f"a row has another {name} than its footer, {wanted}")
    _check_ascending(rows["version"], "version", file.since, file.until)
    times = rows["observed_at"].cast(pa.int64())
    begin, end = microseconds(file.observed_from), microseconds(file.observed_to)
    _check_ascending(times, "observed_at", begin, end)
    _check_marks(file, rows["kind"])


def _check_values(rows: pa.Table) -> None:
    """Raises HistoryError for a null where a value must be."""
    for column in COLUMNS:
        values = rows[column.name]
        if not column.optional and values.null_count:
            raise HistoryError(f"column {column.name!r} has {values.null_count} nulls")
        if column.type == "ids" and pc.list_flatten(values).null_count:
            raise HistoryError(f"a list of column {column.name!r} has a null")


def _check_ascending(values: Any, name: str, least: int, most: int) -> None:
    if not len(values):
        return
    first, last = values[0].as_py(), values[-1].as_py()
    if len(values) > 1 and not _all(pc.less_equal(values[:-1], values[1:])):
        raise HistoryError(f"{name} runs backwards")
    if first < least or last > most:
        raise HistoryError(
            f"its rows have {name} {first} to {last}, its footer says {least} to {most}"
        )


def _check_marks(file: HistoryFile, kinds: Any) -> None:
    """Raises HistoryError if a row that begins or ends a recording is in another place."""
    begins = _places(kinds, "observed_from")
    if begins != ([0] if file.since == 0 else []):
        raise HistoryError(
            "its first row is not observed_from, and it is a recording's first file"
            if file.since == 0 and not begins
            else "a recording begins in the middle of it"
        )
    if _places(kinds, "resync") not in ([], [1]):
        raise HistoryError("observation was interrupted in the middle of it")
    ends = _places(kinds, "observed_to")
    if ends not in ([], [len(kinds) - 1]):
        raise HistoryError("the recording ends in the middle of it")


def _places(kinds: Any, kind: str) -> list[int]:
    """Returns the rows of a kind; before release 20 pyarrow crashes if there are no rows."""
    found: list[int] = pc.indices_nonzero(pc.equal(kinds, kind)).to_pylist() if len(kinds) else []
    return found


def _unknown_kinds(rows: pa.Table) -> dict[str, int]:
    counts = (
        (each["values"].as_py(), each["counts"].as_py()) for each in rows["kind"].value_counts()
    )
    return {kind: count for kind, count in counts if kind not in _KINDS}


def _all(truths: Any, *, null_counts: bool = False) -> bool:
    """Returns whether all are true; nulls count as true only with `null_counts`."""
    return bool(pc.all(pc.fill_null(truths, null_counts), min_count=0).as_py())
