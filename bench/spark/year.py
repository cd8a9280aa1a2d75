"""Times the dry run of a year beside the run itself."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.spark.histories import Plan, made_history
from rdmeta import pipeline


def measure(days: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: dry and run, and of the manifest its MiB and its files.

    Dry run and run read each file, as the folder of tables is new.
    """
    out: dict[str, Any] = {"dry": [], "run": []}
    plan = Plan(days=days, changes=20_000, every=60.0)
    with TemporaryDirectory() as folder, made_history(plan) as history:
        for number in range(rounds):
            tables = Path(folder, f"out-{number}")
            begin = perf_counter()
            pipeline.plan([history], tables, in_place=True)
            out["dry"].append(perf_counter() - begin)
            begin = perf_counter()
            made = pipeline.run(pipeline.plan([history], tables, in_place=True), workers=2)
            out["run"].append(perf_counter() - begin)
        parts = [tables / "manifest.json", *tables.glob("manifest/**/*.json")]
        out["manifest"] = [sum(part.stat().st_size for part in parts) / 2**20]
        out["files"] = [float(len(made.files))]
    return out
