"""Checks the files of metadata logs: every CRC, each snapshot against a replay, and the copies.

    for finding in check(["/var/kafka/metadata"]):
        print(finding.is_serious, finding.text)

Two faults are Kafka's own, and harmless: a snapshot of 4.3.0 may keep configurations of a topic
that was removed, and each snapshot has -1 as the broker of its producer ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rdmeta._core import KraftReplay, kraft_batch
from rdmeta.errors import MalformedError
from rdmeta.kraft.comparing import Finding, findings_of
from rdmeta.kraft.log_files import KraftError, LogChangedError, SnapshotFile, find_nodes
from rdmeta.kraft.log_state import Difference, KraftState, fields_of
from rdmeta.kraft.proving import NodeLog, looked_at
from rdmeta.kraft.replaying import LogReplay
from rdmeta.kraft.scanning import whole_batches

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
    comparer = Comparer(logs)
    for log in logs:
        for snapshot in log.used:
            comparer.is_sound(log, snapshot)
    found += findings_of(logs)
    for log in logs:
        found += _damage(log)
    return found + [Finding(False, note) for note in comparer.notes]


def _of_error(error: KraftError) -> Finding:
    """Returns what an error says; a log that changes while it is read is only to be read anew."""
    return Finding(not isinstance(error, LogChangedError), str(error))


def _damage(log: NodeLog) -> Iterator[Finding]:
    """Yields the batches of a log that are bad, and records that contradict the state.

    Behind such a record the check goes on from the next snapshot.
    """
    bad = set()
    try:
        for segment, head, data in whole_batches(log.files):
            fault = kraft_batch(data)[0]
            if fault is not None:
                bad.add((segment.path, head.at))
                text = "its CRC is wrong" if fault == "bad_crc" else f"it is damaged ({fault})"
                text = f"batch of offset {head.base}: {text}"
                yield Finding(True, str(KraftError(text, segment.path, head.at, head.base)))
        begins = sorted({*(run.start for run in log.scan.runs), *(each.end for each in log.used)})
        reached = -1
        for begin in (each for each in begins if each > reached):
            try:
                replayed = LogReplay(log, begin)
                end = next((run.end for run in log.scan.runs if run.end >= begin), begin)
                replayed.advance(end)
                reached = replayed.next
            except KraftError as error:
                reached = max(begin, error.offset or 0)
                if error.file is not None and (error.file, error.byte) not in bad:
                    yield _of_error(error)
    except FileNotFoundError as error:
        yield Finding(False, f"{error.filename}: it went while it was checked")


class Comparer:
    """Compares snapshots with replays to their ends, each once.

    A replay begins with the newest snapshot before, of those that were found equal; else where the
    log begins, or another copy. `notes` are faults of Kafka's own.
    """

    def __init__(self, logs: Sequence[NodeLog]) -> None:
        self.notes: list[str] = []
        self._logs = logs
        self._known: dict[Path, bool] = {}
        self._equal: set[SnapshotFile] = set()

    def is_sound(self, log: NodeLog, file: SnapshotFile) -> bool:
        """Returns whether no replay contradicts a snapshot; one that is contradicted is not used.

        A snapshot before which no copy has records, or only damaged ones, is sound.
        """
        if file.path not in self._known:
            why = self._why_not(log, file)
            self._known[file.path] = why is None
            if why is not None:
                log.reject(file, why)
        return self._known[file.path]

    def _why_not(self, log: NodeLog, file: SnapshotFile) -> str | None:
        loaded = KraftReplay()
        try:
            loaded.snapshot(file.path.read_bytes(), file.end, file.epoch)
        except FileNotFoundError:
            return "it went while the log was read"
        except MalformedError:
            _, _, byte, _, text = loaded.fault
            return str(KraftError(text, None, byte))
        for replay, removed in self._replays(log, file):
            found = KraftState(replay).diff(KraftState(loaded))
            left = [each for each in found if _is_left(each, removed)]
            self.notes += (f"{file.path}: {_said(each)}: a fault of Kafka's own" for each in left)
            if not found:
                self._equal.add(file)
            said = [_said(each) for each in found if each not in left]
            more = f"; and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
            if said:
                return f"it differs from a replay to its end: {'; '.join(said[:_SHOWN])}{more}"
            return None
        return None

    def _replays(
        self, log: NodeLog, file: SnapshotFile
    ) -> Iterator[tuple[KraftReplay, set[str | None]]]:
        """Yields replays to the end of a snapshot, each with the topics removed on its way."""
        for copy in (log, *(each for each in self._logs if each is not log)):
            before = [use for use in copy.snapshots if use.file.end < file.end]
            for begins in ([use for use in before if use.file in self._equal], before[:1], before):
                removed: set[str | None] = set()
                try:
                    replayed = LogReplay(copy._replace(snapshots=begins), file.end)
                    _to_end(replayed, file.end, removed)
                except (KraftError, FileNotFoundError):
                    continue
                info = replayed.replay.info()
                if (info["next"], info["epoch"]) == (file.end, file.epoch):
                    yield replayed.replay, removed


def _to_end(replayed: LogReplay, end: int, removed: set[str | None]) -> None:
    """Goes on to an offset; adds the names of the topics that are removed on the way."""

    def apply(data: bytes) -> int:
        removals, used = replayed.replay.lines(data, types=_REMOVALS)
        removed.update(json.loads(line).get("topic") for line in removals.splitlines())
        return used

    for _ in replayed.steps(end, apply=apply):
        pass


def _is_left(found: Difference, removed: set[str | None]) -> bool:
    """Returns whether a snapshot alone has a configuration, of a topic that was removed."""
    is_of_topic = found.kind == "configs" and found.key[0] == _OF_TOPIC
    return is_of_topic and found.before is None and found.key[1] in removed


def _said(found: Difference) -> str:
    """Returns what differs between a log and a snapshot, which is "it"."""
    name = f"{found.kind} {'/'.join(map(str, found.key))}"
    if not found.fields:
        return f"{name} is in {'it' if found.before is None else 'the log'} alone"
    ours, theirs = fields_of(found.before), fields_of(found.after)
    said = (f"{each} is {ours.get(each)}, and {theirs.get(each)} in it" for each in found.fields)
    return f"{name}: {', '.join(said)}"
