"""Says which part of a log is proven, which is to say committed: by snapshots and by majorities.

The high watermark is on no disk. Two things prove a log up to an offset:

- The end of a whole snapshot that *belongs* to the log: a node makes snapshots only of what is
  committed. It belongs if it ends where a batch ends, and its header has that batch's time. The
  leader of an epoch notes when it appended the batch: 47 ms behind its time on a busy node, which
  lets records linger for 25 ms besides. What replay contradicts is not used either.
- Copies of a majority of the voters that hold the same last record, where no log of them and no
  `quorum-state` knows a higher epoch than that record's. If one knew, another leader might have
  been elected without the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rdmeta._core import kraft_records
from rdmeta._moments import nearest_moment
from rdmeta.errors import MalformedError
from rdmeta.kraft.log_files import KraftError, NodeFiles, SnapshotFile
from rdmeta.kraft.scanning import BatchHead, LogScan, batch_heads, checked_batches, scan_log

LEADER_CHANGE = "LEADER_CHANGE"
_LONGEST_APPEND_MS = 10_000
_SNAPSHOT_HEADER, _SNAPSHOT_FOOTER = "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"


class SnapshotUse(NamedTuple):
    """A snapshot, and why it is not used: None if it is. `last_ms` is its last batch's time."""

    file: SnapshotFile
    why_not: str | None
    last_ms: int | None = None


class Election(NamedTuple):
    """A leader of the controllers, elected by `granted` of the `voters`, with its record."""

    epoch: int
    leader: int | None
    offset: int
    time_ms: int
    voters: tuple[int, ...]
    granted: tuple[int, ...]


class NodeLog(NamedTuple):
    """One node's files, with what their heads say."""

    files: NodeFiles
    scan: LogScan
    snapshots: list[SnapshotUse]
    elections: tuple[Election, ...] = ()

    def reject(self, file: SnapshotFile, why_not: str) -> None:
        """Notes why a snapshot, which looked good, is not used from now on."""
        place = next(i for i, use in enumerate(self.snapshots) if use.file == file)
        self.snapshots[place] = self.snapshots[place]._replace(why_not=why_not)

    @property
    def end(self) -> int:
        """The offset behind the last batch, or behind the last snapshot if there is none."""
        return max([self.scan.end, *(each.end for each in self.used)])

    @property
    def start(self) -> int:
        """The first offset of the batches that go on to the end."""
        return self.scan.start if self.scan.runs else self.end

    @property
    def used(self) -> list[SnapshotFile]:
        """The snapshots that are whole and belong to the log, in the order of their ends."""
        return [each.file for each in self.snapshots if each.why_not is None]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The segments."""
        return tuple(each.path for each in self.files.segments)

    @property
    def leaders(self) -> dict[int, int]:
        """The leaders of epochs, by the log or by what the node noted."""
        found = {each.epoch: each.leader for each in self.elections}
        if self.files.quorum is not None:
            found.setdefault(self.files.quorum.epoch, self.files.quorum.leader)
        return {epoch: leader for epoch, leader in found.items() if leader is not None}

    @property
    def known_epoch(self) -> int:
        """The highest epoch of which the node knew: -1 for none."""
        in_log = self.scan.epochs[-1].epoch if self.scan.epochs else -1
        noted = self.files.quorum.epoch if self.files.quorum else -1
        return max(in_log, noted, *(each.epoch for each in self.used), -1)


class Proof(NamedTuple):
    """Offsets before `end` are proven; `by` says by what, for people."""

    end: int
    by: str


def looked_at(files: NodeFiles, skip: bool = False) -> NodeLog:
    """Returns a node's log after a look at its segments and snapshots.

    Raises KraftError, unless damaged batches are passed over with `skip`.
    """
    scan = scan_log(files, (snapshot.end for snapshot in files.snapshots), skip)
    uses = [_use(each, scan) for each in files.snapshots]
    return NodeLog(files, scan, uses, _elections(scan))


def rank(log: NodeLog) -> tuple[int, int, int]:
    """Orders copies as Raft's votes do: by the last record's epoch, then by its offset.

    Among equal copies, the one that goes back farthest ranks first.
    """
    epoch = log.scan.epochs[-1].epoch if log.scan.epochs else -1
    return max([epoch, *(each.epoch for each in log.used)]), log.end, -log.start


def _use(snapshot: SnapshotFile, scan: LogScan) -> SnapshotUse:
    if not snapshot.end:
        return SnapshotUse(snapshot, "it has the first voters of a quorum, and no state")
    try:
        last_ms = time_of_snapshot(snapshot.path)
    except FileNotFoundError:
        return SnapshotUse(snapshot, "it went while the log was read")
    except KraftError as error:
        return SnapshotUse(snapshot, str(error))
    if last_ms is None:
        return SnapshotUse(snapshot, "it is cut short, or is no snapshot")
    return SnapshotUse(snapshot, _why_not(snapshot, last_ms, scan), last_ms)


def _why_not(snapshot: SnapshotFile, last_ms: int, scan: LogScan) -> str | None:
    """Returns why a whole snapshot is not used, None if it is."""
    if not scan.runs or any(run.start == snapshot.end for run in scan.runs):
        return None  # there is no batch before its end, and the log goes on behind it
    return why_foreign(snapshot.end, snapshot.epoch, last_ms, scan.ends.get(snapshot.end))


def why_foreign(end: int, epoch: int, last_ms: int, batch: Sequence[int] | None) -> str | None:
    """Returns why a snapshot does not belong to a log, None if it does.

    `batch` has the epoch and the time of the log's batch that ends where the snapshot does, and
    `last_ms` is the time in its header.
    """
    if batch is None:
        return f"it ends at {end}, where no batch of the log ends"
    if epoch != batch[0] or not 0 <= last_ms - batch[1] < _LONGEST_APPEND_MS:
        return (
            f"it is of another log: its last batch has epoch {epoch} and time {last_ms},"
            f" and the log's has {batch[0]} and {batch[1]}"
        )
    return None


def time_of_snapshot(path: Path) -> int | None:
    """Returns the time of the log's last batch by a snapshot's header; None if it is not whole.

    Raises KraftError for damage.
    """
    faults: list[str] = []
    heads = [head for head, _ in checked_batches(path, faults)]
    if faults or len(heads) < 2 or not (heads[0].is_control and heads[-1].is_control):
        return None
    first, last = (dict(control_records(path, head)) for head in (heads[0], heads[-1]))
    if _SNAPSHOT_FOOTER not in last or _SNAPSHOT_HEADER not in first:
        return None
    return int(first[_SNAPSHOT_HEADER]["lastContainedLogTimestamp"])


def proof_of(
    logs: Sequence[NodeLog], is_sound: Callable[[NodeLog, SnapshotFile], bool] = lambda *_: True
) -> Proof:
    """Returns what is proven by logs of one cluster; offset 0 if nothing is.

    `is_sound` is asked about snapshots, the newest first, that would prove more than a majority.
    """
    best = _agreed(logs) or Proof(0, "nothing")
    more = [(each, log) for log in logs for each in log.used if each.end > best.end]
    for snapshot, log in sorted(more, key=lambda each: -each[0].end):
        if is_sound(log, snapshot):
            return Proof(snapshot.end, f"the snapshot {snapshot.path.name}")
    return best


def _agreed(logs: Sequence[NodeLog]) -> Proof | None:
    """Returns what copies of a majority of the voters prove."""
    voters = _voters(logs)
    if not voters:
        return None
    majority = len(voters) // 2 + 1
    # By epoch: the ends of the voters that know it as the last one, and have records of it.
    ends: dict[int, dict[int, int]] = {}
    for log in logs:
        node, epochs = log.files.node, log.scan.epochs
        if node is None or not _is_voter(log, voters) or log.files.quorum is None or not epochs:
            continue
        if epochs[-1].epoch == log.known_epoch:
            held = ends.setdefault(log.known_epoch, {})
            held[node] = max(held.get(node, 0), epochs[-1].last + 1)
    for _, held in sorted(ends.items(), reverse=True):
        if len(held) >= majority:
            end = sorted(held.values(), reverse=True)[majority - 1]
            nodes = ", ".join(str(node) for node in sorted(held) if held[node] >= end)
            return Proof(end, f"the copies of nodes {nodes}, of {len(voters)} voters")
    return None


def _is_voter(log: NodeLog, voters: Mapping[int, str | None]) -> bool:
    """Returns whether a node is a voter, with the directory that the voter has."""
    node, directory = log.files.node, log.files.directory_id
    if node is None or node not in voters:
        return False
    return None in (directory, voters[node]) or directory == voters[node]


def _voters(logs: Sequence[NodeLog]) -> dict[int, str | None]:
    """Returns the voters by the last record that names them, each with its directory's id.

    That is a control record of the log or of its newest snapshot, of which the one with the highest
    offset in the highest epoch counts; or `quorum-state`, if no log has one. A damaged one might
    have named others: then none are known.
    """
    found: tuple[tuple[int, int], dict[int, str | None]] = ((-1, -1), {})
    try:
        for log in logs:
            controls = [((head.epoch, head.last), at, head) for at, head in log.scan.control[-4:]]
            for snapshot in log.used[-1:]:
                head = next(batch_heads(snapshot.path, []))
                controls.append(((snapshot.epoch, snapshot.end - 1), snapshot.path, head))
            for place, path, head in controls:
                for _, data in control_records(path, head):
                    named = {
                        e["voterId"]: e.get("voterDirectoryId") for e in data.get("voters", ())
                    }
                    if named and place >= found[0]:
                        found = place, named
    except (KraftError, FileNotFoundError):
        return {}
    noted = (log.files.quorum.voters for log in logs if log.files.quorum)
    return found[1] or {voter: None for voters in noted for voter in voters or ()}


def control_records(path: Path, head: BatchHead) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the type and the data of each record of a control batch. Raises KraftError."""
    with path.open("rb") as file:
        file.seek(head.at)
        data = file.read(head.size)
    try:
        for *_, name, _, text in kraft_records(data):
            yield str(name), json.loads(text)
    except (MalformedError, ValueError) as error:
        raise KraftError("a damaged control batch", path, head.at, head.base) from error


def _elections(scan: LogScan) -> tuple[Election, ...]:
    """Returns the elections of which the log has the record, in the order of offsets."""
    found = []
    for path, head in scan.control:
        with suppress(KraftError):  # a replay names it
            for name, data in control_records(path, head):
                if name == LEADER_CHANGE:
                    voters, granted = (
                        tuple(each["voterId"] for each in data.get(field, ()))
                        for field in ("voters", "grantingVoters")
                    )
                    leader = data["leaderId"] if data["leaderId"] >= 0 else None
                    at = head.base, head.time_ms
                    found.append(Election(head.epoch, leader, *at, voters, granted))
    return tuple(found)


def restart_of(log: NodeLog, at: int) -> SnapshotFile | None:
    """Returns the snapshot from which a replay to the offset `at` begins; None: from offset 0.

    Raises KraftError with the offsets and times that can be had, if there is no state before `at`.
    """
    runs = log.scan.runs
    usable = [each for each in log.used if each.end <= at and is_covered(log, each.end, at)]
    if usable:
        return usable[-1]
    has_state = any(use.file.end for use in log.snapshots)
    if (runs[0].start == 0 and at <= runs[0].end) if runs else not has_state:
        return None
    raise KraftError(f"no state at offset {at} can be made: {had(log)}")


def is_covered(log: NodeLog, begin: int, end: int) -> bool:
    """Returns whether the log has all offsets between these, or none are needed."""
    return begin >= end or any(run.start <= begin and end <= run.end for run in log.scan.runs)


def had(log: NodeLog) -> str:
    """Returns which offsets and times a log has, and which states, as a sentence's end."""

    def shown(ms: int) -> str:
        return nearest_moment(1000 * ms).isoformat(" ", "milliseconds")[:23]

    runs = ", ".join(
        f"{run.start} to {run.end - 1} ({shown(run.first_ms)} to {shown(run.last_ms)} UTC)"
        for run in log.scan.runs
    )
    ends = ", ".join(str(each.end) for each in log.used)
    snapshots = f"snapshots end at {ends}" if ends else "no snapshot can be used"
    for use in log.snapshots:
        if use.why_not is not None:
            snapshots += f"; {use.file.path.name} is not used: {use.why_not}"
    return f"the log has the offsets {runs or 'of no record'}; {snapshots}"
