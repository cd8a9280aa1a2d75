"""Logs of a running cluster say what its brokers answer; golden logs can be made anew."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commanded import Commanded
from kraft_frames import by_kafka, rare
from kraft_logs import DIVERGED, LOGS, Made, kinds_missing, make, make_diverged
from kraft_random import RandomLog
from real_kafka import JARS, RealKafka, missing

import rdmeta
from rdmeta.history import Recorder
from rdmeta.kraft import KraftLog
from rdmeta.kraft.comparing import findings_of
from rdmeta.kraft.log_files import find_nodes
from rdmeta.kraft.proving import looked_at, proof_of


def log_of(kafka: RealKafka) -> KraftLog:
    return KraftLog([kafka.directory / f"n{node}" for node in kafka.nodes])


@pytest.mark.slow
@pytest.mark.kills
@pytest.mark.timeout(180)
def test_a_live_log_says_what_the_brokers_answer(commanded: Commanded, tmp_path: Path) -> None:
    """It does with a killed broker, too; and a recording of polls agrees with that of the log."""
    kafka = commanded.kafka
    cache = rdmeta.MetadataCache()

    def is_same() -> bool:
        asked, image = kafka.asked(1, None), log_of(kafka).state().image("PLAINTEXT")
        return (
            {topic: asked.topic(topic).partitions for topic in asked}
            == {topic: image.topic(topic).partitions for topic in image}
            and (asked.brokers, asked.cluster_id) == (image.brokers, image.cluster_id)
        )  # fmt: skip

    with Recorder(cache, tmp_path / "polled") as recorder:

        def poll() -> None:
            rdmeta.fetch(cache, kafka.address(1), timeout=5)
            recorder.observe()

        def until_same(in_sync: int) -> None:
            def holds() -> bool:
                poll()
                (first, *_) = cache.topic("logged").partitions
                return len(first.isr) == in_sync and is_same()

            kafka.until(holds, f"{in_sync} are in sync, and the log is the answer")

        poll()
        kafka.create("logged", [[1, 2, 3], [3, 2, 1]])
        until_same(3)
        kafka.kill(3)
        until_same(2)
        kafka.start(3)
        until_same(3)
    log = log_of(kafka)
    assert (log.faults, log.state().partial, log.proven > 0) == ((), False, True)
    assert {node.files.node for node in log.nodes} == set(kafka.nodes)
    whole = (each for each in log.changes() if each.topic == "logged" and each.partition == 0)
    exact = [(each.observed_at, each.new_isr) for each in whole if each.kind == "isr_changed"]
    rows = [row for file in recorder.files for row in pq.read_table(file).to_pylist()]
    seen = [row for row in rows if (row["topic"], row["partition"]) == ("logged", 0)]
    for row in (row for row in seen if row["kind"] == "isr_changed"):
        before = row["observed_at"].timestamp() - row["unseen_us"] / 1e6 - 1
        assert any(
            before <= at.timestamp() <= row["observed_at"].timestamp() and [*isr] == row["new_isr"]
            for at, isr in exact
            if isr is not None
        )
    assert {row["kind"] for row in seen} >= {"topic_added", "isr_changed"}


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_a_golden_log_is_made_anew(made: Made, tmp_path: Path) -> None:
    if reason := missing(made.version):
        pytest.skip(reason)
    make(made, tmp_path)
    assert kinds_missing(made, tmp_path) == []


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_tail_that_never_was_is_made_anew(tmp_path: Path) -> None:
    if reason := missing(DIVERGED.version):
        pytest.skip(reason)
    make_diverged(tmp_path)
    logs = [looked_at(each) for each in find_nodes([tmp_path])]
    (finding,) = findings_of(logs)
    assert "never committed" in finding.text
    assert not finding.is_serious
    assert proof_of(logs).end > min(log.scan.end for log in logs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_kafkas_own_classes_write_records_as_the_tests_do(seed: int) -> None:
    if reason := missing("4.3.0"):
        pytest.skip(reason)
    made = RandomLog(random.Random(seed))
    made.grow(200)
    for data in (bytes(made.log.data), bytes(rare().data)):
        assert by_kafka(data, f"{JARS / '4.3.0'}/*") == data
