"""Finds the most memory of a Python worker of Spark at several sizes, and DuckDB's at one."""

from __future__ import annotations

from typing import Any

from bench.spark import sessions
from bench.spark.histories import days_of_changes, made_history, timed
from bench.spark.intervals import run_way


def measure(sizes: str, changes: int, rounds: int) -> dict[str, Any]:
    """Returns MiB by size as worker_N, and of DuckDB as duckdb; each size has its own workers."""
    out: dict[str, Any] = {}
    for size in [int(each) for each in sizes.split(",")] * rounds:
        with made_history(days_of_changes(size)) as history, sessions.local("local[2]") as session:
            timed(history, engine=lambda: sessions.engine(session))  # noqa: B023
            # Spark ends a worker that was idle for a minute.
            out.setdefault(f"worker_{size}", []).append(sessions.worker_peak(session))
    with made_history(days_of_changes(changes)) as history:
        found = run_way("duckdb", history)
    if "missing" in found:
        return {**out, "missing": {"duckdb": found["missing"]}}
    return {**out, "duckdb": [found["mib"]]}
