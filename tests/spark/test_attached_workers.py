"""Spark's Python workers read a cache that is published on their host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from answers import apply_topics
from pyspark.sql import SparkSession
from waiting import until

from rdmeta import MetadataCache, attach

ROWS = 3000


@pytest.mark.slow
def test_python_workers_join_rows_with_published_leaders(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The workers of a second job see a state that was published between the jobs."""
    cache, path = MetadataCache(), str(tmp_path / "state")

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        attached = attach(path)
        for rows in batches:
            names, partitions = rows["topic"].to_pylist(), rows["partition"].to_pylist()
            leaders = pa.array(attached.leaders(names, partitions), pa.int32())
            pid = pa.array([os.getpid()] * len(rows), pa.int64())
            yield rows.append_column("leader", leaders).append_column("pid", pid)

    rows = spark.range(ROWS, numPartitions=4).selectExpr(
        "'orders' as topic", "cast(id % 3 as int) as partition"
    )
    apply_topics(cache)
    with cache.publish(path) as publisher:
        for leader in (1, 2):
            apply_topics(cache, leader, leader)
            until(lambda: publisher.version == cache.version)
            joined = rows.mapInArrow(
                look, "topic string, partition int, leader int, pid long"
            ).toArrow()
            assert joined.num_rows == ROWS
            assert set(joined["leader"].to_pylist()) == {leader}
            assert os.getpid() not in joined["pid"].to_pylist()
