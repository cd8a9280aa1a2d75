"""KraftLog finds the right copy, the right part and the right state, and says what it rests on."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kraft_cluster import NOTHING, Cluster, log_of, model_of, random_node
from kraft_logs import DIVERGED, GOLDEN, LOG, LOGS, Made
from kraft_random import RandomLog
from kraft_records import batches

import rdmeta
from rdmeta.generate.logs import Log, snapshot, snapshot_name, value_of
from rdmeta.kraft import KraftError, KraftLog, KraftState, LogChangedError, LogChanges

each_log = pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))


def golden(name: str = "4.3.0") -> KraftLog:
    return rdmeta.KraftLog(GOLDEN / name)


# ---- which log ---------------------------------------------------------------


@each_log
def test_a_log_says_what_it_has(made: Made) -> None:
    log = golden(made.name)
    assert (log.start, log.end, log.proven) == (0, log.epochs[-1].last + 1, log.end)
    assert [node.files.node for node in log.nodes] == [1, 2, 3]
    assert f"{log.cluster_id}: 0 to {log.end}" in repr(log)
    assert (len(log.segments), log.snapshots[-1].why_not) == (1, None)
    assert log.faults == ()
    for epoch, later in zip(log.epochs, log.epochs[1:], strict=False):
        assert {epoch.leader} <= set(epoch.granted) <= set(epoch.voters)
        assert (epoch.last + 1, True) == (later.first, epoch.ended <= later.began)
        waited = (later.began - epoch.ended) // timedelta(microseconds=1)
        assert (later.leaderless_us, log.epochs[0].leaderless_us) == (waited, None)


def test_of_copies_the_one_counts_that_won() -> None:
    log = golden(DIVERGED.name)
    assert ["never committed" in fault for fault in log.faults] == [True]
    assert {"never", "after"} & set(log.state().topics) == {"after"}
    loser = next(node for node in log.nodes if node.scan.epochs[-1].epoch < log.epochs[-1].epoch)
    alone = rdmeta.KraftLog(loser.files.directory)
    assert ("never" in alone.state().topics, alone.state().proven) == (True, False)
    assert "never" not in rdmeta.KraftLog(loser.files.directory, proven=True).state().topics


def test_other_copies_have_what_is_before_the_begin(tmp_path: Path) -> None:
    (tmp_path / "long").mkdir()
    (tmp_path / "short").mkdir()
    random_node(tmp_path / "long", 5)
    _, made = random_node(tmp_path / "short", 5, cut=1)
    (tmp_path / "long" / max(each.name for each in (tmp_path / "long").glob("*.log"))).unlink()
    log = rdmeta.KraftLog([tmp_path / "long", tmp_path / "short"])
    assert (log.start > 0, log.end) == (True, made.log.end)
    early = [each for each in made.states if 0 < each < log.start][-1]
    assert model_of(log.state(early)._replay).shown() == made.states[early].shown()
    assert [each.offset for each in log.records(0, early)] == list(range(early))


def test_what_is_proven_is_marked_or_all_there_is(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    cluster.append(1)
    cluster.looked_at()
    log = rdmeta.KraftLog(tmp_path)
    assert (log.proven, log.end) == (2, 3)
    for at, proven in ((2, True), (3, False)):
        answers = log.state(at), log.changes(until=at), log.records(until=at)
        assert [each.proven for each in answers] == [proven] * 3
        assert ("unproven" in repr(log.state(at))) != proven
    part = rdmeta.KraftLog(tmp_path, proven=True)
    assert (part.end, part.state().offset, len(list(part.records()))) == (2, 2, 2)
    with pytest.raises(KraftError, match="offset 3 is not proven: the log is proven to 2"):
        part.state(3)
    with pytest.raises(KraftError, match="offset 4 is not in the log: the log has the offsets 0"):
        part.state(4)


# ---- states ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_state_is_that_of_the_model(tmp_path: Path, seed: int) -> None:
    _, made = random_node(tmp_path, seed)
    log = rdmeta.KraftLog(tmp_path)
    for end in random.Random(seed).sample(sorted(made.states), 6):
        state, model = log.state(end), made.states[end]
        begun = max([0, *(each.end for each in log.nodes[0].used if each.end <= end)])
        assert list(state.topics) == sorted(model.topics)
        assert list(state.brokers) == sorted(model.brokers)
        assert len(list(state.partitions())) == len(model.partitions)
        assert sum(len(state.facts(kind)) for kind in KINDS) == len(model.facts)
        for (topic, id), row in model.partitions.items():
            found = state.partition(topic, id)
            assert found is not None
            assert found.topic_id == model.topics[topic]
            assert found.leader == (row["leader"] if row["leader"] >= 0 else None)
            assert found.elr == tuple(row["elr"])
            assert found.mark.at_or_before == (found.mark.offset < begun)
        assert state.partition("no such topic", 0) is None
        assert state.image().topics() == log.state(end).image().topics()


KINDS = (
    "configs", "features", "acls", "quotas", "credentials", "tokens", "controllers",
    "producer_ids", "migration", "kraft_version", "voters",
)  # fmt: skip


def test_a_time_is_the_state_behind_all_batches_until_then() -> None:
    log = golden()
    batch = [*batches((GOLDEN / f"4.3.0/n1/{LOG}/{0:020d}.log").read_bytes())][30]
    time = datetime.fromtimestamp(batch.time_ms / 1000, timezone.utc)
    assert log.offset(time) == log.state(time).offset > batch.base
    assert log.state(time).time == time
    assert log.offset(time - timedelta(milliseconds=1)) <= batch.base
    assert log.state(log.epochs[0].began - timedelta(days=1)).topics == {}
    with pytest.raises(ValueError, match="time zone"):
        log.state(datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_time_before_the_begin_is_an_error_that_says_what_can_be_had(tmp_path: Path) -> None:
    random_node(tmp_path, 4, cut=1)
    log = rdmeta.KraftLog(tmp_path)
    snapshot = log.snapshots[0]
    assert snapshot.file.end == log.start
    assert snapshot.last_ms is not None
    time = datetime.fromtimestamp(snapshot.last_ms / 1000, timezone.utc)
    assert log.state(time).offset >= log.start
    for before in (time - timedelta(hours=1), log.start - 1):
        with pytest.raises(
            KraftError, match=rf"log has the offsets {log.start} to .* UTC\); snaps"
        ):
            log.state(before)
    assert rdmeta.KraftLog(snapshot.file.path).state().offset == log.start


def test_an_image_is_what_a_broker_answers() -> None:
    state = golden().state()
    image = state.image()
    assert [each.id for each in image.brokers] == [
        each.id for each in state.brokers.values() if not each.fenced
    ]
    for topic in state.topics:
        for row in state.partitions(topic):
            found = image.topic(topic).partitions[row.partition]
            assert (found.leader, found.leader_epoch) == (row.leader, row.leader_epoch)
            assert (found.isr, found.replicas) == (row.isr, row.replicas)
    assert image.cluster_id == state.cluster_id
    assert len(state.image("PLAINTEXT").brokers) == 3
    with pytest.raises(KraftError, match="no broker with a listener 'NO_SUCH' was unfenced"):
        state.image("NO_SUCH")
    assert golden().state(0).image().topics() == []


def test_states_differ_in_what_changed(tmp_path: Path) -> None:
    _, made = random_node(tmp_path, 7)
    log = rdmeta.KraftLog(tmp_path)
    before, after = (log.state(at) for at in sorted(made.states)[20:60:20])
    found = before.diff(after)
    assert after.diff(after) == []
    back = [each._replace(before=each.after, after=each.before) for each in after.diff(before)]
    assert sorted(back, key=repr) == sorted(found, key=repr) != []
    changed = {each.key for each in found if each.kind == "partition"}
    names = made.states[before.offset].partitions, made.states[after.offset].partitions
    assert changed <= set(names[0]) | set(names[1])
    assert set(names[0]) ^ set(names[1]) <= changed


def test_what_is_unknown_or_contradicts_is_counted_in_each_answer(tmp_path: Path) -> None:
    log = Log()
    log.lead(1, 1)
    later = bytearray(value_of(*NOTHING))
    later[2] = 9  # its version
    log._add([(None, bytes(later))] * 2, False)
    log.append(("FENCE_BROKER_RECORD", 0, {"id": 1, "epoch": 5}))
    log._add([(None, b"a message of a user")], False)
    (tmp_path / log.name).write_bytes(bytes(log.data))
    with pytest.raises(KraftError, match="offset 3: .*broker 1, which is unknown"):
        rdmeta.KraftLog(tmp_path).state()
    lax = rdmeta.KraftLog(tmp_path, skip_corrupt=True)
    records = lax.records()
    assert [each.offset for each in records][:3] == [0, 1, 2]
    for each in (lax.state(), lax.changes(), records):
        assert each.partial
        unknown, contradicting = each.faults
        assert unknown == "2 records of a type or version that is unknown"
        assert contradicting == "2 records that contradict the state, or themselves"
    (tmp_path / log.name).write_bytes(bytes(log.data[log.ends[2][0] :]))
    (tmp_path / log.name).rename(tmp_path / f"{log.ends[2][1]:020d}.log")
    (tmp_path / snapshot_name(log.ends[2][1], 1)).write_bytes(snapshot([NOTHING], 1, 0))
    with pytest.raises(KraftError, match="is it the log of another topic"):
        rdmeta.KraftLog(tmp_path).state()


def test_another_secret_is_a_difference_and_is_not_shown(tmp_path: Path) -> None:
    log = Log()
    log.lead(1, 1)
    user = {"name": "ann", "mechanism": 1, "iterations": 4096, "storedKey": "AAEC"}
    user["serverKey"] = user["storedKey"]
    tokens = [
        {"owner": "User:ann", "requester": "User:ann", "renewers": [], "tokenId": f"m4rked-{each}"}
        | dict.fromkeys(("issueTimestamp", "maxTimestamp", "expirationTimestamp"), 1)
        for each in range(3)
    ]
    log.append(("USER_SCRAM_CREDENTIAL_RECORD", 0, {**user, "salt": "AAEC"}))
    log.append(*(("DELEGATION_TOKEN_RECORD", 0, each) for each in tokens[:2]))
    log.append(("USER_SCRAM_CREDENTIAL_RECORD", 0, {**user, "salt": "AAED"}))
    log.append(("DELEGATION_TOKEN_RECORD", 0, tokens[2]))
    (tmp_path / log.name).write_bytes(bytes(log.data))
    read = rdmeta.KraftLog(tmp_path)
    found = read.state(log.ends[2][1]).diff(read.state())
    assert {(each.kind, each.fields) for each in found} == {
        ("tokens", ()),
        ("credentials", ("salt",)),
    }
    assert "AAED" not in repr(found)
    assert "m4rked" not in repr(found)
    assert len(read.state(0).diff(read.state())) == 4


def test_secrets_are_shown_on_demand_only() -> None:
    for show, wanted in ((False, {"***"}), (True, {"bTRya2VkLXNhbHQtYnl0ZXM="})):
        log = rdmeta.KraftLog(GOLDEN / "4.3.0", show_secrets=show)
        credentials = log.state().facts("credentials")
        records = list(log.records(types=["user_scram_credential"]))
        found = [each.data for each in credentials] + [each.data for each in records]
        assert {data["salt"] for data in found} == wanted
        values = {each.data["value"] for each in log.state().facts("configs")}
        details = {change.detail for change in log.changes() if change.kind == "config_changed"}
        assert (
            ("m4rked-key-of-a-store" in values) == show == any("m4rked" in d for d in details if d)
        )
    with pytest.raises(rdmeta.ArgumentError, match="configs, features"):
        log.state().facts("nonsense")


# ---- changes and records -----------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_changes_follow_from_the_log_wherever_a_reading_begins(tmp_path: Path, seed: int) -> None:
    _, made = random_node(tmp_path, seed)
    log = rdmeta.KraftLog(tmp_path)
    whole = log.changes()
    assert (whole.until, whole.resync, whole.proven) == (log.end, False, log.end <= log.proven)
    for begin in random.Random(seed).sample(sorted(made.states), 8):
        part = log.changes(begin)
        wanted = [each._replace(session="") for each in whole if each.version > begin]
        assert [each._replace(session="") for each in part] == wanted
        assert len(log.changes(begin, begin)) == 0
    assert {each.source for each in whole} == {"log"}


def test_changes_have_the_endpoint_of_a_listener(tmp_path: Path) -> None:
    random_node(tmp_path, 1)
    log = rdmeta.KraftLog(tmp_path)
    shown = {
        listener: {c.detail for c in log.changes(listener=listener) if c.kind == "broker_added"}
        for listener in (None, "NO_SUCH")
    }
    assert shown[None] != shown["NO_SUCH"]


@each_log
def test_records_are_those_of_the_files(made: Made) -> None:
    log = golden(made.name)
    data = (log.segments[0].path).read_bytes()
    wanted = [record for batch in batches(data) for record in batch.records]
    assert [(r.offset, r.type, r.version) for r in log.records()] == [
        (r.offset, r.name, r.version) for r in wanted
    ]
    for begin, end in ((3, 3), (4, 5), (13, 77), (100, log.end)):
        assert [r.offset for r in log.records(begin, end)] == list(range(begin, end))


def test_records_are_chosen_by_what_they_are_about() -> None:
    log = golden()
    found = list(log.records(types=["partition-change", 3], topic="orders", partition=1))
    assert {record.type for record in found} == {"PARTITION_RECORD", "PARTITION_CHANGE_RECORD"}
    assert {(record.topic, record.data["partitionId"]) for record in found} == {("orders", 1)}
    (first, *_) = log.records(types=["leader_change"])
    assert (first.offset, first.data["leaderId"]) == (0, log.epochs[0].leader)
    assert {record.data["brokerId"] for record in log.records(types=[0], broker=2)} == {2}
    assert [record.topic for record in log.records(types=["REMOVE_TOPIC_RECORD"])] == ["gone"]
    with pytest.raises(rdmeta.ArgumentError, match="PARTITION_RECORD"):
        log.records(types=["nonsense"])


def test_arrow_has_the_same_rows() -> None:
    log = golden()
    state = log.state()
    rows = log.records(topic="audit").to_arrow().to_pylist()
    assert [row["offset"] for row in rows] == [r.offset for r in log.records(topic="audit")]
    assert {row["topic_id"] for row in rows if row["partition"] == 0} == {
        state.topics["audit"].topic_id
    }
    partitions = state.to_arrow("partitions").to_pylist()
    assert [(r["topic"], r["partition"], r["isr"]) for r in partitions] == [
        (p.topic, p.partition, [*p.isr]) for p in state.partitions()
    ]
    replicas = state.to_arrow("replicas")
    assert replicas.num_rows == sum(len(p.replicas) for p in state.partitions())
    assert state.to_arrow("brokers")["broker"].to_pylist() == list(state.brokers)
    assert state.to_arrow("topics")["topic"].to_pylist() == list(state.topics)
    assert state.to_arrow("configs").num_rows == len(state.facts("configs"))
    assert golden().state(0).to_arrow("topics").num_rows == 0
    with pytest.raises(rdmeta.ArgumentError, match="brokers"):
        state.to_arrow("nonsense")  # type: ignore[arg-type]


# ---- bad logs ----------------------------------------------------------------


def test_what_is_passed_over_is_said_in_each_answer(tmp_path: Path) -> None:
    log = log_of(3)
    log.data[log.ends[1][0] + 70] ^= 1
    (tmp_path / log.name).write_bytes(bytes(log.data))
    strict = rdmeta.KraftLog(tmp_path)
    records = strict.records()
    for ask in (strict.state, strict.changes, lambda: list(records)):
        with pytest.raises(KraftError, match=r"\.log, byte \d+, offset 2: .*CRC"):
            ask()
    assert not strict.state(2).partial
    lax = rdmeta.KraftLog(tmp_path, skip_corrupt=True)
    answers: list[KraftState | LogChanges] = [lax.state(), lax.changes()]
    assert [(each.partial, len(each.faults)) for each in answers] == [(True, 1), (True, 1)]
    records = lax.records()
    assert [record.offset for record in records] == [0, 1, 3]
    assert (records.partial, "offset 2" in records.faults[0]) == (True, True)
    assert "partial" in repr(lax.state())


@pytest.mark.parametrize(("place", "value"), [(16, 1), (16, 9), (8, 1), (11, 3), (22, 1)])
def test_a_damaged_head_is_passed_over_too(tmp_path: Path, place: int, value: int) -> None:
    log = log_of(4)
    log.data[log.ends[1][0] + place] = value
    (tmp_path / log.name).write_bytes(bytes(log.data))
    with pytest.raises(KraftError, match=f"byte {log.ends[1][0]}"):
        rdmeta.KraftLog(tmp_path)
    lax = rdmeta.KraftLog(tmp_path, skip_corrupt=True)
    assert (lax.start, lax.end, lax.state().offset, lax.state().partial) == (0, 5, 5, True)
    assert [record.offset for record in lax.records()] == [0, 1, 3, 4]
    assert any(f"byte {log.ends[1][0]}" in fault for fault in lax.faults)
    assert any(f"byte {log.ends[1][0]}" in fault for fault in lax.state().faults)
    time = datetime.fromtimestamp(log.ends[3][2] / 1000, timezone.utc)
    assert (lax.offset(time), lax.state(time).offset) == (4, 4)


def test_damage_that_nothing_follows_is_said_in_each_answer_that_reaches_it(
    tmp_path: Path,
) -> None:
    log = log_of(3)
    log.data[log.ends[-2][0] + 16] = 9
    (tmp_path / log.name).write_bytes(bytes(log.data))
    lax = rdmeta.KraftLog(tmp_path, skip_corrupt=True)
    assert (lax.end, len(lax.faults)) == (3, 1)
    for end, is_partial in ((2, False), (None, True)):
        records = lax.records(until=end)
        assert [each.offset for each in records] == list(range(end or 3))
        answers = lax.state(end), lax.changes(until=end), records
        assert [each.partial for each in answers] == [is_partial] * 3
    (tmp_path / log.name).write_bytes(b"This is no log." * 9)
    assert rdmeta.KraftLog(tmp_path, skip_corrupt=True).state().partial


def test_of_equal_copies_the_one_counts_that_goes_back_farthest(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2)
    first, second = (cluster.logs[1].ends[each][0] for each in (1, 2))
    del cluster.logs[1].data[first:second]
    cluster.looked_at()
    log = rdmeta.KraftLog(tmp_path)
    assert ([each.version for each in log.changes()], log.start) == ([1], 0)
    alone = rdmeta.KraftLog(tmp_path / "n1", skip_corrupt=True)
    assert (alone.start, alone.first_state, alone.explain("orders")) == (0, 0, [])


def test_a_snapshot_that_is_damaged_alone_is_no_empty_state(tmp_path: Path) -> None:
    path = Cluster(tmp_path).snapshot(1, 2, 1, 0, cut=9)
    with pytest.raises(KraftError, match="0001.checkpoint is not used: it is cut short"):
        rdmeta.KraftLog(path).state()


def test_a_copy_that_cannot_be_read_is_named_and_others_are_used(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    cluster.logs[1].data[16] = 9
    with pytest.raises(KraftError):
        cluster.looked_at()
    log = rdmeta.KraftLog(tmp_path)
    assert [node.files.node for node in log.nodes] == [2, 3]
    assert (log.end, log.proven) == (2, 2)
    assert ["n1" in fault for fault in log.faults] == [True]


def test_a_missing_segment_is_an_error_or_passed_over(tmp_path: Path) -> None:
    _, made = random_node(tmp_path, 3)
    files = sorted(tmp_path.glob("*.log"))
    files[1].unlink()
    for file in tmp_path.glob("*.checkpoint"):
        file.unlink()
    log = rdmeta.KraftLog(tmp_path)
    begin = int(files[2].name[:20])
    assert (log.start, log.end) == (begin, made.log.end)
    for ask in (log.state, log.changes, lambda: log.changes(0)):
        with pytest.raises(KraftError, match="no snapshot can be used"):
            ask()
    with pytest.raises(KraftError, match="the log has the offsets"):
        list(log.records())
    lax = rdmeta.KraftLog(tmp_path, skip_corrupt=True)
    there = [*range(int(files[1].name[:20])), *range(begin, made.log.end)]
    assert [each.offset for each in lax.records()] == there
    assert lax.state().partial


def test_a_log_that_was_cut_is_looked_at_once_more(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    cluster.append(1)
    cluster.looked_at(1)
    logs = [rdmeta.KraftLog(tmp_path / "n1") for _ in range(3)]
    records = logs[0].records()
    path = logs[0].segments[0].path
    path.write_bytes(bytes(cluster.logs[2].data))
    with pytest.raises(LogChangedError, match="ends at offset 2, and had 3"):
        list(records)
    assert (logs[1].state().offset, logs[1].end) == (2, 2)
    with pytest.raises(KraftError, match="offset 3 is not in the log"):
        logs[2].state(3)


def test_a_segment_that_went_is_looked_at_once_more(tmp_path: Path) -> None:
    _, made = random_node(tmp_path, 6)
    log = rdmeta.KraftLog(tmp_path)
    first, *_ = sorted(tmp_path.glob("*.log"))
    first.unlink()
    assert log.state(made.log.end).offset == made.log.end
    for file in tmp_path.glob("*"):
        file.unlink()
    with pytest.raises(KraftError, match="no metadata log is here"):
        log.state()


def test_a_partition_and_a_broker_are_explained_from_the_begin_of_the_log(tmp_path: Path) -> None:
    log = golden()
    turns = log.explain("orders", 0)
    assert {turn.partition for turn in turns} == {0}
    assert (turns.changes.proven, turns.changes.partial) == (True, False)
    assert not rdmeta.KraftLog(GOLDEN / "4.3.0/n1").explain("orders").changes.proven
    with pytest.raises(rdmeta.ArgumentError, match="a topic or a broker"):
        log.explain("orders", broker=2)
    assert log.explain("orders") != turns
    assert {turn.broker for turn in log.explain(broker=2) if turn.broker is not None} == {2}
    _, made = random_node(tmp_path, 7, cut=1)
    begun = rdmeta.KraftLog(tmp_path)
    (topic, id), *_ = sorted(made.states[begun.first_state].partitions)
    (first, *_) = begun.explain(topic, id)
    assert (first.offset, first.cause) == (
        begun.first_state - 1,
        "a snapshot says so: then, or before",
    )


def test_records_are_the_same_whatever_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_node(tmp_path, 11)
    log = rdmeta.KraftLog(tmp_path)
    wanted = list(log.records(20, 90))
    for size in (62, 500, 5000):
        monkeypatch.setattr(log, "replay", partial(log.replay, piece=size))
        assert list(log.records(20, 90)) == wanted
    assert [record.offset for record in wanted] == list(range(20, 90))


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_passed_over_or_named_whatever_it_is(tmp_path: Path, seed: int) -> None:
    rng, source = random.Random(seed), (GOLDEN / "4.3.0/n1" / LOG / f"{0:020d}.log").read_bytes()
    path = tmp_path / f"{0:020d}.log"
    whole = KraftLog(GOLDEN / "4.3.0/n1")
    for _ in range(15):
        data = bytearray(source[: rng.choice((len(source), rng.randrange(len(source))))])
        for _ in range(rng.randint(0, 3)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data))
        lax = KraftLog(tmp_path, skip_corrupt=True)
        # No CRC covers a batch's first offset and epoch: a damaged offset hides what follows.
        assert len(list(lax.records())) <= whole.end
        assert lax.state().offset == lax.changes().until <= lax.end
        with suppress(KraftError):
            strict = KraftLog(tmp_path)
            found = [(record.offset, record.data) for record in strict.records()]
            wanted = whole.records(0, strict.end)
            assert found == [(record.offset, record.data) for record in wanted]


# ---- what one copy has wrong -----------------------------------------------------------------


def contradicted(directory: Path, *ends: int) -> RandomLog:
    """Writes a random log with whole snapshots, of which those at some places are of nothing."""
    _, made = random_node(directory, 5)
    for place, path in enumerate(sorted(directory.glob("*.checkpoint"))):
        if place in ends:
            end = int(path.name[:20])
            (header, *_) = (batch for batch in batches(path.read_bytes()))
            last_ms = header.records[0].data["lastContainedLogTimestamp"]
            path.write_bytes(snapshot([NOTHING], int(path.name[21:31]), last_ms))
            assert end in made.states
    return made


def test_a_snapshot_that_replay_contradicts_is_not_used_and_named(tmp_path: Path) -> None:
    made = contradicted(tmp_path, 1, 2)
    log = rdmeta.KraftLog(tmp_path)
    ends = [each.file.end for each in log.snapshots]
    assert log.proven == ends[0]
    for end in (ends[2], made.log.end):
        assert model_of(log.state(end)._replay).shown() == made.states[end].shown()
    whys = [each.why_not or "" for each in log.snapshots]
    assert [why[:40] for why in whys] == ["", *["it differs from a replay to its end: top"] * 2]
    assert sum("it differs from a replay" in fault for fault in log.faults) == 2


def test_a_damaged_copy_is_left_out_where_another_one_is_whole(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 4)
    cluster.append(1)
    cluster.logs[1].data[cluster.logs[1].ends[2][0] + 70] ^= 1
    cluster.looked_at()
    asks: list[Callable[[KraftLog], Any]] = [
        lambda log: log.state().offset,
        lambda log: log.changes().until,
        lambda log: [record.offset for record in log.records()][-1] + 1,
        lambda log: log.state(4).offset + 1,
    ]
    for ask in asks:
        log = rdmeta.KraftLog(tmp_path)
        before = log.faults
        assert (ask(log), log.proven) == (5, 5)
        (fault,) = log.unread
        assert re.search(r"n1/.*0\.log, byte \d+, offset 3: .*CRC", fault)
        assert fault in {*log.faults} - {*before}
        assert [record.offset for record in log.records()] == list(range(5))
        lax = rdmeta.KraftLog(tmp_path, skip_corrupt=True)
        assert (ask(lax), lax.state().partial) == (5, False)
    both = [tmp_path / "n1", shutil.copytree(tmp_path / "n1", tmp_path / "n4")]
    with pytest.raises(KraftError, match="CRC"):
        rdmeta.KraftLog(both).state()
    lax = rdmeta.KraftLog(both, skip_corrupt=True)
    assert (lax.state().offset, lax.state().partial) == (6, True)
    assert [record.offset for record in lax.records()] == [0, 1, 2, 4, 5]


def test_a_tail_that_never_committed_does_not_stand_for_a_damaged_copy(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    cluster.append(2)
    cluster.lead(2, 3, 1, 3)
    cluster.append(1)
    cluster.logs[1].data[-1] ^= 1
    cluster.looked_at()
    with pytest.raises(KraftError, match="CRC"):
        rdmeta.KraftLog([tmp_path / "n1", tmp_path / "n2"]).state()
    assert rdmeta.KraftLog([tmp_path / "n1", tmp_path / "n3"]).state().offset == 3


def test_an_old_epoch_is_known_by_the_snapshot_and_by_what_the_nodes_noted(tmp_path: Path) -> None:
    """The records of its election and of the voters are in a segment that is gone."""
    for node in (1, 2, 3):
        shutil.copytree(GOLDEN / f"4.3.0-dynamic/n{node}", tmp_path / f"n{node}")
        folder = tmp_path / f"n{node}" / LOG
        (snapshot,) = (GOLDEN / "4.3.0-dynamic/n3" / LOG).glob("*132-*.checkpoint")
        for path in folder.glob("*.checkpoint"):
            path.unlink()
        shutil.copy(snapshot, folder)
        segment = folder / f"{0:020d}.log"
        data = segment.read_bytes()
        behind = [each for each in batches(data) if each.base >= 132 and each.epoch == 4]
        segment.unlink()
        (folder / f"{132:020d}.log").write_bytes(data[behind[0].begin : behind[-1].end])
        noted = {"leaderId": 3, "leaderEpoch": 4, "votedId": -1, "data_version": 1}
        (folder / "quorum-state").write_text(json.dumps(noted))
    log = rdmeta.KraftLog(tmp_path)
    assert log.proof == (log.end, "the copies of nodes 1, 2, 3, of 3 voters")
    assert ([each.leader for each in log.epochs], log.state().leader) == ([3], 3)


def test_a_log_begins_with_the_snapshot_for_which_older_segments_were_deleted(
    tmp_path: Path,
) -> None:
    """Only whole segments go: the oldest one that is left begins before that snapshot."""
    _, made = random_node(tmp_path, 8, cut=1)
    min(tmp_path.glob("*.checkpoint")).unlink()
    begin = int(min(tmp_path.glob("*.checkpoint")).name[:20])
    for skip in (False, True):
        log = rdmeta.KraftLog(tmp_path, skip_corrupt=skip)
        assert log.start == log.first_state == begin > log.segments[0].base
        assert {change.version > begin for change in log.changes()} == {True}
        assert [record.offset for record in log.records()] == list(range(begin, made.log.end))
        assert not log.changes().partial
