"""The logs of generated controllers: whole for rdmeta, and read by Kafka's own tool."""

from __future__ import annotations

import json
import re
import tempfile
from datetime import datetime, timezone
from pathlib import Path

import commands
import pytest
from kraft_logs import dump
from kraft_records import batches
from real_kafka import RealKafka, missing

from rdmeta.generate.cluster import CONTROLLERS
from rdmeta.generate.controllers import write_logs
from rdmeta.generate.scenarios import Sizes, clusters
from rdmeta.kraft import KraftLog

BEGIN = datetime(2026, 11, 19, tzinfo=timezone.utc)
FOLDER = "cluster=cluster-1"
SIZES = Sizes(2, 1, 3, 1, 1)


def written(name: str, directory: Path) -> list[Path]:
    """Writes the logs of a scenario; returns the directories of the nodes."""
    (cluster,) = clusters(name, 1, BEGIN, SIZES)
    write_logs(cluster, BEGIN, directory)
    return sorted(directory.glob(f"{FOLDER}/node=*"))


def test_three_nodes_have_one_log_whose_check_finds_nothing(tmp_path: Path) -> None:
    nodes = written("quiet", tmp_path)
    assert [int(node.name.partition("=")[2]) for node in nodes] == list(CONTROLLERS)
    done = commands.run("log", "check", *map(str, nodes))
    assert (done.code, done.err) == (0, "")
    log = KraftLog(tmp_path / FOLDER)
    assert (log.cluster_id, log.proven) == ("cluster-1", log.end)


def test_a_log_ends_with_the_state_of_its_cluster(tmp_path: Path) -> None:
    (cluster,) = clusters("bad-friday", 1, BEGIN, SIZES)
    cluster.lost.clear()
    write_logs(cluster, BEGIN, tmp_path)
    log = KraftLog(tmp_path / FOLDER)
    image = log.state().image()
    for name, topic in cluster.state.topics.items():
        found = image.topic(name)
        assert found.topic_id == topic.topic_id
        for each, wanted in zip(found.partitions, topic.partitions, strict=True):
            assert each.leader == wanted.leader
            assert each.leader_epoch == wanted.leader_epoch
            assert each.replicas == wanted.replicas
            assert set(each.isr) == set(wanted.isr)


@pytest.mark.parametrize(("name", "said"), [("bad-friday", "are missing"), ("dirty", "crc")])
def test_what_is_lost_or_damaged_is_so_on_all_nodes(name: str, said: str, tmp_path: Path) -> None:
    nodes = written(name, tmp_path)
    done = commands.run("log", "check", *map(str, nodes))
    assert done.code == 1
    faults = [line for line in done.out.splitlines() if said in line.lower()]
    assert len(faults) >= len(nodes), done.out


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_kafkas_own_tool_reads_each_record_of_segments_and_snapshots(tmp_path: Path) -> None:
    if reason := missing("4.3.0"):
        pytest.skip(reason)
    (node, *_) = written("bad-friday", tmp_path / "made")
    files = sorted([*node.rglob("*.log"), *node.rglob("*.checkpoint")])
    with tempfile.TemporaryDirectory() as directory:
        text = dump(RealKafka("4.3.0", 1, Path(directory)), files)
    said = [json.loads(each) for each in re.findall(r"payload: (\{.*\})", text)]
    every = [batch for path in files for batch in batches(path.read_bytes())]
    wanted = [each.name for batch in every for each in batch.records if not batch.is_control]
    assert [each["type"] for each in said] == wanted
    assert "isvalid: false" not in text
