"""How far a batch goes: the next offset, by the limits on files and rows of a trigger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rdmeta.spark.source.folder_feed import Chain
from rdmeta.spark.source.offsets import Key, Offset, Position
from rdmeta.spark.source.row_filter import RowFilter

__all__ = ["advanced", "ends_of"]

_ALL = (1 << 63) - 1


def ends_of(chains: Iterable[Chain]) -> dict[Key, Position]:
    """Returns the ends of recordings as they are now."""
    return {chain.key: chain.position(chain.rows) for chain in chains}


def advanced(
    start: Offset,
    chains: Iterable[Chain],
    wanted: RowFilter,
    *,
    files: int | None = None,
    rows: int | None = None,
    target: Mapping[Key, Position] | None = None,
) -> Offset:
    """Returns the offset behind at most so many files and rows; `start` itself if none is new.

        end = advanced(start, feed.chains(start), Wanted(), rows=10_000)

    Recordings are taken in the order in which they come, and their rows in theirs. `rows` cuts a
    file anywhere: rows of one version may come in two batches. Files without a part in the wanted
    time count for no limit. `target` is an offset beyond which nothing is taken.
    """
    left = _Left(_ALL if files is None else files, _ALL if rows is None else rows)
    positions = dict(start.positions)
    for chain in chains:
        most = chain.rows if target is None else target.get(chain.key, Position()).rows
        begin = start.position(chain.key).rows
        end = left.taken(chain, begin, min(chain.rows, most), wanted)
        if end > begin or chain.key in positions and begin == chain.rows:
            positions[chain.key] = chain.position(end)
    if not left.has_taken:
        return start
    begins = start.positions if start.is_initial else None
    return replace(start, positions=positions, is_initial=False, begin=begins)


class _Left:
    """The files and rows that a batch may still take."""

    def __init__(self, files: int, rows: int) -> None:
        self._files, self._rows = files, rows
        self.has_taken = False

    def taken(self, chain: Chain, begin: int, end: int, wanted: RowFilter) -> int:
        """Returns the row before which the batch stops in a recording."""
        for piece in chain.pieces:
            stop = min(piece.end, end)
            if stop <= begin:
                continue
            if wanted.has(piece.from_us, piece.to_us):
                if self._files == 0 or self._rows == 0:
                    break
                stop = min(stop, begin + self._rows)
                self._files -= 1
                self._rows -= stop - begin
                self.has_taken = True
            begin = stop
            if begin < min(piece.end, end):
                break
        return begin
