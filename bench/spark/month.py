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


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds, also of half as many changes, these on one and two executors; and MiB."""
    out: dict[str, Any] = {"spark": [], "half": [], "duckdb": [], "mib": [], "limit": []}
    with TemporaryDirectory() as folder, patch.object(large_months, "LARGEST", 0):
        whole = _silver(changes, Path(folder, "whole"))
        half = _silver(max(1, changes // 2), Path(folder, "half"))
        with patch.object(query, "room_here", lambda: query.Room(_DUCKDB, 2)):
            out["duckdb"] = [_gold(whole, None) for _ in range(rounds)]
        with sessions.local("local[2]") as session:
            sessions.first_job(session)
            for _ in range(rounds):
                out["half"].append(_gold(half, sessions.engine(session)))
                out["spark"].append(_gold(whole, sessions.engine(session)))
            out["mib"].append(sessions.worker_peak(session))
            out["limit"].append(1024.0)
        for count in (1, 2):
            with sessions.local(f"local-cluster[{count},1,2048]") as session:
                sessions.first_job(session)
                run = [_gold(half, sessions.engine(session)) for _ in range(rounds)]
                out[f"executors{count}"] = run
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
