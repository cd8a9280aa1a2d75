"""Spark reads the data source: Classic, Connect and executors of their own see the same rows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyspark
import pytest
import source_program
from kraft_days import LogOfDays
from processes import environment
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, datasource
from pyspark.sql import functions as sql
from recorded import cluster_day
from source_reads import read, sorted_rows
from spark_releases import since

import rdmeta.spark
from rdmeta import pipeline
from rdmeta.cache import MetadataCache
from rdmeta.embedded import EmbeddedCluster
from rdmeta.net.fetch import fetch
from rdmeta.net.handshake import METADATA
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.row_filter import RowFilter, narrowed
from rdmeta.spark.source.schemas import arrow_schema
from rdmeta.spark.source.states import _asked, slices_of_state

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a history of two clusters and three days, tables of it, and an image."""
    root = tmp_path_factory.mktemp("source")
    for cluster in ("one", "two"):
        for day in (1, 2, 3):
            cluster_day(root / "history", cluster, day, (1, 2, 3, 1))
    pipeline.run(pipeline.plan([root / "history"], root / "out"), workers=1)
    LogOfDays(3).write(root / "logs", 1, cuts=(20,), snapshots=(50,))
    cache = MetadataCache()
    with EmbeddedCluster(brokers=3) as embedded:
        embedded.create_topic("orders", partitions=4)
        fetch(cache, embedded.bootstrap)
    cache.image().save(root / "image")
    return root


def frame(session: SparkSession, **given: str) -> DataFrame:
    """Returns a data frame; `servers` stands for bootstrap.servers."""
    if "servers" in given:
        given["bootstrap.servers"] = given.pop("servers")
    return session.read.format("rdmeta").options(**given).load()


def rows(found: DataFrame) -> list[str]:
    return sorted_rows(found.toArrow())


def refusal(session: SparkSession, **given: str) -> str:
    """Returns the error of a read."""
    with pytest.raises(PySparkException) as caught:
        frame(session, **given).collect()
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["brokers", "topics", "partitions", "replicas"])
def test_a_live_cluster_is_asked_once(
    spark: SparkSession, cluster: EmbeddedCluster, table: str
) -> None:
    for number in range(3):
        cluster.create_topic(f"topic-{number}", partitions=5)
    cluster.track_requests()
    live = frame(spark, servers=cluster.bootstrap, table=table)
    found = live.where("cluster_id > ''").collect()
    assert [each.api_key for each in cluster.requests()].count(METADATA) == 1
    assert len(found) == {"brokers": 3, "topics": 3, "partitions": 15, "replicas": 15}[table]
    assert {row.cluster_id for row in found} == {found[0].cluster_id}
    if table == "partitions":
        assert {(row.topic, row.partition) for row in found} == {
            (f"topic-{number}", each) for number in range(3) for each in range(5)
        }


@pytest.mark.proof
def test_only_the_topics_of_the_option_are_asked_for(
    spark: SparkSession, cluster: EmbeddedCluster
) -> None:
    for name in ("orders", "clicks", "views"):
        cluster.create_topic(name, partitions=2)
    found = frame(spark, servers=cluster.bootstrap, table="partitions", topic="orders,views")
    assert {row.topic for row in found.collect()} == {"orders", "views"}


@pytest.mark.slow
def test_a_broker_that_does_not_tell_configurations_is_an_error(
    spark: SparkSession, cluster: EmbeddedCluster
) -> None:
    cluster.create_topic("orders")
    text = refusal(spark, servers=cluster.bootstrap, table="configs")
    assert "UnsupportedVersionError: the broker speaks no version of DescribeConfigs" in text


@pytest.mark.slow
@pytest.mark.parametrize("table", ["brokers", "topics", "partitions", "replicas"])
def test_an_image_is_read(spark: SparkSession, root: Path, table: str) -> None:
    options = {"image": str(root / "image"), "table": table}
    assert rows(frame(spark, **options)) == sorted_rows(read(**options))
    assert frame(spark, **options).count() > 0


@pytest.mark.slow
@pytest.mark.parametrize("table", ["changes", "partition_interval", "leader_change", "observation"])
def test_history_is_read(spark: SparkSession, root: Path, table: str) -> None:
    for place in ("history", "out"):
        options = {"path": str(root / place), "table": table}
        assert rows(frame(spark, **options)) == sorted_rows(read(**options))


@pytest.mark.slow
def test_records_and_states_of_logs_are_read(spark: SparkSession, root: Path) -> None:
    path = str(root / "logs")
    for given in ({"table": "records"}, {"table": "replicas", "at": "2026-11-22T15:00:00Z"}):
        found = frame(spark, path=path, **given)
        assert rows(found) == sorted_rows(read(path=path, **given)), given
    records = frame(spark, path=path, table="records", pushdown="true")
    wanted = records.where("offset between 7 and 9 and topic = 'orders'").orderBy("offset")
    assert [row.offset for row in wanted.collect()] == [7, 8, 9]
    named = rdmeta.spark.read(spark, {"path": path, "table": "topics", "at": "9"})
    assert named.count() == 1
    assert "has no state there" in refusal(spark, path=path, table="topics", at="51")


@pytest.mark.slow
def test_the_version_of_spark_is_the_one_that_a_run_asks_for(spark: SparkSession) -> None:
    wanted = os.environ.get("RDMETA_PYSPARK", pyspark.__version__)
    assert spark.version == wanted


@pytest.mark.slow
def test_a_user_may_name_the_columns(spark: SparkSession, root: Path) -> None:
    reader = spark.read.format("rdmeta").schema("new_leader int, topic string")
    found = reader.load(str(root / "history")).where("topic is not null").collect()
    assert {tuple(row.asDict()) for row in found} == {("new_leader", "topic")}
    wrong = spark.read.format("rdmeta").schema("new_leader string")
    with pytest.raises(PySparkException, match="changes has no column new_leader string"):
        wrong.load(str(root / "history")).collect()


@pytest.mark.slow
def test_pushed_filters_choose_the_rows_that_spark_would_choose(
    spark: SparkSession, root: Path
) -> None:
    moment = datetime(2026, 11, 2, 1, 0, 10, tzinfo=timezone.utc)
    time = sql.lit(moment)
    queries = {
        "changes": [
            sql.col("cluster_id") == "one",
            sql.col("cluster_id").isin("two", "three"),
            (sql.col("topic") == "topic-1") & (sql.col("observed_at") == time),
            (sql.col("topic") == "topic-1") | (sql.col("observed_at") > time),
            sql.col("observed_at").between(time, sql.lit(datetime(2026, 11, 3))),
        ],
        "partition_interval": [
            sql.col("began_at") > time,
            sql.col("began_at") >= time,
            sql.col("ended_at") < time,
            sql.col("ended_at") <= time,
            sql.col("ended_at") >= time,
            sql.col("ended_at") == time,
            (sql.col("leader") == 2) & (sql.col("topic") == "topic-0"),
        ],
    }
    for table, conditions in queries.items():
        for place in ("history", "out"):
            options = {"path": str(root / place), "table": table}
            every = spark.createDataFrame(read(**options))
            for condition in conditions:
                found = frame(spark, **options, pushdown="true").where(condition)
                wanted = rows(every.where(condition))
                assert wanted, condition
                assert rows(found) == wanted, (table, condition)


@since("4.1")
@pytest.mark.slow
def test_pushed_topics_and_partitions_reach_the_request_and_images(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    for name in ("orders", "clicks", "views"):
        cluster.create_topic(name, partitions=5)
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    cache.image().save(tmp_path / "image")
    of_topic = sql.col("topic") == "orders"
    of_both = of_topic & sql.col("partition").isin(1, 3)
    nothing = of_topic & (sql.col("topic") == "nope")
    for table in ("partitions", "replicas"):
        for options in ({"servers": cluster.bootstrap}, {"image": str(tmp_path / "image")}):
            every = spark.createDataFrame(read(**options, table=table))
            for condition in (of_topic, of_both, nothing, sql.col("topic") == "nope"):
                found = frame(spark, **options, table=table, pushdown="true").where(condition)
                assert rows(found) == rows(every.where(condition))
    fetch(cache, cluster.bootstrap)  # no request has created it
    assert "nope" not in {each.name for each in cache.image().topics()}
    wanted = narrowed(RowFilter(), "partitions", datasource.EqualTo(("topic",), "orders"))
    wanted = narrowed(wanted, "partitions", datasource.In(("partition",), (1, 3)))
    parsed = Options.parse({"bootstrap.servers": cluster.bootstrap, "table": "partitions"})
    (task,) = slices_of_state(parsed, wanted)
    assert [each["partition"].to_pylist() for each in task.rows(arrow_schema("partitions"))] == [
        [1, 3]
    ]
    assert {each.name for each in _asked(parsed, wanted).image().topics()} == {"orders"}


@since("4.1")
@pytest.mark.slow
def test_the_data_source_can_be_registered_by_its_class(spark: SparkSession, root: Path) -> None:
    spark.dataSource.register(rdmeta.spark.DataSource)
    assert frame(spark, image=str(root / "image"), table="topics").count() > 0


@pytest.mark.proof
def test_explain_names_the_table_its_source_and_the_filters(
    spark: SparkSession, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(root / "history")
    options = {"path": where, "table": "leader_change", "topic": "topic-1", "since": "2026-11-02"}
    found = rdmeta.spark.read(spark, {**options, "pushdown": "true"})
    assert rows(found) == sorted_rows(read(**options))
    found.where("cluster_id = 'one'").explain()
    plan = capsys.readouterr().out
    scan = f"rdmeta: leader_change of {where}, topic topic-1, since 2026-11-02"
    assert f"BatchScan {scan}[cluster_id#" in plan
    assert re.search(r"Filter .*cluster_id#\d+ = one", plan)


@since("4.1")
@pytest.mark.slow
def test_pushdown_needs_the_setting_that_build_session_makes(
    spark: SparkSession, root: Path
) -> None:
    key = "spark.sql.python.filterPushdown.enabled"
    assert spark.conf.get(key) == "true"
    spark.conf.set(key, "false")
    try:
        assert frame(spark, path=str(root / "history")).count() > 0
        assert key in refusal(spark, path=str(root / "history"), pushdown="true")
    finally:
        spark.conf.set(key, "true")


@pytest.mark.slow
def test_errors_say_what_is_wrong(spark: SparkSession, root: Path) -> None:
    history = str(root / "history")
    for given, text in (
        ({"path": history, "table": "nope"}, "option table = 'nope': there is no such table"),
        ({"path": history, "table": "records"}, "there are no metadata logs"),
        ({"path": history, "at": "1"}, "option at = '1': the table changes is of no moment"),
        ({"path": history, "table": "risk_hour"}, f"parquet('{history}/gold/v1/risk_hour')"),
        ({"path": history, "cluster": "x"}, "option cluster = 'x'"),
        ({"path": str(root / "nope")}, "there is no such folder"),
        ({"image": str(root / "nope"), "table": "topics"}, "there is no such file"),
        ({"image": __file__, "table": "topics"}, f"option image = '{__file__}'"),
        ({"servers": "127.0.0.1:1", "table": "topics"}, "127.0.0.1:1"),
    ):
        assert text in refusal(spark, **given), given


def done(root: Path, way: str, **env: str) -> dict[str, Any]:
    """Runs the program that reads each table by a session of its own."""
    words = [str(Path(source_program.__file__)), way, str(root / "history"), str(root / "image")]
    # The version of Spark may be one that PYTHONPATH names.
    found = os.pathsep.join([str(Path(pyspark.__file__).parents[1]), environment()["PYTHONPATH"]])
    own = {"PYTHONPATH": found, "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"}
    ran = subprocess.run(
        [sys.executable, *words],
        env={**environment(), **own, **env},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert source_program.PASSWORD not in ran.stderr + ran.stdout
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    for name, options in (
        ("image", {"image": str(root / "image"), "table": "partitions"}),
        ("changes", {"path": str(root / "history")}),
        ("silver", {"path": str(root / "history"), "table": "leader_change"}),
        ("records", {"path": str(root / "logs"), "table": "records", "topic": "orders"}),
        ("state", {"path": str(root / "logs"), "table": "partitions", "at": "20"}),
    ):
        assert len(told["rows"][name]) == read(**options).num_rows, name
    assert told["rows"]["named"] == told["rows"]["live"]
    assert told["scan"] == "rdmeta: partitions of it, topic orders"
    assert len(told["rows"]["live"]) == 4
    assert told["error"]
    assert told["version"] == pyspark.__version__
    return told


@pytest.mark.slow
def test_connect_reads_the_same_rows_and_shows_no_credential(root: Path) -> None:
    found = done(root, "connect")
    assert found["leaks"] == []
    assert {"/connect/", "/stages/", "/SQL/", "plans", "error"} <= {*found["shown"]}


@pytest.mark.slow
def test_no_plan_error_log_or_page_of_a_classic_session_shows_a_credential(root: Path) -> None:
    found = done(root, "local[2]")
    assert found["leaks"] == []
    assert {"/SQL/execution/?id=0", "/stages/", "/SQL/", "plans", "error"} <= {*found["shown"]}


@pytest.mark.nightly
def test_executors_that_are_processes_of_their_own_read_the_same_rows(root: Path) -> None:
    try:
        done(root, "local-cluster[2,1,1024]", SPARK_WORKER_DIR=str(root / "work"))
    finally:
        shutil.rmtree(root / "work", ignore_errors=True)
