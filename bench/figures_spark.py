"""The figures of the pipeline on Spark: what `make bench-spark` measures, and its goals."""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import Figure, Goal, Job, Scale, count, series

GROUP = "spark"
OF_SPEED = Goal(factor=4 / 3)  # at least 75 % of the speed
OF_SILVER = Goal(factor=1 / 0.9)
OF_MEMORY = (
    "A day of the smallest size does not fill one row group of its tables. A larger day does, and a"
    " task holds its changes of leader until the day's end, to count each once."
)

OF_LAST_DAY = (
    "The day that was open is over now: its recording goes on to midnight, so it is made again"
    " beside that of the new day. The tables of its month are written anew."
)
OF_INTERVALS = (
    "By perf the fold itself takes 36 % of the CPU, encoding Parquet 28 %, copying memory 11 %,"
    " decoding Parquet 6 %, the kernel 6 %, and Python 4 %."
)
OF_COMMITS = (
    "Each table has a log of its own. The library of the log takes most of a commit, for few files"
    " as for many, and these files have 50 rows or fewer."
)
_PLAIN = "two plain processes"


def _job(part: str, rounds: int, **options: object) -> Job:
    given = tuple(f"--{name}={value}" for name, value in options.items())
    return Job("spark", (part, *given, f"--rounds={rounds}"))


def _figure(
    name: str,
    unit: str,
    job: Job,
    keys: tuple[str, str],
    other: str,
    goal: Goal | None = None,
    why: str = "",
) -> Figure:
    value, reference = map(series, keys)
    return Figure(GROUP, name, unit, job, value, reference, other, goal, why)


def silver_name(size: int) -> str:
    """Returns the name of the row of so many changes to silver; others begin with it."""
    return f"{count(size)} changes of history to silver"


def _silver(scale: Scale) -> Iterable[Figure]:
    sizes = sorted(scale.spark_sizes)
    for size in sizes:
        job = _job("silver", scale.spark_rounds, changes=size)
        name = silver_name(size)
        goal = OF_SILVER if size > sizes[0] else None
        other = "two plain processes"
        yield _figure(f"{name}, local[2]", "s", job, ("spark", "plain"), other, goal)
        keys, other = ("cpu", "rows"), "millions of rows"
        yield _figure(f"{name}: CPU of plain processes", "s", job, keys, other)
        keys, other = ("bytes", "input"), "MiB of history"
        yield _figure(f"{name}: bytes of tables", "MiB", job, keys, other)
        keys, other = ("files", "inputs"), "files of history"
        yield _figure(f"{name}: files of tables", "files", job, keys, other)
        keys, other = ("tasks", "files"), "files of tables"
        yield _figure(f"{name}: tasks", "tasks", job, keys, other)
        if size == sizes[0]:
            keys = ("session", "first_job")
            yield _figure("the start of a session", "s", job, keys, "its first Python job")


def _memory(scale: Scale) -> Iterable[Figure]:
    first, *more = sorted(scale.spark_sizes)
    sizes = ",".join(map(str, (first, *more)))
    job = _job("memory", 1, sizes=sizes, changes=scale.spark_changes)
    for size in more:
        keys = (f"worker_{size}", f"worker_{first}")
        name = f"a Python worker's most memory, {count(size)} changes"
        other = f"{count(first)} changes"
        yield _figure(name, "MiB", job, keys, other, Goal(factor=1.3), OF_MEMORY)
    size = scale.spark_changes
    name = f"a Python worker's most memory, {count(size)} changes, beside DuckDB"
    keys = (f"worker_{size}", "duckdb")
    yield _figure(name, "MiB", job, keys, "DuckDB", Goal(factor=0.1))


def _intervals(scale: Scale) -> Iterable[Figure]:
    name = f"{count(scale.spark_changes)} changes of history to intervals, two threads"
    for way, other, times in (("duckdb", "DuckDB", 4), ("polars", "polars", 2)):
        job = _job("intervals", scale.spark_rounds, peer=way, changes=scale.spark_changes)
        goal, keys = Goal(factor=1 / times), ("fold", "peer")
        yield _figure(f"{name}, beside {way}", "s", job, keys, other, goal, OF_INTERVALS)


def _executors(scale: Scale) -> Iterable[Figure]:
    job = _job("executors", scale.spark_rounds, changes=scale.spark_changes)
    size = count(scale.spark_changes)
    name = f"{size} changes, the time on two executors as a part of that on one"
    keys = ("spark", "plain")
    yield _figure(name, "of 1", job, keys, "two plain processes of one", OF_SPEED)
    for way, what in (("spark", "executor"), ("plain", "plain process")):
        keys = (f"{way}2", f"{way}1")
        yield _figure(f"{size} changes to silver, two: {what}", "s", job, keys, f"one {what}")


def _day(scale: Scale) -> Iterable[Figure]:
    job = _job("day", scale.spark_rounds, changes=scale.spark_changes, days=scale.spark_days)
    name = f"one day more on {scale.spark_days}"
    yield _figure(name, "s", job, ("day", "full"), "the full run", Goal(factor=0.05))
    keys = ("day_rows", "full_rows")
    yield _figure(f"{name}: rows decoded", "rows", job, keys, "the full run", Goal(factor=0.02))


def _logs(scale: Scale) -> Iterable[Figure]:
    size, days = scale.spark_logs, scale.spark_days
    job = _job("logs", scale.spark_rounds, changes=size, days=days)
    name = f"logs of {count(size)} records of 10 clusters to silver"
    yield _figure(f"{name}, local[2]", "s", job, ("spark", "plain"), _PLAIN, OF_SPEED)
    yield _figure(f"{name}: CPU of plain processes", "s", job, ("cpu", "tasks"), "tasks")
    yield _figure(f"{name}: bytes of tables", "MiB", job, ("tables", "bytes"), "MiB of logs")
    one = f"a log of {count(size // 10)} records"
    goal, other = Goal(factor=0.5), "kafka-dump-log to text"
    yield _figure(f"{one} to silver, one process", "s", job, ("one", "kafka"), other, goal)
    keys, other = ("recordings", "core"), "decode and replay in C"
    yield _figure(f"{one} to recordings alone", "s", job, keys, other)
    more = f"one day more on {days} of a log in one segment"
    yield _figure(more, "s", job, ("day", "full"), "the full run", Goal(factor=0.05), OF_LAST_DAY)
    keys = ("day_made", "full_made")
    yield _figure(f"{more}: recordings", "files", job, keys, "the full run", why=OF_LAST_DAY)
    name, other = "a worker's most memory, a log of ten times as many days", "a tenth of it"
    yield _figure(name, "MiB", job, ("worker_10", "worker_1"), other, Goal(factor=1.3))


def _small(scale: Scale) -> Iterable[Figure]:
    sizes = {"clusters": scale.spark_clusters, "files": scale.spark_files}
    names = {"clusters": "clusters of 50 rows", "files": "files of one row on average"}
    for kind, size in sizes.items():
        job = _job("small", scale.spark_rounds, kind=kind, number=size)
        name = f"{count(size)} {names[kind]}"
        other = "the pipeline in one process"
        yield _figure(name, "s", job, ("spark", "plain"), other, Goal(factor=2))
        # The strictest reading of the goal: the fold makes one of eight tables, and syncs nothing.
        name, other = f"{name}, beside a bare fold", "the fold in one process, to intervals only"
        why = "The pipeline also takes digests, makes eight tables instead of one, and syncs each."
        yield _figure(name, "s", job, ("spark", "fold"), other, Goal(factor=2), why)


def _year(scale: Scale) -> Iterable[Figure]:
    job = _job("year", scale.spark_rounds, days=scale.spark_year)
    name = f"a dry run of {scale.spark_year} days"
    yield _figure(name, "s", job, ("dry", "run"), "the run")
    name = f"the manifest of {scale.spark_year} days"
    yield _figure(name, "MiB", job, ("manifest", "files"), "its files")


def _gold(scale: Scale) -> Iterable[Figure]:
    job = _job("gold", scale.spark_rounds, changes=scale.spark_changes)
    name = f"silver of {count(scale.spark_changes)} changes to gold"
    other = "the queries of docs/measures.md"
    yield _figure(name, "s", job, ("plain", "queries"), other, Goal(factor=1.5))
    yield _figure(f"{name}, local[2]", "s", job, ("spark", "plain"), "two plain processes")
    yield _figure(f"{name}, two plain processes", "s", job, ("plain", "rows"), "million intervals")


def _month(scale: Scale) -> Iterable[Figure]:
    job = _job("month", scale.spark_rounds, kind="engines", changes=scale.spark_month)
    name = f"gold of a month of {count(scale.spark_month)} changes by Spark SQL"
    keys, other = ("spark", "half"), "half as many"
    yield _figure(f"{name}, local[2]", "s", job, keys, other, Goal(factor=2.2))
    keys, other = ("mib", "limit"), "1 GiB"
    yield _figure(f"{name}: a worker's most memory", "MiB", job, keys, other, Goal(factor=1))
    keys, other = ("spark", "duckdb"), "one DuckDB with 8 GiB"
    yield _figure(f"{name}, beside DuckDB", "s", job, keys, other)
    half = scale.spark_month // 2
    job = _job("month", scale.spark_rounds, kind="executors", changes=half)
    name = f"gold of a month of {count(half)} changes by Spark SQL"
    keys, other = ("executors2", "executors1"), "one"
    yield _figure(f"{name}, two executors", "s", job, keys, other, Goal(factor=0.65))


def _bronze(scale: Scale) -> Iterable[Figure]:
    job = _job("bronze", scale.spark_rounds, number=scale.spark_files)
    name = f"{count(scale.spark_files)} files of one row copied into bronze, local[2]"
    why = "Each row of a copy is checked, and each file is synced: cp does neither."
    yield _figure(name, "s", job, ("bronze", "cp"), "cp of them", Goal(factor=2), why)
    keys = ("bronze", "silver")
    yield _figure(f"{name}, beside silver", "s", job, keys, "silver of them in place")
    keys = ("bronze", "half")
    yield _figure(f"{name}, twice the files", "s", job, keys, "half as many", Goal(factor=2.2))


def _commits(scale: Scale) -> Iterable[Figure]:
    job = _job("commits", scale.spark_rounds, number=scale.spark_commit)
    for kind, shown in (("delta", "Delta"), ("iceberg", "Iceberg")):
        name = f"a commit of {count(scale.spark_commit)} files to 20 tables of {shown}"
        keys, other = (kind, f"{kind}_files"), "writing those files alone"
        yield _figure(name, "s", job, keys, other, Goal(factor=0.05), OF_COMMITS)
        keys, other = (kind, f"{kind}_run"), "all else of the run"
        yield _figure(f"{name}, beside the run", "s", job, keys, other)


def _frames(scale: Scale) -> Iterable[Figure]:
    job = _job("frames", scale.spark_rounds, changes=scale.spark_changes)
    name = f"tables.partition_interval of {count(scale.spark_changes)} changes, all columns"
    keys, other = ("tables", "parquet"), "spark.read.parquet"
    yield _figure(name, "s", job, keys, other, Goal(factor=1.1))


def _functions(scale: Scale) -> Iterable[Figure]:
    job = _job("functions", scale.spark_rounds, keys=scale.spark_keys)
    name = f"partition_for of {count(scale.spark_keys)} keys in a job, local[2]"
    other = "kafka-python's murmur2 in a UDF"
    yield _figure(name, "s", job, ("udf", "python"), other, Goal(factor=1 / 8))
    other = "the same in an Arrow UDF"
    yield _figure(f"{name}, beside an Arrow UDF", "s", job, ("udf", "arrow"), other)
    yield _figure(f"{name}, beside nothing", "s", job, ("udf", "floor"), "a UDF without work")
    # No write to a broker: the rows of each task say what its producer would open.
    name = "48 tasks, 120 partitions, 12 brokers, by leader:"
    other = "rows as they come"
    keys = ("connections", "connections_plain")
    yield _figure(f"{name} connections", "of tasks", job, keys, other, Goal(factor=0.1))
    yield _figure(f"{name} batches", "open", job, ("batches", "batches_plain"), other)


def _source(scale: Scale) -> Iterable[Figure]:
    job = _job(
        "source",
        scale.spark_rounds,
        changes=scale.spark_changes // 10,
        partitions=scale.spark_partitions,
    )
    name = f"{count(scale.spark_changes // 10)} changes by the data source, all columns"
    keys = ("changes", "parquet")
    yield _figure(name, "s", job, keys, "spark.read.parquet", Goal(factor=4))
    name = f"{count(scale.spark_changes // 10)} records of a metadata log by the data source"
    keys = ("records", "records_parquet")
    yield _figure(name, "s", job, keys, "spark.read.parquet", Goal(factor=4))
    name = f"{count(scale.spark_partitions)} partitions of a live cluster by the data source"
    keys = ("live", "arrow")
    yield _figure(name, "s", job, keys, "createDataFrame of their Arrow", Goal(factor=2))


def spark_figures(scale: Scale) -> list[Figure]:
    """Returns all figures of `make bench-spark`, in the order of the page."""
    parts = [_silver, _memory, _intervals, _executors, _day, _logs, _small, _year]
    parts += [_source, _gold, _month, _bronze, _commits, _frames, _functions]
    return [figure for part in parts for figure in part(scale)]
