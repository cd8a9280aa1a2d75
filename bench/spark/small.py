"""Times many clusters of few rows, and many files of about one row."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.spark import sessions
from bench.spark.histories import Plan, make_history, timed

_SMALL = Plan(topics=2, partitions=4, days=1, changes=32, toggles=0, every=60.0, file_every=86400.0)
_PER_CLUSTER = 10_000


def measure(clusters: int, files: int, rounds: int) -> dict[str, Any]:
    """Returns seconds of Spark and of one process: clusters_spark, clusters_plain, files_..."""
    each = min(files, _PER_CLUSTER)
    every = 86_400 / each
    single = Plan(
        clusters=max(1, files // each), days=1, changes=each, toggles=0, every=every, file_every=1.0
    )
    out: dict[str, Any] = {}
    with sessions.local("local[2]") as session, TemporaryDirectory() as folder:
        sessions.first_job(session)
        plans = {"clusters": _SMALL._replace(clusters=clusters), "files": single}
        for name, plan in plans.items():
            history = Path(folder, name)
            make_history(history, 1, plan)
            for _ in range(rounds):
                spark = timed(history, engine=lambda: sessions.engine(session))[0]
                out.setdefault(f"{name}_spark", []).append(spark)
                out.setdefault(f"{name}_plain", []).append(timed(history, workers=1)[0])
    return out
