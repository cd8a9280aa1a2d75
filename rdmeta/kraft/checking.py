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
from typing import Any, NamedTuple

from rdmeta._core import KraftReplay, kraft_batch
from rdmeta.errors import MalformedError
from rdmeta.kraft.comparing import Finding, findings_of
from rdmeta.kraft.log_files import KraftError, LogChangedError, SnapshotFile, find_nodes
from rdmeta.kraft.proving import NodeLog, looked_at
from rdmeta.kraft.replaying import replayed
from rdmeta.kraft.scanning import BatchHead, whole_batches

_SHOWN = 3
_PRODUCER_IDS, _CONFIG = "PRODUCER_IDS_RECORD", "CONFIG_RECORD"
_OF_TOPIC = 2
_REMOVALS = (9,)  # the type of a topic's removal
# A snapshot writes a broker's registration anew; its row has what is true of these.
_OF_ROW = ("brokerEpoch", "fenced", "inControlledShutdown", "logDirs", "cordonedLogDirs")
_BROKER = ("id", "epoch", "fenced", "shutting down", "log dirs", "cordoned")
_PARTITION = (
    *("id", "leader", "leader epoch", "partition epoch", "recovering", "replicas", "isr"),
    *("removing", "adding", "elr", "last known elr", "directories"),
)


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
            yield from self._loaded(file, [])

    def by_copies(self, logs: Sequence[NodeLog]) -> Iterator[Finding]:
        """Compares snapshots before which this log has no records with what other copies say."""
        for file in self._begins:
            loaded: list[KraftReplay] = []
            any(self._loaded(file, loaded))  # findings() has said what is wrong with it
            states = (_state_of(log, file) for log in logs if log is not self._log)
            state = next(filter(None, states), None)
            if loaded and state is not None:
                yield from self._compared(file, loaded[0], state, None)

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
        loaded: list[KraftReplay] = []
        yield from self._loaded(file, loaded)
        if not loaded:
            return
        if self._replay is None:
            self._begins.append(file)
            self._replay = loaded[0]
            return
        yield from self._compared(file, loaded[0], self._replay, self._removed)

    def _compared(
        self,
        file: SnapshotFile,
        loaded: KraftReplay,
        replay: KraftReplay,
        removed: Set[str | None] | None,
    ) -> Iterator[Finding]:
        """Compares a snapshot with a log's state; `removed` as _differences() takes it."""
        differing = []
        for each in _differences(replay, loaded, removed):
            if each.own_fault is None:
                differing.append(each.text)
            elif each.own_fault == _PRODUCER_IDS:
                self.own_faults += 1
            else:
                yield Finding(False, f"{file.path}: {each.text}: a fault of Kafka's own")
        if differing:
            more = len(differing) - _SHOWN
            shown = "; ".join(differing[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
            yield Finding(True, f"{file.path} differs from a replay to its end: {shown}")

    def _loaded(self, file: SnapshotFile, loaded: list[KraftReplay]) -> Iterator[Finding]:
        """Appends the state of a snapshot; yields a finding if it is damaged."""
        replay = KraftReplay()
        try:
            replay.snapshot(file.path.read_bytes(), file.end, file.epoch)
        except FileNotFoundError:
            yield Finding(False, f"{file.path}: it went while it was checked")
        except MalformedError:
            _, _, byte, _, text = replay.fault
            yield Finding(True, str(KraftError(text, file.path, byte)))
        else:
            loaded.append(replay)


def _state_of(log: NodeLog, file: SnapshotFile) -> KraftReplay | None:
    """Returns the state of a copy at the end of a snapshot; None if it has none there."""
    try:
        replay = replayed(log, file.end).replay
    except (KraftError, FileNotFoundError):
        return None
    info = replay.info()
    return replay if (info["next"], info["epoch"]) == (file.end, file.epoch) else None


# ---- two states ---------------------------------------------------------------------------------


class _Difference(NamedTuple):
    """A difference; `own_fault` is the type of the record in which Kafka makes it always."""

    text: str
    own_fault: str | None = None


def _differences(
    log: KraftReplay, snapshot: KraftReplay, removed: Set[str | None] | None
) -> Iterator[_Difference]:
    """Yields what differs between a log's state and that of a snapshot.

    `removed` are the topics that were removed before; None if they are not known.
    """
    yield from _topics(log, snapshot)
    yield from _brokers(log, snapshot)
    yield from _facts(log, snapshot, removed)


def _topics(log: KraftReplay, snapshot: KraftReplay) -> Iterator[_Difference]:
    ours, theirs = ({row[0]: row[1] for row in each.topics()} for each in (log, snapshot))
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            said = f"topic {name} is {_id(ours.get(name))}, and {_id(theirs.get(name))} in it"
            yield _Difference(said)
            continue
        rows = [{row[0]: row[:12] for row in each.partitions(name)} for each in (log, snapshot)]
        for partition in sorted({*rows[0], *rows[1]}):
            pair = [each.get(partition) for each in rows]
            if pair[0] != pair[1]:
                yield _differing(f"partition {name}-{partition}", _PARTITION, *pair)


def _id(topic_id: str | None) -> str:
    return "absent" if topic_id is None else topic_id


def _differing(what: str, names: tuple[str, ...], ours: Any, theirs: Any) -> _Difference:
    """Returns which of the named cells of two rows differ; None is no row."""
    if ours is None or theirs is None:
        return _Difference(f"{what} is in {'it' if ours is None else 'the log'} alone")
    said = ", ".join(
        f"{name} is {one}, and {other} in it"
        for name, one, other in zip(names, ours, theirs, strict=True)
        if one != other
    )
    return _Difference(f"{what}: {said}")


def _brokers(log: KraftReplay, snapshot: KraftReplay) -> Iterator[_Difference]:
    ours, theirs = map(_registrations, (log, snapshot))
    for broker in sorted({*ours, *theirs}):
        (one, as_one), (other, as_other) = (
            each.get(broker, (None, None)) for each in (ours, theirs)
        )
        if one != other:
            yield _differing(f"broker {broker}", _BROKER, one, other)
        elif as_one != as_other:
            yield _Difference(f"broker {broker} is registered in another way")


def _registrations(replay: KraftReplay) -> dict[int, Any]:
    """Returns the brokers by id: the row, and the registration."""
    return {
        # No log before 4.3 has cordoned directories; a snapshot of 4.3 has an empty list.
        row[0]: ((*row[:5], row[5] or ()), registered(json.loads(row[6])))
        for row in replay.brokers()
    }


def registered(registration: dict[str, Any]) -> dict[str, Any]:
    """Returns what of a registration a snapshot has, too: not what the broker's row says."""
    found = _in_order(registration)
    return {key: value for key, value in found.items() if key not in _OF_ROW}


def _in_order(value: Any) -> Any:
    """Returns JSON without what may differ: the order of objects, and nulls of newer versions."""
    if isinstance(value, dict):
        shown = {key: each for key, each in value.items() if each is not None and each is not False}
        return {key: _in_order(each) for key, each in shown.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sorted(map(_in_order, value), key=_compact)
    return value


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _facts(
    log: KraftReplay, snapshot: KraftReplay, removed: Set[str | None] | None
) -> Iterator[_Difference]:
    ours, theirs = map(_shown_facts, (log, snapshot))
    only = [(key, ours[key], "the log") for key in ours if key not in theirs]
    only += [(key, theirs[key], "it") for key in theirs if key not in ours]
    for (kind, text), shown, where in only:
        data = json.loads(text)
        if kind == _PRODUCER_IDS and _has_equal_ids(data, theirs if where != "it" else ours):
            if where == "it":
                yield _Difference("", _PRODUCER_IDS)
        else:
            is_left = kind == _CONFIG and data["resourceType"] == _OF_TOPIC
            if removed is not None:
                is_left = is_left and where == "it" and data["resourceName"] in removed
            named = f"{kind} {shown} is in {where} alone"
            yield _Difference(named, _CONFIG if is_left else None)


def _shown_facts(replay: KraftReplay) -> dict[tuple[str | int, str], str]:
    """Returns the facts by type and whole value, each with what may be shown of it."""
    pairs = zip(replay.facts(show_secrets=True), replay.facts(), strict=True)
    return {
        (whole[0], _compact(_in_order(json.loads(whole[1])))): shown[1] for whole, shown in pairs
    }


def _has_equal_ids(data: dict[str, Any], facts: Iterable[tuple[str | int, str]]) -> bool:
    """Returns whether facts have the same producer ids, and one of both has no broker."""
    for kind, text in facts:
        if kind == _PRODUCER_IDS:
            other = json.loads(text)
            no_broker = -1 in (data["brokerId"], other["brokerId"])
            return no_broker and bool(data["nextProducerId"] == other["nextProducerId"])
    return False
