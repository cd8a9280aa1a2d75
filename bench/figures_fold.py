"""The figures of the fold: changes to intervals, beside DuckDB."""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import Figure, Goal, Job, Scale, count, series


def _intervals(scale: Scale) -> Iterable[Figure]:
    arguments = ("intervals", f"--changes={scale.changes}", f"--rounds={scale.rounds}")
    job = Job("fold", arguments)
    name = f"{count(scale.changes)} changes to intervals, Parquet to Parquet, one thread"
    other = "a query of DuckDB"

    def figure(what: str, unit: str, suffix: str, goal: Goal | None) -> Figure:
        value, reference = series(f"fold{suffix}"), series(f"duckdb{suffix}")
        return Figure("fold", f"{name}: {what}", unit, job, value, reference, other, goal)

    yield figure("the time", "s", "", None)
    yield figure("the most memory", "MiB", "_memory", None)


PARTS = (_intervals,)
