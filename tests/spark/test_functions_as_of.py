"""Rows get the leader, rack and ISR size that silver has for their time. All else stays."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from history_maker import START, Plan, make_history
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rdmeta import pipeline
from rdmeta.spark import functions as F
from rdmeta.spark.executors import _configured

pytestmark = pytest.mark.slow

PLAN = Plan(
    clusters=2, topics=4, partitions=3, days=3, changes=300, gaps=2, every=60.0, deleted=(1,)
)
TIME = "topic string, partition int, at timestamp_ltz, note string, cluster string"
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline's folder of two clusters and three days, of which the second was not observed."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    root = tmp_path_factory.mktemp("as-of")
    make_history(root / "history", seed, PLAN)
    pipeline.run(pipeline.plan([root / "history"], root / "tables [1] {a}"), workers=1)
    return root / "tables [1] {a}"


def silver(tables: Path, table: str) -> list[dict[str, Any]]:
    rows = ds.dataset(tables / "silver/v1" / table, format="parquet").to_table().to_pylist()
    return sorted(rows, key=lambda row: row["began_at"])


def drawn(tables: Path, seed: int, count: int = 400) -> Iterator[tuple[Any, ...]]:
    """Draws rows of any time, and of the very begins and ends of intervals; some come twice."""
    draw = random.Random(seed)
    intervals = silver(tables, "partition_interval")
    for number in range(count):
        one = draw.choice(intervals)
        at = draw.choice([
            one["began_at"],
            one["ended_at"],
            one["began_at"] - timedelta(microseconds=1),
            one["began_at"] + (one["ended_at"] - one["began_at"]) * draw.random(),
            START + draw.uniform(-1, 4) * DAY,
            None,
        ])  # fmt: skip
        topic = draw.choice([one["topic"]] * 8 + ["nope", None])
        partition = draw.choice([one["partition"]] * 8 + [99, None])
        row = (topic, partition, at, f"row {number}", one["cluster_id"])
        yield from [row] * draw.choice([1, 1, 2])


def expected(tables: Path, rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Looks at each interval for each row."""
    partitions, brokers = (silver(tables, f"{each}_interval") for each in ("partition", "broker"))
    found: Counter[tuple[Any, ...]] = Counter()
    for topic, partition, at, note, cluster in rows:
        states = then(partitions, at, cluster_id=cluster, topic=topic, partition=partition)
        assert len(states) <= 1
        leader, isr = (states[0]["leader"], len(states[0]["isr"])) if states else (None, None)
        racks = [] if leader is None else then(brokers, at, cluster_id=cluster, broker=leader)
        found[note, leader, racks[0]["rack"] if racks else None, isr] += 1
    return found


def then(intervals: list[dict[str, Any]], at: datetime | None, **keys: Any) -> list[dict[str, Any]]:
    """Returns the intervals that have a time and these keys."""
    return [
        one
        for one in intervals
        if at is not None
        and one["began_at"] <= at < one["ended_at"]
        and all(one[name] == value for name, value in keys.items())
    ]


def counted(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(
        (r.note, r.leader, r.rack, r.isr_size)
        for r in frame.select("note", "leader", "rack", "isr_size").collect()
    )


def frame_of(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, TIME)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "Asia/Kathmandu without zone"])
@pytest.mark.parametrize("broadcast", ["-1", "10485760"], ids=["sorted", "broadcast"])
def test_each_row_has_the_state_of_its_time(
    spark: SparkSession, tables: Path, zone: str, broadcast: str
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rows = list(drawn(tables, seed))
    settings = {
        "spark.sql.session.timeZone": zone.split()[0],
        "spark.sql.timestampType": f"TIMESTAMP_{'NTZ' if 'without' in zone else 'LTZ'}",
        "spark.sql.autoBroadcastJoinThreshold": broadcast,
        "spark.sql.adaptive.autoBroadcastJoinThreshold": broadcast,
    }  # fmt: skip
    with _configured(spark, settings):
        frame = frame_of(spark, rows)
        found = F.with_metadata(frame, str(tables), time="at", cluster="cluster")
        assert found.columns == [*frame.columns, "leader", "rack", "isr_size"]
        assert dict(found.dtypes[-3:]) == {"leader": "int", "rack": "string", "isr_size": "int"}
        seen = counted(found)
    assert seen == expected(tables, rows)
    assert sum(1 for row in seen if row[2] is not None) > 50
    assert sum(1 for row in seen if row[3] is None) > 50


def test_names_that_occur_twice_and_a_prefix_are_no_trouble(
    spark: SparkSession, tables: Path
) -> None:
    rows = list(drawn(tables, 1, 30))
    frame = frame_of(spark, rows).withColumn("leader", sf.lit("mine"))
    frame = frame.select("*", sf.lit(1).alias("twice"), sf.lit(2).alias("twice"))
    found = F.with_metadata(frame, f"{tables}/", time="at", cluster="cluster", prefix="kafka_")
    added = ["kafka_leader", "kafka_rack", "kafka_isr_size"]
    assert found.columns == [*frame.columns, *added]
    assert found.count() == len(rows)
    with pytest.raises(ValueError, match="column 'leader' already: choose a prefix"):
        F.with_metadata(frame, str(tables), time="at", cluster="cluster")


def test_a_folder_of_several_clusters_needs_the_column_of_the_cluster(
    spark: SparkSession, tables: Path
) -> None:
    frame = frame_of(spark, list(drawn(tables, 2, 10)))
    with pytest.raises(ValueError, match=r"2 clusters \(cluster-0, cluster-1\): pass cluster="):
        F.with_metadata(frame, str(tables), time="at")
    one = F.with_metadata(frame, str(tables), time="at", cluster=sf.lit("cluster-0"))
    other = F.with_metadata(frame, str(tables), time="at", cluster="cluster")
    both = frame.where("cluster = 'cluster-0'").count()
    assert both < one.count() == other.count()


def test_times_outside_of_the_limits_count_as_not_observed(
    spark: SparkSession, tables: Path
) -> None:
    rows = [row for row in drawn(tables, 3) if row[2] is not None]
    since, until = START + 0.4 * DAY, datetime(2026, 11, 1, 12)
    found = F.with_metadata(
        frame_of(spark, rows), tables, time="at", cluster="cluster", since=since, until=until
    )
    within = [r for r in rows if since <= r[2] < until.replace(tzinfo=timezone.utc)]
    seen = counted(found.where((sf.col("at") >= since) & (sf.col("at") < sf.lit("2026-11-01 12"))))
    assert seen == expected(tables, within)
    late = found.where(sf.col("at") > sf.lit("2026-11-03")).collect()
    assert late
    assert all(row.isr_size is None for row in late)
