"""The metadata logs of a generated cluster, as the directories of its three controllers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from rdmeta.generate.cluster import (
    CONTROLLERS,
    DAY_US,
    ClusterTruth,
    GeneratedCluster,
    PartitionState,
    TimedChange,
)
from rdmeta.generate.logs import Given, Log, snapshot, snapshot_name, uuid_text
from rdmeta.model import Broker

FOLDER = "__cluster_metadata-0"
_FIELDS = {"set_isr": "isr", "set_replicas": "replicas", "set_leader": "leader"}
_TOPIC = 2  # a resource's type
# A term ends with its last record, so a controller says one thing right before the next one leads.
LAST_WORD_MS = 500


class ControllerLog:
    """The log of all changes: one batch for each moment at which something changes.

    `cuts` are the offsets where segments begin; `snapshots` the state there, by offset.
    """

    def __init__(self, cluster: GeneratedCluster, begin: datetime) -> None:
        self.log = Log(epoch=0, time_ms=round(begin.timestamp() * 1000))
        self.cuts: list[tuple[int, int]] = [(0, 0)]
        self.snapshots: dict[int, tuple[str, bytes]] = {}
        self.begin_ms = self.log.time_ms
        self._state = ClusterTruth()
        self._broker_epochs: dict[int, int] = {}
        self._partition_epochs: dict[tuple[str, int], int] = {}
        self._lead(CONTROLLERS[0])
        edges = sorted({edge for hole in cluster.lost for edge in hole})

        def part(at: int) -> tuple[int, int]:
            return at // DAY_US, sum(edge <= at for edge in edges)

        last = part(0)
        for at, changes in groupby(cluster.changes, key=lambda change: change.at):
            if part(at) != last:
                last = part(at)
                self._snapshot()
                self.cuts.append((self.log.end, len(self.log.data)))
            self.log.time_ms = self.begin_ms + at // 1000
            self._append(list(changes))
        self._snapshot()

    # ---- records --------------------------------------------------------------------------------

    def _lead(self, node: int) -> None:
        self.log.lead(self.log.epoch + 1, node, CONTROLLERS)

    def _append(self, changes: list[TimedChange]) -> None:
        """Appends what changes at one moment, as one batch."""
        made: list[Given] = []
        parts: dict[tuple[str, int], dict[str, Any]] = {}
        for change in changes:
            name, arguments = change.name, change.arguments
            if name == "set_controller":
                now_ms, last_ms = self.log.time_ms, self.log.ends[-1][2]
                self.log.time_ms = max(last_ms, now_ms - LAST_WORD_MS)
                self.log.append(("NO_OP_RECORD", 0, {}))
                self.log.time_ms = now_ms
                self._lead(arguments[0])
                self.log.time_ms = now_ms
            elif name in ("set_leader", "set_isr", "set_replicas", "set_moving", "set_recovering"):
                key = arguments[0], arguments[1]
                if name == "set_leader" and "leader" in parts.get(key, ()):
                    made.append(self._changed(key, parts.pop(key)))
                parts.setdefault(key, {}).update(_part(name, arguments[2:]))
            else:
                if name == "remove_topic":
                    made += [self._changed(key, parts.pop(key)) for key in [*parts]]
                made += self._records(change, len(made))
            self._state.apply(change)
        made += [self._changed(*each) for each in parts.items()]
        if made:
            self.log.append(*made)

    def _changed(self, key: tuple[str, int], values: dict[str, Any]) -> Given:
        self._partition_epochs[key] += 1
        about = {"partitionId": key[1], "topicId": self._state.topics[key[0]].topic_id}
        return "PARTITION_CHANGE_RECORD", 0, {**about, **values}

    def _records(self, change: TimedChange, place: int) -> Iterator[Given]:
        """Yields the records of a change that is not about one partition."""
        name, first, *rest = change.name, *change.arguments
        if name == "set_broker":
            self._broker_epochs[first.id] = epoch = self.log.end + place
            yield _registered(first, epoch, True)
            yield _broker_change(first.id, epoch, fenced=-1)
        elif name == "remove_broker":
            yield _broker_change(first, self._broker_epochs[first], fenced=1)
        elif name == "shut_down":
            yield _broker_change(first, self._broker_epochs[first], inControlledShutdown=1)
        elif name == "add_topic":
            topic_id, leaders, replicas = rest
            yield "TOPIC_RECORD", 0, {"name": first, "topicId": topic_id}
            for number, (leader, ids) in enumerate(zip(leaders, replicas, strict=True)):
                yield self._partition(first, topic_id, number, PartitionState(ids, ids, leader))
        elif name == "grow":
            topic = self._state.topics[first]
            number, new = len(topic.partitions), PartitionState(rest[1], rest[1], rest[0])
            yield self._partition(first, topic.topic_id, number, new)
        elif name == "remove_topic":
            yield "REMOVE_TOPIC_RECORD", 0, {"topicId": self._state.topics[first].topic_id}
        elif name == "set_min_isr":
            yield _min_isr(first, rest[0])

    def _partition(self, topic: str, topic_id: str, number: int, each: PartitionState) -> Given:
        about = {
            "partitionId": number,
            "topicId": topic_id,
            "replicas": each.replicas,
            "isr": each.isr,
            "removingReplicas": each.removing,
            "addingReplicas": each.adding,
            "leader": -1 if each.leader is None else each.leader,
            "leaderRecoveryState": int(each.is_recovering),
            "leaderEpoch": each.leader_epoch,
            "partitionEpoch": self._partition_epochs.setdefault((topic, number), 0),
        }
        return "PARTITION_RECORD", 0, about

    def _snapshot(self) -> None:
        """Keeps the state behind the last batch."""
        _, end, last_ms, epoch = self.log.ends[-1]
        records = list(self._whole())
        self.snapshots[end] = snapshot_name(end, epoch), snapshot(records, epoch, last_ms)

    def _whole(self) -> Iterator[Given]:
        state = self._state
        for broker in state.brokers.values():
            epoch = self._broker_epochs[broker.id]
            yield _registered(broker, epoch, broker.id in state.fenced)
            if broker.id in state.leaving:
                yield _broker_change(broker.id, epoch, inControlledShutdown=1)
        for name, topic in state.topics.items():
            yield "TOPIC_RECORD", 0, {"name": name, "topicId": topic.topic_id}
            for number, each in enumerate(topic.partitions):
                yield self._partition(name, topic.topic_id, number, each)
            if topic.min_isr is not None:
                yield _min_isr(name, topic.min_isr)


def _part(name: str, values: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the fields of a partition that a change sets."""
    if name == "set_moving":
        return {"addingReplicas": values[0], "removingReplicas": values[1]}
    if name == "set_recovering":
        return {"leaderRecoveryState": int(values[0])}
    return {_FIELDS[name]: -1 if values[0] is None else values[0]}


def _registered(broker: Broker, epoch: int, is_fenced: bool) -> Given:
    where = {"name": "PLAINTEXT", "host": broker.host, "port": broker.port, "securityProtocol": 0}
    about = {
        "brokerId": broker.id,
        "incarnationId": uuid_text(epoch + 1),
        "brokerEpoch": epoch,
        "endPoints": [where],
        "features": [],
        "rack": broker.rack,
        "fenced": is_fenced,
    }
    return "REGISTER_BROKER_RECORD", 0, about


def _broker_change(broker: int, epoch: int, **values: int) -> Given:
    about = {"brokerId": broker, "brokerEpoch": epoch, **values}
    return "BROKER_REGISTRATION_CHANGE_RECORD", int("inControlledShutdown" in values), about


def _min_isr(topic: str, value: int | None) -> Given:
    about = {"resourceType": _TOPIC, "resourceName": topic, "name": "min.insync.replicas"}
    return "CONFIG_RECORD", 0, {**about, "value": None if value is None else str(value)}


def write_logs(cluster: GeneratedCluster, begin: datetime, directory: Path) -> None:
    """Writes the directories of the controllers, `cluster=ID/node=N`."""
    made = ControllerLog(cluster, begin)
    files = [*_segments(made, cluster), *made.snapshots.values()]
    for node in CONTROLLERS:
        home = directory / f"cluster={cluster.cluster_id}" / f"node={node}"
        folder = home / FOLDER
        folder.mkdir(parents=True)
        for name, content in files:
            (folder / name).write_bytes(content)
        noted = {"leaderId": -1, "leaderEpoch": made.log.epoch, "votedId": -1, "data_version": 1}
        (folder / "quorum-state").write_text(json.dumps(noted))
        about = {
            "version": 1,
            "node.id": node,
            "cluster.id": cluster.cluster_id,
            "directory.id": uuid_text(node),
        }
        text = "".join(f"{key}={value}\n" for key, value in about.items())
        (home / "meta.properties").write_text(text)


def _segments(made: ControllerLog, cluster: GeneratedCluster) -> Iterator[tuple[str, bytes]]:
    """Yields the segments that are not lost; a byte of a batch is wrong where one is damaged."""
    ends = [(0, 0), *((byte, end) for byte, end, *_ in made.log.ends)]
    times = [1000 * (ms - made.begin_ms) for *_, ms, _ in made.log.ends]
    data = bytearray(made.log.data)
    for at in cluster.corrupt:
        first = next((n for n, each in enumerate(times) if each >= at), None)
        if first is not None:
            data[ends[first + 1][0] - 1] ^= 1
    for (first, low), (_, high) in pairwise([*made.cuts, (made.log.end, len(data))]):
        at = times[next(n for n, (byte, _) in enumerate(ends) if byte == low)]
        if not any(begin <= at < end for begin, end in cluster.lost):
            yield f"{first:020d}.log", bytes(data[low:high])
