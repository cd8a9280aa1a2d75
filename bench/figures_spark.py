"""The figures of the pipeline on Spark: what `make bench-spark` measures, and its goals."""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import Figure, Goal, Job, Scale, count, series

GROUP = "spark"
OF_SPEED = Goal(factor=4 / 3)  # at least 75 % of the speed


def _job(part: str, scale: Scale, **options: object) -> Job:
    given = tuple(f"--{name}={value}" for name, value in options.items())
    return Job("spark", (part, *given, f"--rounds={scale.spark_rounds}"))


def _figure(
    name: str,
    unit: str,
    job: Job,
    keys: tuple[str, str],
    other: str,
    goal: Goal | None = None,
) -> Figure:
    value, reference = map(series, keys)
    return Figure(GROUP, name, unit, job, value, reference, other, goal)


def _silver(scale: Scale) -> Iterable[Figure]:
    sizes = sorted(scale.spark_sizes)
    job = _job("silver", scale, sizes=",".join(map(str, sizes)))
    for size in sizes:
        name = f"{count(size)} changes of history to silver"
        goal = OF_SPEED if size > sizes[0] else None
        keys = (f"spark_{size}", f"plain_{size}")
        yield _figure(f"{name}, local[2]", "s", job, keys, "two plain processes", goal)
        keys = (f"bytes_{size}", f"input_{size}")
        yield _figure(f"{name}: bytes of tables", "MiB", job, keys, "bytes of history")
        keys = (f"files_{size}", f"inputs_{size}")
        yield _figure(f"{name}: files of tables", "files", job, keys, "files of history")
        if size > sizes[0]:
            keys = (f"memory_{size}", f"memory_{sizes[0]}")
            memory = f"a Python worker's most memory, {count(size)} changes"
            other = f"{count(sizes[0])} changes"
            yield _figure(memory, "MiB", job, keys, other, Goal(factor=1.3))
    keys = ("session", "first_job")
    yield _figure("the start of a session", "s", job, keys, "its first Python job")


def _intervals(scale: Scale) -> Iterable[Figure]:
    job = _job("intervals", scale, changes=scale.spark_changes)
    name = f"{count(scale.spark_changes)} changes of history to intervals, two threads"
    others = {
        "windows": ("Spark's windows, as before", 8),
        "duckdb": ("DuckDB", 4),
        "polars": ("polars", 2),
    }
    for way, (other, times) in others.items():
        keys = ("fold", way)
        yield _figure(f"{name}, {way}", "s", job, keys, other, Goal(factor=1 / times))
    keys = ("fold_memory", "duckdb_memory")
    yield _figure(f"{name}: the most memory", "MiB", job, keys, "DuckDB", Goal(factor=0.1))


def _executors(scale: Scale) -> Iterable[Figure]:
    job = _job("executors", scale, changes=scale.spark_changes)
    size = count(scale.spark_changes)
    name = f"{size} changes, the time on two executors as a part of that on one"
    keys = ("spark", "plain")
    yield _figure(name, "of 1", job, keys, "two plain processes of one", OF_SPEED)


def _day(scale: Scale) -> Iterable[Figure]:
    job = _job("day", scale, changes=scale.spark_changes, days=scale.spark_days)
    name = f"one day more on {scale.spark_days}"
    yield _figure(name, "s", job, ("day", "full"), "the full run", Goal(factor=0.05))
    keys = ("day_rows", "full_rows")
    yield _figure(f"{name}: rows decoded", "rows", job, keys, "the full run", Goal(factor=0.02))


def _small(scale: Scale) -> Iterable[Figure]:
    sizes = {"clusters": scale.spark_clusters, "files": scale.spark_files}
    job = _job("small", scale, **sizes)
    names = {"clusters": "clusters of 50 rows", "files": "files of one row on average"}
    for key, size in sizes.items():
        keys = (f"{key}_spark", f"{key}_plain")
        name = f"{count(size)} {names[key]}"
        yield _figure(name, "s", job, keys, "the fold in one process", Goal(factor=2))


def _year(scale: Scale) -> Iterable[Figure]:
    job = _job("year", scale, days=scale.spark_year)
    name = f"a dry run of {scale.spark_year} days"
    yield _figure(name, "s", job, ("dry", "run"), "the run")


def spark_figures(scale: Scale) -> list[Figure]:
    """Returns all figures of `make bench-spark`, in the order of the page."""
    parts = (_silver, _intervals, _executors, _day, _small, _year)
    return [figure for part in parts for figure in part(scale)]
