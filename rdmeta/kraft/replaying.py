"""Replays a node's log to an offset or a time: from the nearest snapshot before it, batch by batch.

Files are read in pieces and given to C, which checks each CRC and releases the GIL. What is bad is
raised as KraftError with its file, byte and offset.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rdmeta._core import KraftReplay, kraft_batch
from rdmeta.errors import MalformedError
from rdmeta.kraft.log_files import KraftError, SnapshotFile
from rdmeta.kraft.proving import NodeLog, restart_of
from rdmeta.kraft.scanning import PIECE, batch_heads, pieces

__all__ = ["Replayed", "offset_at", "replayed"]

# A batch that is bad by itself: the next one can be read.
_PASSABLE = ("bad_crc", "compressed", "bad_record")


class Replayed(NamedTuple):
    """A replay at its end. `skipped` names the batches that `skip` passed over."""

    replay: KraftReplay
    began: SnapshotFile | None
    skipped: tuple[str, ...]


def offset_at(log: NodeLog, time_us: int) -> int:
    """Returns the offset of the first batch, in the order of offsets, that is later than a time.

    Without one that is the log's end. So a state at this offset is the state at the time, also
    where a clock went back. Raises KraftError.
    """
    for segment in log.files.segments:
        for head in batch_heads(segment.path, []):
            if 1000 * head.time_ms > time_us:
                return head.base
    return log.scan.end


def replayed(
    log: NodeLog, at: int | None = None, *, skip: bool = False, piece: int = PIECE, **options: Any
) -> Replayed:
    """Replays a log up to the offset `at`, or to its end.

    `at` is a commit's end: batches that reach beyond it are left out. `options` are those of
    KraftReplay. With `skip`, what is bad is passed over, and the state is then partial. Raises
    KraftError.
    """
    end = log.scan.end if at is None else at
    began = restart_of(log, end)
    feed = _Feed(KraftReplay(until_offset=end, skip=skip, **options), skip, piece)
    if began is not None:
        feed.snapshot(began)
    first = 0 if began is None else began.end
    segments = log.files.segments
    for segment, later in zip(segments, (*segments[1:], None), strict=True):
        if (later is None or later.base > first) and segment.base < end:
            feed.segment(segment.path)
    return Replayed(feed.replay, began, tuple(feed.skipped))


class _Feed:
    """Gives files to a replay, in pieces."""

    def __init__(self, replay: KraftReplay, skip: bool, piece: int) -> None:
        self.replay = replay
        self.skipped: list[str] = []
        self._skip = skip
        self._piece = piece

    def snapshot(self, file: SnapshotFile) -> None:
        has_ended = False

        def apply(data: bytes) -> int:
            nonlocal has_ended
            used, has_ended = self.replay.snapshot(data, file.end, file.epoch)
            return used

        self._give(file.path, apply)
        if not has_ended:
            raise KraftError("the snapshot is cut short", file.path)

    def segment(self, path: Path) -> None:
        self._give(path, self.replay.replay)

    def _give(self, path: Path, apply: Callable[[bytes], int]) -> None:
        held, begin = b"", 0
        for _, piece in pieces(path, self._piece):
            held = held + piece if held else piece
            used = self._applied(path, begin, held, apply)
            held, begin = held[used:], begin + used
            if self.replay.fault[0] in ("reached", "zeros"):
                return

    def _applied(self, path: Path, begin: int, held: bytes, apply: Callable[[bytes], int]) -> int:
        """Returns how many bytes were used; what `skip` passes over is used, too."""
        used = 0
        while True:
            try:
                return used + apply(held[used:] if used else held)
            except MalformedError:
                code, offset, byte, _, text = self.replay.fault
                error = KraftError(text, path, begin + used + byte, offset)
                if not self._skip or code not in _PASSABLE:
                    raise error from None
                self.skipped.append(str(error))
                used += byte + kraft_batch(held, used + byte)[1]
