"""The metadata log in C: batches, records as JSON, and the replay, beside a model in Python."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kraft_cluster import model_of
from kraft_model import ContradictionError, Model
from kraft_records import Record, batches

from rdmeta import ArgumentError, MalformedError, MetadataCache
from rdmeta._core import (
    KraftReplay,
    kraft_batch,
    kraft_columns,
    kraft_is_sensitive,
    kraft_records,
    kraft_summary,
)
from rdmeta.generate.logs import Log, snapshot, uuid_text

GOLDEN = Path(__file__).resolve().parents[1] / "golden/kraft"
LOGS = sorted(GOLDEN.glob(f"*/n*/__cluster_metadata-0/{0:020d}.log"))
SNAPSHOTS = sorted(GOLDEN.glob("*/n*/__cluster_metadata-0/*.checkpoint"))
SESSION = "00000000-0000-4000-8000-000000000000"


def of_folder(path: Path) -> str:
    return str(path.relative_to(GOLDEN))


def check_same(replay: KraftReplay, model: Model) -> None:
    found = model_of(replay)
    for what in ("topics", "partitions", "brokers", "facts", "next"):
        assert getattr(found, what) == getattr(model, what)


@pytest.mark.parametrize("path", LOGS + SNAPSHOTS, ids=of_folder)
def test_each_record_of_a_real_log_has_the_fields_that_kafka_wrote(path: Path) -> None:
    data = path.read_bytes()
    for batch in batches(data):
        head = kraft_batch(data, batch.begin)
        assert head[:5] == (None, batch.end - batch.begin, batch.base, batch.last, batch.time_ms)
        assert head[5:] == (batch.epoch, len(batch.records), batch.is_control)
        found = kraft_records(data, batch.begin, show_secrets=True)
        assert [(*r[:5], json.loads(r[5])) for r in found] == [
            (r.offset, r.time_ms * 1000, r.epoch, r.name, r.version, r.data) for r in batch.records
        ]


@pytest.mark.parametrize("path", LOGS + SNAPSHOTS, ids=of_folder)
def test_columns_have_the_records_and_a_summary_their_bounds(path: Path) -> None:
    data = path.read_bytes()
    wanted = [row for batch in batches(data) for row in kraft_records(data, batch.begin)]
    found = kraft_columns(data, 0, 1 << 62)
    assert found["count"] == len(wanted)
    for name, place in (("offset", 0), ("time", 1)):
        assert [*memoryview(found[name]).cast("q")] == [row[place] for row in wanted]
    for name, place in (("epoch", 2), ("version", 4)):
        assert [*memoryview(found[name]).cast("i")] == [row[place] for row in wanted]
    ends = [0, *memoryview(found["data_ends"]).cast("i")]
    texts = [found["data"][begin:end].decode() for begin, end in pairwise(ends)]
    assert texts == [row[5] for row in wanted]
    first, last = wanted[0][0], wanted[-1][0]
    some = kraft_columns(data, first + 1, last, with_data=False)
    assert [*memoryview(some["offset"]).cast("q")] == [*range(first + 1, last)]
    assert not some["data"]
    fault, used, begin, end, least, most, topics = kraft_summary(data)
    assert (fault, used, begin, end) == (None, len(data), first, last + 1)
    assert least <= min(row[1] for row in wanted) // 1000 <= most
    named = [json.loads(row[5])["name"] for row in wanted if row[3] == "TOPIC_RECORD"]
    assert [name for _, name in topics] == named


def test_columns_and_a_summary_end_at_what_is_no_good_batch() -> None:
    data = bytes(small_log().data)
    size = kraft_batch(data)[1]
    assert kraft_summary(data[:-1])[0] == "cut"
    spoilt = data[:-1] + bytes([data[-1] ^ 1])
    assert kraft_summary(spoilt)[0] == "bad_crc"
    assert kraft_summary(spoilt)[1] >= size
    assert kraft_summary(data[: size - 1])[1:4] == (0, -1, -1)
    assert kraft_columns(b"", 0, 1)["count"] == 0
    for bad in (spoilt, data[:-1], b"x" * 100):
        with pytest.raises(MalformedError, match="no good batch"):
            kraft_columns(bad, 0, 1 << 62)


@pytest.mark.parametrize("path", LOGS, ids=of_folder)
def test_a_replay_of_a_real_log_is_the_models_batch_by_batch(path: Path) -> None:
    data, model, replay = path.read_bytes(), Model(), KraftReplay()
    for batch in batches(data):
        model.apply(batch)
        assert replay.replay(data[batch.begin : batch.end]) == batch.end - batch.begin
        check_same(replay, model)
    assert not replay.info()["partial"]


@pytest.mark.parametrize("path", SNAPSHOTS, ids=of_folder)
def test_a_real_snapshot_is_the_models(path: Path) -> None:
    data, end = path.read_bytes(), int(path.name[:20])
    model, replay = Model(), KraftReplay()
    if not end:  # Kafka's bootstrap snapshot, which is before any log
        with pytest.raises(ArgumentError):
            replay.snapshot(data, end, 0)
        return
    model.load(batches(data), end)
    assert replay.snapshot(data, end, int(path.name[21:31])) == (len(data), True)
    check_same(replay, model)
    assert {mark[3] for *_, mark in replay.topics()} <= {True}


QUOTA_OF = [{"entityType": t, "entityName": None} for t in ("user", "client-id")]


class SkippingModel(Model):
    """It leaves out a record that contradicts the state, and counts it."""

    skipped = 0

    def _take(self, record: Record) -> None:
        try:
            super()._take(record)
        except ContradictionError:
            self.skipped += 1

    def _replay(self, record: Record) -> None:
        try:
            super()._replay(record)
        except ContradictionError:
            self.skipped += 1


class Maker:
    """Random records. Some contradict the state."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def ids(self) -> list[int]:
        return self.random.sample(range(1, 6), self.random.randint(0, 4))

    def record(self) -> Any:
        pick = self.random
        topic = {"partitionId": pick.randint(0, 3), "topicId": uuid_text(pick.randint(1, 4))}
        broker = {"id": pick.randint(1, 3), "epoch": pick.randint(1, 2)}
        name = f"t{pick.randint(1, 4)}"
        lists = {
            each: self.ids() for each in ("isr", "replicas", "removingReplicas", "addingReplicas")
        }
        elr = {"eligibleLeaderReplicas": self.ids() or None, "lastKnownElr": self.ids() or None}
        dirs = {"directories": [uuid_text(pick.randint(0, 9)) for _ in range(3)]}
        log_dirs = [uuid_text(pick.randint(0, 9)) for _ in range(pick.randint(0, 2))]
        endpoint = {"name": "P", "host": "h", "port": 9092, "securityProtocol": 0}
        some = {k: v for k, v in (lists | elr | dirs).items() if v and pick.random() < 0.3}
        leader = {"leader": pick.randint(-1, 5)} if pick.random() < 0.5 else {}
        return pick.choice((
            ("TOPIC_RECORD", 0, {"name": name, "topicId": topic["topicId"]}),
            ("PARTITION_RECORD", 2, {
                **topic, **lists, **elr, **dirs, "leader": pick.randint(-1, 5), "leaderEpoch": 3,
                "partitionEpoch": 4, "leaderRecoveryState": pick.randint(0, 1),
            }),
            ("PARTITION_CHANGE_RECORD", 2, {**topic, **some, **leader}),
            ("PARTITION_CHANGE_RECORD", 2, {**topic, **some, **leader}),
            ("REMOVE_TOPIC_RECORD", 0, {"topicId": topic["topicId"]}),
            ("REGISTER_BROKER_RECORD", 4, {
                "brokerId": broker["id"], "isMigratingZkBroker": False,
                "incarnationId": uuid_text(pick.randint(1, 9)), "brokerEpoch": broker["epoch"],
                "endPoints": [endpoint] * pick.randint(0, 2), "features": [], "rack": None,
                "fenced": pick.random() < 0.5, "inControlledShutdown": False,
                "logDirs": log_dirs, "cordonedLogDirs": pick.choice((None, log_dirs)),
            }),
            ("FENCE_BROKER_RECORD", 0, broker),
            ("UNFENCE_BROKER_RECORD", 0, broker),
            ("BROKER_REGISTRATION_CHANGE_RECORD", 3, {
                "brokerId": broker["id"], "brokerEpoch": broker["epoch"],
                "fenced": pick.randint(-1, 1), "inControlledShutdown": pick.randint(-1, 1),
                "logDirs": pick.choice(([], log_dirs)),
                "cordonedLogDirs": pick.choice((None, [], log_dirs)),
            }),
            ("UNREGISTER_BROKER_RECORD", 0, {
                "brokerId": broker["id"], "brokerEpoch": broker["epoch"],
            }),
            ("CONFIG_RECORD", 0, {
                "resourceType": pick.choice((2, 4)), "resourceName": name,
                "name": pick.choice("ab"), "value": pick.choice(("1", "2", None)),
            }),
            ("CLIENT_QUOTA_RECORD", 0, {
                "entity": pick.sample(QUOTA_OF, pick.randint(1, 2)), "key": "rate",
                "value": float(pick.randint(1, 9)), "remove": pick.random() < 0.3,
            }),
            ("CLEAR_ELR_RECORD", 0, {"topicName": pick.choice(("", name))}),
            ("FEATURE_LEVEL_RECORD", 0, {
                "name": pick.choice("ab"), "featureLevel": pick.randint(0, 2),
            }),
        ))  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_random_logs_are_replayed_as_the_model_does(seed: int) -> None:
    """Cut anywhere, repeated and resumed; records that contradict the state are left out."""
    maker, log, model = Maker(seed), Log(), SkippingModel()
    log.lead(1, 1)
    model.apply(next(batches(bytes(log.data))))
    steps = ("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")
    for _ in range(250):
        is_step = maker.random.random() < 0.2
        record = (maker.random.choice(steps), 0, {}) if is_step else maker.record()
        before = len(log.data)
        log.append(record)
        model.apply(next(batches(bytes(log.data[before:]))))
    data = bytes(log.data)
    begins = [batch.begin for batch in batches(data)]
    replay, at = KraftReplay(skip=True, session=SESSION), 0
    while at < len(data):
        size = maker.random.randint(1, 2000)
        at += replay.replay(data[at : at + size])
        if maker.random.random() < 0.2:
            again = maker.random.choice([begin for begin in begins if begin <= at])
            replay.replay(data[again:at])
    check_same(replay, model)
    assert replay.info()["skipped"] == model.skipped > 0
    whole = KraftReplay(skip=True, session=SESSION)
    whole.replay(data)
    assert whole.changes().read() == replay.changes().read()
    assert whole.info() == replay.info()


def small_log() -> Log:
    """Returns a log of a broker, and of a topic that is removed in its last batch."""
    log = Log()
    log.lead(1, 3)
    log.append(("REGISTER_BROKER_RECORD", 3, {
        "brokerId": 1, "isMigratingZkBroker": False, "incarnationId": uuid_text(5),
        "brokerEpoch": 9, "endPoints": [
            {"name": "P", "host": "h", "port": 9092, "securityProtocol": 0},
        ], "features": [], "rack": None, "fenced": False, "inControlledShutdown": False,
    }))  # fmt: skip
    log.append(
        ("TOPIC_RECORD", 0, {"name": "orders", "topicId": uuid_text(1)}),
        ("PARTITION_RECORD", 0, {
            "partitionId": 0, "topicId": uuid_text(1), "replicas": [1, 2], "isr": [1],
            "removingReplicas": [], "addingReplicas": [], "leader": 1, "leaderEpoch": 0,
            "partitionEpoch": 0,
        }),
    )  # fmt: skip
    log.append(
        ("PARTITION_CHANGE_RECORD", 0, {"partitionId": 0, "topicId": uuid_text(1), "leader": 2}),
        ("CONFIG_RECORD", 0, {
            "resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": "s3cret",
        }),
        ("REMOVE_TOPIC_RECORD", 0, {"topicId": uuid_text(1)}),
    )  # fmt: skip
    return log


def test_changes_have_the_place_of_their_record() -> None:
    replay = KraftReplay(cluster_id="c", session=SESSION)
    replay.replay(bytes(small_log().data))
    table = replay.changes()
    rows = pa.table(table).to_pylist()
    assert [(row["kind"], row["version"], row["offset"]) for row in rows] == [
        ("controller_changed", 1, 0),
        ("broker_added", 2, 1),
        ("broker_unfenced", 2, 1),
        ("topic_added", 4, 2),
        ("topic_added", 4, 3),
        ("leader_changed", 7, 4),
        ("config_changed", 7, 5),
        ("topic_removed", 7, 6),
    ]
    assert [tuple(row.values()) for row in rows] == [
        tuple(list(v) if isinstance(v, tuple) else v for v in change) for change in table.read()
    ]
    assert {(row["source"], row["source_broker"], row["cluster_id"]) for row in rows} == {
        ("log", 3, "c")
    }
    assert (rows[1]["broker_epoch"], rows[1]["detail"]) == (9, "h:9092")
    assert (rows[5]["partition_epoch"], rows[6]["detail"]) == (1, "ssl.key.password=***")
    assert len(replay.changes()) == 0


def test_lines_have_the_name_that_a_topic_had_and_can_be_chosen() -> None:
    data = bytes(small_log().data)
    lines, used = KraftReplay().lines(data)
    records = [json.loads(line) for line in lines.splitlines()]
    assert used == len(data)
    assert [each["offset"] for each in records] == list(range(7))
    assert [each.get("topic") for each in records] == [None, None, *["orders"] * 3, None, "orders"]
    assert b"s3cret" not in lines

    def offsets(**wanted: Any) -> list[int]:
        found, _ = KraftReplay().lines(data, **wanted)
        return [json.loads(line)["offset"] for line in found.splitlines()]

    assert offsets(types={3, 5}) == [3, 4]
    assert offsets(controls={2}) == [0]
    assert offsets(topic="orders") == [2, 3, 4, 6]
    assert offsets(partition=0, topic="other") == []
    assert offsets(partition=0) == [3, 4]
    assert offsets(broker=1) == [1, 5]
    assert b"s3cret" in KraftReplay().lines(data, show_secrets=True)[0]


def test_a_state_is_an_answer_for_a_cache() -> None:
    replay, cache = KraftReplay(cluster_id="c", until_offset=4), MetadataCache()
    replay.replay(bytes(small_log().data))
    cache.apply(replay.answer(), 12)
    partition = cache.topic("orders").partitions[0]
    assert (partition.leader, partition.isr, partition.offline_replicas) == (1, (1,), (2,))
    told = pa.table(replay.whole(5, session=SESSION)).to_pylist()
    assert [row["kind"] for row in told] == [
        "broker_added",
        "broker_unfenced",
        *["topic_added"] * 2,
    ]
    assert {row["version"] for row in told} == {4}


def test_what_ends_a_replay_is_told() -> None:
    data = bytes(small_log().data)
    replay = KraftReplay()
    used = replay.replay(data[:-1])
    assert replay.fault[:2] == ("cut", 4)
    assert replay.fault[3] == len(data) - used
    assert replay.replay((data + bytes(100))[used:]) == len(data) - used
    assert replay.fault[0] == "zeros"
    replay = KraftReplay(until_us=1_700_000_001_000_000)
    replay.replay(data)
    assert (replay.fault[:2], replay.info()["next"]) == (("reached", 2), 2)


def test_bad_input_is_an_error_that_names_the_record() -> None:
    log = small_log()
    log.append(("FENCE_BROKER_RECORD", 0, {"id": 1, "epoch": 8}))
    data = bytes(log.data)
    replay = KraftReplay()
    with pytest.raises(MalformedError, match="offset 7: FENCE_BROKER_RECORD .* epoch is 9"):
        replay.replay(data)
    assert replay.fault[:2] == ("contradicts", 7)
    assert replay.info()["next"] == 7
    spoilt = bytearray(data)
    spoilt[-1] ^= 1
    with pytest.raises(MalformedError, match="its CRC is wrong"):
        KraftReplay().replay(bytes(spoilt))
    with pytest.raises(MalformedError, match="offsets before it are missing"):
        KraftReplay().replay(data[kraft_batch(data)[1] :])
    with pytest.raises(MalformedError, match="at byte 5"):
        kraft_records(data, 5)
    skipping = KraftReplay(skip=True)
    skipping.replay(data)
    assert (skipping.info()["skipped"], skipping.info()["partial"]) == (1, True)


def test_a_snapshot_comes_first_and_whole() -> None:
    data = snapshot([("FEATURE_LEVEL_RECORD", 0, {"name": "f", "featureLevel": 3})], 1, 500)
    replay = KraftReplay()
    used, ended = replay.snapshot(data[:-1], 10, 1)
    assert not ended
    with pytest.raises(ArgumentError):
        replay.replay(b"")
    assert replay.snapshot(data[used:], 10, 1) == (len(data) - used, True)
    assert replay.facts() == [
        ("FEATURE_LEVEL_RECORD", '{"name":"f","featureLevel":3}', (9, 500_000, 1, True))
    ]
    with pytest.raises(ArgumentError):
        replay.snapshot(data, 10, 1)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="session"):
        KraftReplay().changes()
    with pytest.raises(TypeError):
        KraftReplay().__reduce__()
    with pytest.raises(ValueError, match="start"):
        kraft_batch(b"", 1)
    assert kraft_is_sensitive("SSL.Keystore.Password")
    assert not kraft_is_sensitive("retention.ms")
