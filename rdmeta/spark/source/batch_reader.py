"""Plans a batch on the driver, and reads its parts on the executors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from rdmeta.pipeline.storage import using
from rdmeta.pipeline.store import Store
from rdmeta.spark.source.files import Slice, TaskReader, slices_of_parts
from rdmeta.spark.source.logged import slices_of_records
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.recorded import (
    is_pipeline,
    parts_of_changes,
    parts_of_silver,
    slices_of_days,
)
from rdmeta.spark.source.row_filter import RowFilter, narrowed
from rdmeta.spark.source.schemas import CHANGES, RECORDS, STATE_TABLES
from rdmeta.spark.source.states import slices_of_state

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class BatchReader(TaskReader, DataSourceReader):
    """Reads a table; Spark pickles it for the tasks, and then it has no options but storage.*."""

    def __init__(self, options: Options, columns: pa.Schema) -> None:
        super().__init__(columns, options.storage)
        self._options = options
        self._filter = RowFilter.of(options)

    def partitions(self) -> list[InputPartition]:
        """Returns the tasks; a live read asks the cluster here, once."""
        with using(self._storage):
            return list(self._slices())

    def _slices(self) -> list[Slice]:
        table, filter_ = self._options.table, self._filter
        if table in STATE_TABLES:
            return slices_of_state(self._options, filter_)
        store = Store(self._options.where)
        if table == RECORDS:
            return slices_of_records(store, filter_)
        if table == CHANGES:
            return slices_of_parts(table, parts_of_changes(store, filter_), filter_)
        if is_pipeline(store):
            return slices_of_parts(table, parts_of_silver(store, table, filter_), filter_)
        return slices_of_days(store, table, filter_)


class PushReader(BatchReader):
    """A reader that narrows what it reads by filters on cluster_id, topic, partition and times.

    Spark refuses each read of a reader that has `pushFilters`, unless
    `spark.sql.python.filterPushdown.enabled` is on. So it is a class of its own, chosen by an
    option.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Returns all filters: Spark goes on to compare each row with them."""
        for each in filters:
            self._filter = narrowed(self._filter, self._options.table, each)
        return filters
