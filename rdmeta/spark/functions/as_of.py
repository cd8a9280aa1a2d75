"""Rows with the leader, rack and ISR size as of their time, from the silver tables.

Intervals of a partition do not overlap, and are cut at midnight in UTC. So the day is a part of
the key of the join, and a row meets the intervals of its partition on its day only. At most one of
them has the row's time, so rows keep their number.
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timezone
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

from pyspark.sql import functions as sf

from rdmeta.errors import ConfigError
from rdmeta.pipeline.days import DAY_US
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.layout import SILVER, has_logs
from rdmeta.pipeline.manifest import read_manifest
from rdmeta.pipeline.store import Store
from rdmeta.spark.silver_frames import spark_path
from rdmeta.spark.source.recorded import files_below

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# A plain `timestamp` is what the session says: without a time zone it would be another moment.
_INTERVAL = "cluster_id string, began_at timestamp_ltz, ended_at timestamp_ltz"
_PARTITION = f"{_INTERVAL}, topic string, partition int, leader int, isr array<int>"
_BROKER = f"{_INTERVAL}, broker int, rack string"
_ADDED = ("leader", "rack", "isr_size")


def with_metadata(
    df: DataFrame,
    path: str | os.PathLike[str],
    *,
    topic: Column | str = "topic",
    partition: Column | str = "partition",
    time: Column | str = "timestamp",
    cluster: Column | str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    prefix: str = "",
) -> DataFrame:
    """Returns the rows with `leader`, `rack` and `isr_size` as of each row's time, from silver.

        F.with_metadata(df, "tables")                   # the folder of `rdmeta pipeline silver`

    `path` is the pipeline's folder, as the executors see it. `leader` (int) led the partition at
    the row's `time` (timestamp); `rack` (string) is the leader's at that time; `isr_size` (int) is
    how many replicas were in sync. All three are null where nothing was observed, and for a null.
    Where the leader alone is null, the partition had none.

    Each row comes once, with all its columns. It is one left join by topic, partition and day, and
    a small one by broker: Spark broadcasts silver if it is small, and then `df` is not shuffled.
    `df` may be a stream. `cluster` is the column of the cluster's id, which is needed if silver has
    several. `since` and `until` are times in UTC of which silver is read: rows outside get null.
    `prefix` comes before the three names.

    ValueError: `df` has a column of such a name, or silver has several clusters and `cluster` is
    not given.
    """
    present = {name.lower() for name in df.columns}
    taken = [prefix + name for name in _ADDED if (prefix + name).lower() in present]
    if taken:
        raise ValueError(f"the rows have the column {taken[0]!r} already: choose a prefix")
    sides = _Sides(f"_rdmeta_{uuid4().hex[:8]}_", None if cluster is None else _column(cluster))
    intervals = _read(df, path, "partition_interval", _PARTITION, since, until)
    if cluster is None:
        _require_one_cluster(intervals)
    keys = {"topic": _column(topic), "partition": _column(partition).cast("int")}
    facts = {"leader": sf.col("leader"), "isr_size": sf.size("isr")}
    found = sides.joined(df, _column(time).cast("timestamp_ltz"), intervals, keys, facts)
    brokers = _read(df, path, "broker_interval", _BROKER, since, until)
    keys = {"broker": sides.joined_column("leader")}
    found = sides.joined(found, sides.time, brokers, keys, {"rack": sf.col("rack")})
    for name in _ADDED:
        found = found.withColumn(prefix + name, sides.joined_column(name))
    return found.drop(*(name for name in found.columns if name.startswith(sides.mark)))


class _Sides(NamedTuple):
    """Joins rows with intervals. All columns that it adds begin with `mark`.

    So names that occur twice in the rows are no trouble.
    """

    mark: str
    cluster: Column | None

    @property
    def time(self) -> Column:
        return sf.col(f"{self.mark}time")

    def joined_column(self, name: str) -> Column:
        """Returns a fact that an earlier join has added."""
        return sf.col(f"{self.mark}found_{name}")

    def joined(
        self,
        rows: DataFrame,
        time: Column,
        intervals: DataFrame,
        keys: dict[str, Column],
        facts: dict[str, Column],
    ) -> DataFrame:
        """Returns the rows with the facts of the interval that has their keys and their time.

        `keys` has an expression of the rows for each key of the intervals.
        """
        join = f"{self.mark}{'_'.join(keys)}_"
        if self.cluster is not None:
            keys = {**keys, "cluster_id": self.cluster}
        rows = rows.withColumn(f"{self.mark}time", time)
        on = [sf.col(f"{join}began") <= self.time, self.time < sf.col(f"{join}ended")]
        # Columns of the intervals have "of_" in their names, those of the rows have not.
        right = [
            sf.col("began_at").alias(f"{join}began"),
            sf.col("ended_at").alias(f"{join}ended"),
            _day_of(sf.col("began_at")).alias(f"{join}of_day"),
        ]
        for name, of_rows in {"day": _day_of(self.time), **keys}.items():
            rows = rows.withColumn(f"{join}{name}", of_rows)
            on.append(sf.col(f"{join}{name}") == sf.col(f"{join}of_{name}"))
        right += [sf.col(name).alias(f"{join}of_{name}") for name in keys]
        right += [fact.alias(f"{self.mark}found_{name}") for name, fact in facts.items()]
        return rows.join(intervals.select(*right), reduce(and_, on), "left")


def _read(
    df: DataFrame,
    path: str | os.PathLike[str],
    table: str,
    schema: str,
    since: datetime | None,
    until: datetime | None,
) -> DataFrame:
    """Returns a table of silver, without intervals that end before or begin after the limits."""
    reader = df.sparkSession.read.schema(schema).option("recursiveFileLookup", "true")
    rows = reader.parquet(*_files(os.fspath(path).rstrip("/"), table))
    if since is not None:
        rows = rows.where(sf.col("ended_at") > sf.lit(_in_utc(since)))
    if until is not None:
        rows = rows.where(sf.col("began_at") < sf.lit(_in_utc(until)))
    return rows


def _files(path: str, table: str) -> list[str]:
    """Returns what to read: the folder of a table, or the files that the manifest has of it."""
    below = f"{SILVER}/{table}"
    folder = spark_path(path) if os.path.isdir(path) else path
    try:
        out = Store(path)
        if not has_logs(out):
            return [f"{folder}/{below}"]
    except (PipelineError, OSError):  # only Spark reaches it
        return [f"{folder}/{below}"]
    found = files_below(out, read_manifest(out), True, below)
    stored = [f"{folder}/{part.name}" for _, part in found]
    if not stored:
        raise ConfigError(f"{path}: it has no silver; run rdmeta pipeline silver")
    return stored


def _require_one_cluster(intervals: DataFrame) -> None:
    """Raises ValueError if the files are of several clusters."""
    found = (re.search("/cluster(?:_id)?=([^/]+)/", file) for file in intervals.inputFiles())
    clusters = sorted({unquote(each[1]) for each in found if each is not None})
    if len(clusters) > 1:
        shown = ", ".join(clusters[:5])
        raise ValueError(f"silver has {len(clusters)} clusters ({shown}): pass cluster=")


def _day_of(time: Column) -> Column:
    """Returns the number of a time's day in UTC, in any time zone of the session."""
    return sf.floor(sf.unix_micros(time) / sf.lit(DAY_US))


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time


def _column(column: Column | str) -> Column:
    return sf.col(column) if isinstance(column, str) else column
