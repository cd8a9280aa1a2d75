"""What a task of Spark reads, and the batches that it gives to Spark.

Spark compares only the first batch with the schema of the table, and a later one that differs
breaks the task without a reason. So each batch here is exact before it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

__all__ = ["BATCH_ROWS", "Slice", "exact"]

BATCH_ROWS = 16_384


class Slice(InputPartition):
    """The part of a table that one task reads, as plain data without credentials."""

    def __init__(self) -> None:
        super().__init__(None)

    def rows(self, columns: pa.Schema) -> Iterator[Any]:
        """Yields tables or batches that have these columns, and may have more."""
        raise NotImplementedError


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
