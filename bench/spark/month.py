"""Times gold of one large month: Spark SQL on one and two executors, and DuckDB with 8 GiB."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench.spark import sessions
from bench.spark.histories import days_of_changes, made_history
from rdmeta import pipeline
from rdmeta.pipeline.gold import query
from rdmeta.spark import large_months

if TYPE_CHECKING:
    from rdmeta.pipeline.work import Engine

_DUCKDB = 8 << 30  # with 1 GiB it fails at 10 million changes, with 4 GiB at 20


def measure(kind: str, changes: int, rounds: int) -> dict[str, Any]:
    """Returns the seconds of `kind`, which is "engines" or "executors"."""
    parts = {"engines": _engines, "executors": _executors}
    with TemporaryDirectory() as folder, patch.object(large_months, "LARGEST", 0):
        return parts[kind](changes, rounds, Path(folder))


def _engines(changes: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Times Spark SQL, also for half as many changes, and DuckDB; adds MiB of a worker."""
    whole = _silver(changes, folder / "whole")
    half = _silver(max(1, changes // 2), folder / "half")
    with patch.object(query, "room_here", lambda: query.Room(_DUCKDB, 2)):
        out = {"duckdb": [_gold(whole, None) for _ in range(rounds)], "spark": [], "half": []}
    with sessions.local("local[2]") as session:
        sessions.first_job(session)
        for _ in range(rounds):
            out["half"].append(_gold(half, sessions.engine(session)))
            out["spark"].append(_gold(whole, sessions.engine(session)))
        return {**out, "mib": [sessions.worker_peak(session)], "limit": [1024.0]}


def _executors(changes: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Times Spark SQL on one executor, and on two."""
    made, out = _silver(changes, folder / "made"), {}
    for count in (1, 2):
        with sessions.local(f"local-cluster[{count},1,2048]") as session:
            sessions.first_job(session)
            out[f"executors{count}"] = [
                _gold(made, sessions.engine(session)) for _ in range(rounds)
            ]
    return out


def _silver(changes: int, made: Path) -> Path:
    """Makes silver of one cluster and month; returns its folder."""
    plan = days_of_changes(changes)._replace(clusters=1, days=1, changes=changes)
    with made_history(plan) as history:
        pipeline.run(pipeline.plan([history], made, in_place=True), workers=2)
    return made


def _gold(made: Path, engine: Engine | None) -> float:
    """Returns the seconds in which a run makes all measures anew."""
    shutil.rmtree(made / "gold", ignore_errors=True)
    begin = perf_counter()
    plan = pipeline.plan([], made, silver=False, gold=True)
    pipeline.run(plan, engine=engine, workers=1)
    assert len(plan.months) == 1
    return perf_counter() - begin
