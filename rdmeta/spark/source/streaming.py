"""The change feed of a folder of history, as a stream of Spark.

    spark.readStream.format("rdmeta").option("path", "history").load()

Spark asks for the end of the next batch, writes it to the checkpoint, asks for the tasks between
two ends, and reads them. A batch that is read again is planned from the same two ends, and has the
same rows.

A task reads rows of recordings by their numbers. A compaction may replace a file between the plan
and the task. Its rows keep their numbers then, so the task looks for them once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before Spark 4.2, where unlimited_streaming has the reader
    SupportsTriggerAvailableNow = object  # type: ignore[assignment, misc]

from rdmeta.errors import ConfigError
from rdmeta.history.schema import MOST_NUMBER, HistoryError
from rdmeta.pipeline.redaction import redacted
from rdmeta.pipeline.store import Store
from rdmeta.spark.source.files import (
    BATCH_ROWS,
    PACK_BYTES,
    ROW_BYTES,
    Slice,
    TaskReader,
    opened,
    packed,
    whole,
)
from rdmeta.spark.source.folder_feed import (
    Chain,
    FolderFeed,
    Key,
    Offset,
    OffsetError,
    Piece,
    Position,
)
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.recorded import history_place
from rdmeta.spark.source.row_filter import RowFilter, chosen, groups_of, needed
from rdmeta.spark.source.schemas import CHANGES, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

_LOOKS = 100


@dataclass(frozen=True)
class Range:
    """Rows `begin` to before `end` of a recording, and the file that had them at the plan."""

    key: Key
    begin: int
    end: int
    piece: Piece


class _MovedError(Exception):
    """A file is gone, or another one has its name."""


class RangesSlice(Slice):
    """Ranges of change records below one folder."""

    def __init__(self, feed: FolderFeed, ranges: Sequence[Range], filter_: RowFilter) -> None:
        super().__init__()
        self._feed, self._ranges, self._filter = feed, tuple(ranges), filter_

    def rows(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the wanted rows.

        Raises HistoryError, which names a damaged file, and DataLossError if rows are gone.
        """
        store = history_place(Store(self._feed.where))
        for each in self._ranges:
            yield from self._of_range(store, each, columns)

    def _of_range(
        self, store: Store, wanted: Range, columns: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a range, from other files if the plan's are gone."""
        left = [wanted]
        begin = wanted.begin
        for _ in range(_LOOKS):
            try:
                while left:
                    for count, batch in self._of_file(store, left[0], columns):
                        begin += count
                        if batch is not None:
                            yield batch
                    del left[0]
                return
            except _MovedError:
                chain = self._feed.chain(wanted.key)
                left = [] if chain is None else list(ranges_of(chain, begin, wanted.end))
                reached = left[-1].end if left else begin
                if reached < wanted.end:
                    problem = f"its rows {reached} to {wanted.end} are gone"
                    versions = f"they lead up to version {wanted.piece.until}"
                    self._feed.lose(wanted.key, f"{problem}; {versions}")
        raise HistoryError(f"{store.shown(wanted.piece.name)}: it changes again and again")

    def _of_file(
        self, store: Store, part: Range, columns: pa.Schema
    ) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """Yields counts of rows of a file, each with the wanted ones among them.

        Raises _MovedError before it yields, or HistoryError.
        """
        piece = part.piece
        try:
            with opened(store, piece.name) as stream:
                file = pq.ParquetFile(stream) if stream.size() == piece.size else None
                if file is None or file.metadata.num_rows != piece.rows + piece.held_back:
                    raise _MovedError
                yield from self._of_groups(file, part, columns)
        except FileNotFoundError as error:
            raise _MovedError from error
        except (OSError, pa.ArrowException) as error:
            raise HistoryError(f"{store.shown(piece.name)}: {error}") from error

    def _of_groups(
        self, file: pq.ParquetFile, part: Range, columns: pa.Schema
    ) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        names = needed(CHANGES, columns, self._filter)
        there = [name for name in names if name in file.schema_arrow.names]
        hopeful = set(groups_of(file.metadata, CHANGES, self._filter))
        at = part.piece.begin
        for group in range(file.metadata.num_row_groups):
            begin, at = at, at + file.metadata.row_group(group).num_rows
            low, high = max(begin, part.begin), min(at, part.end)
            if low >= high:
                continue
            if group not in hopeful:
                yield high - low, None
                continue
            batches = file.iter_batches(
                BATCH_ROWS, row_groups=[group], columns=there, use_threads=False
            )
            for batch in batches:
                cut = batch.slice(max(low - begin, 0), max(high - max(low, begin), 0))
                begin += batch.num_rows
                if cut.num_rows:
                    rows = chosen(whole(cut, columns), CHANGES, self._filter)
                    yield cut.num_rows, redacted(rows)


def ranges_of(chain: Chain, begin: int, end: int) -> Iterator[Range]:
    """Yields the ranges of a recording's rows `begin` to before `end`, one for each file."""
    for piece in chain.pieces:
        low, high = max(begin, piece.begin), min(end, piece.end)
        if low < high:
            yield Range(chain.key, low, high, piece)


def slices_of_ranges(feed: FolderFeed, ranges: Iterable[Range], filter_: RowFilter) -> list[Slice]:
    """Returns ranges in slices of about the size that a task takes; a large range is cut."""
    cut = (piece for each in ranges for piece in _cut(each))
    packs = packed(cut, lambda each: (each.end - each.begin) * ROW_BYTES)
    return [RangesSlice(feed, pack, filter_) for pack in packs]


def _cut(each: Range) -> Iterator[Range]:
    step = PACK_BYTES // ROW_BYTES
    for begin in range(each.begin, each.end, step):
        yield replace(each, begin=begin, end=min(begin + step, each.end))


class StreamReader(TaskReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
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
        super().__init__(arrow_schema(CHANGES) if columns is None else columns, options.storage)
        self._options = options
        self._filter = RowFilter.of(options)
        self._feed = FolderFeed(
            options.where,
            self._filter,
            fails_on_loss=options.fail_on_data_loss,
            storage=options.storage,
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
            begin, self._chains, self._filter, files=files, rows=rows, target=self._target
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
                if self._filter.has(each.piece.from_us, each.piece.to_us):
                    yield each

    def _slices(self, ranges: list[Range]) -> list[Slice]:
        feed = FolderFeed(
            self._options.where, self._filter, fails_on_loss=self._options.fail_on_data_loss
        )
        return slices_of_ranges(feed, ranges, self._filter)


def ends_of(chains: Iterable[Chain]) -> dict[Key, Position]:
    """Returns the ends of recordings as they are now."""
    return {chain.key: chain.position(chain.rows) for chain in chains}


def advanced(
    start: Offset,
    chains: Iterable[Chain],
    filter_: RowFilter,
    *,
    files: int | None = None,
    rows: int | None = None,
    target: Mapping[Key, Position] | None = None,
) -> Offset:
    """Returns the offset behind at most so many files and rows; `start` itself if none is new.

        end = advanced(start, feed.chains(start), RowFilter(), rows=10_000)

    Recordings are taken in the order in which they come, and their rows in theirs. `rows` cuts a
    file anywhere: rows of one version may come in two batches. Files without a part in the wanted
    time count for no limit. `target` is an offset beyond which nothing is taken.
    """
    left = _Left(MOST_NUMBER if files is None else files, MOST_NUMBER if rows is None else rows)
    positions = dict(start.positions)
    for chain in chains:
        most = chain.rows if target is None else target.get(chain.key, Position()).rows
        begin = start.position(chain.key).rows
        end = left.take(chain, begin, min(chain.rows, most), filter_)
        if end > begin or chain.key in positions and begin == chain.rows:
            positions[chain.key] = chain.position(end)
    if not left.has_rows:
        return start
    begins = start.positions if start.is_initial else None
    return replace(start, positions=positions, is_initial=False, begin=begins)


class _Left:
    """The files and rows that a batch may still take."""

    def __init__(self, files: int, rows: int) -> None:
        self._files, self._rows = files, rows
        self.has_rows = False

    def take(self, chain: Chain, begin: int, end: int, filter_: RowFilter) -> int:
        """Returns the row before which the batch stops in a recording."""
        for piece in chain.pieces:
            stop = min(piece.end, end)
            if stop <= begin:
                continue
            if filter_.has(piece.from_us, piece.to_us):
                if self._files == 0 or self._rows == 0:
                    break
                stop = min(stop, begin + self._rows)
                self._files -= 1
                self._rows -= stop - begin
                self.has_rows = True
            begin = stop
            if begin < min(piece.end, end):
                break
        return begin
