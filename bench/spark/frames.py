"""Times the intervals of partitions as a DataFrame beside Spark's own read of their files."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from bench.spark import sessions
from bench.spark.histories import days_of_changes, made_history
from rdmeta import pipeline
from rdmeta.spark import tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: tables and parquet; each takes all columns of all rows."""
    out: dict[str, Any] = {"tables": [], "parquet": []}
    with (
        sessions.local("local[2]") as session,
        made_history(days_of_changes(changes)) as history,
        TemporaryDirectory() as folder,
    ):
        made = Path(folder, "out")
        pipeline.run(pipeline.plan([history], made, in_place=True), workers=2)
        parquet = session.read.option("recursiveFileLookup", "true")
        files = str(made / "silver/v1/partition_interval")
        for _ in range(rounds + 1):  # the first round compiles
            out["tables"].append(_read(lambda: tables(session, str(made)).partition_interval))
            out["parquet"].append(_read(lambda: parquet.parquet(files)))
    return {name: seconds[1:] for name, seconds in out.items()}


def _read(frame: Callable[[], DataFrame]) -> float:
    begin = perf_counter()
    frame().write.format("noop").mode("overwrite").save()
    return perf_counter() - begin
