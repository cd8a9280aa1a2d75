"""Joins the logs of a cluster's nodes: which offsets count, what is proven, and which days it has.

The log whose end is the latest by Raft's rules leads. Another node's files count up to the last
record of an epoch that both have, for all before that is equal, and up to its own last snapshot,
which is of committed records alone. Nothing counts behind what is proven. Where two files
contradict each other before that, neither counts.

The joined log is cut into *spans*. A span is a range of offsets without a hole. It begins at offset
0 or at the end of a snapshot, where the state is known, and its days have no gap between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import NamedTuple

from rdmeta._core import kraft_sum
from rdmeta._moments import moment
from rdmeta.history.schema import LONGEST
from rdmeta.kraft.log_files import SegmentFile, SnapshotFile
from rdmeta.kraft.proving import NodeLog, Proof, SnapshotUse, proof_of, rank, why_foreign
from rdmeta.kraft.recordings import AFTER_A_MONTH, session_of
from rdmeta.kraft.scanning import BatchHead, EpochSpan, LogRun, LogScan
from rdmeta.pipeline.days import DAY_US, day_at
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.log_inputs import (
    DayPart,
    LogFolder,
    batches_between,
    digest_between,
    epochs_of,
    marks_of,
    parts_of,
    sum_of,
)
from rdmeta.pipeline.stored_path import path_in

_LONGEST_MS = LONGEST.total_seconds() * 1000


class SegmentPart(NamedTuple):
    """The offsets of a segment that count."""

    file: Input
    begin: int
    end: int


class DaySlice(NamedTuple):
    """The part of a piece that lies in one day."""

    piece: SegmentPart
    part: DayPart

    @property
    def first(self) -> int:
        return max(self.part.first, self.piece.begin)

    @property
    def end(self) -> int:
        return min(self.part.end, self.piece.end)

    @property
    def digest(self) -> str:
        """The digest of its batches; they are read if they are not all of the file's day."""
        if (self.first, self.end) == (self.part.first, self.part.end):
            return self.part.digest
        return digest_between(self.piece.file, self.first, self.end)


@dataclass(frozen=True)
class LogDay:
    """A day of a span: the offsets from `first` to before `end`, none if it has no record.

    `continues` is the recording of the day before it.
    """

    cluster_id: str
    begin_us: int
    first: int
    end: int
    epoch_before: int
    continues: str | None
    slices: tuple[DaySlice, ...]
    ended_by: str

    @property
    def day(self) -> str:
        return day_at(self.begin_us)

    @property
    def session(self) -> str:
        """The recording that is made of it."""
        return session_of(self.cluster_id, moment(self.begin_us), self.first)

    @property
    def made_from(self) -> str:
        """What its recording says that it was made from."""
        digest = sum_of(int(each.digest, 16) for each in self.slices)
        return f"{self.first}:{self.epoch_before}:{digest}"


@dataclass(frozen=True)
class LogSpan:
    """Days without a gap between them; `restarts` are the offsets before which the state is known.

    `pieces` are those of the run of offsets in which it lies. `reason` says why the time before it
    is not known, None at the log's begin.
    """

    days: tuple[LogDay, ...]
    restarts: Mapping[int, Input | None]
    pieces: tuple[SegmentPart, ...]
    reason: str | None

    def restart(self, offset: int) -> int:
        """Returns the last restart point up to an offset."""
        return max(each for each in self.restarts if each <= offset)


class Hole(NamedTuple):
    """Offsets from `first` to before `end` that do not count, and why."""

    first: int
    end: int
    reason: str


@dataclass(frozen=True)
class JoinedLog:
    """The log of one cluster. `end` is that of the longest copy, `waits` why not all of it counts.

    `aside` are the files that contradict others. `leaders` says who led each epoch.
    `clocks_back` counts batches that are not later than those before them. `pieces` have each of
    its offsets once. `alone` are the snapshots by their ends that no span has.
    """

    cluster_id: str
    nodes: tuple[int, ...]
    first: int
    end: int
    proof: Proof
    waits: str | None
    spans: tuple[LogSpan, ...]
    holes: tuple[Hole, ...]
    aside: tuple[Input, ...]
    leaders: Mapping[int, int] = field(default_factory=dict)
    clocks_back: int = 0
    pieces: tuple[SegmentPart, ...] = ()
    alone: Mapping[int, Input] = field(default_factory=dict)


def joined(
    cluster_id: str, folders: Sequence[LogFolder], out: str, held: Sequence[Input] = ()
) -> JoinedLog:
    """Returns the log that the directories of one cluster make up. Raises OSError.

    If the store `out` has the same file as an input, that of `out` is used. `held` are the
    recordings that were made of the log: what they were made of was proven.
    """
    logs = [_node_log(each) for each in folders]
    main = max(logs, key=rank)
    proof = _proof_kept(proof_of(logs), folders, held)
    pieces: list[SegmentPart] = []
    snapshots: dict[int, Input] = {}
    dropped: list[Hole] = []
    for folder, usable in zip(folders, _usable_to(logs, main), strict=True):
        end = min(usable, proof.end)
        gone = list(_dropped(folder))
        dropped += gone
        for row in folder.rows:
            first, last = row.from_offset or 0, min(row.to_offset or 0, end)
            if row.kind == "segment" and first < last:
                last = min([last, *(each.first for each in gone if first < each.end)])
                pieces += [SegmentPart(row, first, last)] if first < last else []
            elif row.kind == "snapshot" and row.state == "good" and last == row.to_offset:
                snapshots.setdefault(last, row)
    unsure = {(f.store.where, name) for f in folders for name in f.unsure}
    pieces, aside = _without_contradictions(pieces, unsure)
    runs = _runs(sorted(pieces, key=lambda e: (e.begin, -e.end, e.file.store != out, e.file.name)))
    spans, holes = _Spans(cluster_id, proof.end, snapshots).of(runs)
    why = {each.first: each.reason for each in dropped}
    holes = [each._replace(reason=why.get(each.first, each.reason)) for each in holes]
    ends = max(log.end for log in logs)
    waits = None
    if ends > proof.end:
        waits = f"offsets {proof.end} to {ends - 1} are not proven: {_WAITS}"
    return JoinedLog(
        cluster_id,
        tuple(sorted({folder.files.node or 0 for folder in folders})),
        min(log.start for log in logs),
        ends,
        proof,
        waits,
        tuple(spans),
        tuple(holes),
        tuple(aside),
        {e: who for f in folders for row in f.rows for e, who in marks_of(row)["leaders"]},
        sum(marks_of(piece.file)["clocks_back"] for run in runs for piece in run),
        tuple(piece for run in runs for piece in run),
        {
            end: each
            for end, each in sorted(snapshots.items())
            if not any(span.days[0].first <= end <= span.days[-1].end for span in spans)
        },
    )


def _proof_kept(proof: Proof, folders: Sequence[LogFolder], held: Sequence[Input]) -> Proof:
    """Returns the proof, or that of an earlier run: a node's later files may come without one."""
    for each in sorted(held, key=lambda e: -e.until):
        if each.until <= proof.end:
            break
        first, _, digest = (each.made_from or "::").split(":")
        for folder in folders if first else ():
            pieces = [whole(row) for row in folder.rows if row.kind == "segment"]
            for run in _runs(sorted(pieces, key=_place)):
                inside = [(p.file, max(p.begin, int(first)), min(p.end, each.until)) for p in run]
                inside = [part for part in inside if part[1] < part[2]]
                if not inside or (inside[0][1], inside[-1][2]) != (int(first), each.until):
                    continue
                if sum_of(int(digest_between(*part), 16) for part in inside) == digest:
                    return Proof(each.until, f"the recording {each.name}, made of it before")
    return proof


_WAITS = "the next snapshot, or the copies of a majority of the voters, will prove them"


def _node_log(folder: LogFolder) -> NodeLog:
    """Returns what is known of a directory as `proof_of` needs it; reads no file."""
    scan, uses = LogScan(), []
    files = folder.files
    rows = [each for each in folder.rows if (each.from_offset or 0) < (each.to_offset or 0)]
    for row in rows:
        path = path_in(folder.store, row.name)
        if row.kind == "snapshot":
            if row.state == "good":
                (last,) = epochs_of(row)
                file = SnapshotFile(row.to_offset or 0, last.epoch, path)
                uses.append(SnapshotUse(file, None, last.last_ms))
            continue
        run = LogRun(
            row.from_offset or 0, row.to_offset or 0, row.from_us // 1000, row.to_us // 1000
        )
        if scan.runs and scan.runs[-1].end >= run.start:
            run = scan.runs.pop()._replace(end=run.end, last_ms=run.last_ms)
        scan.runs.append(run)
        scan.control += [(path, BatchHead(*each)) for each in marks_of(row)["control"]]
    scan.epochs += _epochs_in(row for row in rows if row.kind == "segment")
    segments = tuple(SegmentFile(0, path_in(folder.store, row.name)) for row in rows[:1])
    return NodeLog(files._replace(segments=segments), scan, uses)


def whole(row: Input) -> SegmentPart:
    """Returns all offsets of a segment."""
    return SegmentPart(row, row.from_offset or 0, row.to_offset or 0)


def _epochs_in(segments: Iterable[Input]) -> list[EpochSpan]:
    """Returns the epochs of segments in the order of offsets; an epoch may lie in several."""
    found: list[EpochSpan] = []
    for segment in segments:
        end = segment.to_offset or 0  # what is bad behind it does not count
        for span in epochs_of(segment):
            if span.first >= end:
                continue
            span = span._replace(last=min(span.last, end - 1))
            if found and found[-1].epoch == span.epoch:
                before = found.pop()
                span = span._replace(first=before.first, first_ms=before.first_ms)
            found.append(span)
    return found


def _usable_to(logs: Sequence[NodeLog], main: NodeLog) -> list[int]:
    """Returns up to which offset each node's files are those of the log that leads."""
    found = [log.end if log is main else max([0, *(e.end for e in log.used)]) for log in logs]
    while True:
        before = list(found)
        for place, log in enumerate(logs):
            ends = (min(_common_to(log, o), to) for o, to in zip(logs, found, strict=True))
            found[place] = max(found[place], *ends)
        if found == before:
            return found


def _dropped(folder: LogFolder) -> Iterator[Hole]:
    """Yields the offsets before a hole that a node may have dropped, as nothing proves them.

    A node that is too far behind fetches a snapshot, drops its log, and begins anew at its end.
    The records that it had appended behind its own last snapshot may never have committed, unless
    their epoch is the one in which the fetched snapshot ends.
    """
    snapshots = {
        each.to_offset or 0: epochs_of(each)[0].epoch
        for each in folder.rows
        if each.kind == "snapshot" and each.state == "good"
    }
    segments = [each for each in folder.rows if each.kind == "segment" and epochs_of(each)]
    for row, after in zip_longest(segments, segments[1:]):
        end = row.to_offset or 0
        begin = max(snapshots, default=0) if after is None else after.from_offset or 0
        is_anew = row.state == "good" and begin > end and begin in snapshots
        if is_anew and epochs_of(row)[-1].epoch < snapshots[begin]:
            first = max([0, *(each for each in snapshots if each <= end)])
            if first < end:
                why = f"offsets {first} to {end - 1} of node {folder.files.node} are not proven"
                yield Hole(first, end, f"{why}, and it began anew at {begin}")


def _common_to(log: NodeLog, other: NodeLog) -> int:
    """Returns up to which offset a log is a part of another one, 0 if that is not known.

    All records of an epoch are those of its leader. So two logs that have records of one epoch are
    equal up to the last of these that is not beyond the other one's.
    """
    theirs = {span.epoch: span for span in other.scan.epochs}
    for span in reversed(log.scan.epochs):
        if (found := theirs.get(span.epoch)) is not None and found.last >= span.first:
            return min(span.last, found.last) + 1
    return 0


# ---- contradictions -----------------------------------------------------------------------------


def _identities(file: Input, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the offset of each batch, with a number for its offset, epoch and CRC."""
    for head, data in batches_between(file, first, end):
        yield head.base, kraft_sum(data)


def _without_contradictions(
    pieces: Sequence[SegmentPart], unsure: set[tuple[str, str]]
) -> tuple[list[SegmentPart], list[Input]]:
    """Returns the pieces that no other one contradicts, and files that do, with the reasons.

    Files that agreed when they were read, and have not changed, are not compared again.
    """
    wrong: dict[tuple[str, str], list[tuple[int, int]]] = {}
    aside: dict[tuple[str, str], Input] = {}
    ordered = sorted(pieces, key=_place)
    compared: list[SegmentPart] = []  # they reach farther than all before them
    for piece in ordered:
        for other in [each for each in compared if each.end > piece.begin]:
            keys = [(each.file.store, each.file.name) for each in (piece, other)]
            if keys[0] == keys[1] or unsure.isdisjoint(keys):
                continue
            found = first_difference(piece, other)
            if found is None:
                continue
            end = min(piece.end, other.end)
            for key, one, two in zip(keys, (piece, other), (other, piece), strict=True):
                wrong.setdefault(key, []).append((found, end))
                reason = (
                    f"contradicts {two.file.path}: the batch at offset {found} is the first that"
                    f" differs, so offsets {found} to {end - 1} of both do not count"
                )
                aside.setdefault(key, replace(one.file, state="set aside", reason=reason))
        if not compared or piece.end > compared[-1].end:
            compared = [each for each in compared if each.end > piece.begin] + [piece]
    left: list[SegmentPart] = []
    for piece in ordered:
        begin = piece.begin
        for first, end in sorted(wrong.get((piece.file.store, piece.file.name), [])):
            if begin < first:
                left.append(piece._replace(begin=begin, end=first))
            begin = max(begin, end)
        if begin < piece.end:
            left.append(piece._replace(begin=begin))
    return left, list(aside.values())


def _place(piece: SegmentPart) -> tuple[int, int, str, str]:
    return piece.begin, -piece.end, piece.file.store, piece.file.name


def first_difference(one: SegmentPart, other: SegmentPart) -> int | None:
    """Returns the offset of the first batch that two pieces do not have alike."""
    theirs = {part[1:4]: part for part in parts_of(other.file)}
    for part in parts_of(one.file):
        first = max(part.first, one.begin, other.begin)
        end = min(part.end, one.end, other.end)
        if first >= end or part[1:4] in theirs:
            continue
        if len({digest_between(each.file, first, end) for each in (one, other)}) == 1:
            continue
        both = (_identities(each.file, first, end) for each in (one, other))
        for ours, its in zip_longest(*both):
            if ours != its:
                return min(each[0] for each in (ours, its) if each is not None)
    return None


# ---- spans --------------------------------------------------------------------------------------


def _runs(ordered: Sequence[SegmentPart]) -> list[list[SegmentPart]]:
    """Returns pieces that follow each other, for each run of offsets without a hole."""
    runs: list[list[SegmentPart]] = []
    at = end = 0
    while at < len(ordered):
        if not runs or ordered[at].begin > end:
            runs.append([])
            end = ordered[at].begin
        best = None
        while at < len(ordered) and ordered[at].begin <= end:
            if ordered[at].end > end and (best is None or ordered[at].end > best.end):
                best = ordered[at]
            at += 1
        if best is not None:
            runs[-1].append(best._replace(begin=end))
            end = best.end
    return [run for run in runs if run]


class _Spans:
    """Cuts runs into spans, and names the holes between them."""

    def __init__(self, cluster_id: str, proven: int, snapshots: Mapping[int, Input]) -> None:
        self._cluster_id, self._proven, self._snapshots = cluster_id, proven, snapshots
        self._spans: list[LogSpan] = []
        self._holes: list[Hole] = []

    def of(self, runs: Sequence[Sequence[SegmentPart]]) -> tuple[list[LogSpan], list[Hole]]:
        end = 0
        for run in runs:
            if run[0].begin > end:
                self._holes.append(Hole(end, run[0].begin, "no file has them"))
            end = run[-1].end
            restarts = self._restarts(run)
            first = min(restarts, default=end)
            if first > run[0].begin:
                why = "no snapshot is there that gives the state before them"
                self._holes.append(Hole(run[0].begin, first, why))
            if first < end:
                self._add(run, restarts, first)
        if end < self._proven:
            self._holes.append(Hole(end, self._proven, "no file has them"))
        return self._spans, self._holes

    def _restarts(self, run: Sequence[SegmentPart]) -> dict[int, Input | None]:
        """Returns the snapshots of a run by their ends; None at offset 0."""
        found: dict[int, Input | None] = {}
        if run[0].begin == 0:
            found[0] = None
        for end, snapshot in sorted(self._snapshots.items()):
            if run[0].begin <= end < run[-1].end:
                batch = _batch_before(run, end)
                (last,) = epochs_of(snapshot)
                if batch is None or not why_foreign(end, last.epoch, last.last_ms, batch):
                    found[end] = snapshot
        return found

    def _add(
        self, run: Sequence[SegmentPart], restarts: Mapping[int, Input | None], first: int
    ) -> None:
        kept = [each._replace(begin=max(first, each.begin)) for each in run if each.end > first]
        begin_us, reason, epoch = kept[0].file.from_us, None, -1
        snapshot = restarts[first]
        if snapshot is not None:
            begin_us, epoch = latest_us_at(run, snapshot), epochs_of(snapshot)[0].epoch
            reason = f"the records before offset {first} are missing"
        slices = [
            DaySlice(piece, part)
            for piece in kept
            for part in parts_of(piece.file)
            if part.first < piece.end and part.end > piece.begin
        ]
        days: list[LogDay] = []
        day, last_ms = begin_us // DAY_US, begin_us // 1000
        today: list[DaySlice] = []

        def finished(ended_by: str) -> None:
            begin = days[-1].end if days else first
            end = today[-1].end if today else begin
            before = epoch if begin == first else _epoch_at(run, begin - 1)
            at = begin_us if not days else day * DAY_US
            last = days[-1].session if days else None
            days.append(
                LogDay(self._cluster_id, at, begin, end, before, last, tuple(today), ended_by)
            )
            today.clear()

        for each in slices:
            if each.part.first_ms - last_ms > _LONGEST_MS:
                finished("gap")
                self._spans.append(LogSpan(tuple(days), restarts, tuple(run), reason))
                first, epoch, reason = each.first, _epoch_at(run, each.first - 1), AFTER_A_MONTH
                days, begin_us = [], 1000 * each.part.first_ms
                day = begin_us // DAY_US
            while each.part.day > day:
                finished("midnight")
                day += 1
            today.append(each)
            last_ms = max(last_ms, each.part.last_ms)
        finished("closed" if run[-1].end >= self._proven else "gap")
        self._spans.append(LogSpan(tuple(days), restarts, tuple(run), reason))


def _batch_before(run: Sequence[SegmentPart], end: int) -> list[int] | None:
    """Returns epoch, time and latest time of the batch of a run that ends at an offset."""
    for piece in run:
        if piece.begin < end <= piece.end:
            found: list[int] | None = marks_of(piece.file)["ends"].get(str(end))
            return found if found is not None else [-1, -1, -1]
    return None


def latest_us_at(run: Sequence[SegmentPart], snapshot: Input) -> int:
    """Returns the latest time up to a snapshot's end."""
    batch = _batch_before(run, snapshot.to_offset or 0)
    return snapshot.to_us if batch is None else 1000 * batch[2]


def _epoch_at(run: Sequence[SegmentPart], offset: int) -> int:
    """Returns the epoch of an offset, -1 if no piece has it."""
    for piece in run:
        if piece.begin <= offset < piece.end:
            for span in epochs_of(piece.file):
                if span.first <= offset <= span.last:
                    return span.epoch
    return -1
