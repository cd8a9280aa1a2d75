"""Times copies of many files into bronze beside `cp` of the same files, and twice as many."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from bench.spark import sessions
from bench.spark.histories import made_history, timed
from bench.spark.small import files_of_a_row
from rdmeta import pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def measure(number: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: bronze, cp, silver in place, and half, which is bronze of half as many."""
    out: dict[str, Any] = {"bronze": [], "cp": [], "silver": [], "half": []}
    with (
        sessions.local("local[2]") as session,
        made_history(files_of_a_row(number)) as history,
        made_history(files_of_a_row(max(1, number // 2))) as half,
    ):
        sessions.first_job(session)
        for _ in range(rounds):
            out["half"].append(_copied(half, session))
            out["bronze"].append(_copied(history, session))
            out["cp"].append(_cp(history))
            out["silver"].append(timed(history, engine=lambda: sessions.engine(session))[0])
    return out


def _copied(history: Path, session: SparkSession) -> float:
    """Returns the seconds of plan and run."""
    engine = sessions.engine(session)
    with TemporaryDirectory() as folder:
        begin = perf_counter()
        plan = pipeline.plan([history], Path(folder, "out"), silver=False, engine=engine)
        made = pipeline.run(plan, engine=engine)
        assert len(made.copied) == len(plan.copies) > 0
        return perf_counter() - begin


def _cp(history: Path) -> float:
    with TemporaryDirectory() as folder:
        begin = perf_counter()
        subprocess.run(["cp", "-r", str(history), folder], check=True)
        return perf_counter() - begin
