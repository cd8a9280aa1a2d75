"""A naive replay of the metadata log: plain dicts, one rule a line, without rdmeta's code.

    model = Model()
    for batch in batches(data):
        model.apply(batch)
    model.partitions["orders", 3], model.brokers[2], model.facts["CONFIG_RECORD", 2, "orders", "x"]

`shown()` is what two equal states have alike, wherever they come from: a log, or a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraft_records import Batch, Record

from rdmeta.generate.logs import Given

MIGRATING = "AAAAAAAAAAAAAAAAAAAAAA"
_SAME_LEADER = -2
# A fact's type, and the fields that are its key.
KEYS = {
    "CONFIG_RECORD": ("resourceType", "resourceName", "name"),
    "ACCESS_CONTROL_RECORD": (
        "resourceType", "resourceName", "patternType", "principal", "host", "operation",
        "permissionType",
    ),
    "DELEGATION_TOKEN_RECORD": ("tokenId",),
    "USER_SCRAM_CREDENTIAL_RECORD": ("name", "mechanism"),
    "FEATURE_LEVEL_RECORD": ("name",),
    "CLIENT_QUOTA_RECORD": ("entity", "key"),
    "PRODUCER_IDS_RECORD": (),
    "ACCESS_CONTROL_ENTRY_RECORD": ("id",),
    "ZK_MIGRATION_STATE_RECORD": (),
    "REGISTER_CONTROLLER_RECORD": ("controllerId",),
    "KRAFT_VERSION": (),
    "KRAFT_VOTERS": (),
}  # fmt: skip
REMOVES = {
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": "ACCESS_CONTROL_ENTRY_RECORD",
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": "USER_SCRAM_CREDENTIAL_RECORD",
    "REMOVE_DELEGATION_TOKEN_RECORD": "DELEGATION_TOKEN_RECORD",
}
IGNORED = ("NO_OP_RECORD", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "removingReplicas": "removing",
    "addingReplicas": "adding",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_elr",
    "directories": "directories",
}


class ContradictionError(Exception):
    """A record does not fit the state, or a transaction's record not its place."""


class Model:
    """A state, and the offset behind the last batch that was applied."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}  # ids by name
        self.partitions: dict[tuple[str, int], dict[str, Any]] = {}
        self.brokers: dict[int, dict[str, Any]] = {}
        self.facts: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.open: list[Record] | None = None  # the records of a transaction
        self.next = 0

    def copied(self) -> Model:
        """Returns a state that stays as this one is now; rows are replaced, and never changed."""
        made = Model()
        made.topics, made.partitions = dict(self.topics), dict(self.partitions)
        made.brokers, made.facts = dict(self.brokers), dict(self.facts)
        made.open = None if self.open is None else list(self.open)
        made.next = self.next
        return made

    def apply(self, batch: Batch) -> None:
        """Applies a batch of the log."""
        for record in batch.records:
            self._take(record)
        self.next = batch.last + 1

    def load(self, batches: Iterable[Batch], end: int) -> None:
        """Takes a snapshot, which ends before the offset `end`."""
        for batch in batches:
            for record in batch.records:
                self._take(record)
        self.next = end

    def _take(self, record: Record) -> None:
        name = record.name
        if name == "BEGIN_TRANSACTION_RECORD":
            if self.open is not None:
                raise ContradictionError(record)
            self.open = []
        elif name in ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"):
            if self.open is None:
                raise ContradictionError(record)
            records, self.open = self.open, None
            for each in records if name == "END_TRANSACTION_RECORD" else ():
                self._replay(each)
        elif self.open is not None and not record.is_control:
            self.open.append(record)
        else:
            self._replay(record)

    def _replay(self, record: Record) -> None:
        data, name = record.data, record.name
        rule = getattr(self, f"_{name.lower()}", None)
        if name in KEYS:
            self._fact(record)
        elif name in REMOVES:
            key = (REMOVES[name], *(data[each] for each in KEYS[REMOVES[name]]))
            self.facts.pop(key, None)
        elif rule is not None:
            rule(data)
        elif name not in IGNORED:
            raise ValueError(name)

    # ---- topics and partitions ------------------------------------------

    def _name(self, topic_id: str) -> str:
        for name, known in self.topics.items():
            if known == topic_id:
                return name
        raise ContradictionError(f"no topic {topic_id}")

    def _topic_record(self, data: dict[str, Any]) -> None:
        if data["name"] in self.topics or data["topicId"] in self.topics.values():
            raise ContradictionError(data)
        self.topics[data["name"]] = data["topicId"]

    def _remove_topic_record(self, data: dict[str, Any]) -> None:
        name = self._name(data["topicId"])
        del self.topics[name]
        for at in [at for at in self.partitions if at[0] == name]:
            del self.partitions[at]
        for key in [key for key in self.facts if key[:3] == ("CONFIG_RECORD", 2, name)]:
            del self.facts[key]

    def _partition_record(self, data: dict[str, Any]) -> None:
        at = (self._name(data["topicId"]), data["partitionId"])
        row = {ours: data.get(theirs) or [] for theirs, ours in _LISTS.items()}
        self.partitions[at] = row | {
            "leader": data["leader"],
            "leader_epoch": data["leaderEpoch"],
            "partition_epoch": data["partitionEpoch"],
            "recovery": data.get("leaderRecoveryState", 0),
        }

    def _partition_change_record(self, data: dict[str, Any]) -> None:
        at = (self._name(data["topicId"]), data["partitionId"])
        if at not in self.partitions:
            raise ContradictionError(data)
        row = self.partitions[at] = dict(self.partitions[at])
        for theirs, ours in _LISTS.items():
            if data.get(theirs) is not None:
                row[ours] = data[theirs]
        if (leader := data.get("leader", _SAME_LEADER)) != _SAME_LEADER:
            row["leader"] = leader
            row["leader_epoch"] += 1
        if data.get("leaderRecoveryState", -1) >= 0:
            row["recovery"] = data["leaderRecoveryState"]
        row["partition_epoch"] += 1

    def _clear_elr_record(self, data: dict[str, Any]) -> None:
        if data["topicName"] and data["topicName"] not in self.topics:
            raise ContradictionError(data)
        for at, row in self.partitions.items():
            if data["topicName"] in ("", at[0]) and (row["elr"] or row["last_elr"]):
                epoch = row["partition_epoch"] + 1
                self.partitions[at] = row | {"elr": [], "last_elr": [], "partition_epoch": epoch}

    # ---- brokers ----------------------------------------------------------

    def _register_broker_record(self, data: dict[str, Any]) -> None:
        self.brokers[data["brokerId"]] = {
            "incarnation": data["incarnationId"],
            "epoch": data["brokerEpoch"],
            "endpoints": data["endPoints"],
            "features": data["features"],
            "rack": data["rack"],
            "fenced": data["fenced"],
            "shutting_down": data.get("inControlledShutdown", False),
            "dirs": data.get("logDirs", []),
            "cordoned": data.get("cordonedLogDirs"),
        }

    def _unregister_broker_record(self, data: dict[str, Any]) -> None:
        if data["brokerId"] not in self.brokers:
            raise ContradictionError(data)
        del self.brokers[data["brokerId"]]

    def _change_broker(self, id: int, epoch: int, **new: Any) -> None:
        old = self.brokers.get(id)
        if old is None or old["epoch"] != epoch:
            raise ContradictionError(f"broker {id}, epoch {epoch}: {old}")
        self.brokers[id] = old | new

    def _fence_broker_record(self, data: dict[str, Any]) -> None:
        self._change_broker(data["id"], data["epoch"], fenced=True)

    def _unfence_broker_record(self, data: dict[str, Any]) -> None:
        self._change_broker(data["id"], data["epoch"], fenced=False)

    def _broker_registration_change_record(self, data: dict[str, Any]) -> None:
        new: dict[str, Any] = {}
        if data.get("fenced", 0):
            new["fenced"] = data["fenced"] > 0
        if data.get("inControlledShutdown", 0):
            new["shutting_down"] = data["inControlledShutdown"] > 0
        if data.get("logDirs"):
            new["dirs"] = data["logDirs"]
        if data.get("cordonedLogDirs") is not None:
            new["cordoned"] = data["cordonedLogDirs"]
        self._change_broker(data["brokerId"], data["brokerEpoch"], **new)

    # ---- all else ---------------------------------------------------------

    def _fact(self, record: Record) -> None:
        key = fact_key(record.name, record.data)
        data = record.data
        is_gone = (
            (record.name == "CONFIG_RECORD" and data["value"] is None)
            or (record.name == "CLIENT_QUOTA_RECORD" and data["remove"])
            or (record.name == "FEATURE_LEVEL_RECORD" and not data["featureLevel"])
        )
        if is_gone:
            self.facts.pop(key, None)
        else:
            self.facts[key] = data

    # ---- comparing ----------------------------------------------------------

    def shown(self) -> dict[str, Any]:
        """Returns the state without its voters, in one form."""
        quorum = ("KRAFT_VERSION", "KRAFT_VOTERS")
        return {
            "topics": dict(sorted(self.topics.items())),
            "partitions": {
                at: row | {"directories": _known(row["directories"])}
                for at, row in sorted(self.partitions.items())
            },
            "brokers": {
                id: row | {"features": sorted(row["features"], key=lambda f: str(f["name"]))}
                for id, row in sorted(self.brokers.items())
            },
            "facts": {
                key: _sorted(data) for key, data in self.facts.items() if key[0] not in quorum
            }
            # Kafka's snapshots have -1 for the broker.
            | {
                key: data["nextProducerId"]
                for key, data in self.facts.items()
                if key[0] == "PRODUCER_IDS_RECORD"
            },
        }

    def records(self) -> list[Given]:
        """Returns the records of a snapshot of this state."""
        made: list[Given] = []
        for id, row in sorted(self.brokers.items()):
            made.append(
                ("REGISTER_BROKER_RECORD", 4, {
                    "brokerId": id, "isMigratingZkBroker": False,
                    "incarnationId": row["incarnation"], "brokerEpoch": row["epoch"],
                    "endPoints": row["endpoints"], "features": row["features"],
                    "rack": row["rack"], "fenced": row["fenced"],
                    "inControlledShutdown": row["shutting_down"], "logDirs": row["dirs"],
                    "cordonedLogDirs": row["cordoned"],
                })
            )  # fmt: skip
        for name, topic_id in sorted(self.topics.items()):
            made.append(("TOPIC_RECORD", 0, {"name": name, "topicId": topic_id}))
            for at, row in sorted(self.partitions.items()):
                if at[0] == name:
                    lists = {theirs: row[ours] for theirs, ours in _LISTS.items()}
                    made.append(
                        ("PARTITION_RECORD", 2, {
                            **lists, "partitionId": at[1], "topicId": topic_id,
                            "eligibleLeaderReplicas": row["elr"] or None,
                            "lastKnownElr": row["last_elr"] or None,
                            "leader": row["leader"], "leaderEpoch": row["leader_epoch"],
                            "partitionEpoch": row["partition_epoch"],
                            "leaderRecoveryState": row["recovery"],
                        })
                    )  # fmt: skip
        is_control = ("KRAFT_VERSION", "KRAFT_VOTERS")
        return made + [(k[0], 0, data) for k, data in self.facts.items() if k[0] not in is_control]


def fact_key(name: str, data: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the key of a fact; a list in it is a set."""

    def hashable(value: Any) -> Any:
        if isinstance(value, list):
            return frozenset(tuple(sorted(each.items(), key=str)) for each in value)
        return value

    return (name, *(hashable(data[field]) for field in KEYS[name]))


def _known(directories: list[str]) -> list[str]:
    """Returns directories; Kafka writes those that a record lacks as MIGRATING."""
    return [] if set(directories) <= {MIGRATING} else directories


def _sorted(data: dict[str, Any]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        return sorted(value, key=str) if isinstance(value, list) else value

    return {name: one(value) for name, value in data.items()}
