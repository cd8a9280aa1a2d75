"""A check reads every byte, compares snapshots with replay, and knows what Kafka does wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kraft_cluster import NOTHING, Cluster
from kraft_days import LogOfDays
from kraft_logs import DIVERGED, GOLDEN, LOG, LOGS, RETAINED, SECRETS
from kraft_random import RandomLog
from marked_secrets import Secrets

from rdmeta.generate.logs import Given, Log, snapshot, snapshot_name, uuid_text
from rdmeta.kraft import KraftError, KraftLog, check

TOPIC: Given = ("TOPIC_RECORD", 0, {"name": "orders", "topicId": uuid_text(7)})
SETTING = {"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "1"}


def serious(directory: Path) -> list[str]:
    """Returns the serious findings, without the directory."""
    found = check([directory])
    return [each.text.replace(f"{directory}/", "") for each in found if each.is_serious]


def written(directory: Path, *records: Given) -> Log:
    """Writes a log of a leader and of these records, a batch each."""
    log = Log()
    log.lead(1, 1)
    for record in records:
        log.append(record)
    (directory / log.name).write_bytes(bytes(log.data))
    return log


def put_snapshot(directory: Path, log: Log, records: list[Given], batch: int = -1) -> Path:
    """Writes a snapshot that ends behind a batch of the log."""
    _, end, time_ms, _ = log.ends[batch]
    path = directory / snapshot_name(end, 1)
    path.write_bytes(snapshot(records, 1, time_ms))
    return path


@pytest.mark.parametrize("name", [*(made.name for made in (*LOGS, DIVERGED)), RETAINED])
def test_real_logs_have_kafkas_own_faults_and_no_others(name: str) -> None:
    found = check([GOLDEN / name])
    assert not any(each.is_serious for each in found)
    texts = [each.text for each in found]
    left = [text for text in texts if "retention.ms" in text]
    assert len(left) == (name == "4.3.0-dynamic")
    assert all("2/gone/" in text and text.endswith("a fault of Kafka's own") for text in left)


@pytest.mark.parametrize("seed", range(3))
def test_snapshots_of_random_logs_equal_replay(tmp_path: Path, seed: int) -> None:
    made = RandomLog(random.Random(seed))
    made.grow(60)
    (tmp_path / made.log.name).write_bytes(bytes(made.log.data))
    for end in sorted(made.states)[10::20]:
        name, data = made.snapshot(end)
        (tmp_path / name).write_bytes(data)
    assert serious(tmp_path) == []


def test_each_damaged_batch_is_named_and_the_check_goes_on(tmp_path: Path) -> None:
    log = written(tmp_path, NOTHING, TOPIC, NOTHING, NOTHING, NOTHING)
    put_snapshot(tmp_path, log, [TOPIC], 3)
    places = [log.ends[batch][0] + 70 for batch in (0, 4)]
    for place in places:
        log.data[place] ^= 1
    (tmp_path / log.name).write_bytes(bytes(log.data))
    first, second = serious(tmp_path)
    begins = [log.ends[batch][0] for batch in (0, 4)]
    assert first.startswith(f"{log.name}, byte {begins[0]}, offset 1: ")
    assert second.startswith(f"{log.name}, byte {begins[1]}, offset 5: ")
    log.data[log.ends[2][0] + 16] = 9  # the magic: heads cannot be read behind it
    (tmp_path / log.name).write_bytes(bytes(log.data))
    (text,) = serious(tmp_path)
    assert text.startswith(f"{log.name}, byte {log.ends[2][0]}, offset 3: no record batch")


def test_a_damaged_snapshot_is_named(tmp_path: Path) -> None:
    log = written(tmp_path, TOPIC, NOTHING)
    path = put_snapshot(tmp_path, log, [TOPIC])
    data = bytearray(path.read_bytes())
    data[data.index(b"orders")] ^= 1
    path.write_bytes(bytes(data))
    (text,) = serious(tmp_path)
    assert text == f"{path.name} is not used: byte 83, offset 1: its CRC is wrong"


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "topic orders is in the log alone"),
        (
            [("TOPIC_RECORD", 0, {"name": "orders", "topicId": uuid_text(8)})],
            f"topic orders: topic_id is {uuid_text(7)}, and {uuid_text(8)} in it",
        ),
        ([TOPIC, ("CONFIG_RECORD", 0, SETTING)], "configs 2/orders/retention.ms is in it alone"),
        (
            [TOPIC, ("FEATURE_LEVEL_RECORD", 0, {"name": "f", "featureLevel": 2})],
            "features f is in it alone",
        ),
    ],
)
def test_a_snapshot_that_differs_from_replay_is_named(
    tmp_path: Path, records: list[Given], said: str
) -> None:
    log = written(tmp_path, TOPIC, NOTHING)
    path = put_snapshot(tmp_path, log, records)
    (text,) = serious(tmp_path)
    assert text == f"{path.name} is not used: it differs from a replay to its end: {said}"


def test_partitions_and_brokers_that_differ_are_named_by_their_fields(tmp_path: Path) -> None:
    ids = {"replicas": [1, 2], "isr": [1, 2], "removingReplicas": [], "addingReplicas": []}
    partition = {"partitionId": 0, "topicId": uuid_text(7), "leader": 1, "leaderEpoch": 0}
    partition |= {"partitionEpoch": 0, **ids}
    broker = {"brokerId": 1, "incarnationId": uuid_text(1), "brokerEpoch": 3, "fenced": True}
    broker |= {"endPoints": [], "features": [], "rack": None, "inControlledShutdown": False}
    both: list[Given] = [
        TOPIC,
        ("PARTITION_RECORD", 0, partition),
        ("REGISTER_BROKER_RECORD", 1, broker),
    ]
    log = written(tmp_path, *both)
    put_snapshot(tmp_path, log, both)
    assert serious(tmp_path) == []
    other: list[Given] = [
        TOPIC,
        ("PARTITION_RECORD", 0, {**partition, "isr": [2], "leader": 2}),
        ("REGISTER_BROKER_RECORD", 1, {**broker, "fenced": False}),
    ]
    put_snapshot(tmp_path, log, other)
    (text,) = serious(tmp_path)
    assert text.endswith(
        "partition orders/0: leader is 1, and 2 in it, isr is (1, 2), and (2,) in it;"
        " broker 1: fenced is True, and False in it"
    )
    put_snapshot(tmp_path, log, [*both[:2]])
    assert "broker 1 is in the log alone" in serious(tmp_path)[0]
    put_snapshot(tmp_path, log, [*both[:2], ("REGISTER_BROKER_RECORD", 1, {**broker, "rack": "r"})])
    assert "broker 1: rack is None, and r in it" in serious(tmp_path)[0]


def test_a_configuration_of_a_removed_topic_is_kafkas_fault(tmp_path: Path) -> None:
    removal: Given = ("REMOVE_TOPIC_RECORD", 0, {"topicId": uuid_text(7)})
    log = written(tmp_path, TOPIC, ("CONFIG_RECORD", 0, SETTING), removal)
    put_snapshot(tmp_path, log, [("CONFIG_RECORD", 0, SETTING)])
    (finding,) = check([tmp_path])
    assert not finding.is_serious
    assert "retention.ms" in finding.text


def test_a_record_that_contradicts_the_state_is_named(tmp_path: Path) -> None:
    written(tmp_path, ("FENCE_BROKER_RECORD", 0, {"id": 1, "epoch": 5}))
    (text,) = serious(tmp_path)
    assert "offset 1" in text
    assert "broker" in text


def test_a_log_that_begins_with_a_snapshot_is_checked_from_there(tmp_path: Path) -> None:
    log = written(tmp_path, TOPIC, NOTHING, NOTHING, NOTHING)
    cut, begin = log.ends[1][:2]
    put_snapshot(tmp_path, log, [TOPIC], 1)
    put_snapshot(tmp_path, log, [], 3)
    (tmp_path / log.name).unlink()
    (tmp_path / f"{begin:020d}.log").write_bytes(bytes(log.data[cut:]))
    (text,) = serious(tmp_path)
    assert "topic orders is" in text


def test_a_snapshot_behind_a_hole_gives_the_state_there(tmp_path: Path) -> None:
    days = LogOfDays(1)
    directory = days.write(tmp_path, 1, end=5, snapshots=(5, 10))
    (directory / f"{10:020d}.log").write_bytes(days.segment(10))
    (text,) = serious(tmp_path)
    assert text.endswith("offsets 5 to 9 are missing")
    log = KraftLog(tmp_path)
    assert (log.proven, log.state(10).offset, log.state(12).offset) == (10, 10, 12)
    with pytest.raises(KraftError, match="no state at offset 7 can be made"):
        log.state(7)


@pytest.mark.parametrize("is_equal", [True, False])
def test_a_snapshot_that_begins_a_log_is_compared_with_another_copy(
    tmp_path: Path, is_equal: bool
) -> None:
    whole, cut = tmp_path / "n1" / LOG, tmp_path / "n2" / LOG
    for directory in (whole, cut):
        directory.mkdir(parents=True)
    log = written(whole, TOPIC, NOTHING, NOTHING)
    place, begin = log.ends[1][:2]
    path = put_snapshot(cut, log, [TOPIC] if is_equal else [], 1)
    (cut / f"{begin:020d}.log").write_bytes(bytes(log.data[place:]))
    found = serious(tmp_path)
    assert found == [] if is_equal else found[0] == (
        f"n2/{LOG}/{path.name} is not used: it differs from a replay to its end:"
        " topic orders is in the log alone"
    )  # fmt: skip


def test_a_difference_shows_no_secret(tmp_path: Path) -> None:
    secrets = Secrets()
    for name, secret in SECRETS.items():
        secrets.add(name, secret)
    value = SECRETS["a key's password"]
    setting = {**SETTING, "resourceType": 4, "resourceName": "1", "name": "ssl.key.password"}
    log = written(tmp_path, ("CONFIG_RECORD", 0, {**setting, "value": value}))
    put_snapshot(tmp_path, log, [("CONFIG_RECORD", 0, {**setting, "value": f"{value}!"})])
    (text,) = serious(tmp_path)
    assert text.count("***") == 2
    secrets.check(text)


def test_a_damaged_control_batch_is_one_finding(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    cluster.logs[2].data[75] ^= 0xFF
    cluster.looked_at()
    texts = serious(tmp_path)
    assert [text for text in texts if "CRC" in text or "crc" in text]


def test_behind_a_record_that_contradicts_the_check_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    fence: Given = ("FENCE_BROKER_RECORD", 0, {"id": 1, "epoch": 5})
    log = written(tmp_path, fence, fence, TOPIC, fence, NOTHING)
    put_snapshot(tmp_path, log, [TOPIC], 3)
    first, second = serious(tmp_path)
    assert ("offset 1" in first, "offset 4" in second) == (True, True)
