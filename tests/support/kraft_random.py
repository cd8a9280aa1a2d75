"""Random metadata logs that are sound, with what the naive replay makes of each of their commits.

made = RandomLog(random.Random(seed))
made.grow(200)
made.log.data, made.states[offset].shown()     # the state behind each commit, by its offset
made.snapshot(offset)                          # its name, and the bytes of a snapshot there
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kraft_model import Model
from kraft_records import batches

from rdmeta.generate.logs import Given, Log, snapshot, snapshot_name, uuid_text

_BEGIN: Given = ("BEGIN_TRANSACTION_RECORD", 0, {"name": "random"})
_END: Given = ("END_TRANSACTION_RECORD", 0, {})
_ABORT: Given = ("ABORT_TRANSACTION_RECORD", 0, {})


class RandomLog:
    """A log that grows by random commits: batches, and transactions over several of them."""

    def __init__(self, rng: random.Random, most_brokers: int = 6) -> None:
        self.log = Log(epoch=0)
        self.model = Model()
        self.states: dict[int, Model] = {0: Model()}
        self._rng = rng
        self._most_brokers = most_brokers
        self._next_id = 1
        self._snapshots = {0: (0, 0)}  # epoch and time by offset
        self._elect()

    def grow(self, commits: int) -> None:
        for _ in range(commits):
            does = self._rng.choices(
                (self._elect, self._commit, self._transaction), weights=(1, 20, 2)
            )[0]
            does()

    def snapshot(self, end: int) -> tuple[str, bytes]:
        """Returns the name and the bytes of a snapshot behind a commit."""
        epoch, last_ms = self._snapshots[end]
        records = self.states[end].records()
        return snapshot_name(end, epoch), snapshot(records, epoch, last_ms, self._rng.randint(1, 9))

    # ---- commits ------------------------------------------------------------

    def _elect(self) -> None:
        voters, begin = (1, 2, 3), len(self.log.data)
        self.log.lead(self.log.epoch + self._rng.randint(1, 3), self._rng.choice(voters), voters)
        self._apply(begin)

    def _commit(self) -> None:
        self._append(self._records(self.model.copied()))

    def _transaction(self) -> None:
        """Appends a transaction over some batches; it is dropped as often as it is kept."""
        trial = self.model.copied()
        parts = [self._records(trial) for _ in range(self._rng.randint(1, 3))]
        parts[0].insert(0, _BEGIN)
        parts[-1].append(self._rng.choice((_END, _ABORT)))
        for part in parts:
            self._append(part)

    def _append(self, records: list[Given]) -> None:
        begin = len(self.log.data)
        self.log.append(*records)
        # Times of a real log may be equal, and go back.
        self.log.time_ms += self._rng.choice((-3000, -1000, 0, 0, 50))
        self._apply(begin)

    def _apply(self, begin: int) -> None:
        """Applies the last batch, and keeps the state behind it if no transaction is open."""
        (batch,) = batches(bytes(self.log.data[begin:]))
        self.model.apply(batch)
        if self.model.open is None:
            self.states[self.log.end] = self.model.copied()
            self._snapshots[self.log.end] = (batch.epoch, batch.time_ms)

    # ---- records --------------------------------------------------------------

    def _records(self, trial: Model) -> list[Given]:
        """Returns records that fit a state, and applies them to it."""
        made: list[Given] = []
        for _ in range(self._rng.randint(1, 4)):
            for record in self._some(trial):
                made.append(record)
                _try(trial, record)
        return made or [("NO_OP_RECORD", 0, {})]

    def _some(self, model: Model) -> list[Given]:
        makers: list[Callable[[Model], list[Given]]] = [
            self._broker, self._broker_change, self._topic, self._topic_gone, self._partition,
            self._partition, self._partition, self._cleared, self._fact, self._fact_gone,
        ]  # fmt: skip
        return self._rng.choice(makers)(model)

    def _id(self) -> str:
        self._next_id += 1
        return uuid_text(self._rng.getrandbits(64) << 64 | self._next_id)

    def _ids(self, most: int = 4) -> list[int]:
        count = self._rng.randint(0, min(most, self._most_brokers))
        return self._rng.sample(range(1, self._most_brokers + 1), count)

    def _broker(self, model: Model) -> list[Given]:
        id, epoch = self._rng.randint(1, self._most_brokers), self.log.end
        if id in model.brokers and self._rng.random() < 0.2:
            gone = {"brokerId": id, "brokerEpoch": model.brokers[id]["epoch"]}
            return [("UNREGISTER_BROKER_RECORD", 0, gone)]
        version = self._rng.randint(0, 4)
        data: dict[str, Any] = {
            "brokerId": id,
            "incarnationId": self._id(),
            "brokerEpoch": epoch,
            "endPoints": [
                {"name": name, "host": f"h{id}", "port": 9000 + id, "securityProtocol": 0}
                for name in self._rng.sample(["PLAINTEXT", "SSL"], self._rng.randint(1, 2))
            ],
            "features": [
                {"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 30}
            ],
            "rack": self._rng.choice([None, "", f"rack-{id}"]),
            "fenced": self._rng.random() < 0.5,
        }
        if version >= 1:
            data["inControlledShutdown"] = self._rng.random() < 0.1
        if version >= 2:
            data["isMigratingZkBroker"] = False
        if version >= 3:
            data["logDirs"] = [self._id() for _ in range(self._rng.randint(0, 2))]
        if version >= 4 and self._rng.random() < 0.5:
            data["cordonedLogDirs"] = data["logDirs"][:1]
        return [("REGISTER_BROKER_RECORD", version, data)]

    def _broker_change(self, model: Model) -> list[Given]:
        if not model.brokers:
            return []
        id, broker = self._rng.choice(list(model.brokers.items()))
        if self._rng.random() < 0.3:
            name = self._rng.choice(["FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"])
            return [(name, 0, {"id": id, "epoch": broker["epoch"]})]
        version = self._rng.randint(0, 3)
        data = {"brokerId": id, "brokerEpoch": broker["epoch"], "fenced": self._rng.randint(-1, 1)}
        if version >= 1:
            data["inControlledShutdown"] = self._rng.randint(0, 1)
        if version >= 2:
            data["logDirs"] = [self._id() for _ in range(self._rng.randint(0, 2))]
        if version >= 3:
            data["cordonedLogDirs"] = self._rng.choice([None, [], [self._id()]])
        return [("BROKER_REGISTRATION_CHANGE_RECORD", version, data)]

    def _topic(self, model: Model) -> list[Given]:
        name = f"topic-{self._rng.randint(0, 9)}"
        if name in model.topics:
            return []
        id = self._id()
        rows = [self._row(id, partition) for partition in range(self._rng.randint(0, 4))]
        return [("TOPIC_RECORD", 0, {"name": name, "topicId": id}), *rows]

    def _row(self, id: str, partition: int) -> Given:
        version = self._rng.randint(0, 2)
        data: dict[str, Any] = {
            "partitionId": partition,
            "topicId": id,
            "replicas": self._ids(),
            "isr": self._ids(),
            "removingReplicas": self._ids(1),
            "addingReplicas": self._ids(1),
            "leader": self._rng.choice([-1, *range(1, self._most_brokers + 1)]),
            "leaderRecoveryState": self._rng.randint(0, 1),
            "leaderEpoch": self._rng.choice([0, 0, 300, 70_000]),
            "partitionEpoch": self._rng.choice([0, 0, 300, 70_000]),
        }
        if version >= 1:
            data["directories"] = [self._id() for _ in data["replicas"]]
        if version >= 2:
            data["eligibleLeaderReplicas"] = self._rng.choice([None, [], self._ids()])
            data["lastKnownElr"] = self._rng.choice([None, self._ids(1)])
        return ("PARTITION_RECORD", version, data)

    def _topic_gone(self, model: Model) -> list[Given]:
        if not model.topics or self._rng.random() < 0.5:
            return []
        id = self._rng.choice(list(model.topics.values()))
        return [("REMOVE_TOPIC_RECORD", 0, {"topicId": id})]

    def _partition(self, model: Model) -> list[Given]:
        """Changes a partition, or adds one to a topic."""
        if not model.topics:
            return []
        name, id = self._rng.choice(list(model.topics.items()))
        count = sum(at[0] == name for at in model.partitions)
        if not count or self._rng.random() < 0.1:
            return [self._row(id, count)]
        version = self._rng.randint(0, 2)
        data: dict[str, Any] = {"topicId": id, "partitionId": self._rng.randrange(count)}
        values: dict[str, Callable[[], Any]] = {
            "isr": self._ids,
            "replicas": self._ids,
            "removingReplicas": lambda: self._ids(1),
            "addingReplicas": lambda: self._ids(1),
            "leader": lambda: self._rng.randint(-1, self._most_brokers),
            "leaderRecoveryState": lambda: self._rng.randint(0, 1),
        }
        if version >= 1:
            values["directories"] = lambda: [self._id() for _ in range(self._rng.randint(1, 3))]
        if version >= 2:
            values |= {"eligibleLeaderReplicas": self._ids, "lastKnownElr": lambda: self._ids(1)}
        for field in self._rng.sample(list(values), self._rng.randint(0, 3)):
            data[field] = values[field]()
        return [("PARTITION_CHANGE_RECORD", version, data)]

    def _cleared(self, model: Model) -> list[Given]:
        if self._rng.random() < 0.7:
            return []
        return [("CLEAR_ELR_RECORD", 0, {"topicName": self._rng.choice(["", *model.topics])})]

    def _fact(self, model: Model) -> list[Given]:
        number = self._rng.randint(1, 5)
        acl = {"resourceType": 2, "resourceName": "orders", "patternType": 3, "host": "*"}
        names = [*model.topics, "1", ""]
        given: list[Given] = [
            ("CONFIG_RECORD", 0, {
                "resourceType": self._rng.choice([2, 4, 16]),
                "resourceName": self._rng.choice(names), "name": f"key-{number}",
                "value": self._rng.choice([None, "", "a", "b" * 200]),
            }),
            ("FEATURE_LEVEL_RECORD", 0, {"name": f"f{number}", "featureLevel": number % 4}),
            ("CLIENT_QUOTA_RECORD", 0, {
                "entity": self._rng.sample(
                    [{"entityType": "user", "entityName": self._rng.choice([None, "ann"])},
                     {"entityType": "client-id", "entityName": "c"}], 2),
                "key": f"k{number}", "value": number / 4, "remove": self._rng.random() < 0.3,
            }),
            ("ACCESS_CONTROL_ENTRY_RECORD", 0, {
                **acl, "id": self._id(), "principal": f"User:{number}", "operation": 3,
                "permissionType": 3,
            }),
            ("USER_SCRAM_CREDENTIAL_RECORD", 0, {
                "name": f"u{number}", "mechanism": 1, "salt": "AAEC", "storedKey": "AwQ=",
                "serverKey": "BQ==", "iterations": 4096 + number,
            }),
            ("DELEGATION_TOKEN_RECORD", 0, {
                "owner": "User:a", "requester": "User:b", "renewers": ["User:c"] * (number % 3),
                "issueTimestamp": 1, "maxTimestamp": 9, "expirationTimestamp": 5,
                "tokenId": f"token-{number}",
            }),
            ("PRODUCER_IDS_RECORD", 0, {
                "brokerId": number, "brokerEpoch": 5, "nextProducerId": 1000 * self.log.end,
            }),
            ("ZK_MIGRATION_STATE_RECORD", 0, {"zkMigrationState": number}),
        ]  # fmt: skip
        return [self._rng.choice(given)]

    def _fact_gone(self, model: Model) -> list[Given]:
        removals = {
            "ACCESS_CONTROL_ENTRY_RECORD": ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", ("id",)),
            "USER_SCRAM_CREDENTIAL_RECORD": (
                "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
                ("name", "mechanism"),
            ),
            "DELEGATION_TOKEN_RECORD": ("REMOVE_DELEGATION_TOKEN_RECORD", ("tokenId",)),
        }
        known = [key for key in model.facts if key[0] in removals]
        if not known:
            return []
        name, *values = self._rng.choice(known)
        removal, fields = removals[name]
        return [(removal, 0, dict(zip(fields, values, strict=True)))]


def _try(model: Model, record: Given) -> None:
    """Applies a record to a state that is only a trial: it has another offset in the log."""
    log = Log(model.next)
    log.append(record)
    (batch,) = batches(bytes(log.data))
    model.apply(batch)
