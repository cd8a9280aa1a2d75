"""Compares tables that were made of a metadata log with what DumpLogSegments prints of it.

dumped = Dump(text)                       # of the segments and snapshots of one node
dumped.check_offsets(out)                 # each change and each interval's begin is a record's
dumped.check_snapshots(out)               # at a snapshot's end silver has what the snapshot has
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agreement import Row, rows

INTERVALS = ("partition_interval", "broker_interval", "topic_interval", "config_interval")
_OF_PARTITION = ("PARTITION_CHANGE_RECORD", "PARTITION_RECORD")
_OF_BROKER = ("BROKER_REGISTRATION_CHANGE_RECORD", "REGISTER_BROKER_RECORD")
_TYPES = {
    **{
        f"{part}_changed": _OF_PARTITION
        for part in ("leader", "leader_epoch", "isr", "replicas", "reassignment", "elr")
    },
    "unclean_election": _OF_PARTITION,
    "partitions_added": ("PARTITION_RECORD",),
    "topic_added": ("TOPIC_RECORD", "PARTITION_RECORD"),
    "topic_removed": ("REMOVE_TOPIC_RECORD",),
    "broker_added": ("REGISTER_BROKER_RECORD",),
    "broker_changed": ("REGISTER_BROKER_RECORD",),
    "broker_removed": ("UNREGISTER_BROKER_RECORD",),
    **{f"broker_{what}": _OF_BROKER for what in ("fenced", "unfenced", "shutting_down")},
    "config_changed": ("CONFIG_RECORD",),
    "controller_changed": ("LEADER_CHANGE",),
}
# What a record says of a partition, and the columns of changes and of intervals that have it.
_FIELDS = {
    "leader": ("new_leader", "leader"),
    "leaderEpoch": ("new_leader_epoch", "leader_epoch"),
    "isr": ("new_isr", "isr"),
    "replicas": ("new_replicas", "replicas"),
    "addingReplicas": ("new_adding", "adding"),
    "removingReplicas": ("new_removing", "removing"),
    "eligibleLeaderReplicas": ("new_elr", "elr"),
}


class DumpedRecord(NamedTuple):
    """A record of a log; `us` is the latest time up to its batch."""

    us: int
    type: str
    data: dict[str, Any]


class DumpedSnapshot(NamedTuple):
    """The records of a snapshot that ends before an offset."""

    end: int
    records: list[tuple[str, dict[str, Any]]]


class Dump:
    """What DumpLogSegments prints: records of the log by their offsets, and snapshots."""

    def __init__(self, text: str) -> None:
        self.log: dict[int, DumpedRecord] = {}
        self.snapshots: list[DumpedSnapshot] = []
        latest = 0
        for file, offset, us, name, data in _printed(text):
            if file.endswith(".checkpoint"):
                end = int(file.partition("-")[0])
                if not self.snapshots or self.snapshots[-1].end != end:
                    self.snapshots.append(DumpedSnapshot(end, []))
                self.snapshots[-1].records.append((name, data))
            else:
                latest = max(latest, us)
                self.log[offset] = DumpedRecord(latest, name, data)

    def check_offsets(self, out: Path) -> int:
        """Checks each row that a log told; returns how many there are."""
        count = 0
        for row in (*rows(out, "change"), *rows(out, "leader_change")):
            if row["offset"] is None:
                assert row["source"] != "log", row
                continue
            record = self.log[row["offset"]]
            kind = row.get("kind") or "leader_changed"
            assert record.type in _TYPES[kind], (row, record)
            assert row["observed_at"] == record.us, (row, record)
            _check_change(kind, row, record.data)
            count += 1
        for table in (*INTERVALS, "controller"):
            for row in rows(out, table):
                is_begun = row["began_by"] not in ("baseline", "midnight")
                if row["source"] == "log" and is_begun:
                    assert self.log[row["offset"]].us == row["began_at"], (table, row)
                    count += 1
        return count

    def check_snapshots(self, out: Path) -> int:
        """Checks the partitions and brokers at each snapshot's end; returns how many these are."""
        count = 0
        partitions, brokers = (rows(out, f"{each}_interval") for each in ("partition", "broker"))
        for end, records in self.snapshots:
            if not end:  # it has the first voters, and no state
                continue
            ids = {
                data["topicId"]: data["name"] for name, data in records if name == "TOPIC_RECORD"
            }
            said: dict[Any, dict[str, Any]] = {}
            for name, data in records:
                if name == "PARTITION_RECORD":
                    said[ids[data["topicId"]], data["partitionId"]] = _of_partition(data)
                elif name == "REGISTER_BROKER_RECORD":
                    said[data["brokerId"]] = _of_broker(data)
            found: dict[Any, Row] = {}
            for row in sorted([*partitions, *brokers], key=lambda row: row["version"]):
                key = (row["topic"], row["partition"]) if "topic" in row else row["broker"]
                if row["version"] <= end:
                    found[key] = row
            gone = {key for key, row in found.items() if key not in said}
            behind = self.log[max(each for each in self.log if each < end)].us
            assert all(found[key]["ended_at"] <= behind for key in gone), (end, gone)
            for key, wanted in said.items():
                shown = {name: found[key][name] for name in wanted}
                if wanted.get("fenced"):  # an interval has the epoch of its first row
                    assert shown.pop("broker_epoch") <= wanted.pop("broker_epoch")
                assert shown == wanted, (end, key, shown, wanted)
            count += len(said)
        return count


def _printed(text: str) -> Iterator[tuple[str, int, int, str, dict[str, Any]]]:
    """Yields file, offset, time in microseconds, type and data of each record."""
    file = ""
    for line in text.splitlines():
        if match := re.match(r"Dumping (\S+)", line):
            file = Path(match[1]).name
        elif match := re.match(r"\| offset: (\d+) CreateTime: (\d+) .*?payload: (.*)", line):
            found = json.loads(match[3])
            yield file, int(match[1]), 1000 * int(match[2]), found["type"], found["data"]
        elif match := re.match(r"\| offset: (\d+) CreateTime: (\d+) ", line):
            is_leader = "LeaderChange" in line or "LEADER_CHANGE" in line
            kind = "LEADER_CHANGE" if is_leader else "CONTROL"
            yield file, int(match[1]), 1000 * int(match[2]), kind, {}


def _plain(field: str, value: Any) -> Any:
    if field == "leader":
        return None if value == -1 else value
    return sorted(value) if field in ("isr", "eligibleLeaderReplicas") else value


def _check_change(kind: str, row: Row, data: dict[str, Any]) -> None:
    """Checks that a change says what its record does, as far as the record says it."""
    for field, (column, _) in _FIELDS.items():
        if row.get(column) is not None and data.get(field) is not None:
            wanted = _plain(field, data[field])
            found = sorted(row[column]) if isinstance(wanted, list) else row[column]
            wanted = sorted(wanted) if isinstance(wanted, list) else wanted
            assert field == "leader" and wanted == -2 or found == wanted, (row, data)
    if kind == "config_changed" and row["detail"].partition("=")[2] != "***":
        value = "" if data["value"] is None else f"={data['value']}"
        assert row["detail"] == data["name"] + value, (row, data)
    if kind.startswith("broker_"):
        assert row["broker"] == data["brokerId"], (row, data)


def _of_partition(data: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns of an interval that a partition's record in a snapshot gives."""
    known = {field: data.get(field, []) for field in _FIELDS}
    found = {column: _plain(field, known[field]) for field, (_, column) in _FIELDS.items()}
    lists = ("adding", "removing")
    return {**found, **{name: sorted(found[name]) for name in lists}}


def _of_broker(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "broker_epoch": data["brokerEpoch"],
        "rack": data["rack"],
        "host": data["endPoints"][0]["host"],
        "port": data["endPoints"][0]["port"],
        "fenced": data["fenced"],
        "shutting_down": bool(data.get("inControlledShutdown")),
    }
