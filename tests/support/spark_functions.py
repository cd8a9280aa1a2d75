"""Checks of rdmeta.spark.functions that any session must pass: Classic, Connect, or a cluster."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import frames
import pyarrow as pa
from frames import B, P, T
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rdmeta import ALL, MetadataCache, partitions_for
from rdmeta.spark import functions as F
from rdmeta.spark.functions.column_functions import literal_of
from rdmeta.spark.functions.sharing import pinned
from rdmeta.spark.spark_versions import has_spark

RACKS = {1: "a", 2: "b", 3: None, 4: "d"}
BROKERS = [B(id, rack=rack) for id, rack in RACKS.items()]
# Of each partition of `orders`: its leader, -1 for none.
ORDERS = (1, 2, -1, 3, 4)


def cache_of(leaders: Mapping[str, Sequence[int]], brokers: Sequence[B] = BROKERS) -> MetadataCache:
    cache = MetadataCache()
    topics = [
        T(name, [P(i, leader, 1) for i, leader in enumerate(of)]) for name, of in leaders.items()
    ]
    cache.apply(frames.response(12, topics, brokers), 12, ALL)
    return cache


def some_rows(spark: SparkSession, count: int = 300) -> DataFrame:
    """Returns rows with known and unknown topics, partitions and keys, nulls among them."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    rows = [
        (
            draw.choice(["orders", "payments", "nope", "", None]),
            draw.choice([0, 1, 2, 3, 4, 5, -1, None]),
            draw.choice([None, "", str(draw.random())]),
        )
        for _ in range(count)
    ]
    return spark.createDataFrame(rows, "topic string, partition int, key string").repartition(3)


def check_columns(spark: SparkSession, folder: Path) -> None:
    """Each function of columns has the value that the image has."""
    leaders = {"orders": ORDERS, "payments": (2, 2)}
    F.share(spark, cache_of(leaders))
    leader = F.leader_of("topic", "partition")
    found = some_rows(spark).select(
        "*",
        leader.alias("leader"),
        F.rack_of(leader).alias("rack"),
        F.partition_for("key", "topic").alias("java"),
        F.partition_for(sf.col("key").cast("binary"), "topic", "crc32").alias("c"),
    )
    assert dict(found.dtypes) == {
        "topic": "string", "partition": "int", "key": "string",
        "leader": "int", "rack": "string", "java": "int", "c": "int",
    }  # fmt: skip
    rows = found.collect()
    assert len(rows) == 300
    for row in rows:
        of = leaders.get(row.topic, ())
        known = row.partition is not None and 0 <= row.partition < len(of)
        led = of[row.partition] if known else -1
        assert row.leader == (None if led < 0 else led), row
        assert row.rack == RACKS.get(row.leader), row
        if row.key is None or not of:
            assert (row.java, row.c) == (None, None), row
            continue
        key = row.key.encode()
        assert row.java == partitions_for([key], len(of))[0], row
        assert row.c == (zlib.crc32(key) % len(of) if key else None), row


def check_literals(spark: SparkSession, folder: Path) -> None:
    """A string of lit() is a column like any other, and does not travel with the rows."""
    state = F.share(spark, cache_of({"orders": ORDERS}), name="literals")
    rows = spark.range(0, 20, 1, 2).select(sf.col("id").cast("string").alias("key"))
    topic = sf.lit("orders")
    assert literal_of(topic) == "orders"
    assert [literal_of(each) for each in (sf.lit(1), sf.col("orders"), "orders")] == [None] * 3
    one = F.partition_for("key", topic, state=state)
    other = F.partition_for("key", sf.concat(topic, sf.lit("")), state=state)
    nope = F.partition_for("key", sf.lit("nope"), state=state)
    alone = F.partition_for(sf.lit("21"), topic, state=state)
    names = ["key", "one", "other", "nope", "alone"]
    columns = (one, other, nope, alone)
    for row in rows.select("key", *columns).toDF(*names).collect():
        assert row.one == row.other == partitions_for([row.key.encode()], len(ORDERS))[0]
        assert row.nope is None
        assert row.alone == partitions_for([b"21"], len(ORDERS))[0]


def check_newer_image(spark: SparkSession, folder: Path) -> None:
    """A newer image of the same name is found by the next job, in workers that live on."""
    rows = spark.range(0, 1000, 1, 4).select(sf.lit("orders").alias("topic"), sf.lit(0).alias("p"))
    leaders = rows.select(F.leader_of("topic", "p").alias("leader"))
    path = folder / "image"
    other = F.share(spark, cache_of({"orders": [4]}), name="other")
    for leader in (1, 3, 2):
        cache_of({"orders": [leader]}).image().save(path)
        F.share(spark, path)
        assert {row.leader for row in leaders.collect()} == {leader}
    of_other = rows.select(F.leader_of("topic", "p", state=other).alias("leader"))
    assert {row.leader for row in of_other.collect()} == {4}


def check_unchanged_image(spark: SparkSession, folder: Path) -> None:
    """A state that has not changed since it was shared is not sent again, when it is newer too."""
    state = F.share(spark, cache_of({"orders": [1, 2]}), name="unchanged")
    first = pinned(spark, state)
    for _ in range(3):  # another cache with other deadlines
        F.share(spark, cache_of({"orders": [1, 2]}), name="unchanged")
    assert pinned(spark, state) == first
    F.share(spark, cache_of({"orders": [1, 3]}), name="unchanged")
    assert pinned(spark, state) > first


def check_one_image_for_a_plan(spark: SparkSession, folder: Path) -> None:
    """Plans of one name read the image of their moment and session: in turns, and in one query."""
    other = spark.newSession() if hasattr(spark, "newSession") else spark
    plans, wanted = [], []
    for session, leaders in ((spark, [1, 2]), (other, [2, 2]), (spark, [2, 1]), (other, [1, 1])):
        state = F.share(session, cache_of({"orders": leaders}), name="each")
        rows = session.range(2).selectExpr("'orders' AS topic", "int(id) AS partition")
        task = sf.spark_partition_id() % 2  # two tasks: the first one writes to brokers 1 and 3
        placed = F.repartition_by_leader(rows, 2, state=state)
        plans.append(placed.select("partition", task.alias("task")))
        wanted.append([(partition, leader - 1) for partition, leader in enumerate(leaders)])
    for plan, told in [*zip(plans, wanted, strict=True)] * 2:
        assert sorted(tuple(row) for row in plan.collect()) == told
    both = plans[0].union(plans[2]).collect()
    assert sorted(tuple(row) for row in both) == sorted(wanted[0] + wanted[2])


def check_routes(spark: SparkSession, folder: Path) -> None:
    """With 12 brokers and 48 tasks, a task writes to one broker, and a partition is in one task."""
    brokers = [B(id) for id in range(1, 13)]
    leaders = {"wide": [1 + (7 * i) % 12 for i in range(120)]}
    state = F.share(spark, cache_of(leaders, brokers), name="wide")
    keys = spark.range(0, 120_000, 1, 48).select(
        sf.lit("wide").alias("topic"), sf.col("id").cast("string").alias("key")
    )
    placed = keys.withColumn("partition", F.partition_for("key", "topic", state=state))
    before = pairs(placed, leaders["wide"])
    after = pairs(F.repartition_by_leader(keys, 48, state=state), leaders["wide"])
    assert before == (48 * 12, 48 * 120)
    assert after == (48, 120)


def pairs(rows: DataFrame, leaders: Sequence[int]) -> tuple[int, int]:
    """Returns how many pairs of a task and a broker, and of a task and a partition, there are.

    A producer in each task would have as many connections, and open batches.
    """
    tasks = rows.select(sf.spark_partition_id().alias("task"), "partition").distinct().collect()
    connections = {(row.task, leaders[row.partition]) for row in tasks}
    return len(connections), len(tasks)


def check_private_memory(spark: SparkSession, folder: Path) -> None:
    """Workers map the image: none of its pages is a worker's own."""
    leaders = {f"topic-{i:05}": [1 + i % 4] * 20 for i in range(40_000)}
    F.share(spark, cache_of(leaders), name="large")

    def measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import re

        from rdmeta.spark.functions.worker_state import state_of

        def own() -> int:
            text = Path("/proc/self/smaps_rollup").read_text()
            return sum(int(n) for n in re.findall(r"^(?:Anonymous|Swap): +(\d+)", text, re.M))

        def of_image() -> dict[str, int]:
            text = Path("/proc/self/smaps").read_text()
            parts = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", text)
            ours = "\n".join(part for part in parts if "rdmeta-large-" in part.split("\n")[0])
            names = ("Rss", "Private_Dirty", "Anonymous")
            return {
                name: sum(int(n) for n in re.findall(rf"^{name}: +(\d+)", ours, re.M))
                for name in names
            }

        for _ in batches:
            state = state_of("large", None)
            # Pages of a file that are not on the disk yet would count as Private_Dirty.
            with open(state.stats()["path"], "rb") as file:
                os.fsync(file.fileno())
            numbers = pa.array([3] * 1000, pa.int32())
            parts = [
                pa.array([f"topic-{i:05}" for i in range(begin, begin + 1000)])
                for begin in range(0, 40_000, 1000)
            ]
            state.leaders(parts[0], numbers)
            own()  # reading takes memory, too
            before = own()
            assert min(min(state.leaders(part, numbers)) for part in parts) > 0
            grown = own() - before
            now = of_image()
            yield pa.record_batch({
                "rss": [now["Rss"]], "dirty": [now["Private_Dirty"]],
                "anonymous": [now["Anonymous"]], "grown": [grown],
            })  # fmt: skip

    kinds = "rss long, dirty long, anonymous long, grown long"
    for row in spark.range(0, 2, 1, 2).mapInArrow(measured, kinds).collect():
        print(f"kB of the mapped image {row.rss}, of the worker's own {row.grown}")
        assert row.rss > 3_000
        assert (row.dirty, row.anonymous) == (0, 0)
        assert row.grown < 200


CHECKS: list[Callable[[SparkSession, Path], None]] = [
    check_columns,
    check_literals,
    check_newer_image,
    check_unchanged_image,
    check_private_memory,
]
if has_spark("4.1"):  # it has repartitionById
    CHECKS += [check_one_image_for_a_plan, check_routes]
