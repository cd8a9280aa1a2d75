"""Makes the measures of one month of a cluster from silver.

DuckDB sees the month, and what the month needs of the time around it:

    before   the last period before the month: the small tables, and the intervals that end exactly
             where the month begins; observations as far back as something counts
    month    all tables
    later    the intervals of partitions at risk and those right behind them, as long as an
             incident that began in the month goes on; the small tables of these periods;
             observations as far on as something counts

So the files of a month follow from these parts of silver and from the settings alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta._atomic import AtomicFile, commit
from rdmeta.pipeline import lock
from rdmeta.pipeline.days import DAY_US, begin_of, digest_of
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.gold import query
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.layout import GOLD_VERSION, gold_file, stored_name, table_file
from rdmeta.pipeline.store import Store, sha256_of
from rdmeta.pipeline.tables import SCHEMAS, lacking, made_from, parquet_writer
from rdmeta.pipeline.work import MadeFile, MadeMonth, MonthTask, Result, tables_of

if TYPE_CHECKING:
    import duckdb

# Raise it when the same silver gives other rows of gold, so that all months are made again.
_VERSION = 4
_BETWEEN_INTERRUPTS = 0.05
_SMALL = ("broker_interval", "topic_interval", "config_interval", "observation")
_ASIDE = pa.schema([("cluster_id", pa.string()), ("day", pa.string()), ("state", pa.string())])


def make_month(task: MonthTask) -> Result:
    """Makes all measures of a month; they take their names when all are whole.

    Raises PipelineError for a part of silver that is damaged, missing or of an older version,
    LockedError if another run has taken over the output folder, MissingExtraError without DuckDB,
    and OSError.
    """
    if task.stored is not None and (left := left_behind(task)) is not None:
        return left
    with (
        tempfile.TemporaryDirectory(prefix="rdmeta-gold-") as folder,
        query.connected(task.beside) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        # A query of the main thread would take the exception of a signal's handler for its own.
        making = pool.submit(copy_context().run, _make_month, task, connection, folder)
        try:
            return making.result()
        finally:
            while not making.done():
                connection.interrupt()
                wait([making], _BETWEEN_INTERRUPTS)


def _targets(task: MonthTask) -> dict[str, str]:
    """Returns the names that the files of a month get, by measure.

    A name of content is that of all that the month may be made from.
    """
    names = {each: gold_file(each, task.cluster_id, task.month) for each in MEASURES}
    if task.stored is None:
        return names
    digest = _digest(task, {name: task.digests[name] for name in sorted(task.digests)})
    return {each: stored_name(name, digest) for each, name in names.items()}


def _digest(task: MonthTask, read: Mapping[str, str | None]) -> str:
    return digest_of([GOLD_VERSION, _VERSION, vars(task.settings), task.aside, read])


def left_behind(task: MonthTask) -> Result | None:
    """Returns the month that a run left there before its commit, None if it is not whole."""
    out, names = Store(task.out), _targets(task)
    footers = {made_from(out, name) for name in names.values()}
    text = footers.pop()
    if text is None or footers:
        return None
    read: dict[str, str] = json.loads(text)
    made = MadeMonth(**{key: read[key] for key in vars(MadeMonth("", "", None, None))})
    if digest_of_month(task, made) != made.digest:
        return None
    result = Result(task.cluster_id, months={task.month: made})
    for measure, name in names.items():
        result.unchanged.append(gold_file(measure, task.cluster_id, task.month))
        result.stored[result.unchanged[-1]] = name
    return result


def _make_month(task: MonthTask, connection: duckdb.DuckDBPyConnection, folder: str) -> Result:
    result = Result(task.cluster_id)
    connection.execute(f"SET temp_directory = '{_quoted(folder)}'")
    silver = _Silver(task, connection, folder)
    with _naming_damage(task):
        silver.load()
        _write(task, silver, result)
    return result


def names_read(
    task: MonthTask, read: MadeMonth, tables: Iterable[str] | None = None
) -> dict[str, list[str]]:
    """Returns the parts by table that a month is made from.

    Observations of more periods tell why and until when nothing was observed.
    """
    later = [each for each in task.later if each <= read.read_to]
    before = list(task.earlier[-1:])
    found: dict[str, list[str]] = {}
    for table in tables or SCHEMAS:
        around = [*before, *task.periods, *later]
        if table == "observation":
            seen_from, seen_to = read.seen_from, read.seen_to
            around = [
                *(each for each in task.earlier if seen_from is None or each >= seen_from),
                *task.periods,
                *(each for each in task.later if seen_to is None or each <= seen_to),
            ]
        elif table not in (*_SMALL, "partition_interval"):
            around = list(task.periods)
        found[table] = [name for each in around for name in parts_of_period(task, table, each)]
    return found


def digest_of_month(task: MonthTask, made: MadeMonth) -> str:
    """Returns the digest of all that a month is made from, if so much is read as for `made`."""
    names = [name for each in names_read(task, made).values() for name in each]
    return _digest(task, {name: task.digests.get(name) for name in names})


def bounds_of(period: str) -> tuple[int, int]:
    """Returns the begin and the end of a day or a month in microseconds since 1970."""
    if len(period) > 7:
        return begin_of(period), begin_of(period) + DAY_US
    year, number = int(period[:4]), int(period[5:])
    following = f"{year + number // 12:04d}-{number % 12 + 1:02d}"
    return begin_of(f"{period}-01"), begin_of(f"{following}-01")


def later_periods(
    task: MonthTask, is_alive: Callable[[str], bool]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yields periods to read and those after them, first one, then twice as many each time.

    `is_alive` says whether an incident of the month goes on in a period.
    """
    later, count = task.later, 1
    while later and is_alive(later[0]):
        periods, later = later[:count], later[count:]
        count *= 2
        yield periods, later


class _Silver:
    """The tables of silver in a DuckDB connection, as far as a month needs them."""

    def __init__(self, task: MonthTask, connection: duckdb.DuckDBPyConnection, folder: str) -> None:
        self.connection = connection
        self._task, self._folder = task, folder
        self._out = Store(task.out, task.stored)
        self._paths: dict[str, str] = {}
        self.begin, self.end = bounds_of(task.month)
        last = task.periods[-1] if task.periods else task.month
        self.read = MadeMonth("", last, None, None)

    def load(self) -> None:
        """Creates all tables; reads later periods while an incident of the month goes on."""
        cluster_id = self._task.cluster_id
        aside = [
            dict(zip(_ASIDE.names, (cluster_id, *each), strict=True)) for each in self._task.aside
        ]
        for each, schema in SCHEMAS.items():
            self.connection.register(f"no_{each}", schema.empty_table())
        self.connection.register("input_file", pa.Table.from_pylist(aside, schema=_ASIDE))
        seen_from = self._nearest(reversed(self._task.earlier))
        seen_to = self._nearest(self._task.later)
        self.read = replace(self.read, seen_from=seen_from, seen_to=seen_to)
        self._views()
        table = "partition_interval"
        names = self._names(table)
        before = [name for name in names if self._is_before(name)]
        month = [name for name in names if not self._is_before(name)]
        edge = f"SELECT * FROM {self._reads(table, before)} WHERE epoch_us(ended_at) = {self.begin}"
        self._define(table, f"SELECT * FROM {self._reads(table, month)} UNION ALL {edge}")
        settings = self._task.settings
        query.prepare(self.connection, min_isr=settings.min_isr, flap_seconds=settings.flap_seconds)
        self.connection.execute("CREATE TEMP TABLE state AS SELECT * FROM memory.main.state")
        self._load_later()
        columns = ", ".join(f'"{each}"' for each in SCHEMAS[table].names)
        self._define(table, f"SELECT {columns} FROM temp.state")

    def _load_later(self) -> None:
        """Adds rows of later periods."""
        for periods, after in later_periods(self._task, self._is_alive):
            self.read = replace(self.read, read_to=periods[-1], seen_to=self._nearest(after))
            self._views()
            self._add(periods)

    def _add(self, periods: Sequence[str]) -> None:
        """Adds the intervals of these periods that are at risk, and those right behind one."""
        names = [
            name
            for each in periods
            for name in parts_of_period(self._task, "partition_interval", each)
        ]
        self._define(
            "partition_interval", f"SELECT * FROM {self._reads('partition_interval', names)}"
        )
        self.connection.execute(
            """
            INSERT INTO temp.state BY NAME
            WITH added AS MATERIALIZED (SELECT * FROM memory.main.state),
            ends AS (
                SELECT topic, topic_id, partition, ended_at FROM added WHERE is_at_risk
                UNION ALL
                SELECT topic, topic_id, partition, ended_at FROM temp.state WHERE is_at_risk
            )
            SELECT * FROM added WHERE is_at_risk OR EXISTS (
                SELECT 1 FROM ends
                WHERE ends.topic = added.topic
                    AND ends.topic_id IS NOT DISTINCT FROM added.topic_id
                    AND ends.partition = added.partition
                    AND ends.ended_at = added.began_at
            )
            """
        )

    def _is_alive(self, next_period: str) -> bool:
        """Returns whether an incident of the month ends where the next period begins."""
        found = query.rows(self.connection, "incident", self.of_month("began_at"))
        edge = pa.scalar(bounds_of(next_period)[0], found["ended_at"].type)
        return edge in found["ended_at"].unique()

    def of_month(self, column: str) -> str:
        """Returns the condition that a time lies in the month."""
        return f"epoch_us({column}) >= {self.begin} AND epoch_us({column}) < {self.end}"

    def _nearest(self, periods: Iterable[str]) -> str | None:
        """Returns the first of these periods with an observation of some time; None without one."""
        for period in periods:
            names = parts_of_period(self._task, "observation", period)
            seen = f"FROM {self._reads('observation', names)} WHERE counts_from < counts_to LIMIT 1"
            if self.connection.execute(seen).fetchone() is not None:
                return period
        return None

    def _views(self) -> None:
        """Defines the tables other than partition_interval for what has been read."""
        for table in SCHEMAS:
            if table != "partition_interval":
                self._define(table, f"SELECT * FROM {self._reads(table, self._names(table))}")

    def _names(self, table: str) -> list[str]:
        return names_read(self._task, self.read, [table])[table]

    def _is_before(self, name: str) -> bool:
        return any(f"/period={each}/" in name for each in self._task.earlier[-1:])

    def _define(self, table: str, select: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE VIEW memory.main.{table} AS {select}")

    def _reads(self, table: str, names: Sequence[str]) -> str:
        """Returns what reads these parts in SQL; without one it reads no rows."""
        if not names:
            return f"no_{table}"
        paths = ", ".join(f"'{_quoted(self._path(name))}'" for name in names)
        return f"read_parquet([{paths}], hive_partitioning = false)"

    def _path(self, name: str) -> str:
        """Returns the path of a part; one of an object store is copied to this machine first."""
        if self._out.is_local:
            return os.path.abspath(self._out.path(name))
        if name not in self._paths:
            path = os.path.join(self._folder, f"{len(self._paths)}.parquet")
            with self._out.opened(name) as stream, open(path, "wb") as file:
                while chunk := stream.read(8 << 20):
                    file.write(chunk)
            self._paths[name] = path
        return self._paths[name]


def parts_of_period(task: MonthTask, table: str, period: str) -> list[str]:
    """Returns the names of the parts of a table."""
    return [
        table_file(table, task.cluster_id, period, bucket, task.parts.buckets)
        for bucket in range(task.parts.buckets)
        if table in tables_of(bucket)
    ]


def _write(task: MonthTask, silver: _Silver, result: Result) -> None:
    made = replace(silver.read, digest=digest_of_month(task, silver.read))
    with contextlib.ExitStack() as stack:
        drafts = []
        for measure in MEASURES.values():
            where = silver.of_month(measure.time)
            rows = query.rows(silver.connection, measure.name, where)
            draft, file = _drafted(stack, task, made, measure.name, rows)
            drafts.append(draft)
            result.made.append(file)
        _commit(task, drafts)
    result.months[task.month] = made


def write_measure(task: MonthTask, made: MadeMonth, name: str, rows: pa.Table) -> MadeFile:
    """Writes the file of a month of one measure; `rows` come in any order, with its columns.

    Raises LockedError if another run has taken over the output folder, ValueError and OSError.
    """
    ordered = query.in_order(name, rows)
    with contextlib.ExitStack() as stack:
        draft, file = _drafted(stack, task, made, name, ordered)
        _commit(task, [draft])
    return file


def _drafted(
    stack: contextlib.ExitStack, task: MonthTask, made: MadeMonth, name: str, rows: pa.Table
) -> tuple[AtomicFile, MadeFile]:
    """Writes a file that has no name yet. Its bytes follow from the month and the rows alone."""
    footer = {"cluster_id": task.cluster_id, "month": task.month, **vars(made)}
    file = gold_file(name, task.cluster_id, task.month)
    target = _targets(task)[name]
    draft = stack.enter_context(Store(task.out).draft(target))
    text = json.dumps(footer, sort_keys=True)
    with draft.naming(), parquet_writer(draft.path, MEASURES[name].schema, text) as writer:
        writer.write_table(rows.combine_chunks())
    with pa.OSFile(str(draft.path), "rb") as stream:
        digest = sha256_of(stream)
    stored = "" if target == file else target
    return draft, MadeFile(file, len(rows), draft.path.stat().st_size, digest, stored)


def _commit(task: MonthTask, drafts: Sequence[AtomicFile]) -> None:
    lock.require_held(Store(task.out), task.token)
    commit(drafts)


@contextlib.contextmanager
def _naming_damage(task: MonthTask) -> Iterator[None]:
    """Raises PipelineError for parts of silver that DuckDB cannot read, and without memory."""
    import duckdb

    try:
        yield
    except (duckdb.IOException, duckdb.InvalidInputException, duckdb.BinderException) as error:
        _require_columns(task)
        if isinstance(error, duckdb.BinderException):
            raise
        reason = str(error).splitlines()[0]
        raise PipelineError(
            f"{task.out}: silver of {task.cluster_id} is missing or damaged: {reason};"
            " run rdmeta pipeline check"
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise PipelineError(
            f"{task.out}: there is too little memory or disk for gold of {task.month} of"
            f" {task.cluster_id}: {str(error).splitlines()[0]}; in a folder of a file system Spark"
            " (--engine spark) makes a large month with all its executors"
        ) from error


def _require_columns(task: MonthTask) -> None:
    """Raises PipelineError if a part of silver lacks a column, as an older version made it."""
    out = Store(task.out, task.stored)
    for name in sorted(task.digests):
        with contextlib.suppress(OSError, pa.ArrowException), out.opened(name) as stream:
            there = pq.read_schema(stream).names
            if text := lacking(out, name, SCHEMAS[name.split("/")[2]].names, there):
                raise PipelineError(text)


def _quoted(text: str) -> str:
    return text.replace("'", "''")
