"""Compares what copies of one log say, and what each node noted beside its own: findings.

Copies are compared by Raft's log matching: two that hold a record of the same offset and epoch are
equal up to it, byte by byte. Behind the last such record

- one copy may go on where the other ends: it is ahead;
- both may go on, in different epochs: then the one with the lower epoch has a *tail that never
  committed*. Its node drops it when it is back. That is harmless.

A copy with other bytes before that record contradicts Raft, and is serious. So are two leaders of
one epoch, and notes that do not agree with the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, zip_longest
from typing import NamedTuple

from rdmeta._core import kraft_records
from rdmeta.errors import MalformedError
from rdmeta.kraft.proving import NodeLog
from rdmeta.kraft.scanning import BatchHead, whole_batches


class Finding(NamedTuple):
    """Something that a check found; what is not serious is shown, and needs no action."""

    is_serious: bool
    text: str


def findings_of(logs: Sequence[NodeLog]) -> list[Finding]:
    """Returns what is odd about each log, and between the copies. Raises KraftError."""
    found = [finding for log in logs for finding in _of_one(log)]
    found += _leaders(logs)
    between: dict[object, Finding] = {}
    for one, other in combinations(logs, 2):
        for what, finding in _between(one, other):
            between.setdefault(what, finding)  # each other copy shows the same tail
    return [*found, *between.values()]


def _name(log: NodeLog) -> str:
    node = log.files.node
    return str(log.files.directory) if node is None else f"node {node} ({log.files.directory})"


# ---- one log ------------------------------------------------------------------------------------


def _of_one(log: NodeLog) -> Iterator[Finding]:
    name = _name(log)
    for fault in (*log.files.faults, *log.scan.faults):
        yield Finding(False, fault)
    for use in log.snapshots:
        if use.why_not is not None:
            is_state = use.file.end > 0
            yield Finding(is_state, f"{use.file.path} is not used: {use.why_not}")
    for before, after in zip(log.scan.runs, log.scan.runs[1:], strict=False):
        yield Finding(True, f"{name}: offsets {before.end} to {after.start - 1} are missing")
    if log.scan.clocks_back:
        yield Finding(False, f"{name}: the clock went back {log.scan.clocks_back} times")
    runs = log.scan.runs
    if runs and runs[0].start and not any(each.end >= runs[0].start for each in log.used):
        yield Finding(True, f"{name}: no snapshot covers what was before offset {runs[0].start}")
    if log.files.quorum and log.scan.epochs and log.files.quorum.epoch < log.scan.epochs[-1].epoch:
        yield Finding(
            True,
            f"{name}: quorum-state knows epoch {log.files.quorum.epoch},"
            f" and the log has records of epoch {log.scan.epochs[-1].epoch}",
        )
    yield from _noted_epochs(log)


def _noted_epochs(log: NodeLog) -> Iterator[Finding]:
    """Compares `leader-epoch-checkpoint` with the log, from where both begin.

    The node deletes what is before an offset from its notes, and whole segments of the log.
    """
    if not log.files.epochs or not log.scan.runs:
        return
    start = max(log.scan.runs[0].start, log.files.epochs[0][1])
    in_log = [(span.epoch, span.first) for span in log.scan.epochs if span.first > start]
    noted = [each for each in log.files.epochs if start < each[1] < log.scan.end]
    if noted != in_log:
        yield Finding(
            True,
            f"{_name(log)}: leader-epoch-checkpoint says that epochs begin at {_pairs(noted)},"
            f" and in the log they begin at {_pairs(in_log)}",
        )


def _pairs(epochs: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{offset} (epoch {epoch})" for epoch, offset in epochs) or "no offset"


def _leaders(logs: Sequence[NodeLog]) -> Iterator[Finding]:
    """Yields the epochs that have two leaders."""
    leaders: dict[int, tuple[int | None, NodeLog]] = {}
    named = set()
    for log in logs:
        for epoch, leader, offset, *_ in log.elections:
            known, other = leaders.setdefault(epoch, (leader, log))
            if known != leader and epoch not in named:
                named.add(epoch)
                yield Finding(
                    True,
                    f"epoch {epoch} has two leaders: {known} by {_name(other)},"
                    f" and {leader} by {_name(log)} at offset {offset}",
                )


# ---- two copies ---------------------------------------------------------------------------------


def _between(one: NodeLog, other: NodeLog) -> Iterator[tuple[object, Finding]]:
    """Yields what is wrong between two logs, and what it is about."""
    common = last_common(one, other)
    if common is not None:
        differing = _first_difference(one, other, common[1])
        if differing is not None:
            text = (
                f"{_name(one)} and {_name(other)} both have offset {common[1]} of epoch"
                f" {common[0]}, and differ before it: first {differing}"
            )
            yield (_name(one), _name(other)), Finding(True, text)
            return
    behind = -1 if common is None else common[1]
    ours, theirs = (_tail(log, behind) for log in (one, other))
    if ours is None or theirs is None or ours[0] == theirs[0]:
        return  # one is ahead, or begins behind the other's end
    if ours > theirs:
        one, other, ours, theirs = other, one, theirs, ours
    is_serious = any(each.end > ours[1] for each in one.used)
    text = (
        f"{_name(one)}: offsets {ours[1]} to {one.scan.end - 1} of epoch {ours[0]} never"
        f" committed: in {_name(other)} epoch {theirs[0]} has offset {theirs[1]}"
        + ("; but its snapshot says that they did" if is_serious else "")
    )
    yield (_name(one), ours), Finding(is_serious, text)


def _tail(log: NodeLog, behind: int) -> tuple[int, int] | None:
    """Returns the epoch and the offset of a log's first record behind an offset."""
    spans = (each for each in log.scan.epochs if each.last > behind)
    return next(((each.epoch, max(each.first, behind + 1)) for each in spans), None)


def last_common(one: NodeLog, other: NodeLog) -> tuple[int, int] | None:
    """Returns the epoch and the offset of the last record that both hold."""
    theirs = {span.epoch: span for span in other.scan.epochs}
    for span in reversed(one.scan.epochs):
        if (found := theirs.get(span.epoch)) is not None:
            last = min(span.last, found.last)
            if last >= max(span.first, found.first):
                return span.epoch, last
    return None


def _first_difference(one: NodeLog, other: NodeLog, last: int) -> str | None:
    """Returns which record, up to an offset, is the first that is not the same bytes.

    A gap is a finding of its own, so what is before one is not compared.
    """
    start = max(one.scan.start, other.scan.start)
    theirs = _batches_between(other, start, last)
    for head, data in _batches_between(one, start, last):
        found = next(theirs, None)
        if found is None or found[1] != data:
            return _differing_record(head, data, b"" if found is None else found[1])
    left = next(theirs, None)
    return None if left is None else _differing_record(left[0], b"", left[1])


def _differing_record(head: BatchHead, ours: bytes, theirs: bytes) -> str:
    """Returns the first record that two batches have not alike, as words."""
    try:
        records = [kraft_records(data) if data else [] for data in (ours, theirs)]
    except MalformedError:  # the check of CRCs says which
        return f"in the batch at offset {head.base}"
    for pair in zip_longest(*records):
        if pair[0] != pair[1]:
            (first, *_) = found = [each for each in pair if each is not None]
            kinds = " and ".join(sorted({f"{each[3]}" for each in found}))
            return f"the record at offset {first[0]} ({kinds})"
    return f"in the head of the batch at offset {head.base}"


def _batches_between(log: NodeLog, start: int, last: int) -> Iterator[tuple[BatchHead, bytes]]:
    for _, head, data in whole_batches(log.files):
        if head.base > last:
            return
        if head.base >= start:
            yield head, data
