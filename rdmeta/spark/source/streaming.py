"""The change feed of a folder of history, as a stream of Spark.

    spark.readStream.format("rdmeta").option("path", "history").load()

Spark asks for the end of the next batch, writes it to the checkpoint, asks for the tasks between
two ends, and reads them. A batch that is read again is planned from the same two ends, and has the
same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from rdmeta.errors import ConfigError
from rdmeta.spark.source.advance import advanced, ends_of
from rdmeta.spark.source.folder_feed import Chain, FolderFeed
from rdmeta.spark.source.offsets import Key, Offset, OffsetError, Position
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.ranges import Range, ranges_of, slices_of_ranges
from rdmeta.spark.source.row_filter import RowFilter
from rdmeta.spark.source.schemas import CHANGES, arrow_schema
from rdmeta.spark.source.slices import Slice, exact

__all__ = ["StreamReader"]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches of change records on the driver, and reads them in the tasks.

    Raises ConfigError for options of which there is no stream. Errors of its methods end the
    stream. These are OffsetError for a checkpoint that is not its own, HistoryError, which names a
    damaged file, and DataLossError.
    """

    def __init__(self, options: Options, columns: pa.Schema | None = None) -> None:
        if options.source != "path" or options.table != CHANGES:
            raise ConfigError(
                f"option table = {options.table!r}: only the table {CHANGES} of a path can be read"
                " as a stream; use spark.read"
            )
        self._options = options
        self._columns = arrow_schema(CHANGES) if columns is None else columns
        self._wanted = RowFilter.of(options)
        self._feed = FolderFeed(
            options.where, self._wanted, fails_on_loss=options.fail_on_data_loss
        )
        self._chains: list[Chain] = []
        self._target: Mapping[Key, Position] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Returns where a new stream begins: before all recordings, or behind all that is there."""
        positions: Mapping[Key, Position] = {}
        if self._options.starting_offsets == "latest":
            positions = ends_of(self._feed.chains(Offset()))
        return Offset(positions, is_initial=True).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit of the options. Spark knows one alone; the other one holds as well."""
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        if self._options.max_files_per_trigger is not None:
            return ReadMaxFiles(self._options.max_files_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes the ends of all recordings: the stream reads up to these."""
        # A stream that begins at its checkpoint may not need a file that is gone or damaged.
        self._target = None
        self._is_bounded = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next batch, `start` itself if there is nothing new."""
        begin = Offset.parse(start)
        self._chains = self._feed.chains(begin)
        if self._is_bounded and self._target is None:
            self._target = ends_of(self._chains)
        files = rows = None
        if not isinstance(limit, ReadAllAvailable):
            files, rows = self._options.max_files_per_trigger, self._options.max_rows_per_trigger
        end = advanced(
            begin, self._chains, self._wanted, files=files, rows=rows, target=self._target
        )
        return start if end is begin else end.as_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns the ends of all recordings at the last look, for the progress of the stream."""
        return Offset(ends_of(self._chains)).as_json() if self._chains else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the tasks that read what lies between two offsets."""
        first, last = Offset.parse(start), Offset.parse(end)
        if last.is_initial:
            # Spark also makes a batch of a begin behind which there is nothing yet. In a new
            # process `first` may lie behind it.
            return []
        if first.is_initial and last.begin is not None:
            # The first batch, once more: it begins where it began.
            first = Offset(last.begin)
        ranges = [each for key in last.positions for each in self._ranges(key, first, last)]
        return list(self._slices(ranges))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a task."""
        if isinstance(partition, Slice):
            yield from exact(partition.rows(self._columns), self._columns)

    _is_bounded = False

    def _ranges(self, key: Key, start: Offset, end: Offset) -> Iterator[Range]:
        """Yields the rows of a recording between two offsets; raises DataLossError."""
        begin, stop = start.position(key).rows, end.position(key).rows
        if begin > stop:
            raise OffsetError(
                f"the checkpoint's offset runs backwards: recording {key[1]} of cluster {key[0]}"
                f" goes from row {begin} to {stop}; use the stream's own checkpoint"
            )
        if begin == stop:
            return
        chain = next((each for each in self._chains if each.key == key), None)
        if chain is None or chain.rows < stop:
            chain = self._feed.chain(key)
        there = 0 if chain is None else chain.rows
        if there < stop:
            self._feed.lose(
                key,
                f"its versions after {start.position(key).version}, up to"
                f" {end.position(key).version}, are gone: a batch needs its rows {begin} to {stop},"
                f" and there are {there}",
            )
        if chain is not None:
            for each in ranges_of(chain, begin, stop):
                if self._wanted.has(each.piece.from_us, each.piece.to_us):
                    yield each

    def _slices(self, ranges: list[Range]) -> list[Slice]:
        feed = FolderFeed(
            self._options.where, self._wanted, fails_on_loss=self._options.fail_on_data_loss
        )
        return slices_of_ranges(feed, ranges, self._wanted)

    def __getstate__(self) -> dict[str, Any]:
        return {"_columns": self._columns}
