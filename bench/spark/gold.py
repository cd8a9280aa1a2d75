"""Times silver to gold: plain processes and Spark beside the queries of docs/measures.md."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.spark import sessions
from bench.spark.histories import days_of_changes, made_history
from rdmeta import pipeline
from rdmeta.pipeline.gold import query
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.tables import SCHEMAS
from rdmeta.pipeline.work import Engine


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: plain, spark, queries; and millions of intervals as rows."""
    out: dict[str, Any] = {"plain": [], "spark": [], "queries": [], "rows": []}
    with (
        sessions.local("local[2]") as session,
        made_history(days_of_changes(changes)) as history,
        TemporaryDirectory() as folder,
    ):
        sessions.first_job(session)
        tables = Path(folder, "out")
        made = pipeline.run(pipeline.plan([history], tables, in_place=True), workers=2)
        intervals = (k.rows for n, k in made.files.items() if "/partition_interval/" in n)
        out["rows"].append(sum(intervals) / 1e6)
        for _ in range(rounds):
            out["plain"].append(_gold(tables, None))
            out["spark"].append(_gold(tables, lambda: sessions.engine(session)))
            out["queries"].append(_queries(tables))
    return out


def _gold(tables: Path, engine: Callable[[], Engine] | None) -> float:
    """Returns the seconds in which a run makes all measures anew."""
    shutil.rmtree(tables / "gold", ignore_errors=True)
    begin = perf_counter()
    plan = pipeline.plan([], tables, silver=False, gold=True)
    made = pipeline.run(plan, engine=engine() if engine else None, workers=2)
    seconds = perf_counter() - begin
    assert len(made.made) == len(plan.months) * len(MEASURES)
    return seconds


def _queries(tables: Path) -> float:
    """Returns the seconds of the queries of the page over silver, in one process."""
    begin = perf_counter()
    with query.connected() as connection:
        for table in SCHEMAS:
            files = f"read_parquet('{tables}/silver/v1/{table}/**/*.parquet')"
            connection.execute(f"CREATE VIEW {table} AS FROM {files}")
        connection.execute(
            "CREATE TABLE input_file (cluster_id VARCHAR, day VARCHAR, state VARCHAR)"
        )
        query.prepare(connection)
        for name in MEASURES:
            query.rows(connection, name)
    return perf_counter() - begin
