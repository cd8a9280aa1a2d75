"""Reads of the data source without Spark: the reader and its tasks, pickled as Spark does."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rdmeta.spark.source import DefaultSource
from rdmeta.spark.source.batch_reader import BatchReader
from rdmeta.spark.source.schemas import arrow_schema

__all__ = ["read", "reader_of", "rows_of", "sorted_rows", "tasks_of"]


def reader_of(**given: str) -> BatchReader:
    """Returns the reader for these options; `servers` stands for bootstrap.servers."""
    if "servers" in given:
        given["bootstrap.servers"] = given.pop("servers")
    source = DefaultSource(pickle.loads(pickle.dumps(given)))
    reader = source.reader(source.schema())
    assert isinstance(reader, BatchReader)
    return reader


def read(**given: str) -> pa.Table:
    """Returns the rows of a read."""
    return rows_of(reader_of(**given), arrow_schema(given.get("table", "changes")))


def tasks_of(reader: BatchReader) -> Sequence[Any]:
    """Returns the tasks as an executor gets them."""
    found: Sequence[Any] = pickle.loads(pickle.dumps(reader.partitions()))
    return found


def rows_of(reader: BatchReader, schema: pa.Schema) -> pa.Table:
    """Returns the rows of all tasks; each batch has exactly this schema."""
    sent: BatchReader = pickle.loads(pickle.dumps(reader))
    batches = [batch for task in tasks_of(reader) for batch in sent.read(task)]
    for batch in batches:
        assert batch.schema.equals(schema), batch.schema
        assert 0 < batch.num_rows <= 16_384
    return pa.Table.from_batches(batches, schema)


def sorted_rows(table: pa.Table) -> list[str]:
    """Returns a text for each row, in an order that follows from the rows alone."""
    return sorted(repr(row) for row in table.to_pylist())
