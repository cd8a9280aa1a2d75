"""Replays a node's log to an offset or a time: from the nearest snapshot before it, batch by batch.

Files are read in pieces and given to C, which checks each CRC and releases the GIL. What is bad is
raised as KraftError with its file, byte and offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from rdmeta._core import KraftReplay, kraft_batch
from rdmeta._moments import nearest_moment
from rdmeta.errors import MalformedError
from rdmeta.kraft.log_files import DamagedBatchError, KraftError, LogChangedError, SnapshotFile
from rdmeta.kraft.proving import NodeLog, had, restart_of
from rdmeta.kraft.scanning import LONGEST, PIECE, first_later, next_batch, pieces

_ENDS = (None, "cut", "zeros", "reached")
# A batch that is bad by itself: the next one follows it. Behind a damaged head it is searched for.
_PASSABLE = ("bad_crc", "compressed", "bad_record")
_DAMAGED = ("no_batch", "old_format")


def offset_at(log: NodeLog, time_us: int) -> int:
    """Returns the offset of the first batch, in the order of offsets, that is later than a time.

    Without one that is the log's end. So a state at this offset is the state at the time, also
    where a clock went back. Raises KraftError, also for a time before what the log has.
    """
    begun = {run.start for run in log.scan.runs if run.start}
    for segment in log.files.segments:
        head = first_later(segment.path, time_us // 1000)
        if head is not None:
            if head.base in begun and not _is_known(log, head.base, time_us):
                raise KraftError(f"no state of that time can be made: {had(log)}")
            return head.base
    return log.end


def _is_known(log: NodeLog, begin: int, time_us: int) -> bool:
    """Returns whether the state of a time before a run's first batch is that of a snapshot."""
    return any(
        use.file.end == begin and use.last_ms is not None and 1000 * use.last_ms <= time_us
        for use in log.snapshots
        if use.why_not is None
    )


class LogReplay:
    """A replay of a log that begins with the nearest snapshot, and goes on from point to point.

    `began` is that snapshot. `skipped` names the batches that `skip` passed over.
    """

    def __init__(
        self, log: NodeLog, at: int, *, skip: bool = False, piece: int = PIECE, **options: Any
    ) -> None:
        """Begins a replay of which the first point is not before the offset `at`."""
        self.skipped: list[str] = []
        try:
            self.began = restart_of(log, at)
        except KraftError as error:
            if not skip:
                raise
            self.began = next((each for each in reversed(log.used) if each.end <= at), None)
            self.skipped.append(str(error))
        if self.began is not None:
            known = {"epoch": self.began.epoch, "leader": log.leaders.get(self.began.epoch)}
            if (before := log.scan.ends.get(self.began.end)) is not None:
                known["latest_us"] = before.latest_us
            options = {**known, **options}
        self.replay = KraftReplay(skip=skip, **options)
        self._skip = skip
        self._piece = piece
        first = 0 if self.began is None else self.began.end
        segments = log.files.segments
        ends = [*(each.base for each in segments), 1 << 63][1:]
        self._paths = [each.path for each, end in zip(segments, ends, strict=True) if end > first]
        self._byte = 0
        self._is_there = False
        self._lost: KraftError | None = None
        if self.began is not None:
            self._snapshot(self.began)

    @property
    def fault(self) -> str | None:
        """How the last step ended: "reached" at a point, "cut" or "zeros" at the log's end."""
        return self.replay.fault[0]

    @property
    def faults(self) -> tuple[str, ...]:
        """What was passed over: batches, and how many records of the others."""
        info, found = self.replay.info(), list(self.skipped)
        if info["unknown"]:
            found.append(f"{info['unknown']} records of a type or version that is unknown")
        if info["skipped"] > len(self.skipped):  # a batch leaves a gap, which is one, too
            left = info["skipped"] - len(self.skipped)
            found.append(f"{left} records that contradict the state, or themselves")
        return tuple(found)

    @property
    def next(self) -> int:
        """The offset behind what was replayed."""
        found: int = self.replay.info()["next"]
        return found

    def upcoming(self) -> datetime:
        """Returns the time of the batch that follows the point; there must be one."""
        _, piece = next(pieces(self._paths[0], self._piece, self._byte))
        return nearest_moment(1000 * kraft_batch(piece)[4])

    def advance(self, until: int, until_us: int | None = None) -> None:
        """Goes on to the offset `until`, and to the first batch that is later than `until_us`.

        Raises KraftError; LogChangedError if the log ends before.
        """
        for _ in self.steps(until, until_us):
            pass
        self.require(until)

    def require(self, until: int) -> None:
        """Raises LogChangedError if the log ended before the offset `until`."""
        if self.next < until and self.fault != "reached" and not self._skip:
            raise LogChangedError(
                f"the log ends at offset {self.next}, and had {until} when it was looked at"
            )

    def steps(
        self,
        until: int,
        until_us: int | None = None,
        apply: Callable[[bytes], int] | None = None,
    ) -> Iterator[None]:
        """Goes on as advance() does; yields after each piece.

        `apply` takes bytes in place of the replay, and returns how many it used. It ends the way if
        it leaves whole batches.
        """
        self.replay.until(until, *(() if until_us is None else (until_us,)))
        while self._paths:
            yield from self._give(self._paths[0], apply or self.replay.replay)
            if self._is_there or not self._paths[1:]:
                return
            del self._paths[0]
            self._byte = 0

    def _snapshot(self, file: SnapshotFile) -> None:
        has_ended = False

        def apply(data: bytes) -> int:
            nonlocal has_ended
            used, has_ended = self.replay.snapshot(data, file.end, file.epoch)
            return used

        for _ in self._give(file.path, apply):
            pass
        self._byte = 0
        if not has_ended:
            raise KraftError("the snapshot is cut short", file.path)

    def _give(self, path: Path, apply: Callable[[bytes], int]) -> Iterator[None]:
        """Gives a file from the byte where it stands; yields after each piece."""
        held = b""
        self._is_there = False
        for piece in chain(self._pieces(path), [b""]):
            if not (piece or self._lost):
                break
            held = held + piece if held else piece
            used = self._applied(path, held, apply, not piece)
            held, self._byte = held[used:], self._byte + used
            yield
            code = self.replay.fault[0]
            self._is_there = code == "reached" or bool(held and code is None)
            if self._is_there or code == "zeros":
                return
        if self._lost is not None:
            self.skipped.append(str(self._lost))
            self._lost = None

    def _pieces(self, path: Path) -> Iterator[bytes]:
        try:
            yield from (piece for _, piece in pieces(path, self._piece, self._byte))
        except FileNotFoundError:
            raise LogChangedError("the file went while the log was read", path) from None

    def _applied(self, path: Path, held: bytes, apply: Callable[[bytes], int], is_end: bool) -> int:
        """Returns how many bytes were used; what `skip` passes over is used, too."""
        used = 0
        while True:
            if self._lost is not None:
                used, is_good = next_batch(held, used, self.next - 1, is_end)
                if not is_good:
                    return used
                self.skipped.append(str(self._lost))
                self._lost = None
            try:
                used += apply(held[used:] if used else held)
            except MalformedError:
                used += self.replay.fault[2]
            code, offset, _, needed, text = self.replay.fault
            if code == "cut" and needed > 12 + LONGEST:
                code = "no_batch"
            if code in _ENDS:
                return used
            if code == "bad_record":
                text += "; is it the log of another topic?"
            is_damaged = code in (*_PASSABLE, *_DAMAGED)
            kind = DamagedBatchError if is_damaged and code != "bad_record" else KraftError
            error = kind(text, path, self._byte + used, offset)
            if not (self._skip and is_damaged):
                raise error
            if code in _PASSABLE:
                self.skipped.append(str(error))
                used += kraft_batch(held, used)[1]
            else:
                self._lost = error
                used += 1
