"""Tables of a log say what was done to Apache Kafka, at the offsets that its own tool prints.

Two recorders see it, too. A broker is killed and comes back, another is shut down, a reassignment
is done and one is cancelled, a replica out of sync becomes leader, the active controller is killed.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import commands
import pyarrow.parquet as pq
import pytest
from agreement import Row, rows
from dumped_log import INTERVALS, Dump
from gold_model import with_times
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kraft_logs import LOG, copy_node, dump
from real_kafka import RealKafka, missing
from waiting import until

from rdmeta import history
from rdmeta.model import Partition

pytestmark = [pytest.mark.slow, pytest.mark.kills, pytest.mark.timeout(300)]

SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": 2500,
    "metadata.max.idle.interval.ms": 500,
    "min.insync.replicas": 2,
}
TOPICS = {
    "orders": ([[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "1"}),
    "moved": ([[1, 2]], {}),
    "risky": ([[1, 2]], {"unclean.leader.election.enable": "true"}),
}
LAG = 5_000_000  # a broker on a busy machine lags behind the controller for less than so many us


class Happened(NamedTuple):
    """The directory of the nodes' logs, the recordings, and what Kafka's tool prints."""

    logs: Path
    recordings: list[Path]
    dumped: Dump
    version: str
    controllers: tuple[int, int]  # the one that was killed, and the next one
    no_quorum: tuple[int, int]  # when it was lost and was back, us


class _Cluster:
    """What is done to a cluster."""

    def __init__(self, kafka: RealKafka) -> None:
        self.kafka = kafka

    def controller(self) -> int | None:
        """Returns the active controller, None while there is none."""
        done = commands.run("quorum", "-b", ",".join(self._running()), "--json")
        leader: int | None = json.loads(done.out)["quorums"][0]["leader"] if done.out else None
        return leader

    def _running(self) -> list[str]:
        return [self.kafka.address(node) for node in sorted(self.kafka.running)]

    def until(self, topic: str, holds: Callable[[Partition], object]) -> None:
        """Waits until each running broker says so of a topic's first partition."""

        def says(node: int) -> object:
            return holds(self.kafka.asked(node, [topic]).topic(topic).partitions[0])

        for node in sorted(self.kafka.running):
            self.kafka.until(partial(says, node), f"node {node} says so of {topic}")

    def reassign(self, topic: str, replicas: list[int] | None) -> None:
        client = KafkaAdminClient(bootstrap_servers=self._running())
        try:
            client.alter_partition_reassignments({TopicPartition(topic, 0): replicas})
        finally:
            client.close()

    def happen(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Returns two active controllers and two times, as `Happened` has them."""
        kafka = self.kafka
        killed = next(node for node in kafka.nodes if node != self.controller())
        kafka.kill(killed)
        self.until("orders", lambda p: killed not in p.isr)
        kafka.start(killed)
        kafka.until_in_sync()
        kafka.stop(3)
        self.until("orders", lambda p: 3 not in p.isr)
        kafka.until_up()  # a broker may still call node 3 the controller
        self.reassign("moved", [1, 3])  # which is down, so that it does not end
        self.until("moved", lambda p: {*p.replicas} == {1, 2, 3})
        self.reassign("moved", None)
        self.until("moved", lambda p: [*p.replicas] == [1, 2])
        kafka.start(3)
        kafka.until_in_sync()
        self.reassign("moved", [2, 3])
        self.until("moved", lambda p: [*p.replicas] == [2, 3] and len(p.isr) == 2)
        kafka.kill(2)
        self.until("risky", lambda p: [*p.isr] == [1])
        lost = time.time_ns() // 1000
        kafka.kill(1)
        kafka.start(2)
        self.until("risky", lambda p: p.leader == 2)
        back = time.time_ns() // 1000
        kafka.start(1)
        kafka.until_in_sync()
        active = self.controller()
        assert active is not None
        kafka.kill(active)
        kafka.until(lambda: self.controller() in kafka.running, "another controller leads")
        following = self.controller()
        assert following is not None
        kafka.start(active)
        kafka.until_in_sync()
        return (active, following), (lost, back)


@pytest.fixture(scope="module", params=["4.3.0", pytest.param("3.9.1", marks=pytest.mark.nightly)])
def happened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Happened:
    if reason := missing(request.param):
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("log-tables")
    recordings = [directory / "recorded" / every for every in ("0.5", "0.8")]
    with RealKafka(request.param, 3, directory, settings=SETTINGS) as kafka:
        for topic, (replicas, config) in TOPICS.items():
            kafka.create(topic, replicas, config)
        with ExitStack() as stack:
            recorders = [
                stack.enter_context(
                    commands.started(
                        "record", "-b", kafka.bootstrap, "-o", str(each), "--every", each.name,
                        "--flush-every", "0.2",
                    )
                )
                for each in recordings
            ]  # fmt: skip
            for each in recordings:
                until(partial(is_told, each, "config_changed", "moved"), "min ISRs are recorded")
            controllers, no_quorum = _Cluster(kafka).happen()
            kafka.create("last", [[1, 2, 3]])
            for each in recordings:
                until(partial(is_told, each, "topic_added", "last"), "the last topic is recorded")
            for recorder in recorders:
                recorder.send_signal(signal.SIGINT)
                recorder.communicate(timeout=30)
        kafka.create("behind", [[1]])  # so that the log goes on behind the recordings
        kafka.delete_topics()
    for node in kafka.nodes:
        copy_node(directory / f"n{node}", directory / "logs" / f"n{node}")
    newest = max(kafka.nodes, key=lambda node: _end(directory / "logs" / f"n{node}"))
    files = sorted((directory / "logs" / f"n{newest}" / LOG).glob("0*"))
    dumped = Dump(dump(kafka, files))
    return Happened(directory / "logs", recordings, dumped, request.param, controllers, no_quorum)


def _end(node: Path) -> int:
    return sum(path.stat().st_size for path in (node / LOG).glob("*.log"))


def is_told(directory: Path, kind: str, topic: str) -> bool:
    if not directory.exists():
        return False
    return any((e.kind, e.topic) == (kind, topic) for e in history.changes(directory))


@pytest.fixture(scope="module")
def out(happened: Happened, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the tables of the log and of both recordings."""
    return pipelined(happened.logs, *happened.recordings, tmp_path_factory.mktemp("all"))


@pytest.fixture(scope="module")
def alone(happened: Happened, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the tables of the log alone."""
    return pipelined(happened.logs, tmp_path_factory.mktemp("alone"))


def pipelined(*paths: Path) -> Path:
    done = commands.run("pipeline", "all", *map(str, paths), "--engine", "local", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert (said["quarantined"], said["faults"]) == (0, []), said
    (log,) = said["logs"]
    assert (log["nodes"], log["holes"]) == ([1, 2, 3], [])
    assert commands.run("pipeline", "check", str(paths[-1])).code == 0
    return paths[-1]


def test_each_change_and_interval_is_at_a_record_that_kafka_prints(
    happened: Happened, alone: Path, out: Path
) -> None:
    for tables in (alone, out):
        assert happened.dumped.check_offsets(tables) > 150
        assert happened.dumped.check_snapshots(tables) > 10


def test_what_recorders_saw_is_in_the_log_within_the_time_that_they_did_not_see(
    happened: Happened, alone: Path
) -> None:
    """A record has the time when the controller wrote it; without a quorum nobody sees it yet."""
    exact = [*rows(alone, "change"), *rows(alone, "leader_change")]
    lost, back = happened.no_quorum
    for recording in happened.recordings:
        count = without_lag = 0
        for each in history.changes(recording):
            value = _value_of(each)
            if value is None or each.unseen_us is None:
                continue
            at = int(each.observed_at.timestamp() * 1e6)
            same = [
                row["observed_at"]
                for row in exact
                if row["observed_at"] <= at
                and (row["topic"], row["partition"]) == (each.topic, each.partition)
                and row.get(value[0]) is not None
                and _plain(row[value[0]]) == value[1]
            ]
            assert same, each
            lag = at - each.unseen_us - max(same)
            since = back if lost <= max(same) <= back else max(same)
            assert at - each.unseen_us - since < LAG, (lag, same, str(each))
            without_lag += lag <= 0
            count += 1
        assert count > 20
        assert without_lag > count / 4


def _value_of(change: Any) -> tuple[str, Any] | None:
    """Returns a column of a change of a partition, and what it says."""
    names = {"leader_changed": "new_leader_epoch", "isr_changed": "new_isr"}
    name = names.get(change.kind, "new_replicas" if change.kind == "replicas_changed" else None)
    return None if name is None else (name, _plain(getattr(change, name)))


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, (tuple, list)) else value


def test_the_log_and_recordings_give_the_rows_of_the_log(
    happened: Happened, alone: Path, out: Path
) -> None:
    names = ("recordings", "spread_us")

    def shown(found: list[Row]) -> list[Row]:
        return sorted(({n: v for n, v in row.items() if n not in names} for row in found), key=repr)

    has_own = happened.version > "4"  # Kafka 4 writes the min ISR of all brokers
    for table in (*INTERVALS, "controller", "leader_change", "change"):
        found, wanted = rows(out, table), rows(alone, table)
        if not has_own:
            found = [row for row in found if row["source"] != "poll" and _is_named(row)]
            wanted = [row for row in wanted if _is_named(row)]
        assert shown(found) == shown(wanted)
    changes = [row for row in rows(out, "leader_change") if row["topic"] == "orders"]
    assert {row["recordings"] for row in changes} >= {3}
    assert all(0 < row["spread_us"] < 30_000_000 for row in changes if row["recordings"] > 1)


def _is_named(row: Row) -> bool:
    """Returns whether no min ISR that only recorders know can have made a difference."""
    return bool(row.get("topic", "orders") == "orders")


def test_min_isrs_are_known_while_the_log_or_a_recorder_knows_them(
    happened: Happened, out: Path
) -> None:
    found = rows(out, "partition_interval")
    assert {row["min_isr"] for row in found if row["topic"] == "orders"} <= {None, 1}
    moved = [row for row in found if row["topic"] == "moved"]
    assert 2 in {row["min_isr"] for row in moved}
    unknown = sum(row["us"] for row in moved if row["min_isr"] is None)
    assert unknown < sum(row["us"] for row in moved) * (0.02 if happened.version > "4" else 0.5)


def gold(out: Path, name: str) -> list[Row]:
    paths = sorted((out / "gold/v1" / name).rglob("*.parquet"))
    return with_times(row for path in paths for row in pq.ParquetFile(path).read().to_pylist())


def test_gold_says_just_what_was_done(happened: Happened, out: Path, alone: Path) -> None:
    terms = [row for row in gold(out, "controller") if row["broker"] is not None]
    led = [each for each in happened.dumped.log.values() if each.type == "LEADER_CHANGE"]
    assert [row["began_at"] for row in terms] == [each.us for each in led]
    assert [row["broker"] for row in terms[-2:]] == [*happened.controllers]
    outcomes = [row["outcome"] for row in gold(out, "reassignment") if row["topic"] == "moved"]
    assert outcomes == ["cancelled", "done"]
    unclean = {row["topic"] for row in gold(out, "churn_day") if row["unclean"]}
    assert unclean == {None, "risky"}
    restarts: dict[int, list[int]] = {}
    for row in gold(out, "broker_day"):
        assert row["unknown_fenced"] == row["unknown_restarts"] == 0
        of = restarts.setdefault(row["broker"], [0, 0])
        of[0] += row["restarts"]
        of[1] += row["unclean_restarts"]
    active = happened.controllers[0]
    assert sum(count for count, _ in restarts.values()) >= 5
    assert sum(unclean for _, unclean in restarts.values()) >= 4
    assert restarts[active][1] >= 1
    assert all(row["eff_is_exact"] for row in gold(out, "risk_hour"))
    for name in ("controller", "reassignment", "churn_day", "broker_day", "isr_flap_day"):
        assert gold(out, name) == gold(alone, name), name
