"""Reads the heads of batches from the files of a log, which a node may be writing.

A batch is the unit that Kafka appends, with one CRC, one epoch and one time. A look at a log needs
no more than the heads: where it begins and ends, in which epochs, and which snapshots end where a
batch ends. C passes over the batches that bring nothing new. It also reads records, and checks each
CRC then.

Files are read and never mapped: a follower truncates its newest segment in place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rdmeta._core import kraft_batch, kraft_plain
from rdmeta.kraft.log_files import KraftError, LogChangedError, NodeFiles, SegmentFile

PIECE = 1 << 20
# Base offset, length, epoch, magic, attributes, last offset's delta, latest time, records.
_HEAD = struct.Struct(">qiib4xhi8xq14xi")
_ZEROS = bytes(_HEAD.size)
_CONTROL, _COMPRESSED = 0x20, 0x07
_MAGIC = 16  # the byte of a batch that has 2
# Kafka's batches of metadata are at most 8 MB: a larger length is none.
LONGEST = 1 << 24
_MOST = (1 << 63) - 1
# Is given bytes, a place in them and the head of the batch before it. Returns the place of the
# batch to go on with, and the last offset before that.
Passed: TypeAlias = "Callable[[bytes, int, BatchHead], tuple[int, int]]"


class BatchHead(NamedTuple):
    """The head of a batch at byte `at` of a file, with its first and last offset."""

    at: int
    size: int
    base: int
    last: int
    epoch: int
    time_ms: int
    is_control: bool
    records: int


class EpochSpan(NamedTuple):
    """The first and the last offset that a log has of an epoch, and the times of their batches."""

    epoch: int
    first: int
    last: int
    first_ms: int
    last_ms: int


class BatchEnd(NamedTuple):
    """The epoch and the time of a batch, and the latest time up to it."""

    epoch: int
    time_ms: int
    latest_us: int


class LogRun(NamedTuple):
    """Batches without a gap between them: offsets `start` to `end`, which is behind the last."""

    start: int
    end: int
    first_ms: int
    last_ms: int


@dataclass
class LogScan:
    """What the heads of a log say.

    `ends` has the batch that ends before each offset that was asked for.
    `control` has the places of control batches. `faults` names what is odd but no error, `lost`
    what of it is damage that no good batch follows.
    """

    runs: list[LogRun] = field(default_factory=list)
    epochs: list[EpochSpan] = field(default_factory=list)
    ends: dict[int, BatchEnd] = field(default_factory=dict)
    control: list[tuple[Path, BatchHead]] = field(default_factory=list)
    clocks_back: int = 0
    faults: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def start(self) -> int:
        """The first offset of the last run: 0 for an empty log."""
        return self.runs[-1].start if self.runs else 0

    @property
    def end(self) -> int:
        return self.runs[-1].end if self.runs else 0


def pieces(path: Path, size: int = PIECE, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields a file from the byte `at` on in pieces, each with its first byte's place."""
    with path.open("rb", buffering=0) as file:
        file.seek(at)
        while piece := file.read(size):
            yield at, piece
            at += len(piece)


def batch_heads(
    path: Path, faults: list[str], size: int = PIECE, lost: list[str] | None = None
) -> Iterator[BatchHead]:
    """Yields the heads of a file's whole batches.

    A batch that is cut off at the end, and zeros there, end it: a fault says so. Raises KraftError
    for what is no batch of a metadata log, and for zeros in the middle. With `lost` damage is a
    fault, and those that no good batch follows are there, too.
    """
    return (head for head, _, _ in _batches(path, faults, size, lost=lost))


def checked_batches(
    path: Path, faults: list[str], passed: Passed | None = None, begin: int = 0
) -> Iterator[tuple[BatchHead, bytes]]:
    """Yields each whole batch of a file with its bytes, as batch_heads() does its head.

    Raises KraftError for a wrong CRC, too. `passed` may pass over batches, as for `_batches`.
    `begin` is the byte where the first one begins.
    """
    for head, held, at in _batches(path, faults, PIECE, passed, begin=begin):
        if kraft_batch(held, at)[0] is not None:
            raise KraftError("its CRC is wrong", None, head.at, head.base)
        yield head, held[at : at + head.size]


def first_later(path: Path, time_ms: int) -> BatchHead | None:
    """Returns the first batch of a file, in the order of offsets, that is later than a time."""

    def passed(held: bytes, at: int, head: BatchHead) -> tuple[int, int]:
        at, end, _ = kraft_plain(held, at, head.last + 1, head.epoch, -_MOST, time_ms, _MOST)
        return at, end - 1

    # A look has named what is damaged, or has raised it.
    heads = (head for head, _, _ in _batches(path, [], PIECE, passed, []))
    return next((head for head in heads if head.time_ms > time_ms), None)


def next_batch(held: bytes, at: int, last: int, is_end: bool) -> tuple[int, bool]:
    """Returns where the next good batch behind an offset begins, from a place on, and True.

    Without one the place is where it may begin when more bytes follow; there are none with
    `is_end`. So nothing before the place is needed again.
    """
    while (found := held.find(b"\2", at + _MAGIC)) >= 0:
        at = found - _MAGIC
        if len(held) - at < _HEAD.size:
            return at, False
        base, length, _, _, _, delta, _, records = _HEAD.unpack_from(held, at)
        if base > last and _HEAD.size - 12 <= length <= LONGEST and delta == records - 1 >= 0:
            fault = kraft_batch(held, at)[0]
            if fault is None or (fault == "cut" and not is_end):
                return at, fault is None
        at += 1
    return max(at, len(held) - _MAGIC), False


def whole_batches(files: NodeFiles) -> Iterator[tuple[SegmentFile, BatchHead, bytes]]:
    """Yields all batches of a log with their bytes."""
    for segment in files.segments:
        for head, held, at in _batches(segment.path, [], PIECE):
            yield segment, head, held[at : at + head.size]


def _batches(
    path: Path,
    faults: list[str],
    size: int,
    passed: Passed | None = None,
    lost: list[str] | None = None,
    begin: int = 0,
) -> Iterator[tuple[BatchHead, bytes, int]]:
    """Yields each whole batch: its head, bytes that have it, and its place in them.

    `passed` is called behind each, and may pass over batches that follow: it returns the place
    where it stands, and the last offset before that. With `lost` a damaged head is a fault, and
    the next good batch follows it; if none does, `lost` gets it, too.
    """
    held, last = b"", None  # `held` begins at the byte `begin`
    damage: str | None = None  # before that byte; a good batch is sought
    for piece in chain((piece for _, piece in pieces(path, size, begin)), [b""]):
        held += piece
        at = 0
        while True:
            if damage is not None:
                at, is_good = next_batch(held, at, -1 if last is None else last, not piece)
                if not is_good:
                    break
                faults.append(damage)
                damage = None
            if len(held) - at < _HEAD.size or held[at : at + _HEAD.size] == _ZEROS:
                break
            try:
                head = _head(held, at, path, begin + at, last)
            except KraftError as error:
                if lost is None:
                    raise
                damage = str(error)
                at += 1
                continue
            if len(held) - at < head.size:
                break
            yield head, held, at
            at, last = at + head.size, head.last
            if passed is not None:
                at, last = passed(held, at, head)
        begin, held = begin + at, held[at:]
        if damage is None and held[: _HEAD.size] == _ZEROS:
            break
    if lost is not None and damage is not None:
        faults.append(damage)
        lost.append(damage)
    elif held:
        rest, is_zero = _rest(path, begin)
        if held[: _HEAD.size] == _ZEROS and not is_zero:
            raise KraftError("zeros, and bytes behind them", path, begin)
        what = "zeros" if is_zero else "a batch that is cut off"
        behind = "" if last is None else f", behind offset {last}"
        faults.append(f"{path}, byte {begin}: {what} at the end, {rest} bytes{behind}")


def _rest(path: Path, begin: int) -> tuple[int, bool]:
    """Returns how many bytes a file has from `begin` on, and whether all are zeros."""
    size, is_zero = 0, True
    for place, piece in pieces(path):
        part = piece[max(0, begin - place) :]
        size += len(part)
        is_zero = is_zero and not any(part)
    return size, is_zero


def _head(data: bytes, at: int, path: Path, byte: int, last: int | None) -> BatchHead:
    """Returns the head at a place. `last` is the offset before it."""
    base, length, epoch, magic, attributes, delta, time_ms, records = _HEAD.unpack_from(data, at)
    expected = None if last is None else last + 1
    if magic in (0, 1):
        raise KraftError(f"message format {magic}, which no metadata log has", path, byte, expected)
    is_odd = epoch < 0 or not 0 <= base <= base + delta < _MOST
    if magic != 2 or not _HEAD.size - 12 <= length <= LONGEST or is_odd:
        raise KraftError("no record batch; the file is damaged, or no log", path, byte, expected)
    if attributes & _COMPRESSED:
        raise KraftError("a compressed batch, which no metadata log has", path, byte, base)
    if last is not None and base <= last:
        raise KraftError(f"offset {base} follows offset {last}", path, byte, expected)
    is_control = bool(attributes & _CONTROL)
    return BatchHead(byte, 12 + length, base, base + delta, epoch, time_ms, is_control, records)


def scan_log(files: NodeFiles, ends: Iterable[int] = (), skip: bool = False) -> LogScan:
    """Returns what the heads of a node's segments say.

    `ends` are the offsets of which the batch before them is of interest. Raises KraftError for
    damaged bytes, unless they are passed over with `skip`, and for a file that went twice.
    """
    try:
        return _scanned(files, frozenset(ends), skip)
    except FileNotFoundError:
        pass
    # The node may have removed an old segment: those that are left are a log as well.
    left = tuple(each for each in files.segments if each.path.exists())
    try:
        return _scanned(files._replace(segments=left), frozenset(ends), skip)
    except FileNotFoundError as error:
        raise LogChangedError(
            "the file went while the log was read", Path(error.filename)
        ) from error


def _scanned(files: NodeFiles, ends: frozenset[int], skip: bool) -> LogScan:
    follower = _Follower(ends, skip)
    faults = follower.scan.faults
    for number, segment in enumerate(files.segments):
        before, is_empty = len(faults), True
        is_newest = number == len(files.segments) - 1
        # Damage at the end of an older segment is a gap.
        lost = (follower.scan.lost if is_newest else []) if skip else None
        for head, _, _ in _batches(segment.path, faults, PIECE, follower.passed, lost):
            follower.add(segment, head)
            is_empty = False
        if len(faults) > before and not (is_newest or skip):
            raise KraftError(
                f"{faults[-1]}; it is not the newest segment, so later ones do not follow it"
            )
        if is_empty and len(faults) == before:
            faults.append(f"{segment.path} is empty")
    return follower.finished()


class _Follower:
    """Takes heads one after the other; keeps the run and the epoch that go on as plain numbers."""

    def __init__(self, ends: frozenset[int], skip: bool) -> None:
        self.scan = LogScan()
        self._skip = skip
        self._ends = ends
        self._stops = sorted(ends, reverse=True)
        self._epoch = self._end = -1
        self._epoch_first = (0, 0)
        self._start = self._first_ms = self._last_ms = self._time_ms = 0

    def add(self, segment: SegmentFile, head: BatchHead) -> None:
        """Takes a head. Raises KraftError for one out of order, which is a fault with `skip`."""
        try:
            self._take(segment, head)
        except KraftError as error:
            if not self._skip:
                raise
            self.scan.faults.append(str(error))
            if head.base >= max(self._end, segment.base):  # only its epoch is odd
                self._end_epoch()
                self._epoch = -1
                self._take(segment, head)

    def _take(self, segment: SegmentFile, head: BatchHead) -> None:
        at, _, base, last, epoch, time_ms, is_control, _ = head
        if base < segment.base:
            said = f"its name says {segment.base}, and it has offset {base}"
            raise KraftError(said, segment.path, at)
        if epoch != self._epoch or base != self._end:
            self._turn(segment, head)
        elif time_ms < self._last_ms:
            self.scan.clocks_back += 1
        if time_ms > self._last_ms:
            self._last_ms = time_ms
        self._end = last + 1
        self._time_ms = time_ms
        if self._end in self._ends:
            self.scan.ends[self._end] = BatchEnd(epoch, time_ms, 1000 * self._last_ms)
        if is_control:
            self.scan.control.append((segment.path, head))

    def passed(self, held: bytes, at: int, _head: BatchHead) -> tuple[int, int]:
        """Passes over batches that only go on; returns the place behind them and their last offset.

        One that may end at a wanted offset is not passed over.
        """
        while self._stops and self._stops[-1] <= self._end:
            del self._stops[-1]
        stop = self._stops[-1] if self._stops else _MOST
        behind, self._end, time_ms = kraft_plain(
            held, at, self._end, self._epoch, self._last_ms, _MOST, stop
        )
        if behind > at:
            self._time_ms = self._last_ms = time_ms
        return behind, self._end - 1

    def _turn(self, segment: SegmentFile, head: BatchHead) -> None:
        """Ends the epoch or the run, of which the head is not."""
        if head.epoch < self._epoch:
            said = f"epoch {head.epoch} follows epoch {self._epoch}"
            raise KraftError(said, segment.path, head.at, head.base)
        if head.base < self._end:
            said = f"offset {head.base} follows offset {self._end - 1}"
            raise KraftError(said, segment.path, head.at, head.base)
        if head.epoch > self._epoch:
            self._end_epoch()
            self._epoch, self._epoch_first = head.epoch, (head.base, head.time_ms)
        if head.base > self._end:
            self._end_run()
            self._start, self._first_ms, self._last_ms = head.base, head.time_ms, head.time_ms
        self.scan.clocks_back += head.time_ms < self._last_ms

    def _end_epoch(self) -> None:
        if self._epoch >= 0:
            first, first_ms = self._epoch_first
            self.scan.epochs.append(
                EpochSpan(self._epoch, first, self._end - 1, first_ms, self._time_ms)
            )

    def _end_run(self) -> None:
        if self._end >= 0:
            self.scan.runs.append(LogRun(self._start, self._end, self._first_ms, self._last_ms))

    def finished(self) -> LogScan:
        self._end_epoch()
        self._end_run()
        return self.scan
