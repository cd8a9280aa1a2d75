"""The files of metadata logs among the input: which there are, and what each one holds.

A file is read once, from its first batch to its last. A row of `input.parquet` then says:

- `from_offset`, `to_offset`: its offsets, as far as its batches are whole and their CRCs are right.
  What is behind that counts no more than if the file ended there; `reason` says why.
- `epochs`: for each epoch its first and last offset, and the times of these batches.
- `days`: for each day in UTC its offsets, its bytes, its times, and the digest of its batches. A
  batch belongs to the day of the latest time so far. Digests are sums, so those of two parts of a
  day make that of the whole, however nodes cut their segments.
- `marks`: its control batches, which name voters and leaders; and the batches that end where a
  snapshot ends, which say whether that belongs to the log; and how often its clock went back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from rdmeta._core import kraft_records, kraft_sum, kraft_summed
from rdmeta.errors import MalformedError
from rdmeta.kraft.log_files import LOG_NAME, KraftError, NodeFiles, files_in, is_part
from rdmeta.kraft.proving import LEADER_CHANGE, time_of_snapshot, why_foreign
from rdmeta.kraft.scanning import BatchHead, EpochSpan, checked_batches
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.layout import BRONZE
from rdmeta.pipeline.store import Store, is_text
from rdmeta.pipeline.stored_path import path_in

KINDS = ("segment", "snapshot")
QUORUM_STATE = "quorum-state"
NOTES = ("meta.properties", QUORUM_STATE)
_SUM = 1 << 128
_DAY_MS = 86_400_000
_IN_OUT = re.compile(f"{BRONZE}/cluster=[^/]+/log/node=[^/]+")
_MOST_MS = 253_402_300_799_000  # the end of the year 9999
_NO_STOP = (1 << 63) - 1


class DayPart(NamedTuple):
    """The batches of one day in one file; `digest` is the sum of theirs, as hexadecimal."""

    day: int
    first: int
    end: int
    digest: str
    from_byte: int
    to_byte: int
    first_ms: int
    last_ms: int


@dataclass
class LogFolder:
    """A directory of a log: the store that has it, its name there, its notes and its files.

    `unsure` are the names of files that are new, or contradicted others when they were read.
    """

    store: Store
    name: str
    files: NodeFiles
    rows: list[Input] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)

    @property
    def path(self) -> Path:
        return path_in(self.store, self.name)


def is_raw(each: Input) -> bool:
    """Returns whether an input is a file of a metadata log."""
    return each.kind in KINDS


def parts_of(each: Input) -> list[DayPart]:
    """Returns the days of a segment."""
    return [DayPart(*values) for values in json.loads(each.days or "[]")]


def epochs_of(each: Input) -> list[EpochSpan]:
    """Returns the epochs of a segment; a snapshot has that of its last batch."""
    return [EpochSpan(*values) for values in json.loads(each.epochs or "[]")]


def marks_of(each: Input) -> dict[str, Any]:
    """Returns the marks of a segment.

    These are the heads of its `control` batches, the `leaders` by epoch that they name, and for the
    `ends` of snapshots the epoch, the time and the latest time of the batch there, None for none.
    `clocks_back` counts the batches whose time is before the latest one.
    """
    found: dict[str, Any] = json.loads(each.marks or "{}")
    return {"control": [], "leaders": [], "ends": {}, "clocks_back": 0, **found}


def good_bytes(each: Input) -> int:
    """Returns how many bytes of a file count."""
    if each.kind == "snapshot":
        return each.bytes
    return max((part.to_byte for part in parts_of(each)), default=0)


def batches_between(file: Input, first: int, end: int) -> Iterator[tuple[BatchHead, bytes]]:
    """Yields the batches of some offsets. What is behind them is not read: it may be damaged."""
    for head, data in checked_batches(_path(file), [], begin=_byte_of(file, first)):
        if first <= head.base < end:
            yield head, data
        if head.last + 1 >= end:
            return


def digest_between(file: Input, first: int, end: int) -> str:
    """Returns the digest of the batches of some offsets."""
    total = 0

    def passed(held: bytes, at: int, head: BatchHead) -> tuple[int, int]:
        nonlocal total
        if head.last + 1 >= end:
            return at, head.last
        is_inside = head.last + 1 >= first
        known = head.last + 1, head.epoch, 0, _MOST_MS, end if is_inside else first
        at, behind, _, _, found = kraft_summed(held, at, *known)
        total += found if is_inside else 0
        return at, behind - 1

    for head, data in checked_batches(_path(file), [], passed, _byte_of(file, first)):
        total += kraft_sum(data) if first <= head.base < end else 0
        if head.last + 1 >= end:
            break
    return sum_of([total])


def _path(file: Input) -> Path:
    return path_in(Store(file.store), file.name)


def _byte_of(file: Input, offset: int) -> int:
    """Returns where the day begins in a file that has an offset."""
    return max((each.from_byte for each in parts_of(file) if each.first <= offset), default=0)


def sum_of(digests: Iterable[int]) -> str:
    """Returns the digest of several batches, or parts of a day."""
    return f"{sum(digests) % _SUM:032x}"


# ---- directories --------------------------------------------------------------------------------


def log_folders(store: Store, *, is_out: bool = False) -> tuple[list[LogFolder], list[Input]]:
    """Returns the directories of logs in a store, and files that cannot be used, with the reason.

    Those of an input are called `__cluster_metadata-0`; those of the output folder are
    bronze/cluster=ID/log/node=N.
    """
    found: list[LogFolder] = []
    bad: list[Input] = []
    for name in _of_out(store) if is_out else _of_input(store):
        if not is_text(name):
            continue
        path = path_in(store, name)
        try:
            files = files_in(path)
        except KraftError as error:
            bad += _refused(store, name, path, str(error).removeprefix(f"{path}: "))
            continue
        where = os.path.abspath(store.path(name))
        cluster_id = files.cluster_id or _above(where, "cluster=")
        number = str(files.node) if files.node is not None else _above(where, "node=")
        if cluster_id is None or number is None or not number.isdecimal():
            bad += _refused(store, name, path, _LACKING)
            continue
        node = int(number)
        if is_out and not _is_later_than_files(path / QUORUM_STATE, files):
            files = files._replace(quorum=None)
        found.append(LogFolder(store, name, files._replace(cluster_id=cluster_id, node=node)))
    return found, bad


_LACKING = (
    "the log's cluster and node are not known: put the node's meta.properties beside"
    f" {LOG_NAME}, or that into folders cluster=ID/node=N"
)


def _is_later_than_files(note: Path, files: NodeFiles) -> bool:
    """Returns whether a copy was written after those of the segments, so that it proves them."""
    times = [each.path.stat().st_mtime_ns for each in files.segments]
    return note.is_file() and note.stat().st_mtime_ns >= max(times, default=0)


def _of_input(store: Store) -> Iterator[str]:
    """Yields the names of the directories of logs in an input."""
    top = store.path()
    if os.path.basename(top) == LOG_NAME:
        yield ""
        return
    if not store.is_local:
        yield from sorted(_stored_folders(store, lambda name: os.path.basename(name) == LOG_NAME))
        return
    for folder, folders, _ in os.walk(top, followlinks=False):
        # Folders of recordings are many, and no log is in them.
        folders[:] = sorted(each for each in folders if not each.startswith("day="))
        if LOG_NAME in folders:
            folders.remove(LOG_NAME)
            yield os.path.relpath(os.path.join(folder, LOG_NAME), top)


def _of_out(store: Store) -> Iterator[str]:
    if not store.is_local:
        yield from sorted(_stored_folders(store, _IN_OUT.fullmatch, BRONZE))
        return
    top = Path(store.path())
    for each in sorted(top.glob(f"{BRONZE}/cluster=*/log/node=*")):
        if each.is_dir():
            yield str(each.relative_to(top))


def _stored_folders(store: Store, is_log: Callable[[str], object], below: str = "") -> set[str]:
    """Returns the folders of logs in an object store, which has files alone."""
    folders = {each.name.rpartition("/")[0] for each in store.files(below)}
    return {each for each in folders if is_log(each)}


def _above(where: str, prefix: str) -> str | None:
    """Returns what a folder above, or the folder itself, says behind a prefix."""
    for part in reversed(where.split("/")):
        if part.startswith(prefix) and len(part) > len(prefix):
            return unquote(part.removeprefix(prefix))
    return None


def _refused(store: Store, name: str, path: Path, reason: str) -> Iterator[Input]:
    for each in sorted(path.iterdir()):
        if is_part(each.name) and is_text(each.name):
            yield _bare(store, f"{name}/{each.name}".lstrip("/"), each, "segment", reason)


def _bare(store: Store, name: str, path: Path, kind: str, reason: str | None = None) -> Input:
    about = path.stat()
    state = "good" if reason is None else "quarantined"
    return Input(store.where, name, about.st_size, about.st_mtime_ns, "", state, reason, kind)


# ---- files --------------------------------------------------------------------------------------


def look_at_logs(
    folders: Sequence[LogFolder],
    known: Mapping[tuple[str, str], Input],
    last_run: Mapping[tuple[str, str], Input],
    again: Collection[str] | None = None,
) -> None:
    """Fills in the rows of directories; a file that is as `known` has it is not read again.

    A segment is also read again if it lacks the mark of a snapshot's end. What is not as it was at
    the end of the `last_run` is unsure. With `again` this is another look during a run: only files
    in those stores are new, others count as they are known.
    Raises OSError.
    """
    ends: dict[str, set[int]] = {}
    for folder in folders:
        for snapshot in folder.files.snapshots:
            ends.setdefault(folder.files.cluster_id or "", set()).add(snapshot.end)
    for folder in folders:
        wanted = ends.get(folder.files.cluster_id or "", set())
        newest = folder.files.segments[-1].path if folder.files.segments else None
        for segment in folder.files.segments:
            row = _row(folder, segment.path, "segment")
            before = known.get((row.store, row.name))
            if again is not None and row.store not in again:
                folder.rows += [] if before is None else [_as_looked_at(before)]
                continue
            if before is None or not _is_same(before, row) or _lacks(before, wanted):
                before = _read(row, segment.path, segment.base, wanted, segment.path == newest)
            folder.rows.append(_as_looked_at(before))
        for snapshot in folder.files.snapshots:
            row = _row(folder, snapshot.path, "snapshot")
            before = known.get((row.store, row.name))
            if again is not None and row.store not in again:
                folder.rows += [] if before is None else [before]
                continue
            if before is None or not _is_same(before, row):
                before = _read_snapshot(row, snapshot.path, snapshot.end, snapshot.epoch)
            folder.rows.append(before)
        for row in folder.rows:
            last = last_run.get((row.store, row.name))
            if last is None or last.sha256 != row.sha256 or last.state == "set aside":
                folder.unsure.add(row.name)
        _use_snapshots(folder)


def _as_looked_at(row: Input) -> Input:
    return row if row.state == "quarantined" else replace(row, state="good", reason=None)


def _row(folder: LogFolder, path: Path, kind: str) -> Input:
    name = f"{folder.name}/{path.name}".lstrip("/")
    bare = _bare(folder.store, name, path, kind)
    return replace(bare, cluster_id=folder.files.cluster_id, node=folder.files.node)


def _is_same(before: Input, row: Input) -> bool:
    same = (before.bytes, before.mtime_ns, before.cluster_id, before.node, before.kind)
    return same == (row.bytes, row.mtime_ns, row.cluster_id, row.node, row.kind)


def _lacks(before: Input, wanted: Collection[int]) -> bool:
    """Returns whether a segment lacks the mark of a snapshot that ends in it."""
    first, end = before.from_offset or 0, before.to_offset or 0
    inside = [each for each in wanted if first < each <= end]
    ends = marks_of(before)["ends"] if inside else {}
    return any(str(each) not in ends for each in inside)


def _read(bare: Input, path: Path, base: int, wanted: Collection[int], is_newest: bool) -> Input:
    """Returns a segment with what its batches say."""
    reader, faults, reason = _Reader(base, wanted), list[str](), None
    try:
        for head, data in checked_batches(path, faults, reader.passed):
            reader.take(head, data)
    except KraftError as error:
        reason = str(error)
    if reason is None and faults and not is_newest:
        reason = faults[0]
    row = reader.described(bare)
    if reason is None:
        return replace(row, state="good", reason=None)
    reason = reason.removeprefix(f"{path}, ")
    if row.to_offset != row.from_offset:
        reason += f"; its offsets {row.from_offset} to {(row.to_offset or 0) - 1} count"
    return replace(row, state="quarantined", reason=reason)


class _Reader:
    """Takes the batches of a segment, one after the other."""

    def __init__(self, base: int, wanted: Collection[int]) -> None:
        self._base, self._wanted, self._stops = base, wanted, sorted(wanted)
        self._digest = sha256()
        self._parts: list[list[Any]] = []
        self._epochs: list[list[int]] = []
        self._control: list[BatchHead] = []
        self._leaders: list[tuple[int, int]] = []
        self._ends: dict[int, tuple[int, int, int]] = {}
        self._next: int | None = None
        self._latest = self._rows = self._clocks_back = 0

    def take(self, head: BatchHead, data: bytes) -> None:
        """Takes a batch. Raises KraftError for one that does not follow the one before."""
        at, size, base, last, epoch, time_ms, is_control, records = head
        self._check(head)
        if self._next is None:
            self._latest = time_ms
        self._clocks_back += time_ms < self._latest
        self._latest = max(self._latest, time_ms)
        day = self._latest // _DAY_MS
        if not self._parts or self._parts[-1][0] != day:
            self._parts.append([day, base, last + 1, 0, at, at + size, time_ms, self._latest])
        part = self._parts[-1]
        part[2:6] = last + 1, part[3] + kraft_sum(data), part[4], at + size
        part[7] = self._latest
        if not self._epochs or self._epochs[-1][0] != epoch:
            self._epochs.append([epoch, base, last, time_ms, time_ms])
        self._epochs[-1][2], self._epochs[-1][4] = last, time_ms
        if is_control:
            self._control.append(head)
            self._leaders += _leaders_in(data, epoch)
        if last + 1 in self._wanted:
            self._ends[last + 1] = epoch, time_ms, self._latest
        self._next, self._rows = last + 1, self._rows + records
        self._digest.update(data)

    def passed(self, held: bytes, at: int, head: BatchHead) -> tuple[int, int]:
        """Takes the batches that only go on, and returns the place behind them."""
        part, last = self._parts[-1], self._epochs[-1]
        most_ms = (part[0] + 1) * _DAY_MS - 1
        stop = next((each for each in self._stops if each > head.last + 1), _NO_STOP)
        known = head.last + 1, head.epoch, self._latest, most_ms, stop
        behind, end, time_ms, records, total = kraft_summed(held, at, *known)
        if behind > at:
            part[2], part[7] = end, time_ms
            part[3], part[5] = part[3] + total, part[5] + behind - at
            last[2], last[4] = end - 1, time_ms
            self._next, self._latest, self._rows = end, time_ms, self._rows + records
            self._digest.update(memoryview(held)[at:behind])
        return behind, end - 1

    def _check(self, head: BatchHead) -> None:
        before = self._base if self._next is None else self._next
        if head.base < before or (self._next is not None and head.base > before):
            said = "its name says" if self._next is None else "the batch before ends at"
            raise KraftError(f"{said} offset {before}", None, head.at, head.base)
        if self._epochs and head.epoch < self._epochs[-1][0]:
            before = self._epochs[-1][0]
            raise KraftError(f"epoch {head.epoch} follows {before}", None, head.at, head.base)
        if not 0 <= head.time_ms <= _MOST_MS:
            raise KraftError(f"its time, {head.time_ms} ms, is none", None, head.at, head.base)

    def described(self, bare: Input) -> Input:
        """Returns the segment with what was read of it."""
        begin = self._base if self._next is None else self._parts[0][1]
        end = begin if self._next is None else self._next
        inside = [each for each in self._wanted if begin < each <= end]
        parts = [[*part[:3], sum_of([part[3]]), *part[4:]] for part in self._parts]
        ends = {str(each): self._ends.get(each) for each in sorted(inside)}
        return replace(
            bare,
            sha256=self._digest.hexdigest(),
            from_offset=begin,
            to_offset=end,
            from_us=1000 * self._parts[0][6] if parts else 0,
            to_us=1000 * self._latest,
            rows=self._rows,
            epochs=_json(self._epochs),
            days=_json(parts),
            marks=_json(
                {
                    "control": self._control,
                    "leaders": self._leaders,
                    "ends": ends,
                    "clocks_back": self._clocks_back,
                }
            ),
        )


def _leaders_in(data: bytes, epoch: int) -> Iterator[tuple[int, int]]:
    """Yields the epoch and the leader that a control batch names."""
    try:
        for *_, name, _, text in kraft_records(data):
            if name == LEADER_CHANGE:
                yield epoch, int(json.loads(text)["leaderId"])
    except (MalformedError, ValueError) as error:
        raise KraftError(f"a damaged control batch: {error}") from error


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _read_snapshot(bare: Input, path: Path, end: int, epoch: int) -> Input:
    digest = Store(bare.store).sha256(bare.name)
    row = replace(bare, sha256=digest, from_offset=0, to_offset=end)
    try:
        last_ms = time_of_snapshot(path)
    except KraftError as error:
        reason = str(error).removeprefix(f"{path}, ")
        return replace(row, state="quarantined", reason=reason)
    if last_ms is None or not 0 <= last_ms <= _MOST_MS:
        return replace(row, state="quarantined", reason="it is cut short, or is no snapshot")
    epochs = _json([[epoch, end - 1, end - 1, last_ms, last_ms]])
    return replace(row, epochs=epochs, from_us=1000 * last_ms, to_us=1000 * last_ms)


def _use_snapshots(folder: LogFolder) -> None:
    """Sets snapshots aside that do not belong to the log of their directory."""
    segments = [each for each in folder.rows if each.kind == "segment"]
    for place, row in enumerate(folder.rows):
        if row.kind == "snapshot" and row.state != "quarantined":
            reason = _why_not(row, segments)
            state = "good" if reason is None else "set aside"
            folder.rows[place] = replace(row, state=state, reason=reason)


def _why_not(snapshot: Input, segments: Iterable[Input]) -> str | None:
    """Returns why a whole snapshot is not used, None if it is."""
    end = snapshot.to_offset or 0
    (last,) = epochs_of(snapshot)
    for each in segments:
        if (each.from_offset or 0) < end <= (each.to_offset or 0):
            return why_foreign(end, last.epoch, last.last_ms, marks_of(each)["ends"].get(str(end)))
    return None


def cut_at(row: Input, offset: int | None, reason: str) -> Input:
    """Returns a file of which nothing counts from an offset on: a replay could not read that."""
    first, end = row.from_offset or 0, row.to_offset
    if row.kind == "segment":
        end = first if offset is None else max(offset, first)
    return replace(row, state="quarantined", reason=reason, to_offset=end)
