"""Times many clusters of few rows, and many files of about one row."""

from __future__ import annotations

from typing import Any

from bench.spark import sessions
from bench.spark.histories import Plan, made_history, timed
from bench.spark.intervals import run_way

_SMALL = Plan(topics=2, partitions=4, days=1, changes=32, toggles=0, every=60.0, file_every=86400.0)
_PER_CLUSTER = 10_000


def clusters_of_few_rows(clusters: int) -> Plan:
    return _SMALL._replace(clusters=clusters)


def files_of_a_row(files: int) -> Plan:
    """Returns the plan of so many files: of each 10 000 of them a cluster's day."""
    each = min(files, _PER_CLUSTER)
    every, count = 86_400 / each, max(1, files // each)
    return Plan(clusters=count, days=1, changes=each, toggles=0, every=every, file_every=1.0)


def measure(kind: str, number: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: Spark as spark, the pipeline in one process as plain, and the bare fold."""
    plan = (clusters_of_few_rows if kind == "clusters" else files_of_a_row)(number)
    out: dict[str, Any] = {"spark": [], "plain": [], "fold": []}
    with sessions.local("local[2]") as session, made_history(plan) as history:
        sessions.first_job(session)
        for _ in range(rounds):
            out["spark"].append(timed(history, engine=lambda: sessions.engine(session))[0])
            out["plain"].append(timed(history, workers=1)[0])
            out["fold"].append(run_way("fold1", history)["seconds"])
    return out
