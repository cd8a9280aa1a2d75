"""Opens one history file: its footer, checked against its name and for times that are too
long, its rows in full, and a check of every row with the file's digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rdmeta._change_table import COLUMNS, KINDS
from rdmeta._moments import microseconds
from rdmeta.history.schema import CHANGE_SCHEMA, LONGEST, FileName, Footer, HistoryError

_REQUIRED = frozenset(column.name for column in COLUMNS if not column.optional)
_LISTS = frozenset(column.name for column in COLUMNS if column.type == "ids")
_TEXTS = ["source", "kind", "topic", "topic_id", "detail"]
# Bytes of texts that need no exact count.
_FEW = 16 << 20
# So few rows of all columns claim no more than the part of one column that
# `refuse_excessive_lists` reads.
_FEW_ROWS = 8
# A recorder's files claim less than 100 times their size.
_MOST_CLAIMED = 1_000
_KINDS = frozenset(kind.name for kind in KINDS)


class HistoryFile(NamedTuple):
    """One file and its footer: versions (since, until], and the time in which it was observed.

    `rdmeta.history.schema.Footer` explains `continues` and the names behind it. `rows`
    and `bytes` are sizes. A reader passes over the columns in `unknown_columns`, which a later
    version wrote.
    """

    path: Path
    cluster_id: str
    session: str
    since: int
    until: int
    observed_from: datetime
    observed_to: datetime
    continues: str | None = None
    ended_by: str | None = None
    name: str | None = None
    longest_gap_us: int | None = None
    max_gap_us: int | None = None
    min_isr: str | None = None
    compacted: int | None = None
    source: str | None = None
    made_from: str | None = None
    unknown_records: int | None = None
    rows: int = 0
    bytes: int = 0
    unknown_columns: tuple[str, ...] = ()


def opened(path: Path, size: int) -> tuple[HistoryFile, dict[bytes, bytes]]:
    """Returns the file at `path`, whose footer and columns are right, and its Parquet metadata.

    Raises HistoryError, which names the file.
    """
    return _opened(path, path, size)


def opened_source(path: Path, source: Any, size: int) -> HistoryFile:
    """Returns the file that a buffer or a stream has, with the name of `path`; errors as opened."""
    return _opened(path, source, size)[0]


def described(
    path: Path, metadata: dict[bytes, bytes], rows: int, size: int, unknown: tuple[str, ...]
) -> HistoryFile:
    """Returns the file at `path` by what is known of it; raises HistoryError as `opened` does."""
    return _file(path, _footer(metadata, FileName.parse(path.name)), rows, size, unknown)


def rows_of_file(file: HistoryFile) -> pa.Table:
    """Returns a file's rows in full; raises HistoryError, which names the file."""
    try:
        return rows_in(file.path, file.bytes)
    except HistoryError as error:
        raise HistoryError(f"{file.path}: {error}") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise HistoryError(f"{file.path}: {error}") from error


def refuse_excessive_lists(file: pq.ParquetFile, size: int) -> None:
    """Raises HistoryError if the lists of a file of `size` bytes claim far more than that.

    A few bytes can hold many equal numbers, and no footer tells it. So this reads them, in parts
    that are small if the file is. `claimed_by_texts` counts texts.
    """
    part = max(64, min(65_536, size // 256))
    claimed = 0
    lists = [name for name in file.schema_arrow.names if name in _LISTS]
    for batch in file.iter_batches(part, columns=lists, use_threads=False):
        claimed += batch.nbytes
        refuse_excessive_claim(claimed, size)


def with_texts_coded(source: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Opens a file whose texts are read as dictionaries, which takes less time and memory."""
    try:
        return pq.ParquetFile(source, metadata=metadata, read_dictionary=_TEXTS)
    except KeyError:  # the file lacks one of them
        metadata = pq.read_metadata(source) if metadata is None else metadata
        texts = [name for name in metadata.schema.to_arrow_schema().names if name in _TEXTS]
        return pq.ParquetFile(source, metadata=metadata, read_dictionary=texts)


def claimed_by_texts(columns: Iterable[pa.Array]) -> int:
    """Returns about how many bytes the texts of columns take that were read as dictionaries.

    A file holds a text that many rows have once.
    """
    claimed = 0
    for column in columns:
        if not isinstance(column, pa.DictionaryArray) or not len(column):
            continue
        lengths: Any = pc.binary_length(column.dictionary)
        most = len(column) * (pc.max(lengths).as_py() or 0)
        if most > _FEW:
            most = pc.sum(lengths.take(column.indices).cast(pa.int64())).as_py() or 0
        claimed += most
    return claimed


def refuse_excessive_claim(claimed: int, size: int) -> None:
    """Raises HistoryError if rows claim far more than the size of their file."""
    if claimed > _MOST_CLAIMED * size:
        raise HistoryError(
            f"its rows claim {claimed} bytes, more than {_MOST_CLAIMED} times its size"
        )


def rows_in(source: Any, size: int) -> pa.Table:
    """Returns the rows of a path or a buffer; missing columns are null, unknown ones not read.

    Raises pa.ArrowException, OSError, ValueError, and HistoryError for what claims too much.
    """
    with pq.ParquetFile(source) as file:
        return _rows(file, source, size)


def _rows(file: pq.ParquetFile, source: Any, size: int) -> pa.Table:
    """Returns the rows of a file that is open, and whose source can be opened again."""
    if file.metadata.num_rows <= _FEW_ROWS:
        return _few_rows(file, size)
    with with_texts_coded(source, file.metadata) as coded:
        refuse_excessive_lists(coded, size)
        table = coded.read(columns=_known(coded.schema_arrow))
    refuse_excessive_claim(
        claimed_by_texts(chunk for each in table.columns for chunk in each.chunks), size
    )
    return _in_full(table)


def _few_rows(file: pq.ParquetFile, size: int) -> pa.Table:
    """Returns the rows of a file that has few; threads would take longer than to read them."""
    schema, batches, claimed = file.schema_arrow, [], 0
    names = None if schema.equals(CHANGE_SCHEMA) else _known(schema)
    for batch in file.iter_batches(_FEW_ROWS, columns=names, use_threads=False):
        claimed += batch.nbytes
        refuse_excessive_claim(claimed, size)
        batches.append(batch)
    return _in_full(pa.Table.from_batches(batches, None if batches else schema))


def _known(schema: pa.Schema) -> list[str]:
    names = set(schema.names)
    return [name for name in CHANGE_SCHEMA.names if name in names]


def _in_full(table: pa.Table) -> pa.Table:
    """Returns a table with the columns of change records, of their types."""
    if table.schema.equals(CHANGE_SCHEMA):
        return table.replace_schema_metadata()
    names = set(table.column_names)
    columns = []
    for field in CHANGE_SCHEMA:
        if field.name not in names:
            columns.append(pa.nulls(len(table), field.type))
        else:
            column = table[field.name]
            columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=CHANGE_SCHEMA)


def _opened(path: Path, source: Any, size: int) -> tuple[HistoryFile, dict[bytes, bytes]]:
    with _naming(path):
        name = FileName.parse(path.name)
        with pq.ParquetFile(source) as file:
            return _described(path, name, file, size), file.schema_arrow.metadata or {}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raises HistoryError, which names the file, for what is wrong with it."""
    try:
        yield
    except HistoryError as error:
        raise HistoryError(f"{path}: {error}") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise HistoryError(f"{path}: not a whole Parquet file: {error}") from error


def _described(path: Path, name: FileName, file: pq.ParquetFile, size: int) -> HistoryFile:
    """Returns what a file that is open says of itself; raises HistoryError, and as pyarrow does."""
    schema = file.schema_arrow
    refuse_excessive_claim(_claimed(file.metadata), size)
    footer = _footer(schema.metadata or {}, name)
    return _file(path, footer, file.metadata.num_rows, size, _unknown_columns(schema))


def _claimed(metadata: pq.FileMetaData) -> int:
    """Returns how many bytes the values of a file take in memory, at least."""
    # Without columns: pyarrow aborts the process when it reads those of a damaged footer.
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values: int = sum(group.num_rows * group.num_columns for group in groups)
    size: int = sum(group.total_byte_size for group in groups)
    return max(4 * values, size)


def _file(
    path: Path, footer: Footer, rows: int, size: int, unknown: tuple[str, ...]
) -> HistoryFile:
    about = footer._asdict()
    return HistoryFile(
        path, **about.pop("file")._asdict(), **about, rows=rows, bytes=size, unknown_columns=unknown
    )


def _footer(metadata: dict[bytes, bytes], name: FileName) -> Footer:
    """Returns the footer after comparing it with the file's name; HistoryError."""
    footer = Footer.parse(metadata)
    if footer.file != name:
        raise HistoryError(f"its metadata says that it is {footer.file}: rename it back")
    _check_times(footer)
    return footer


def _check_times(footer: Footer) -> None:
    """Raises HistoryError for an observation that no recorder makes, such as one of 33 days."""
    if footer.observed_from > footer.observed_to:
        raise HistoryError("its observation ends before it begins")
    if microseconds(footer.observed_from) < 0:
        raise HistoryError("its observation begins before 1970")
    if footer.observed_to - footer.observed_from > LONGEST:
        raise HistoryError(f"its observation lasts more than {LONGEST.days} days")


def _unknown_columns(schema: pa.Schema) -> tuple[str, ...]:
    """Returns the columns that this version does not know.

    Raises HistoryError if a column is there twice or of another type, or if one is missing that
    each row needs. Other columns may be missing.
    """
    if schema.equals(CHANGE_SCHEMA):
        return ()
    names = schema.names
    for theirs in schema:
        place = CHANGE_SCHEMA.get_field_index(theirs.name)
        if place < 0:
            continue
        if CHANGE_SCHEMA.field(place).type != theirs.type:
            raise HistoryError(
                f"column {theirs.name!r} ({theirs.type}) does not match a change record"
            )
        if names.count(theirs.name) > 1:
            raise HistoryError(f"column {theirs.name!r} is there twice")
    for name in CHANGE_SCHEMA.names:
        if name in _REQUIRED and name not in names:
            raise HistoryError(f"column {name!r} is missing")
    return tuple(name for name in names if name not in CHANGE_SCHEMA.names)


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
    source = pa.BufferReader(content)
    with _naming(path):
        name = FileName.parse(path.name)
        with pq.ParquetFile(source) as opened_file:
            file = _described(path, name, opened_file, len(content))
            rows = _rows(opened_file, source, len(content))
        rows.validate(full=True)
        counts = {
            each["values"].as_py(): each["counts"].as_py() for each in rows["kind"].value_counts()
        }
        _check(file, rows, counts)
    unknown = {kind: count for kind, count in counts.items() if kind not in _KINDS}
    return Verified(file, hashlib.sha256(content).hexdigest(), unknown)


def _check(file: HistoryFile, rows: pa.Table, kinds: Mapping[str, int]) -> None:
    if len(rows) != file.rows:
        raise HistoryError(f"it has {len(rows)} rows, and its metadata says {file.rows}")
    _check_values(rows)
    for name, wanted in (("cluster_id", {file.cluster_id, None}), ("session", {file.session})):
        if not wanted.issuperset(rows[name].unique().to_pylist()):
            raise HistoryError(f"a row has another {name} than its footer, {getattr(file, name)}")
    _check_ascending(rows["version"], "version", file.since, file.until)
    times = rows["observed_at"].cast(pa.int64())
    begin, end = microseconds(file.observed_from), microseconds(file.observed_to)
    _check_ascending(times, "observed_at", begin, end)
    _check_marks(file, rows["kind"], kinds)


def _check_values(rows: pa.Table) -> None:
    """Raises HistoryError for a null where a value must be."""
    for column in COLUMNS:
        values = rows[column.name]
        nulls = values.null_count
        if not column.optional and nulls:
            raise HistoryError(f"column {column.name!r} has {nulls} nulls")
        if column.type == "ids" and nulls < len(values) and pc.list_flatten(values).null_count:
            raise HistoryError(f"a list of column {column.name!r} has a null")


def _check_ascending(values: Any, name: str, least: int, most: int) -> None:
    if not len(values):
        return
    first, last = values[0].as_py(), values[-1].as_py()
    if len(values) > 1 and not pc.all(pc.less_equal(values[:-1], values[1:])).as_py():
        raise HistoryError(f"{name} runs backwards")
    if first < least or last > most:
        raise HistoryError(
            f"its rows have {name} {first} to {last}, its footer says {least} to {most}"
        )


def _check_marks(file: HistoryFile, rows: Any, counts: Mapping[str, int]) -> None:
    """Raises HistoryError if a row that begins or ends a recording is in another place."""

    def is_at(kind: str, place: int) -> bool:
        return counts.get(kind) == 1 and place < len(rows) and rows[place].as_py() == kind

    begins = counts.get("observed_from", 0)
    if not (is_at("observed_from", 0) if file.since == 0 else begins == 0):
        raise HistoryError(
            "its first row is not observed_from, and it is a recording's first file"
            if file.since == 0 and not begins
            else "a recording begins in the middle of it"
        )
    if "resync" in counts and not is_at("resync", 1):
        raise HistoryError("observation was interrupted in the middle of it")
    if "observed_to" in counts and not is_at("observed_to", len(rows) - 1):
        raise HistoryError("the recording ends in the middle of it")
