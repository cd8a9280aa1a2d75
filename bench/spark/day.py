"""Times one day more on many: a run over all but the last day, then one with it."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.spark.histories import Plan, made_history
from rdmeta import pipeline


def measure(changes: int, days: int, rounds: int) -> dict[str, Any]:
    """Returns seconds and rows decoded: day, full, day_rows, full_rows."""
    out: dict[str, Any] = {"day": [], "full": [], "day_rows": [], "full_rows": []}
    plan = Plan(topics=100, days=days + 1, changes=max(1, changes // days))
    with TemporaryDirectory() as folder, made_history(plan) as made:
        history, aside = Path(folder, "history"), Path(folder, "aside")
        shutil.copytree(made, history)
        last = max(history.glob("cluster=*/day=*"))
        for number in range(rounds):
            tables = Path(folder, f"out-{number}")
            last.rename(aside)
            for way in ("full", "day"):
                if way == "day":
                    aside.rename(last)
                begin = perf_counter()
                todo = pipeline.plan([history], tables, in_place=True)
                done = pipeline.run(todo, workers=2)
                out[way].append(perf_counter() - begin)
                out[f"{way}_rows"].append(float(done.rows["read"]))
    return out
