"""Times history to silver: Spark local[2] beside two plain processes, in one session."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from bench.spark import sessions
from bench.spark.histories import days_of_changes, made_history, timed


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: session, first_job, spark, plain; and CPU seconds of plain as cpu.

    Also millions of rows, and files and MiB of history and of tables: inputs, input, files, bytes.
    """
    out: dict[str, Any] = {"spark": [], "plain": [], "cpu": []}
    begin = perf_counter()
    with sessions.local("local[2]") as session, made_history(days_of_changes(changes)) as history:
        out["session"] = [perf_counter() - begin]
        out["first_job"] = [sessions.first_job(session)]
        for _ in range(rounds):
            seconds, made = timed(history, engine=lambda: sessions.engine(session))
            out["spark"].append(seconds)
            before = sessions.cpu_seconds()
            out["plain"].append(timed(history, workers=2)[0])
            out["cpu"].append(sessions.cpu_seconds() - before)
        sizes = [each.stat().st_size for each in history.rglob("*.parquet")]
        out["rows"] = [made.rows["read"] / 1e6]
        out["files"] = [float(len(made.files))]
        out["bytes"] = [sum(kept.bytes for kept in made.files.values()) / 2**20]
        out["inputs"] = [float(len(sizes))]
        out["input"] = [sum(sizes) / 2**20]
        out["tasks"] = [float(len(made.plan.tasks))]
    return out
