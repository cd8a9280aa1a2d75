"""Makes a month of gold that is too large for one process, by Spark SQL.

The rows of a measure spread over the executors; one task gets them in the end, and writes the file
as a DuckDB task does. So the bytes are the same, and a month may change from one way to the other.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from rdmeta.errors import ConfigError, MissingExtraError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyspark.sql import functions as sf
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark", "spark") from error

from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.gold.making import (
    bounds_of,
    digest_of_month,
    later_periods,
    left_behind,
    names_read,
    parts_of_period,
    write_measure,
)
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.gold.query import Room
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.work import AnyTask, MadeFile, MadeMonth, MonthTask, Result
from rdmeta.spark.gold_frames import Measures, measures
from rdmeta.spark.remote import FAILURES, outcome_of
from rdmeta.spark.silver_frames import ASIDE, Tables, of_files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# The most intervals of partitions of a month that one process gets: with so many, sorting takes
# DuckDB minutes.
LARGEST = 20_000_000
# The most bytes of memory that DuckDB needs for one. Much goes to disk, but not all: in the windows
# of isr_flap_day 10 million failed with 1 GiB and not with 1.5, 20 million with 4 and not with 6.
_BYTES_EACH = 350
# Of the session meanwhile: Spark chooses what it broadcasts by bytes of files and shuffles, and
# intervals take many times that in memory.
SETTINGS = {"spark.sql.autoBroadcastJoinThreshold": "1m"}
_MADE = "outcome binary, rows bigint, bytes bigint"
_SUMS = {"rows": "rows_written", "bytes": "bytes_written"}  # as of packs, for `observe()`


def is_large(task: AnyTask, room: Room) -> TypeGuard[MonthTask]:
    """Returns whether Spark SQL is to make a task: a large month in a folder of a file system.

    A month is large if it would take DuckDB too long, or has too little memory on an executor.
    """
    if not isinstance(task, MonthTask):
        return False
    most = min(LARGEST, room.memory // room.at_a_time(task.beside) // _BYTES_EACH)
    return task.rows > most and Store(task.out).is_local


def made_by_spark(session: SparkSession, task: MonthTask) -> Result:
    """Makes all measures of a month, one file after the other.

    Raises PySparkException; PipelineError if another run has taken over the output folder, or for
    silver of an older version; and OSError.
    """
    if task.stored is not None and (left := left_behind(task)) is not None:
        return left
    task = replace(task, out=os.path.abspath(Store(task.out).path()))
    try:
        return _made_anew(session, task)
    except ConfigError as error:  # of the tables that lack a column
        raise PipelineError(str(error)) from error


def _made_anew(session: SparkSession, task: MonthTask) -> Result:
    result = Result(task.cluster_id)
    month = _Month(session, task)
    read, gold = month.read()
    made = replace(read, digest=digest_of_month(task, read))
    for name in MEASURES:
        rows = getattr(gold, name).where(month.has(MEASURES[name].time))
        result.made.append(_written(task, made, name, rows))
    result.months[task.month] = made
    return result


def _written(task: MonthTask, made: MadeMonth, name: str, rows: DataFrame) -> MadeFile:
    """Writes the file of a measure in a task of an executor; that of no rows here."""

    def write(found: pa.Table) -> pa.Table:
        outcome: MadeFile | Exception
        try:
            outcome = write_measure(task, made, name, found)
        except FAILURES as error:  # Spark would make a text of it
            outcome = error
        counts = {each: getattr(outcome, each, 0) for each in _SUMS}
        return pa.Table.from_pylist([{"outcome": pickle.dumps(outcome), **counts}])

    # A month is of one cluster, so that its rows come to one task.
    files = rows.groupBy("cluster_id").applyInArrow(write, _MADE)
    sums = (sf.sum(of).alias(name) for of, name in _SUMS.items())
    found = files.observe("rdmeta", *sums).collect()
    if found:
        made_file: MadeFile = outcome_of(found[0].outcome)
        return made_file
    return write_measure(task, made, name, MEASURES[name].schema.empty_table())


class _MonthTables(Tables):
    """The tables of silver that a month is made from."""

    _is_pipeline = True

    def __init__(self, session: SparkSession, task: MonthTask, read: MadeMonth) -> None:
        super(Tables, self).__init__(session)
        self._task, self._names = task, names_read(task, read)
        self._store, self._footers = Store(task.out, task.stored), {}

    def make(self, name: str) -> DataFrame:
        if name == "input_file":
            aside = [(self._task.cluster_id, *each) for each in self._task.aside]
            return self.session.createDataFrame(aside, ASIDE)
        found = of_files(self.session, name, map(self._store.path, self._names[name]))
        if name != "partition_interval":
            return found
        # Of the period before the month only what reaches it.
        edge = sf.timestamp_micros(sf.lit(bounds_of(self._task.month)[0]))
        return found.where((sf.col("began_at") >= edge) | (sf.col("ended_at") == edge))

    def _parts(self, name: str) -> Sequence[str]:
        return self._names[name]


class _Month:
    """Finds what a month is made from: as much of the time around it as a DuckDB task reads."""

    _gold: Measures

    def __init__(self, session: SparkSession, task: MonthTask) -> None:
        self._session, self._task = session, task
        self._out = Store(task.out, task.stored)

    def read(self) -> tuple[MadeMonth, Measures]:
        """Returns which parts are read, without a digest, and the measures over them."""
        task = self._task
        last = task.periods[-1] if task.periods else task.month
        seen = self._nearest(reversed(task.earlier)), self._nearest(task.later)
        read, self._gold = self._measures(MadeMonth("", last, *seen))
        for periods, after in later_periods(task, self._is_alive):
            seen_to = self._nearest(after)
            read, self._gold = self._measures(replace(read, read_to=periods[-1], seen_to=seen_to))
        return read, self._gold

    def has(self, column: str) -> Column:
        """Returns the condition that a time lies in the month."""
        begin, end = (sf.timestamp_micros(sf.lit(each)) for each in bounds_of(self._task.month))
        return (sf.col(column) >= begin) & (sf.col(column) < end)

    def _measures(self, read: MadeMonth) -> tuple[MadeMonth, Measures]:
        settings = self._task.settings
        tables = _MonthTables(self._session, self._task, read)
        return read, measures(tables, min_isr=settings.min_isr, flap_seconds=settings.flap_seconds)

    def _is_alive(self, next_period: str) -> bool:
        """Returns whether an incident of the month ends where the next period begins."""
        edge = sf.timestamp_micros(sf.lit(bounds_of(next_period)[0]))
        found = self._gold.incident.where(self.has("began_at") & (sf.col("ended_at") == edge))
        return not found.isEmpty()

    def _nearest(self, periods: Iterable[str]) -> str | None:
        """Returns the first of these periods with an observation of some time; None without one."""
        for period in periods:
            for name in parts_of_period(self._task, "observation", period):
                with self._out.opened(name) as stream:
                    seen = pq.read_table(stream, columns=["counts_from", "counts_to"])
                if pc.any(pc.less(seen["counts_from"], seen["counts_to"])).as_py():
                    return period
        return None
