"""Times partition_for() in a job beside kafka-python's murmur2, and counts what writers open.

The keys are UUIDs, in memory before. All UDFs run in one session over the same rows, and no result
is kept. Writers are counted by
the rows that each task has: a producer in each task opens a connection to each broker of its rows,
and a batch for each partition.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from bench.build import ROOT
from bench.spark import sessions
from rdmeta import ALL, MetadataCache
from rdmeta.spark import functions as F

sys.path.insert(0, str(ROOT / "tests" / "support"))
import frames  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TASKS, PARTITIONS, BROKERS = 48, 120, 12
_SLICES = 8


def measure(keys: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: udf, python, python in an Arrow UDF as arrow, and neither as floor.

    And counts of writers: with rows as they come these are connections_plain and batches_plain; by
    leader, connections and batches.
    """
    from kafka.partitioner.default import murmur2  # noqa: F401

    out: dict[str, Any] = {"udf": [], "python": [], "arrow": [], "floor": []}
    with sessions.local("local[2]") as session:
        leaders = [1 + 5 * number % BROKERS for number in range(PARTITIONS)]
        F.share(session, image_of(leaders), name="bench")
        ways = columns()
        rows = rows_of(session, keys, _SLICES).cache()
        found = rows.select(*(ways[name].alias(name) for name in ("udf", "python", "arrow")))
        if wrong := found.where("udf is null or udf != python or udf != arrow").count():
            raise SystemExit(f"{wrong} of {keys} keys have another partition in Python")
        for _ in range(rounds):
            for name, column in ways.items():
                begin = perf_counter()
                rows.select(column).write.format("noop").mode("overwrite").save()
                out[name].append(perf_counter() - begin)
        rows.unpersist()
        out.update(writers(session, leaders))
    return out


def image_of(leaders: Sequence[int]) -> MetadataCache:
    """Returns a cache with the topic `bench`, whose partitions have these leaders."""
    brokers = [frames.B(number) for number in range(1, BROKERS + 1)]
    partitions = [frames.P(number, leader) for number, leader in enumerate(leaders)]
    cache = MetadataCache()
    cache.apply(frames.response(12, [frames.T("bench", partitions)], brokers), 12, ALL)
    return cache


def rows_of(session: SparkSession, keys: int, slices: int) -> DataFrame:
    """Returns rows of the topic with UUIDs as keys."""
    from pyspark.sql import functions as sf

    key = sf.uuid(seed=1).cast("binary").alias("key")
    return session.range(0, keys, 1, slices).select(key, sf.lit("bench").alias("topic"))


def columns() -> dict[str, Column]:
    """Returns what is timed, by the names of measure()."""
    import pyarrow as pa
    from pyspark.sql.functions import lit, udf
    from pyspark.sql.pandas.functions import arrow_udf

    def by_python(key: bytes) -> int:
        from kafka.partitioner.default import murmur2

        return int(murmur2(bytes(key)) & 0x7FFFFFFF) % PARTITIONS

    # From hints that are texts Spark infers nothing, and warns.
    by_python.__annotations__.clear()

    def by_arrow(keys: pa.Array) -> pa.Array:
        from kafka.partitioner.default import murmur2

        found = [(murmur2(key) & 0x7FFFFFFF) % PARTITIONS for key in keys.to_pylist()]
        return pa.array(found, pa.int32())

    def nothing(keys: pa.Array) -> pa.Array:
        return pa.nulls(len(keys), pa.int32())

    made: dict[str, Column] = {
        "udf": F.partition_for("key", lit("bench"), state=F.Shared("bench"), unknown="error"),
        "python": udf(by_python, "int")("key"),
    }
    for name, function in (("arrow", by_arrow), ("floor", nothing)):
        function.__annotations__ = {"keys": pa.Array, "return": pa.Array}
        of_arrays: Any = arrow_udf
        made[name] = of_arrays(function, "int")("key")
    return made


def writers(session: SparkSession, leaders: Sequence[int]) -> dict[str, list[float]]:
    """Returns how many connections and batches the tasks' producers would open."""
    state = F.Shared("bench")
    # So many rows that, as they come, each task has some for each partition.
    rows = rows_of(session, 20 * TASKS * PARTITIONS, TASKS)
    plain = rows.withColumn("partition", F.partition_for("key", "topic", state=state))
    out: dict[str, list[float]] = {}
    by_leader = F.repartition_by_leader(rows, TASKS, state=state)
    for name, frame in (("_plain", plain), ("", by_leader)):
        connections, batches = opened(frame, leaders)
        out[f"connections{name}"] = [float(connections)]
        out[f"batches{name}"] = [float(batches)]
    return out


def opened(rows: DataFrame, leaders: Sequence[int]) -> tuple[int, int]:
    """Returns the pairs of a task and a broker, and those of a task and a partition."""
    from pyspark.sql import functions as sf

    pairs = rows.select(sf.spark_partition_id().alias("task"), "partition").distinct().collect()
    return len({(pair.task, leaders[pair.partition]) for pair in pairs}), len(pairs)
