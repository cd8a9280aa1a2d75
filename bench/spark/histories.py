"""Histories from a seed, through the recorder's own writer, and runs of the pipeline over them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.build import ROOT
from rdmeta import pipeline
from rdmeta.pipeline import Made
from rdmeta.pipeline.running import Engine

sys.path.insert(0, str(ROOT / "tests" / "support"))
from history_maker import Plan, make_history  # noqa: E402

__all__ = ["Plan", "days_of_changes", "make_history", "timed"]

CLUSTERS = 10


def days_of_changes(directory: Path, changes: int) -> None:
    """Writes so many changes, of 10 clusters with 10 000 partitions each or fewer for few."""
    days = max(1, changes // 10_000_000)
    each = max(1, changes // CLUSTERS // days)
    topics = min(1_000, max(1, each // 100))
    make_history(
        directory, 1, Plan(clusters=CLUSTERS, topics=topics, days=days, changes=each, toggles=4)
    )


def timed(
    history: Path, *, workers: int | None = None, engine: Callable[[], Engine] | None = None
) -> tuple[float, Made]:
    """Returns the seconds of plan and run into a new folder, and what was made."""
    with TemporaryDirectory() as folder:
        begin = perf_counter()
        plan = pipeline.plan([history], Path(folder, "out"), in_place=True)
        made = pipeline.run(plan, engine=engine() if engine else None, workers=workers)
        return perf_counter() - begin, made
