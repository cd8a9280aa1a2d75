"""Reads the rows of an input file for a task, and compares them with what the plan knows of it.

A copy in OUT/bronze was checked row by row. A file that a run reads where it lies was not, so a
reader compares what costs little: whose rows they are, where they begin and end, and their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rdmeta.history.opening import (
    claimed_by_texts,
    refuse_excessive_claim,
    refuse_excessive_lists,
    with_texts_coded,
)
from rdmeta.pipeline.days import File
from rdmeta.pipeline.redaction import redacted
from rdmeta.pipeline.store import Store

_BATCH = 65_536
# A fold knows these of a whole origin, so they are not read from each row.
_KNOWN = ("cluster_id", "session")


def batches(file: File, cluster_id: str, origin: str) -> Iterator[pa.RecordBatch]:
    """Yields a file's rows, with sensitive values taken out.

    Raises ValueError if they are not those of the plan: their number, cluster, recording, the first
    row of a recording, bounds and order of versions and times. Raises OSError and ArrowException.
    """
    with Store(file.store).opened(file.name) as stream:
        parquet = with_texts_coded(stream)
        if parquet.metadata.num_rows != file.rows:
            raise ValueError(f"it has {parquet.metadata.num_rows} rows, and had {file.rows}")
        size = stream.size()
        refuse_excessive_lists(parquet, size)
        columns = parquet.schema_arrow.names
        for name, wanted in zip(_KNOWN, (cluster_id, origin), strict=True):
            _require_same(parquet, columns.index(name), name, wanted)
        names = [name for name in columns if name not in _KNOWN]
        rows = claimed = 0
        versions = _Ascending("version", file.since, file.until)
        times = _Ascending("observed_at", file.from_us, file.to_us)
        # To hand few rows to threads takes longer than to read them.
        is_large = file.rows > _BATCH
        for batch in parquet.iter_batches(batch_size=_BATCH, columns=names, use_threads=is_large):
            if rows == 0:
                _require_begin(file, batch)
            claimed += claimed_by_texts(batch.columns)
            refuse_excessive_claim(claimed, size)
            versions.check(batch)
            times.check(batch)
            rows += batch.num_rows
            yield redacted(batch)
        if rows != file.rows:
            raise ValueError(f"it has {rows} rows, and its metadata says {file.rows}")
        if rows == 0:
            _require_begin(file, None)


def of_time(batch: pa.RecordBatch, file: File, begin: int, end: int | None) -> pa.RecordBatch:
    """Returns the rows from `begin` to before `end`; they are in the order of time."""
    if file.from_us >= begin and (end is None or file.to_us < end):
        return batch
    times = pc.cast(batch.column("observed_at"), pa.int64())
    low = _count_before(times, begin)
    high = batch.num_rows if end is None else _count_before(times, end)
    return batch.slice(low, max(high - low, 0))


def _count_before(times: pa.Array, moment: int) -> int:
    return int(pc.sum(pc.less(times, moment), min_count=0).as_py())


class _Ascending:
    """Compares a column of batches that come one after the other: its bounds and its order."""

    def __init__(self, name: str, least: int, most: int) -> None:
        self._name, self._least, self._most = name, least, most
        self._last = least

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises ValueError if a value is before the one before it, or out of bounds."""
        values = batch.column(self._name)
        if not len(values):
            return
        if values.null_count:
            raise ValueError(f"column {self._name!r} has {values.null_count} nulls")
        if pa.types.is_timestamp(values.type):
            values = values.view(pa.int64())
        first, last = values[0].as_py(), values[-1].as_py()
        if first < self._least or last > self._most:
            raise ValueError(
                f"its rows have {self._name} {first} to {last}, its footer says {self._least} to"
                f" {self._most}"
            )
        steps = pc.less_equal(values.slice(0, len(values) - 1), values.slice(1))
        if first < self._last or not pc.all(steps, min_count=0).as_py():
            raise ValueError(f"{self._name} runs backwards")
        self._last = last


def _require_begin(file: File, batch: pa.RecordBatch | None) -> None:
    """Raises ValueError if a recording's first file does not begin with its whole state."""
    if file.since != 0:
        return
    if batch is None or not batch.num_rows or batch["kind"][0].as_py() != "observed_from":
        raise ValueError("its first row is not observed_from, and it is a recording's first file")


def _require_same(parquet: pq.ParquetFile, column: int, name: str, wanted: str) -> None:
    """Raises ValueError if a row has another value; bounds of row groups spare reading it.

    A row without a cluster is right, as for rdmeta.history.verify().
    """
    groups = range(parquet.metadata.num_row_groups)
    unsure = [
        number
        for number in groups
        if not _is_all(parquet.metadata.row_group(number).column(column), name, wanted)
    ]
    if not unsure:
        return
    same: Any = pc.equal(parquet.read_row_groups(unsure, columns=[name])[name], wanted)
    if not pc.all(pc.fill_null(same, name == "cluster_id"), min_count=0).as_py():
        raise ValueError(f"a row has another {name} than its footer, {wanted}")


def _is_all(column: pq.ColumnChunkMetaData, name: str, wanted: str) -> bool:
    """Returns whether the bounds in a row group say that all its rows have a value."""
    about = column.statistics
    return (
        column.path_in_schema == name
        and about is not None
        and about.has_min_max
        and about.has_null_count
        and about.null_count == 0
        and about.min == about.max == wanted
    )
