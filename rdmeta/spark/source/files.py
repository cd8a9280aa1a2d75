"""What a task of Spark reads: several small Parquet files, or some row groups of a large one.

Spark compares only the first batch with the schema of the table, and a later one that differs
breaks the task without a reason. So `exact` makes each batch exact before it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import InputPartition

from rdmeta.errors import Error
from rdmeta.pipeline.redaction import redacted
from rdmeta.pipeline.storage import Storage, each_using
from rdmeta.pipeline.store import Store
from rdmeta.spark.source.row_filter import RowFilter, chosen, groups_of, needed
from rdmeta.spark.source.schemas import CHANGES

BATCH_ROWS = 16_384
_Item = TypeVar("_Item")
# A task gets about so many bytes of rows, as memory has them.
PACK_BYTES = 32 << 20
# A row of a table has about so many bytes in memory, and a file in Parquet a fourth of its rows'.
ROW_BYTES = 96
_RATIO = 4


class Slice(InputPartition):
    """The part of a table that one task reads, as plain data without credentials."""

    def __init__(self) -> None:
        super().__init__(None)

    def rows(self, columns: pa.Schema) -> Iterator[Any]:
        """Yields tables or batches that have these columns, and may have more."""
        raise NotImplementedError


class TaskReader:
    """The part of a reader that reads in the tasks, to which Spark sends nothing else of it."""

    def __init__(self, columns: pa.Schema, storage: Storage) -> None:
        self._columns, self._storage = columns, storage

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a task."""
        if isinstance(partition, Slice):  # without one, Spark makes an empty partition of its own
            rows = exact(partition.rows(self._columns), self._columns)
            yield from each_using(self._storage, rows)

    def __getstate__(self) -> dict[str, Any]:
        return {"_columns": self._columns, "_storage": self._storage}


def exact(rows: Iterable[Any], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches of BATCH_ROWS with exactly these columns; the last has fewer.

    Raises pa.ArrowException for a value that its column cannot hold, and KeyError for a column that
    is missing.
    """
    waiting: list[Any] = []
    count = 0
    for each in rows:
        if each.num_rows == 0:
            continue
        chosen = _exact(each, columns)
        waiting.append(chosen)
        count += chosen.num_rows
        if count >= BATCH_ROWS:
            whole = count - count % BATCH_ROWS
            table = pa.concat_tables(waiting)
            yield from _batches(table.slice(0, whole))
            waiting, count = [table.slice(whole)], count - whole
    if count:
        yield from _batches(pa.concat_tables(waiting))


def _exact(rows: Any, columns: pa.Schema) -> pa.Table:
    """Returns a table with exactly these columns."""
    chosen = rows.select(columns.names)
    table = pa.Table.from_batches([chosen]) if isinstance(chosen, pa.RecordBatch) else chosen
    return table if table.schema.equals(columns) else table.cast(columns)


def _batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    for begin in range(0, rows.num_rows, BATCH_ROWS):
        (batch,) = rows.slice(begin, BATCH_ROWS).combine_chunks().to_batches()
        yield batch


class ReadError(Error):
    """A file cannot be read, or is not the one that the plan has seen; the text names it."""


@dataclass(frozen=True)
class Part:
    """A file, or some of its row groups; `rows` is -1 if they have not been counted yet."""

    store: str
    name: str
    size: int
    rows: int = -1
    groups: tuple[int, ...] | None = None

    @property
    def weight(self) -> int:
        """About how many bytes its rows take in memory."""
        if self.rows >= 0:
            return self.rows * ROW_BYTES
        return self.size * _RATIO


class FilesSlice(Slice):
    """Parts of files of one table."""

    def __init__(self, table: str, parts: Sequence[Part], filter_: RowFilter) -> None:
        super().__init__()
        self._table, self._parts, self._filter = table, tuple(parts), filter_

    def rows(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the wanted rows; raises ReadError."""
        for part in self._parts:
            try:
                yield from self._of_part(part, columns)
            except (OSError, pa.ArrowException) as error:
                raise _blamed(part, error) from error

    def _of_part(self, part: Part, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        store = Store(part.store)
        with opened(store, part.name) as stream:
            if stream.size() != part.size:
                raise ReadError(f"{store.shown(part.name)}: it has been replaced; read again")
            file = pq.ParquetFile(stream)
            groups = groups_of(file.metadata, self._table, self._filter)
            if part.groups is not None:
                groups = [each for each in groups if each in part.groups]
            if not groups:
                return
            names = needed(self._table, columns, self._filter)
            there = [name for name in names if name in file.schema_arrow.names]
            batches = file.iter_batches(
                BATCH_ROWS, row_groups=groups, columns=there, use_threads=False
            )
            for batch in batches:
                rows = chosen(whole(batch, columns), self._table, self._filter)
                yield redacted(rows) if self._table == CHANGES else rows


def opened(store: Store, name: str) -> Any:
    """Opens a file for reading; all files of rows are opened here. Raises OSError."""
    return store.opened(name)


def slices_of_parts(table: str, parts: Iterable[Part], filter_: RowFilter) -> list[Slice]:
    """Returns files in slices; a large file is cut at its row groups. Raises ReadError."""
    cut = (piece for part in parts for piece in _cut(table, part, filter_))
    return [FilesSlice(table, pack, filter_) for pack in packed(cut, lambda part: part.weight)]


def packed(items: Iterable[_Item], weight: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """Yields the items in packs of about the weight that a task takes, in their order."""
    pack: list[_Item] = []
    total = 0
    for item in items:
        if pack and total + weight(item) > PACK_BYTES:
            yield pack
            pack, total = [], 0
        pack.append(item)
        total += weight(item)
    if pack:
        yield pack


def _cut(table: str, part: Part, filter_: RowFilter) -> list[Part]:
    """Returns a part, or those of a large file."""
    if part.weight <= PACK_BYTES:
        return [part]
    store = Store(part.store)
    try:
        with opened(store, part.name) as stream:
            metadata = pq.ParquetFile(stream).metadata
    except (OSError, pa.ArrowException) as error:
        raise _blamed(part, error) from error
    rows = {n: metadata.row_group(n).num_rows for n in groups_of(metadata, table, filter_)}
    packs = packed(rows, lambda number: rows[number] * ROW_BYTES)
    return [
        Part(part.store, part.name, part.size, sum(rows[n] for n in pack), tuple(pack))
        for pack in packs
    ]


def whole(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Returns a batch in which columns that an earlier version did not write are null."""
    for field in columns:
        if field.name not in batch.schema.names:
            batch = batch.append_column(field, pa.nulls(batch.num_rows, field.type))
    return batch


def _blamed(part: Part, error: Exception) -> ReadError:
    where = Store(part.store).shown(part.name)
    if isinstance(error, FileNotFoundError):
        return ReadError(f"{where}: it is gone, or another file has its rows now; read again")
    return ReadError(f"{where}: {error}")
