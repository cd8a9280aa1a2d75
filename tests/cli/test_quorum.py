"""`rdmeta quorum` shows the controllers of a cluster; tests/real has it on Apache Kafka."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import commands
import pytest
from broker import DESCRIBE_QUORUM, Brokers
from in_process import Running
from kafka.protocol.admin.cluster import DescribeQuorumResponse
from peer import Asked
from pyarrow import parquet

NOW = 1_700_000_000_000


def answering(
    voters: Mapping[int, tuple[int, int]],
    observers: Mapping[int, tuple[int, int]] = MappingProxyType({}),
    leader: int = 2,
) -> Callable[[Asked], bytes]:
    """Returns a broker's answers: by node the log end offset, and the age in ms; -1: not known."""
    of_topic = DescribeQuorumResponse.TopicData
    of_partition = of_topic.PartitionData

    def replicas(nodes: Mapping[int, tuple[int, int]]) -> list[Any]:
        return [
            of_partition.ReplicaState(
                replica_id=id,
                log_end_offset=end,
                last_fetch_timestamp=NOW - age if age >= 0 else -1,
                last_caught_up_timestamp=NOW - age if age >= 0 else -1,
            )
            for id, (end, age) in nodes.items()
        ]

    partition = of_partition(
        partition_index=0,
        error_code=0,
        leader_id=leader,
        leader_epoch=7,
        high_watermark=99,
        current_voters=replicas(voters),
        observers=replicas(observers),
    )
    topic = of_topic(topic_name="__cluster_metadata", partitions=[partition])
    response = DescribeQuorumResponse(error_code=0, topics=[topic], nodes=[])
    return lambda asked: bytes(response.encode(version=asked.version))


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Yields a cluster in which voter 3 is behind, and observer 9 has not fetched yet."""
    with Brokers(1) as made:
        made[1].answers[DESCRIBE_QUORUM] = answering(
            {1: (100, 250), 2: (100, 0), 3: (60, 1500)}, {9: (-1, -1)}
        )
        yield made


def shown(brokers: Brokers, *words: str) -> commands.Done:
    return commands.run("quorum", "-b", brokers.bootstrap, *words)


def test_a_pipe_gets_the_quorum_and_its_nodes(brokers: Brokers) -> None:
    done = shown(brokers)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "leader\tepoch\thigh_watermark\tvoters\tobservers\tmax_lag\n"
        "2\t7\t99\t3\t1\t40\n"
        "\n"
        "node\trole\tlog_end_offset\tlag\tlast_fetch_s\tcaught_up_s\n"
        "2\tleader\t100\t0\t0.0\t0.0\n"
        "1\tvoter\t100\t0\t0.25\t0.25\n"
        "3\tvoter\t60\t40\t1.5\t1.5\n"
        "9\tobserver\t-\t-\t-\t-\n"
    )


def test_json_says_the_same_and_obeys_the_schema(brokers: Brokers) -> None:
    done = shown(brokers, "--json")
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    (found,) = commands.checked_json(done.out)["quorums"]
    assert (found["leader"], found["leader_epoch"], found["high_watermark"]) == (2, 7, 99)
    assert [(each["node"], each["lag"]) for each in found["voters"]] == [(1, 0), (2, 0), (3, 40)]
    assert [each["last_fetch_s"] for each in found["voters"]] == [0.25, 0.0, 1.5]
    assert found["observers"][0]["log_end_offset"] is None


def test_csv_and_parquet_hold_the_nodes(brokers: Brokers, tmp_path: Path) -> None:
    header, first, *_ = shown(brokers, "--csv").out.splitlines()
    assert header == "node,role,log_end_offset,lag,last_fetch_s,caught_up_s"
    assert first == "2,leader,100,0,0.0,0.0"
    file = tmp_path / "quorum.parquet"
    assert shown(brokers, "--parquet", str(file)) == (0, "", "")
    rows = parquet.read_table(file).to_pylist()
    assert [(row["node"], row["last_fetch_s"]) for row in rows][:2] == [(2, 0.0), (1, 0.25)]


def test_a_node_that_is_too_far_behind_ends_with_1(brokers: Brokers) -> None:
    brokers[1].answers[DESCRIBE_QUORUM] = answering({2: (100, 0), 3: (60, 9)}, {9: (50, 9)})
    assert shown(brokers, "--max-lag", "50").code == 0
    done = shown(brokers, "--max-lag", "40")
    assert (done.code, done.err) == (
        1,
        "rdmeta: observer 9 is 50 records behind, more than --max-lag 40\n",
    )
    both = shown(brokers, "--max-lag", "39")
    assert both.err.splitlines()[0] == (
        "rdmeta: voter 3 is 40 records behind, more than --max-lag 39"
    )
    assert "\n3\tvoter\t60\t40\t" in both.out


def test_a_lag_that_is_not_known_ends_with_1(brokers: Brokers) -> None:
    done = shown(brokers, "--max-lag", "1000", "--json")
    assert (done.code, done.err) == (1, "rdmeta: observer 9: its lag is not known\n")
    brokers[1].answers[DESCRIBE_QUORUM] = answering({2: (100, 0), 3: (100, 9)}, leader=-1)
    assert shown(brokers, "--max-lag", "1000").code == 1


def test_list_shows_the_quorums_leader_and_not_metadatas_controller(brokers: Brokers) -> None:
    words = ("list", "-b", brokers.bootstrap)
    assert commands.run(*words, "--table", "clusters", "--csv").out.splitlines()[1].endswith(",2,1")
    (found,) = commands.checked_json(commands.run(*words, "--json").out)["clusters"]
    assert found["controller"] == 2
    brokers[1].answers[DESCRIBE_QUORUM] = answering({}, leader=-1)
    (found,) = commands.checked_json(commands.run(*words, "--json").out)["clusters"]
    assert found["controller"] is None
    assert commands.run(*words, "--table", "brokers").out.splitlines()[1].endswith("\t-")
    del brokers[1].ranges[DESCRIBE_QUORUM]  # Metadata names the controller of ZooKeeper
    (found,) = commands.checked_json(commands.run(*words, "--json").out)["clusters"]
    assert found["controller"] == 1


def test_a_server_that_is_no_broker_is_not_called_zookeepers(brokers: Brokers) -> None:
    brokers[1].ranges = {52: (0, 2), 55: (0, 2), 18: (0, 3)}
    done = shown(brokers, "--timeout", "2")
    assert done.code == 3
    assert "ZooKeeper" not in done.err
    assert "KRaft controller" in done.err


def test_a_server_that_is_not_there_is_one_line() -> None:
    done = commands.run("quorum", "-b", "127.0.0.1:1", "--timeout", "0.5")
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "127.0.0.1:1" in done.err


def test_several_clusters_are_told_apart_and_one_that_fails_is_a_line(
    brokers: Brokers, tmp_path: Path
) -> None:
    with Brokers(1) as other:
        del other[1].ranges[DESCRIBE_QUORUM]
        env = commands.clusters(tmp_path, here=brokers.bootstrap, old=other.bootstrap)
        done = commands.run("quorum", "-c", "all", "--csv", env=env)
        found = commands.checked_json(commands.run("quorum", "-c", "all", "--json", env=env).out)
        alone = commands.run("quorum", "-c", "old", "--json", env=env)
    assert done.code == 3
    assert done.err.startswith("rdmeta: old: the cluster has no quorum")
    assert {line.partition(",")[0] for line in done.out.splitlines()} == {"cluster", "here"}
    assert [each["cluster"] for each in found["quorums"]] == ["here", "old"]
    assert [each["error"] is None for each in found["quorums"]] == [True, False]
    assert commands.checked_json(alone.out)["quorums"][0]["leader"] is None


# ---- rounds -------------------------------------------------------------------------------------


def test_watch_asks_again_on_one_connection_and_prints_each_answer_at_once(
    brokers: Brokers,
) -> None:
    def check(running: Running) -> None:
        header = running.out.next_line().rstrip("\n").split("\t")
        assert header[:4] == ["time", "epoch", "high_watermark", "node"]
        first = [running.out.next_line().split("\t") for _ in range(4)]
        assert [row[3:5] for row in first][:2] == [["2", "leader"], ["1", "voter"]]
        brokers[1].answers[DESCRIBE_QUORUM] = answering({5: (7, 0)}, leader=5)
        while (row := running.out.next_line().split("\t"))[3] != "5":
            assert row[0] > first[0][0]
        running.interrupt()

    words = ("quorum", "-b", brokers.bootstrap, "--watch", "--every", "0.05")
    done = commands.run(*words, meanwhile=check)
    assert (done.code, done.err) == (130, "")
    assert len({seen.connection for seen in brokers[1].seen(DESCRIBE_QUORUM)}) == 1


@pytest.mark.slow
def test_watch_prints_a_line_of_json_for_each_round(brokers: Brokers) -> None:
    done = shown(brokers, "--watch", "--every", "0.2", "--for", "0.7", "--json")
    assert (done.code, done.err) == (0, "")
    found = [commands.checked_json(line) for line in done.out.splitlines()]
    assert 2 <= len(found) <= 4
    times = [each["time"] for each in found]
    assert times == sorted(set(times))
    assert all(each["quorums"][0]["leader"] == 2 for each in found)


def test_watch_ends_with_1_when_a_node_falls_behind(brokers: Brokers) -> None:
    brokers[1].answers[DESCRIBE_QUORUM] = answering({2: (100, 0), 3: (99, 0)})
    words = ("quorum", "-b", brokers.bootstrap, "--watch", "--every", "0.05", "--max-lag", "5")

    def fall_behind(running: Running) -> None:
        assert running.out.next_line().startswith("time,epoch,high_watermark,node,")
        assert ",99,1," in running.out.next_line() + running.out.next_line()
        brokers[1].answers[DESCRIBE_QUORUM] = answering({2: (100, 0), 3: (90, 0)})

    done = commands.run(*words, "--csv", meanwhile=fall_behind)
    assert done.code == 1
    assert done.err == "rdmeta: voter 3 is 10 records behind, more than --max-lag 5\n"


def test_watch_goes_on_after_a_failure_and_tells_it_once(brokers: Brokers) -> None:
    words = ("quorum", "-b", brokers.bootstrap, "--watch", "--every", "0.2", "--timeout", "0.3")
    with commands.started(*words, "--json") as process:
        assert commands.checked_json(process.next_line())["quorums"][0]["error"] is None
        brokers[1].down()
        errors = 0
        while errors < 3:
            (found,) = commands.checked_json(process.next_line())["quorums"]
            errors += found["error"] is not None
        brokers[1].accept()
        while found["error"] is not None:
            (found,) = commands.checked_json(process.next_line())["quorums"]
        done = process.ended(signal.SIGTERM)
    assert done.code == -signal.SIGTERM
    assert 1 <= done.err.count("\n") <= 2  # no answer in time, and perhaps no connection


@pytest.mark.slow
def test_watch_gives_up_a_cluster_that_never_answers_and_follows_the_others(
    brokers: Brokers, tmp_path: Path
) -> None:
    places = {"here": brokers.bootstrap, "gone": "127.0.0.1:1", "wrong": "x:1\nno.such = 1"}
    env = commands.clusters(tmp_path, **places)
    words = ("quorum", "-c", "all", "--watch", "--every", "0.1", "--for", "0.8", "--csv")
    done = commands.run(*words, "--timeout", "0.3", env=env)
    assert done.code == 3
    assert [line.split(": ")[1] for line in done.err.splitlines()] == ["wrong", "gone"]
    assert {line.split(",")[1] for line in done.out.splitlines()} == {"cluster", "here"}
    alone = ("quorum", "-c", "gone", "--watch", "--timeout", "0.3")
    assert commands.run(*alone, env=env).code == 3
