"""Rows to tasks, so that a task that writes to Kafka talks to few brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as sf
from pyspark.sql.types import AtomicType

from rdmeta.spark.functions.column_functions import on_executors, typed
from rdmeta.spark.functions.sharing import Shared, pinned
from rdmeta.spark.spark_versions import require_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROUTE = "partition int, task int"


def repartition_by_leader(
    df: DataFrame,
    tasks: int | None = None,
    *,
    topic: Column | str = "topic",
    key: Column | str = "key",
    partition: str = "partition",
    partitioner: str = "murmur2",
    state: Shared | None = None,
) -> DataFrame:
    """Returns the rows in `tasks` partitions: all rows of a Kafka partition in one, by its leader.

        rows = F.repartition_by_leader(df, 48)
        rows.write.format("kafka").option("kafka.bootstrap.servers", servers).save()

    A task has rows for one broker, or for few if there are more brokers than tasks. A producer in
    each task then opens few connections, and fills one batch per partition instead of one in each
    task. By default there are `spark.sql.shuffle.partitions` tasks.

    The result also has the column `partition` (int), which Spark's Kafka sink follows. If `df` has
    it, its values are kept where they are not null. Others come from the column `key`, as by
    partition_for(). A row without a key gets any partition that has a leader, by a hash of its
    values. If `df` has no such column as `key`, no row has a key.

    An unknown topic gets a null: the producer chooses. `state` is what share() returned. The rows
    go by its newest image of this moment, also when they run again, or a task does, after others
    were shared. Each batch of a stream goes by one image: the newest when the batch began.

    OldSparkError before Spark 4.1. ValueError for fewer than 1 task, another partitioner, or a
    state with `published`; NoStateError if nothing is shared; AnalysisException for a column of
    another type.
    """
    require_spark("4.1", "repartition_by_leader()")
    if partitioner not in ("murmur2", "crc32"):
        raise ValueError(f"partitioner must be 'murmur2' or 'crc32', not {partitioner!r}")
    if tasks is None:
        tasks = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    if tasks < 1:
        raise ValueError(f"tasks must be at least 1, not {tasks}")
    names = {name.lower() for name in df.columns}
    given = sf.col(partition) if partition.lower() in names else sf.lit(None)
    if isinstance(key, str) and key.lower() not in names:
        key = sf.lit(None)
    key = sf.col(key) if isinstance(key, str) else key
    columns = [
        typed(topic, "string"),
        typed(key, "binary").cast("binary"),
        typed(given, "bigint").cast("int"),
        _hash_of(df),
    ]
    if df.isStreaming:
        columns.append(sf.unix_micros(sf.current_timestamp()) * 1000)
    arguments = (*pinned(df.sparkSession, state), partitioner, tasks)
    route = f"_rdmeta_route_{uuid4().hex}"
    routed = df.withColumn(
        route, on_executors("row_routes", "routes", _ROUTE, arguments, columns, "route_by_leader")
    )
    placed = routed.repartitionById(tasks, sf.col(route)["task"])
    return placed.withColumn(partition, sf.col(route)["partition"]).drop(route)


def _hash_of(df: DataFrame) -> Column:
    """Returns a number >= 0 of the row's values; nested ones do not count."""
    names = [field.name for field in df.schema if isinstance(field.dataType, AtomicType)]
    distinct = [name for name in names if df.columns.count(name) == 1]
    hashed = sf.xxhash64(*(sf.col(f"`{name.replace('`', '``')}`") for name in distinct))
    return sf.pmod(hashed if distinct else sf.lit(0), sf.lit(2**31 - 1)).cast("int")
