"""Functions for jobs of Spark that route rows to Kafka, or enrich them with Kafka's metadata.

    from rdmeta.spark import functions as F

    F.share(spark, cache)                                   # sends an image to all executors
    df.select(F.leader_of("topic", "partition"), F.partition_for("key", "topic"))
    F.with_metadata(df, "tables", time="timestamp")         # as of each row's time, from silver
    F.repartition_by_leader(df, 48).write.format("kafka")   # a task writes to one broker

They work with Spark Classic and Spark Connect. Each executor needs this version of rdmeta, with
pyarrow and pandas. As in Spark's own functions, a str names a column.
"""

from __future__ import annotations

from rdmeta.errors import MissingExtraError

try:
    import pyspark.sql  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark.functions", "spark") from error

from rdmeta.spark.functions.as_of import with_metadata
from rdmeta.spark.functions.column_functions import leader_of, partition_for, rack_of, register
from rdmeta.spark.functions.routing import repartition_by_leader
from rdmeta.spark.functions.sharing import Shared, share

__all__ = [
    "Shared",
    "leader_of",
    "partition_for",
    "rack_of",
    "register",
    "repartition_by_leader",
    "share",
    "with_metadata",
]
