"""The tables of silver as DataFrames: of a recorder's folder, or of an OUT of the pipeline.

Spark itself reads the files of an OUT on this machine, so its plans show them, and it passes over
those of other clusters and periods. All else comes by the data source. Both give the same rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from rdmeta.errors import MissingExtraError

try:
    import pyarrow.parquet as pq
    from pyspark.sql import functions as sf
    from pyspark.sql.types import StringType, StructField, StructType
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark.tables", "spark") from error

from rdmeta.errors import ConfigError
from rdmeta.pipeline.days import day_at
from rdmeta.pipeline.gold.months import aside_of
from rdmeta.pipeline.inputs import read_inputs
from rdmeta.pipeline.layout import SILVER, cluster_folder, has_logs, read_layout
from rdmeta.pipeline.manifest import Manifest, read_manifest
from rdmeta.pipeline.storage import PREFIX, using
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import TABLES, lacking
from rdmeta.spark.named_frames import NamedFrames
from rdmeta.spark.source import read
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.recorded import (
    chosen_clusters,
    files_below,
    is_pipeline,
    parts_of_silver,
)
from rdmeta.spark.source.row_filter import RowFilter, times_of
from rdmeta.spark.source.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_AT_A_TIME = 16
# A string here would be parsed by a classic session, which Connect has not.
ASIDE = StructType([StructField(name, StringType()) for name in ("cluster_id", "day", "state")])


class Tables(NamedFrames):
    """The tables of silver; `input_file` has a row for each input that was set aside."""

    names = (*TABLES, "input_file")
    _is_pipeline = False
    partition_interval: DataFrame
    broker_interval: DataFrame
    topic_interval: DataFrame
    config_interval: DataFrame
    leader_change: DataFrame
    change: DataFrame
    controller: DataFrame
    observation: DataFrame
    input_file: DataFrame

    def __init__(self, session: SparkSession, given: dict[str, str]) -> None:
        super().__init__(session)
        self._footers: dict[str, dict[str, frozenset[str]]] = {}
        self._given = given
        options = Options.parse({**given, "table": "observation"})
        self._wanted = RowFilter.of(options)
        with using(options.storage):
            self._store = Store(options.where)
        self._is_pipeline = is_pipeline(self._store)
        self._manifest = read_manifest(self._store) if self._is_pipeline else Manifest()
        self._is_logged = self._is_pipeline and has_logs(self._store)
        self._clusters = self._chosen() if self._is_pipeline else None

    def make(self, name: str) -> DataFrame:
        """Returns a table."""
        if name == "input_file":
            return self.session.createDataFrame(self._aside(), ASIDE)
        if self._clusters is None or not self._store.is_local:
            return read(self.session, {**self._given, "table": name})
        return self._of_files(name, self._clusters)

    def require_columns(self, name: str, columns: Collection[str]) -> None:
        """Raises ConfigError if a file of a table has no such column, as older versions made it.

        Spark would read nulls. Each footer is opened once.
        """
        if name not in TABLES or not self._is_pipeline:
            return
        if name not in self._footers:
            parts = self._parts(name)
            with ThreadPoolExecutor(_AT_A_TIME) as pool:
                self._footers[name] = dict(zip(parts, pool.map(self._columns, parts), strict=True))
        for part, there in sorted(self._footers[name].items()):
            if text := lacking(self._store, part, columns, there):
                raise ConfigError(text)

    def _parts(self, name: str) -> Sequence[str]:
        """Returns the names of a table's files."""
        return [each.name for each in parts_of_silver(self._store, name, self._wanted)]

    def _columns(self, part: str) -> frozenset[str]:
        with self._store.opened(part) as stream:
            return frozenset(pq.read_schema(stream).names)

    def _chosen(self) -> list[str]:
        """Returns the ids of the wanted clusters of an OUT; raises ConfigError."""
        ids = read_layout(self._store)
        if not any(True for _ in self._files_below(f"{SILVER}/observation")):
            raise ConfigError(
                f"option path = {self._store.where!r}: it has no silver; run rdmeta pipeline silver"
            )
        return chosen_clusters(self._store, self._wanted, ids, self._manifest.names)

    def _files_below(self, folder: str) -> Iterator[str]:
        """Yields the files of a folder of tables, as they are stored."""
        for _, part in files_below(self._store, self._manifest, self._is_logged, folder):
            yield part.name

    def _of_files(self, name: str, clusters: list[str]) -> DataFrame:
        where = spark_path(self._store.path(f"{SILVER}/{name}"))
        columns = spark_schema(name)
        if self._is_logged:  # the folder has files of older versions, too
            folders_of = (f"{SILVER}/{name}/{cluster_folder(each)}" for each in clusters)
            stored = [part for below in folders_of for part in self._files_below(below)]
            rows = of_files(self.session, name, map(self._store.path, stored))
            return rows.where(self._in_time(name, has_periods=False))
        folders = StructType([*columns]).add("cluster", StringType()).add("period", StringType())
        rows = self.session.read.schema(folders).parquet(where)
        if self._wanted.clusters is not None:
            rows = rows.where(sf.col("cluster").isin(clusters))
        return rows.where(self._in_time(name)).select(columns.names)

    def _in_time(self, name: str, *, has_periods: bool = True) -> Column:
        """Returns the condition that a row has a part in the time that is asked for."""
        begin, end = map(sf.col, times_of(name))
        since, until = self._wanted.since_us, self._wanted.until_us
        conditions = [sf.lit(True)]
        if since is not None:
            moment = sf.timestamp_micros(sf.lit(since))
            conditions += [_period(">=", since - 1)] if has_periods else []
            conditions.append((begin >= moment) | (end > moment))
        if until is not None:
            conditions += [_period("<=", until - 1)] if has_periods else []
            conditions.append(begin < sf.timestamp_micros(sf.lit(until)))
        return reduce(and_, conditions)

    def _aside(self) -> list[tuple[str, str, str]]:
        since, until = self._wanted.since_us or 0, self._wanted.until_us
        last = None if until is None else day_at(until - 1)
        found = aside_of(read_inputs(self._store).values()) if self._is_pipeline else {}
        return [
            (cluster_id, day, state)
            for cluster_id in self._clusters or ()
            for days in found.get(cluster_id, {}).values()
            for day, state in days
            if day >= day_at(since) and (last is None or day <= last)
        ]


def of_files(session: SparkSession, name: str, paths: Iterable[str]) -> DataFrame:
    """Returns a table of silver, read from these files of this machine."""
    schema, files = spark_schema(name), list(map(spark_path, paths))
    if not files:  # Spark reads no schema of no file
        return session.createDataFrame([], schema)
    return session.read.schema(schema).parquet(*files)


def spark_path(path: str) -> str:
    """Returns a path of this machine as Spark reads it: it is absolute, and no pattern.

    A session may begin relative paths in another folder, or in another file system. Databricks has
    its volumes under the same path, and calls what is below /dbfs by dbfs:.
    """
    path = os.path.abspath(path)
    escaped = re.sub(r"([\\{}\[\]*?])", r"\\\1", path)
    if "DATABRICKS_RUNTIME_VERSION" in os.environ and path.startswith(("/Volumes/", "/dbfs/")):
        return f"dbfs:{escaped.removeprefix('/dbfs')}"
    return f"file://{escaped}"


def _period(compares: str, us: int) -> Column:
    """Returns a condition on the folder of a day, or of a month, that has a moment."""
    return sf.expr(f"period {compares} left('{day_at(max(us, 0))}', length(period))")


def tables(
    session: SparkSession,
    path: str | os.PathLike[str],
    *,
    clusters: str | Iterable[str] | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    storage: Mapping[str, str] | None = None,
) -> Tables:
    """Returns the tables of silver as DataFrames, each made when it is asked for.

        tables = rdmeta.spark.tables(spark, "history", since="2026-11-01")
        tables.leader_change.groupBy("topic").count()
        tables.create_views("rdmeta")               # rdmeta_leader_change ..., for SQL

    `path` is a folder of `rdmeta record` or an OUT of `rdmeta pipeline`, which this process (the
    client of Spark Connect) and the executors see. `clusters` are ids or names. `since` is the
    first moment and `until` the first one that is not read; an interval with a part in that time
    comes as a whole. `storage` has credentials, as in rdmeta.pipeline.plan().
    Raises ConfigError for a wrong argument, and if there is no silver.
    """
    given = {"path": os.fspath(path)}
    given |= {f"{PREFIX}{name}": value for name, value in (storage or {}).items()}
    if clusters is not None:
        given["cluster"] = clusters if isinstance(clusters, str) else ",".join(clusters)
    for name, moment in {"since": since, "until": until}.items():
        if moment is not None:
            given[name] = moment.isoformat() if isinstance(moment, datetime) else moment
    return Tables(session, given)
