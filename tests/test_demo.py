"""The demo shows the whole path, only reads from its user's cluster, and needs no Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rdmeta import EmbeddedCluster
from rdmeta.history import changes
from rdmeta.net.api_versions import API_VERSIONS
from rdmeta.net.session import METADATA
from rdmeta.spark import NoJavaError, find_java


def demo(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name != "BOOTSTRAP"}
    root = str(Path(__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-m", "rdmeta.demo", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
        cwd=cwd,
        env={**plain, "PYTHONPATH": root, "COLUMNS": "120", **environment},
    )


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_demo_goes_from_sockets_to_spark_tables(tmp_path: Path) -> None:
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(str(error))
    done = demo("--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the waiter was woken") == 3
    for table in ("partition_interval", "leader_change", "leader_minutes"):
        assert f"{table}: " in done.stdout
        assert pq.read_table(tmp_path / "out" / "tables" / table).num_rows > 0
    minutes = pq.read_table(tmp_path / "out" / "tables" / "leader_minutes").to_pylist()
    assert {row["broker"] for row in minutes} == {1, 2, 3, None}
    assert sum(row["share"] for row in minutes) == pytest.approx(1)


def test_without_java_the_demo_says_that_the_spark_half_is_skipped(tmp_path: Path) -> None:
    done = demo(cwd=tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: Spark needs Java 17 or later" in done.stdout
    (out,) = (tmp_path / "demo-out").iterdir()
    kinds = [row.kind for row in changes(out / "history")]
    assert (kinds[0], kinds[-1]) == ("observed_from", "observed_to")
    assert {"leader_changed", "broker_removed", "broker_added"} <= set(kinds)


def test_a_cluster_of_the_users_own_is_only_read_from(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.create_topic("mine", 4, replication_factor=3)
    cluster.set_leader("mine", 1, None)
    cluster.track_requests()
    done = demo(cwd=tmp_path, BOOTSTRAP=cluster.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 topics, 4 partitions" in done.stdout
    assert "LeaderNotAvailableError" in done.stdout
    assert "ns per lookup" in done.stdout
    assert {request.api_key for request in cluster.requests()} == {API_VERSIONS, METADATA}
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_without_topics_leaves_nothing_to_look_up(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    done = demo("--bootstrap", cluster.bootstrap, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no topic here, so" in done.stdout


def test_a_cluster_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    done = demo("--bootstrap", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stdout
    assert "Traceback" not in done.stderr


def test_an_invalid_address_is_a_usage_error(tmp_path: Path) -> None:
    done = demo("--bootstrap", "host:no-port", cwd=tmp_path)
    assert done.returncode == 2
    assert "no-port" in done.stdout
