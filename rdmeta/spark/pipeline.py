"""The job: reads a directory of history and writes a directory of tables.

    OUT/partition_interval/cluster-<id>.parquet     the tables of rdmeta.spark.intervals,
    OUT/leader_change/cluster-<id>.parquet          one file per cluster in each
    OUT/leader_minutes/cluster-<id>.parquet
    OUT/_made_from/cluster-<id>.json                the inputs of a cluster's three files

The job leaves a cluster alone if its history has not changed. If no history has changed, the job
does not even start Spark. The job writes each file elsewhere and renames it into place, so a reader
finds the old file or the new one. It writes the note in `_made_from` last, so that the next job
repeats a job that died. Driver and executors must share the file system of both directories.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from uuid import uuid4

from rdmeta._change_table import COLUMNS, TYPES
from rdmeta.errors import MissingExtraError

try:
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark", "spark") from error

from rdmeta.history import HistoryError, Recording, recordings
from rdmeta.spark.intervals import leader_change, leader_minutes, partition_interval

__all__ = ["TABLES", "Made", "Plan", "load", "make", "plan", "table_path"]

TABLES = ("partition_interval", "leader_change", "leader_minutes")

_OF_HISTORY = {"partition_interval": partition_interval, "leader_change": leader_change}

# A part of each note: raise it when the same history gives other tables.
JOB_VERSION = 1

CHANGE_COLUMNS = ", ".join(f"{column.name} {TYPES[column.type].spark}" for column in COLUMNS)
OBSERVED_COLUMNS = "cluster_id string, session string, version long, observed_at timestamp"


class Plan(NamedTuple):
    """The plan of a run: the recordings of stale clusters, and the clusters that are current."""

    source: Path
    out: Path
    stale: dict[str, list[Recording]]
    current: tuple[str, ...]


class Made(NamedTuple):
    """The result of a run; `rows` counts the rows of each table, also of unchanged clusters."""

    out: Path
    made: tuple[str, ...]
    unchanged: tuple[str, ...]
    rows: dict[str, int]


def load(spark: SparkSession, found: list[Recording]) -> tuple[DataFrame, DataFrame]:
    """Returns the `changes` and `observed` of these recordings, for rdmeta.spark.intervals."""
    files = [file for recording in found for file in recording.files]
    paths = [_not_a_pattern(str(file.path.resolve())) for file in files]
    observed = [(f.cluster_id, f.session, f.until, f.observed_to) for f in files]
    return (
        spark.read.schema(CHANGE_COLUMNS).parquet(*paths),
        spark.createDataFrame(observed, OBSERVED_COLUMNS),
    )


def plan(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> Plan:
    """Returns the plan for a directory; it only looks at files.

    Raises HistoryError if there is no history, or if it is not complete.
    """
    source, out = Path(source), Path(out)
    found = recordings(source)
    if not found:
        raise HistoryError(f"{source}: the directory has no history files; record some first")
    clusters = {
        cluster_id: list(group) for cluster_id, group in groupby(found, lambda r: r.cluster_id)
    }
    stale = {c: group for c, group in clusters.items() if not _is_current(out, c, group)}
    return Plan(source, out, stale, tuple(c for c in clusters if c not in stale))


def make(
    todo: Plan,
    session: Callable[[], SparkSession],
    progress: Callable[[str], object] = lambda text: None,
) -> Made:
    """Carries out a plan; it calls `session` only if there are tables to make.

    It calls `progress` with a text before each step; a step may take seconds.
    """
    if todo.stale:
        progress("starting Spark")
        _make_tables(todo, session(), progress)
    rows = {
        table: sum(pq.read_metadata(path).num_rows for path in (todo.out / table).glob("*.parquet"))
        for table in TABLES
    }
    return Made(todo.out, tuple(todo.stale), todo.current, rows)


def table_path(out: Path, table: str, cluster_id: str) -> Path:
    """Returns the path of a cluster's part of a table."""
    return out / table / f"{_label(cluster_id)}.parquet"


def _make_tables(todo: Plan, spark: SparkSession, progress: Callable[[str], object]) -> None:
    # This lies beside the tables, as a rename needs one file system; readers ignore dot files.
    work = todo.out / f".making-{uuid4().hex}"
    work.mkdir(parents=True)
    try:
        changes, observed = load(spark, [r for group in todo.stale.values() for r in group])
        made: dict[str, DataFrame] = {}
        for table in TABLES:
            progress(f"making {table}")
            rows = (
                leader_minutes(made["partition_interval"])
                if table == "leader_minutes"
                else _OF_HISTORY[table](changes, observed)
            )
            made[table] = _written(rows, work / table)
        progress("moving the tables into place")
        for cluster_id, group in todo.stale.items():
            for table, rows in made.items():
                part = _part(work / table, cluster_id)
                if part is None:
                    part = work / f"{table}.parquet"
                    pq.write_table(spark.createDataFrame([], rows.schema).toArrow(), part)
                _put(part, table_path(todo.out, table, cluster_id))
            note = work / "note.json"
            note.write_text(_made_from(group), encoding="utf-8")
            _put(note, _note_path(todo.out, cluster_id))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _written(rows: DataFrame, where: Path) -> DataFrame:
    """Writes `rows` below `where`, one file per cluster in a stable order, and returns them."""
    order = [name for name in ("topic", "partition", "version", "broker") if name in rows.columns]
    (
        rows.withColumn("part", F.sha2("cluster_id", 256))
        .repartition("cluster_id")
        .sortWithinPartitions("cluster_id", *order)
        .write.partitionBy("part")
        .parquet(str(where.resolve()))
    )
    return rows.sparkSession.read.schema(rows.schema).parquet(_not_a_pattern(str(where.resolve())))


def _part(where: Path, cluster_id: str) -> Path | None:
    """Returns a cluster's file from `_written` below `where`, None if the cluster had no rows."""
    part = where / f"part={hashlib.sha256(cluster_id.encode()).hexdigest()}"
    return next(part.glob("part-*.parquet"), None)


def _put(file: Path, place: Path) -> None:
    """Syncs `file` to disk, then renames it to `place`."""
    with open(file, "rb") as written:
        os.fsync(written.fileno())
    place.parent.mkdir(parents=True, exist_ok=True)
    os.replace(file, place)


def _is_current(out: Path, cluster_id: str, group: list[Recording]) -> bool:
    """Returns whether the cluster's tables exist and were made from exactly these files."""
    try:
        note = _note_path(out, cluster_id).read_text(encoding="utf-8")
    except OSError:
        return False
    there = (table_path(out, table, cluster_id).is_file() for table in TABLES)
    return note == _made_from(group) and all(there)


def _made_from(group: list[Recording]) -> str:
    """Returns a cluster's note: the job's version, and each file with its size and end time."""
    inputs = {
        file.path.name: [file.path.stat().st_size, file.observed_to.isoformat()]
        for recording in group
        for file in recording.files
    }
    return json.dumps({"job": JOB_VERSION, "inputs": inputs}, indent=1, sort_keys=True) + "\n"


def _note_path(out: Path, cluster_id: str) -> Path:
    return out / "_made_from" / f"{_label(cluster_id)}.json"


def _label(cluster_id: str) -> str:
    """Returns a cluster's id as a file name; the prefix is there as an id may begin with "_".

    Readers ignore file names that begin with "_".
    """
    return f"cluster-{quote(cluster_id, safe='')}"


def _not_a_pattern(path: str) -> str:
    """Returns `path` with Hadoop's pattern characters escaped, for reading."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)
