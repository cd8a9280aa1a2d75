"""The change feed as a stream of Spark 4.0 and 4.1, whose streams have no limits.

These do not say where a batch begins when they ask where it ends. So each batch goes up to the ends
of all recordings, and what a checkpoint has read is known from its first batch on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from rdmeta.spark.source.folder_feed import Offset
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.streaming import StreamReader, ends_of
from rdmeta.spark.spark_versions import require_spark


class UnlimitedReader(StreamReader):
    """Plans batches without limits; raises OldSparkError for options that need Spark 4.2."""

    def __init__(self, options: Options, columns: pa.Schema | None = None) -> None:
        super().__init__(options, columns)
        for name, is_given in (
            ("maxFilesPerTrigger", options.max_files_per_trigger is not None),
            ("maxRowsPerTrigger", options.max_rows_per_trigger is not None),
            ("failOnDataLoss = false", not options.fail_on_data_loss),
        ):
            if is_given:
                require_spark("4.2", f"option {name}")
        self._seen: Offset | None = None
        self._knows_checkpoint = False

    def initialOffset(self) -> dict[str, Any]:
        """Returns where a new stream begins; Spark asks for the first batch's end before it."""
        if self._is_latest and self._seen is not None:
            return Offset(self._seen.positions, is_initial=True).as_json()
        return super().initialOffset()

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Returns the ends of all recordings."""
        begin = self._seen or Offset()
        self._chains = self._feed.chains(begin)
        self._seen = Offset({**begin.positions, **ends_of(self._chains)})
        return self._seen.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the tasks that read what lies between two offsets."""
        first, last = Offset.parse(start), Offset.parse(end)
        if first.is_initial and self._is_latest:
            return []  # the first batch ends where it begins
        if not self._knows_checkpoint and not first.is_initial:
            self._feed.chains(first)  # raises an error if rows behind it are gone
            self._seen = Offset({**first.positions, **last.positions})
        self._knows_checkpoint = True
        return super().partitions(start, end)

    @property
    def _is_latest(self) -> bool:
        return self._options.starting_offsets == "latest"
