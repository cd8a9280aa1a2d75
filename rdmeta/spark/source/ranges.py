"""Rows of recordings by their numbers: what a task of a stream reads.

A compaction may replace a file between the plan and the task. Its rows keep their numbers then, so
the task looks for them once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history.schema import HistoryError
from rdmeta.pipeline.redaction import redacted
from rdmeta.pipeline.store import Store
from rdmeta.spark.source.files import PACK_BYTES, ROW_BYTES, opened, packed, whole
from rdmeta.spark.source.folder_feed import Chain, FolderFeed, Piece
from rdmeta.spark.source.offsets import Key
from rdmeta.spark.source.recorded import history_place
from rdmeta.spark.source.row_filter import RowFilter, chosen, groups_of, needed
from rdmeta.spark.source.schemas import CHANGES
from rdmeta.spark.source.slices import BATCH_ROWS, Slice

__all__ = ["Range", "RangesSlice", "ranges_of", "slices_of_ranges"]

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

    def __init__(self, feed: FolderFeed, ranges: Sequence[Range], wanted: RowFilter) -> None:
        super().__init__()
        self._feed, self._ranges, self._wanted = feed, tuple(ranges), wanted

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

        Raises _ReplacedError before it yields, or HistoryError.
        """
        piece = part.piece
        try:
            with opened(store, piece.name) as stream:
                file = pq.ParquetFile(stream) if stream.size() == piece.size else None
                if file is None or file.metadata.num_rows != piece.rows:
                    raise _MovedError
                yield from self._of_groups(file, part, columns)
        except FileNotFoundError as error:
            raise _MovedError from error
        except (OSError, pa.ArrowException) as error:
            raise HistoryError(f"{store.shown(piece.name)}: {error}") from error

    def _of_groups(
        self, file: pq.ParquetFile, part: Range, columns: pa.Schema
    ) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        names = needed(CHANGES, columns, self._wanted)
        there = [name for name in names if name in file.schema_arrow.names]
        hopeful = set(groups_of(file.metadata, CHANGES, self._wanted))
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
                    rows = chosen(whole(cut, columns), CHANGES, self._wanted)
                    yield cut.num_rows, redacted(rows)


def ranges_of(chain: Chain, begin: int, end: int) -> Iterator[Range]:
    """Yields the ranges of a recording's rows `begin` to before `end`, one for each file."""
    for piece in chain.pieces:
        low, high = max(begin, piece.begin), min(end, piece.end)
        if low < high:
            yield Range(chain.key, low, high, piece)


def slices_of_ranges(feed: FolderFeed, ranges: Iterable[Range], wanted: RowFilter) -> list[Slice]:
    """Returns ranges in slices of about the size that a task takes; a large range is cut."""
    cut = (piece for each in ranges for piece in _cut(each))
    packs = packed(cut, lambda each: (each.end - each.begin) * ROW_BYTES)
    return [RangesSlice(feed, pack, wanted) for pack in packs]


def _cut(each: Range) -> Iterator[Range]:
    step = PACK_BYTES // ROW_BYTES
    for begin in range(each.begin, each.end, step):
        yield replace(each, begin=begin, end=min(begin + step, each.end))
