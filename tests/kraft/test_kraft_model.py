"""The naive replay: it agrees with Kafka's own snapshots, and knows each trap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kraft_logs import GOLDEN, LOG
from kraft_model import ContradictionError, Model
from kraft_records import batches

from rdmeta.generate.logs import Given, Log, snapshot, uuid_text

ORDERS, AUDIT = uuid_text(1), uuid_text(2)
# This node loaded a topic's creation and its removal at once, when it was started again. Kafka
# 4.3.0 then keeps the topic's configuration, and writes it to its next snapshot.
RESTARTED, KEPT = GOLDEN / "4.3.0-dynamic/n2", ("CONFIG_RECORD", 2, "gone", "retention.ms")
WHOLE = [path.parent for path in sorted(GOLDEN.glob(f"*/n*/{LOG}/{0:020d}.log"))]
SNAPSHOTS = [path for folder in WHOLE for path in sorted(folder.glob("*.checkpoint"))]


@pytest.mark.parametrize("file", SNAPSHOTS, ids=lambda file: str(file.relative_to(GOLDEN)))
def test_a_replay_equals_kafkas_snapshot(file: Path) -> None:
    end = int(file.name[:20])
    replayed, loaded = Model(), Model()
    log = next(file.parent.glob("*.log"))
    for batch in batches(log.read_bytes()):
        if batch.last < end:
            replayed.apply(batch)
    assert replayed.next == end
    loaded.load(batches(file.read_bytes()), end)
    ours, theirs = replayed.shown(), loaded.shown()
    kept = theirs["facts"].keys() - ours["facts"].keys()
    assert kept <= ({KEPT} if file.parent.parent == RESTARTED else set())
    for key in kept:
        del theirs["facts"][key]
    assert ours == theirs
    assert replayed.partitions or end < 40


def topic(name: str, id: str, *partitions: dict[str, Any]) -> list[Given]:
    """Returns the records of a topic with these partitions."""
    row = {
        "replicas": [1, 2], "isr": [1, 2], "removingReplicas": [], "addingReplicas": [],
        "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0, "directories": [],
    }  # fmt: skip
    return [
        ("TOPIC_RECORD", 0, {"name": name, "topicId": id}),
        *(
            ("PARTITION_RECORD", 2, {**row, "partitionId": n, "topicId": id, **p})
            for n, p in enumerate(partitions)
        ),
    ]


def change(id: str, partition: int = 0, **fields: Any) -> Given:
    return ("PARTITION_CHANGE_RECORD", 2, {"topicId": id, "partitionId": partition, **fields})


def broker(id: int, epoch: int, **fields: Any) -> Given:
    data = {
        "brokerId": id, "isMigratingZkBroker": False, "incarnationId": uuid_text(epoch),
        "brokerEpoch": epoch, "endPoints": [], "features": [], "rack": None, "fenced": True,
        "inControlledShutdown": False,
    }  # fmt: skip
    return ("REGISTER_BROKER_RECORD", 4, data | fields)


def config(topic: str, name: str, value: str | None, kind: int = 2) -> Given:
    fields = {"resourceType": kind, "resourceName": topic, "name": name, "value": value}
    return ("CONFIG_RECORD", 0, fields)


def replayed(*commits: list[Given]) -> Model:
    """Returns the state behind these batches."""
    log, model = Log(), Model()
    for records in commits:
        log.append(*records)
    for batch in batches(bytes(log.data)):
        model.apply(batch)
    return model


def test_any_change_raises_the_partition_epoch_and_a_leader_the_leader_epoch() -> None:
    begin = topic("orders", ORDERS, {})
    for fields, leader, epochs in (
        ({"isr": [1]}, 1, (0, 1)),
        ({"leader": 2}, 2, (1, 1)),
        ({"leader": 1}, 1, (1, 1)),  # the same leader's id included
        ({"leader": -1}, -1, (1, 1)),
    ):
        row = replayed(begin, [change(ORDERS, **fields)]).partitions["orders", 0]
        assert (row["leader"], row["leader_epoch"], row["partition_epoch"]) == (leader, *epochs)


def test_a_removed_topic_takes_its_partitions_and_its_configurations() -> None:
    model = replayed(
        [*topic("orders", ORDERS, {}), config("orders", "a", "1"), config("orders", "b", "1", 4)],
        [*topic("audit", AUDIT, {}), config("audit", "a", "1")],
        [("REMOVE_TOPIC_RECORD", 0, {"topicId": ORDERS})],
    )
    assert model.topics == {"audit": AUDIT}
    assert list(model.partitions) == [("audit", 0)]
    assert list(model.facts) == [
        ("CONFIG_RECORD", 4, "orders", "b"),  # a broker's of that name
        ("CONFIG_RECORD", 2, "audit", "a"),
    ]


def test_a_registration_replaces_a_broker_whole_and_its_removal_checks_no_epoch() -> None:
    begin = [broker(1, 10, rack="r", logDirs=[uuid_text(5)]), broker(2, 11)]
    model = replayed(begin, [broker(1, 12)])
    assert (model.brokers[1]["rack"], model.brokers[1]["dirs"]) == (None, [])
    gone = ("UNREGISTER_BROKER_RECORD", 0, {"brokerId": 1, "brokerEpoch": 99})
    assert list(replayed(begin, [gone]).brokers) == [2]


@pytest.mark.parametrize("name", ["FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"])
def test_a_fence_with_another_epoch_is_an_error(name: str) -> None:
    fenced = replayed([broker(1, 10)], [(name, 0, {"id": 1, "epoch": 10})]).brokers[1]["fenced"]
    assert fenced == (name == "FENCE_BROKER_RECORD")
    for fields in ({"id": 1, "epoch": 9}, {"id": 2, "epoch": 10}):
        with pytest.raises(ContradictionError):
            replayed([broker(1, 10)], [(name, 0, fields)])


def test_a_change_of_a_registration_leaves_what_it_does_not_name() -> None:
    dirs = [uuid_text(5)]
    begin = [broker(1, 10, logDirs=dirs, cordonedLogDirs=dirs)]

    def changed(**fields: Any) -> dict[str, Any]:
        data = {"brokerId": 1, "brokerEpoch": 10, **fields}
        return replayed(begin, [("BROKER_REGISTRATION_CHANGE_RECORD", 3, data)]).brokers[1]

    assert changed() == replayed(begin).brokers[1]
    assert changed(fenced=-1)["fenced"] is False
    assert changed(inControlledShutdown=1)["shutting_down"] is True
    assert changed(logDirs=[])["dirs"] == dirs  # empty is no change
    assert changed(cordonedLogDirs=[])["cordoned"] == []  # empty is none


def test_a_transaction_is_shown_at_its_end_and_dropped_at_its_abort() -> None:
    begin: Given = ("BEGIN_TRANSACTION_RECORD", 0, {"name": "many"})
    end: Given = ("END_TRANSACTION_RECORD", 0, {})
    abort: Given = ("ABORT_TRANSACTION_RECORD", 0, {})
    a, b = config("a", "x", "1"), config("b", "x", "1")
    assert len(replayed([a, begin], [b]).facts) == 1  # what is before Begin stands alone
    assert len(replayed([a, begin], [b], [end]).facts) == 2
    assert len(replayed([a, begin], [b], [abort]).facts) == 1
    assert len(replayed([begin], [a, abort, b]).facts) == 1
    for wrong in ([end], [abort], [begin, begin]):
        with pytest.raises(ContradictionError):
            replayed(wrong)


def test_cleared_elr_is_of_one_topic_or_of_all() -> None:
    row = {"eligibleLeaderReplicas": [2], "lastKnownElr": [1]}
    begin = [*topic("orders", ORDERS, row), *topic("audit", AUDIT, row)]
    for name, left in (("orders", [[], [2]]), ("", [[], []])):
        model = replayed(begin, [("CLEAR_ELR_RECORD", 0, {"topicName": name})])
        assert [row["elr"] for row in model.partitions.values()] == left


def test_facts_go_by_a_removal_a_null_a_zero_or_a_flag() -> None:
    quota = {"entity": [{"entityType": "user", "entityName": "ann"}], "key": "k", "value": 1.0}

    def feature(level: int) -> Given:
        return ("FEATURE_LEVEL_RECORD", 0, {"name": "f", "featureLevel": level})

    pairs: list[tuple[Given, Given]] = [
        (config("orders", "a", "1"), config("orders", "a", None)),
        (feature(1), feature(0)),
        (
            ("CLIENT_QUOTA_RECORD", 0, quota | {"remove": False}),
            ("CLIENT_QUOTA_RECORD", 0, quota | {"remove": True}),
        ),
    ]  # fmt: skip
    for set_, gone in pairs:
        assert len(replayed([set_]).facts) == 1
        assert replayed([set_], [gone]).facts == {}


def test_the_entity_of_a_quota_is_a_set() -> None:
    entity = [{"entityType": t, "entityName": None} for t in ("user", "client-id")]
    quota = {"key": "k", "value": 1.0, "remove": False}
    model = replayed(
        [("CLIENT_QUOTA_RECORD", 0, quota | {"entity": entity})],
        [("CLIENT_QUOTA_RECORD", 0, quota | {"entity": entity[::-1], "value": 2.0})],
    )
    assert [data["value"] for data in model.facts.values()] == [2.0]


@pytest.mark.parametrize(
    "record",
    [
        change(AUDIT, isr=[1]),
        change(ORDERS, 7, isr=[1]),
        *topic("other", ORDERS),
        *topic("orders", AUDIT),
        ("REMOVE_TOPIC_RECORD", 0, {"topicId": AUDIT}),
        ("CLEAR_ELR_RECORD", 0, {"topicName": "audit"}),
        ("UNREGISTER_BROKER_RECORD", 0, {"brokerId": 1, "brokerEpoch": 1}),
    ],
    ids=lambda record: f"{record[0]} {record[2]}",
)
def test_a_record_that_contradicts_the_state_is_an_error(record: Given) -> None:
    with pytest.raises(ContradictionError):
        replayed(topic("orders", ORDERS, {}), [record])


def test_a_batch_that_was_applied_changes_nothing() -> None:
    log, model = Log(), Model()
    log.append(*topic("orders", ORDERS, {}))
    log.append(change(ORDERS, isr=[1]))
    found = list(batches(bytes(log.data)))
    for batch in (*found, *found, found[0]):
        model.apply(batch)
    assert model.partitions["orders", 0]["partition_epoch"] == 1
    assert model.origins["orders", 0].offset == 2


def test_its_own_snapshot_is_the_same_state() -> None:
    model = replayed(
        [broker(1, 5, fenced=False), broker(2, 6, rack="r", cordonedLogDirs=[])],
        [*topic("orders", ORDERS, {}, {"eligibleLeaderReplicas": [2]}), *topic("audit", AUDIT)],
        [change(ORDERS, 1, leader=-1, leaderRecoveryState=1), config("orders", "a", "1")],
    )
    loaded = Model()
    loaded.load(batches(snapshot(model.records(), 1, 99)), model.next)
    assert loaded.shown() == model.shown()
    assert loaded.next == model.next
