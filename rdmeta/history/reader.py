"""Reads a directory of history without Spark, and checks that it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history.schema import CHANGE_SCHEMA, FileName, Footer, HistoryError
from rdmeta.model import Change

__all__ = ["HistoryFile", "Recording", "changes", "files", "read", "recordings"]


class HistoryFile(NamedTuple):
    """One file and its footer: versions (since, until], and the time in which it was observed."""

    path: Path
    cluster_id: str
    session: str
    since: int
    until: int
    observed_from: datetime
    observed_to: datetime


class Recording(NamedTuple):
    """One recording's files in their order, and the time that they cover."""

    cluster_id: str
    session: str
    observed_from: datetime
    observed_to: datetime
    files: tuple[HistoryFile, ...]


def files(directory: str | os.PathLike[str]) -> list[HistoryFile]:
    """Returns every history file below `directory`, each one opened and checked against its name.

    Their order is by cluster, then recording, then version. Names that begin with "." or "_", and
    names that do not end in ".parquet", are ignored: these files are unfinished, or not history.
    Raises HistoryError, which names the file that is damaged, foreign, duplicated, or missing from
    the middle of a recording.
    """
    root = Path(directory)
    if not root.is_dir():
        raise HistoryError(f"{root}: not a directory")
    found = _uncovered(sorted((_open(path) for path in _parquet_files(root)), key=_order))
    for before, after in pairwise(found):
        if before.session != after.session:
            continue
        if before.path.name == after.path.name:
            raise HistoryError(f"{after.path}: the same file as {before.path}")
        if before.until != after.since:
            raise HistoryError(
                f"{after.path}: begins at version {after.since}, but the file before it in its"
                f" recording ends at {before.until}: {before.path.name};"
                " check that no file is missing"
            )
    for first in (next(group) for _, group in groupby(found, key=lambda file: file.session)):
        if first.since != 0:
            raise HistoryError(
                f"{first.path}: the recording's first file, with the whole state, is missing;"
                " put it back"
            )
    return found


def recordings(directory: str | os.PathLike[str]) -> list[Recording]:
    """Returns the recordings below `directory`, oldest first within a cluster.

    Raises the errors of `files`.
    """
    found = []
    for (cluster_id, session), group in groupby(
        files(directory), key=lambda file: (file.cluster_id, file.session)
    ):
        parts = tuple(group)
        found.append(
            Recording(
                cluster_id,
                session,
                min(part.observed_from for part in parts),
                max(part.observed_to for part in parts),
                parts,
            )
        )
    return sorted(found, key=lambda r: (r.cluster_id, r.observed_from, r.session))


def read(
    directory: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    session: str | None = None,
) -> pa.Table:
    """Returns the change records below `directory` as Arrow, one recording after the other.

    `cluster_id` and `session` limit it to one cluster, one recording. Raises the errors of `files`.
    """
    tables = [_rows(file) for file in _chosen(directory, cluster_id, session)]
    return pa.concat_tables(tables) if tables else CHANGE_SCHEMA.empty_table()


def changes(
    directory: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    session: str | None = None,
) -> Iterator[Change]:
    """Yields the change records below `directory` one by one, as a cache's changes() has them."""
    for file in _chosen(directory, cluster_id, session):
        for batch in _rows(file).select(list(Change._fields)).to_batches():
            columns = (column.to_pylist() for column in batch.columns)
            yield from (_change(values) for values in zip(*columns, strict=True))


def _chosen(
    directory: str | os.PathLike[str], cluster_id: str | None, session: str | None
) -> Iterator[HistoryFile]:
    for recording in recordings(directory):
        if cluster_id in (None, recording.cluster_id) and session in (None, recording.session):
            yield from recording.files


def _change(values: Iterable[object]) -> Change:
    """Returns one row as a record; lists become tuples."""
    return Change(*(tuple(v) if isinstance(v, list) else v for v in values))  # type: ignore[arg-type]


def _order(file: HistoryFile) -> tuple[str, str, int, int]:
    return file.cluster_id, file.session, file.since, file.until


def _uncovered(found: list[HistoryFile]) -> list[HistoryFile]:
    """Returns the files, in their order, without those of one version that the next one covers."""
    return [
        file
        for file, after in zip(found, [*found[1:], None], strict=True)
        if after is None
        or (file.session, file.since, file.until) != (after.session, after.since, after.since)
        or file.path.name == after.path.name
    ]


def _parquet_files(root: Path) -> Iterator[Path]:
    for directory, directories, names in os.walk(root):
        directories[:] = [name for name in directories if not name.startswith((".", "_"))]
        for name in names:
            if name.endswith(".parquet") and not name.startswith((".", "_")):
                yield Path(directory, name)


def _open(path: Path) -> HistoryFile:
    """Returns the file at `path` after comparing its footer with its name; HistoryError."""
    try:
        name = FileName.parse(path.name)
        try:
            schema = pq.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            raise HistoryError(f"not a whole Parquet file: {error}") from error
        footer = Footer.parse(schema.metadata)
        if footer.file != name:
            raise HistoryError(f"its metadata says that it is {footer.file}: rename it back")
        _check_columns(schema)
        if footer.observed_from > footer.observed_to:
            raise HistoryError("its observation ends before it begins")
    except HistoryError as error:
        raise HistoryError(f"{path}: {error}") from error
    return HistoryFile(path, *name, footer.observed_from, footer.observed_to)


def _check_columns(schema: pa.Schema) -> None:
    """Raises HistoryError if a known column has another type. Columns may be missing, or more."""
    for theirs in schema:
        place = CHANGE_SCHEMA.get_field_index(theirs.name)
        if place >= 0 and CHANGE_SCHEMA.field(place).type != theirs.type:
            raise HistoryError(
                f"column {theirs.name!r} ({theirs.type}) does not match a change record"
            )


def _rows(file: HistoryFile) -> pa.Table:
    try:
        table = pq.ParquetFile(file.path).read()
    except (pa.ArrowException, OSError) as error:
        raise HistoryError(f"{file.path}: {error}") from error
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in CHANGE_SCHEMA
    ]
    return pa.table(columns, schema=CHANGE_SCHEMA)
