"""Reads a directory of history without Spark, and checks that it is complete."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.history.directory_scan import Found, Recording, RecordingFilter, recordings_of, scan
from rdmeta.history.opening import HistoryFile, rows_of_file
from rdmeta.history.schema import CHANGE_SCHEMA, HistoryError
from rdmeta.model import Change

_log = logging.getLogger(__name__)

OnError = Literal["raise", "quarantine"]


def files(directory: str | os.PathLike[str], *, on_error: OnError = "raise") -> list[HistoryFile]:
    """Returns every history file below `directory` that a reader may use.

        for file in rdmeta.history.files("history", on_error="quarantine"):
            print(file.path, file.observed_from, file.observed_to)

    Each file is checked against its name, and `look` says how and in what order they come. With
    on_error="raise" it raises HistoryError, which names the file that is damaged, foreign,
    duplicated, or missing from the middle of a recording. With "quarantine" it leaves such files
    out, and what lies behind them in their recordings; `look` has the reasons.
    """
    return _files(directory, on_error, RecordingFilter())


def recordings(
    directory: str | os.PathLike[str], *, on_error: OnError = "raise"
) -> list[Recording]:
    """Returns the recordings below `directory`, oldest first within a cluster.

    Raises the errors of `files`.
    """
    return recordings_of(files(directory, on_error=on_error))


def read(
    directory: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    session: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    on_error: OnError = "raise",
) -> pa.Table:
    """Returns the change records below `directory` as Arrow, one recording after the other.

        day = datetime(2026, 11, 22, tzinfo=timezone.utc)
        table = rdmeta.history.read("history", since=day, until=day + timedelta(days=1))

    `cluster_id` and `session` limit it to one cluster, one recording. `since` and `until` limit it
    to rows with since <= observed_at < until; files without such rows are not read. Raises the
    errors of `files`. With on_error="quarantine" it leaves out a file without whole rows, and what
    lies behind it in its recording. It logs a warning that names the file.
    """
    filter_ = RecordingFilter.of(cluster_id, session, since, until)
    tables = list(_tables(directory, on_error, filter_))
    return pa.concat_tables(tables) if tables else CHANGE_SCHEMA.empty_table()


def changes(
    directory: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    session: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    on_error: OnError = "raise",
) -> Iterator[Change]:
    """Yields the change records below `directory` one by one, as a cache's changes() has them.

        for change in rdmeta.history.changes("history", cluster_id="lkc-7"):
            print(change.observed_at, change.kind, change.topic, change.partition)

    The arguments and errors are those of `read`. One file's rows are in memory at a time.
    """
    filter_ = RecordingFilter.of(cluster_id, session, since, until)
    for table in _tables(directory, on_error, filter_):
        for batch in table.select(list(Change._fields)).to_batches():
            columns = (column.to_pylist() for column in batch.columns)
            yield from (_change(values) for values in zip(*columns, strict=True))


def _files(
    directory: str | os.PathLike[str], on_error: OnError, filter_: RecordingFilter
) -> list[HistoryFile]:
    if on_error not in ("raise", "quarantine"):
        raise ValueError(f'on_error is "raise" or "quarantine", not {on_error!r}')
    found = scan(Path(directory), filter_)
    if on_error == "raise":
        _raise(found)
    return found.files


def _raise(found: Found) -> None:
    for fault in found.quarantined:
        raise HistoryError(f"{fault.path}: {fault.reason}")
    for copy in found.duplicates:
        others = (str(f.path) for f in found.files if f.path.name == copy.path.name)
        raise HistoryError(f"{copy.path}: the same file as {next(others, 'another one')}")


class _ReplacedError(HistoryError):
    """A file is not the one that the look found: it is gone, or another one has its name."""


def _tables(
    directory: str | os.PathLike[str], on_error: OnError, filter_: RecordingFilter
) -> Iterator[pa.Table]:
    for recording in recordings_of(_files(directory, on_error, filter_)):
        try:
            yield from _of_recording(directory, list(recording.files), filter_)
        except HistoryError as error:
            if on_error == "raise":
                raise
            _log.warning("%s; it and what lies behind it in its recording is left out", error)


def _of_recording(
    directory: str | os.PathLike[str], files: list[HistoryFile], filter_: RecordingFilter
) -> Iterator[pa.Table]:
    """Yields the rows of a recording's files that have a part in the time.

    A compaction may replace files after the look. The rows keep their order then, so the reader
    looks again, and goes on behind the rows that it has.
    """
    behind = begin = 0  # the number of rows that the reader has, and of those before a file
    left = list(files)
    while left:
        file = left[0]
        try:
            if filter_.has_time(file.observed_from, file.observed_to):
                rows = _rows_of(file)
                if begin + file.rows > behind:
                    yield _of_time(rows.slice(max(behind - begin, 0)), filter_)
        except _ReplacedError:
            again = RecordingFilter.of(file.cluster_id, file.session)
            found = scan(Path(directory), again).files
            if found == files or _row_count(found) < _row_count(files):
                raise
            files, left, begin = found, list(found), 0
            continue
        begin += file.rows
        behind = max(begin, behind)
        del left[0]


def _row_count(files: Iterable[HistoryFile]) -> int:
    return sum(file.rows for file in files)


def _rows_of(file: HistoryFile) -> pa.Table:
    try:
        rows = rows_of_file(file)
    except HistoryError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise _ReplacedError(str(error)) from error
        raise
    if len(rows) != file.rows:
        raise _ReplacedError(f"{file.path}: it has {len(rows)} rows, and had {file.rows}")
    return rows


def _of_time(rows: pa.Table, filter_: RecordingFilter) -> pa.Table:
    for bound, keeps in ((filter_.since, pc.greater_equal), (filter_.until, pc.less)):
        if bound is not None:
            scalar = pa.scalar(bound.astimezone(timezone.utc), rows["observed_at"].type)
            rows = rows.filter(keeps(rows["observed_at"], scalar))
    return rows


def _change(values: Iterable[object]) -> Change:
    """Returns one row as a record; lists become tuples."""
    return Change(*(tuple(v) if isinstance(v, list) else v for v in values))  # type: ignore[arg-type]
