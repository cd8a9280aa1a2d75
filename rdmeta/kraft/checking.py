"""Checks the files of metadata logs: every CRC, each snapshot against replay, and the copies.

    for finding in check(["/var/kafka/metadata"]):
        print(finding.is_serious, finding.text)

Two faults are Kafka's own, and harmless: a snapshot of 4.3.0 may keep configurations of a topic
that was removed, and each snapshot has -1 as the broker of its producer ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from rdmeta._core import KraftReplay, kraft_batch
from rdmeta.errors import MalformedError
from rdmeta.kraft.comparing import Finding, findings_of
from rdmeta.kraft.log_files import KraftError, LogChangedError, SnapshotFile, find_nodes
from rdmeta.kraft.log_state import Difference, KraftState, fields_of
from rdmeta.kraft.proving import NodeLog, looked_at
from rdmeta.kraft.replaying import replayed
from rdmeta.kraft.scanning import BatchHead, whole_batches

_SHOWN = 3
_OF_TOPIC = 2
_REMOVALS = (9,)  # the type of a topic's removal


def check(paths: str | Path | Iterable[str | Path]) -> list[Finding]:
    """Returns what is odd about the logs at a path, or at several, as find_nodes() takes them.

    All CRCs are checked, each snapshot is compared with a replay to its end, each node's notes with
    its log, and the copies with each other. Raises KraftError for paths without a log, and for two
    clusters; FileNotFoundError.
    """
    found: list[Finding] = []
    logs = []
    for files in find_nodes(paths):
        try:
            logs.append(looked_at(files))
        except KraftError as error:
            found.append(_of_error(error))
    found += findings_of(logs)
    walks = list(map(_Walk, logs))
    for walk in walks:
        found += walk.findings()
    for walk in walks:
        found += walk.by_copies(logs)
    if own := sum(walk.own_faults for walk in walks):
        text = f"{own} snapshots have -1 as the broker of the producer ids: so Kafka writes them"
        found.append(Finding(False, text))
    return found


def _of_error(error: KraftError) -> Finding:
    """Returns what an error says; a log that changes while it is read is only to be read anew."""
    return Finding(not isinstance(error, LogChangedError), str(error))


class _Walk:
    """Replays a log from its begin, batch by batch, and compares each snapshot on the way.

    Behind damage it goes on from the next snapshot. `own_faults` counts those of Kafka.
    """

    def __init__(self, log: NodeLog) -> None:
        self.own_faults = 0
        self._log = log
        self._start = log.scan.runs[0].start if log.scan.runs else 0
        self._replay = KraftReplay() if self._start == 0 else None
        self._snapshots = {each.end: each for each in log.used}
        self._removed: set[str | None] = set()
        self._begins: list[SnapshotFile] = []

    def findings(self) -> Iterator[Finding]:
        """Yields what is bad. Call it once."""
        try:
            yield from self._at(self._start)
            for segment, head, data in whole_batches(self._log.files):
                yield from self._batch(segment.path, head, data)
                yield from self._at(head.last + 1)
        except FileNotFoundError as error:
            yield Finding(False, f"{error.filename}: it went while it was checked")
        except KraftError as error:
            yield _of_error(error)
        for file in self._snapshots.values():  # behind the log's end
            self._begins.append(file)
            if isinstance(loaded := _loaded(file), Finding):
                yield loaded

    def by_copies(self, logs: Sequence[NodeLog]) -> Iterator[Finding]:
        """Compares snapshots before which this log has no records with what other copies say."""
        for file in self._begins:
            loaded = _loaded(file)
            if isinstance(loaded, Finding):
                continue  # findings() has said it
            states = (_state_of(log, file) for log in logs if log is not self._log)
            for state in filter(None, states):
                yield from self._compared(file, loaded, state, None)
                break

    def _batch(self, path: Path, head: BatchHead, data: bytes) -> Iterator[Finding]:
        if self._replay is None:
            fault = kraft_batch(data)[0]
            if fault is not None:
                text = "its CRC is wrong" if fault == "bad_crc" else f"it is damaged ({fault})"
                text = f"batch of offset {head.base}: {text}"
                yield Finding(True, str(KraftError(text, path, head.at, head.base)))
            return
        removals, used = self._replay.lines(data, types=_REMOVALS)
        self._removed |= {json.loads(line).get("topic") for line in removals.splitlines()}
        if used < len(data):
            code, offset, byte, _, text = self._replay.fault
            self._replay = None
            if code != "gap":  # findings_of() names it
                yield Finding(True, str(KraftError(text, path, head.at + byte, offset)))

    def _at(self, end: int) -> Iterator[Finding]:
        """Compares the snapshot that ends here, if there is one."""
        file = self._snapshots.pop(end, None)
        if file is None:
            return
        loaded = _loaded(file)
        if isinstance(loaded, Finding):
            yield loaded
        elif self._replay is None:
            self._begins.append(file)
            self._replay = loaded
        else:
            yield from self._compared(file, loaded, self._replay, self._removed)

    def _compared(
        self,
        file: SnapshotFile,
        loaded: KraftReplay,
        replay: KraftReplay,
        removed: Set[str | None] | None,
    ) -> Iterator[Finding]:
        """Compares a snapshot with a log's state.

        `removed` are the topics that were removed before, None if they are not known.
        """
        differing = []
        ours, theirs = KraftState(replay), KraftState(loaded)
        self.own_faults += _has_kafkas_own_ids(theirs)
        for each in ours.diff(theirs):
            if _is_kafkas_own(each, removed):
                yield Finding(False, f"{file.path}: {_said(each)}: a fault of Kafka's own")
            else:
                differing.append(_said(each))
        if differing:
            more = len(differing) - _SHOWN
            shown = "; ".join(differing[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
            yield Finding(True, f"{file.path} differs from a replay to its end: {shown}")


def _is_kafkas_own(found: Difference, removed: Set[str | None] | None) -> bool:
    """Returns whether a snapshot only kept configurations of a removed topic, which is harmless."""
    if found.kind != "configs" or found.key[0] != _OF_TOPIC:
        return False
    return removed is None or (found.before is None and found.key[1] in removed)


def _has_kafkas_own_ids(state: KraftState) -> bool:
    """Returns whether -1 is the broker of the producer ids, which is harmless."""
    return any(each.data["brokerId"] < 0 for each in state.facts("producer_ids"))


def _loaded(file: SnapshotFile) -> KraftReplay | Finding:
    """Returns the state of a snapshot, or a finding if it is damaged."""
    replay = KraftReplay()
    try:
        replay.snapshot(file.path.read_bytes(), file.end, file.epoch)
    except FileNotFoundError:
        return Finding(False, f"{file.path}: it went while it was checked")
    except MalformedError:
        _, _, byte, _, text = replay.fault
        return Finding(True, str(KraftError(text, file.path, byte)))
    return replay


def _state_of(log: NodeLog, file: SnapshotFile) -> KraftReplay | None:
    """Returns the state of a copy at the end of a snapshot; None if it has none there."""
    try:
        replay = replayed(log, file.end).replay
    except (KraftError, FileNotFoundError):
        return None
    info = replay.info()
    return replay if (info["next"], info["epoch"]) == (file.end, file.epoch) else None


def _said(found: Difference) -> str:
    """Returns what differs between a log and a snapshot, which is "it"."""
    name = f"{found.kind} {'/'.join(map(str, found.key))}"
    if not found.fields:
        return f"{name} is in {'it' if found.before is None else 'the log'} alone"
    ours, theirs = fields_of(found.before), fields_of(found.after)
    said = (f"{each} is {ours.get(each)}, and {theirs.get(each)} in it" for each in found.fields)
    return f"{name}: {', '.join(said)}"
