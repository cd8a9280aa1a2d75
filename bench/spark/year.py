"""Times the dry run of a year beside the run itself."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.spark.histories import Plan, made_history, timed
from rdmeta import pipeline


def measure(days: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: dry and run. Both read each file, as the folder of tables is new."""
    out: dict[str, Any] = {"dry": [], "run": []}
    plan = Plan(days=days, changes=100, every=60.0)
    with TemporaryDirectory() as folder, made_history(plan) as history:
        for number in range(rounds):
            begin = perf_counter()
            pipeline.plan([history], Path(folder, f"out-{number}"), in_place=True)
            out["dry"].append(perf_counter() - begin)
            out["run"].append(timed(history, workers=2)[0])
    return out
