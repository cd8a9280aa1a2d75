"""Times history to silver: Spark local[2] beside two plain processes, in one session."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.spark import sessions
from bench.spark.histories import days_of_changes, timed


def measure(sizes: str, rounds: int) -> dict[str, Any]:
    """Returns seconds by size as spark_N and plain_N, MiB as memory_N, and session, first_job.

    Sizes rise, so that the most memory of a worker is that of the last size.
    """
    out: dict[str, Any] = {}
    begin = perf_counter()
    with sessions.local("local[2]") as session, TemporaryDirectory() as folder:
        out["session"] = [perf_counter() - begin]
        out["first_job"] = [sessions.first_job(session)]
        for size in sorted(int(each) for each in sizes.split(",")):
            history = Path(folder, str(size))
            days_of_changes(history, size)
            for _ in range(rounds):
                seconds, made = timed(history, engine=lambda: sessions.engine(session))
                out.setdefault(f"spark_{size}", []).append(seconds)
                out.setdefault(f"plain_{size}", []).append(timed(history, workers=2)[0])
                out[f"rows_{size}"] = made.rows["read"]
                out[f"files_{size}"] = [float(len(made.files))]
                out[f"bytes_{size}"] = [sum(kept.bytes for kept in made.files.values()) / 2**20]
                found = [each.stat().st_size for each in history.rglob("*.parquet")]
                out[f"input_{size}"] = [sum(found) / 2**20]
                out[f"inputs_{size}"] = [float(len(found))]
            out[f"memory_{size}"] = [sessions.worker_peak(session)]
    return out
