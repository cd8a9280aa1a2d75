"""Plans a batch on the driver, and reads its parts on the executors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rdmeta.spark.source.options import Options
from rdmeta.spark.source.schemas import columns_of
from rdmeta.spark.source.slices import Slice, exact
from rdmeta.spark.source.states import slices_of_state

__all__ = ["Reader", "reader_of"]


class Reader(DataSourceReader):
    """Reads a table; Spark pickles it for the tasks, and then it has no options any more."""

    def __init__(self, options: Options, columns: pa.Schema) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Returns the tasks; a live read asks the cluster here, once."""
        return list(self._slices())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a task."""
        if isinstance(partition, Slice):  # without one, Spark makes an empty partition of its own
            yield from exact(partition.rows(self._columns), self._columns)

    def _slices(self) -> list[Slice]:
        return slices_of_state(self._options)

    def __getstate__(self) -> dict[str, Any]:
        return {"_columns": self._columns}


def reader_of(options: Options, schema: StructType) -> Reader:
    """Returns the reader of a table; raises ConfigError for a schema that does not fit."""
    return Reader(options, columns_of(options.table, schema))
