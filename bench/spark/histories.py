"""Histories from a seed, through the recorder's own writer, and runs of the pipeline over them.

A folder in the environment's RDMETA_BENCH_HISTORIES keeps them for later runs of the benches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.build import ROOT
from rdmeta import pipeline
from rdmeta.pipeline import Made
from rdmeta.pipeline.work import Engine

sys.path.insert(0, str(ROOT / "tests" / "support"))
from history_maker import Plan, make_history  # noqa: E402

__all__ = ["Plan", "days_of_changes", "made_history", "make_history", "timed"]

CLUSTERS = 10


def days_of_changes(changes: int) -> Plan:
    """Returns the plan of so many changes: 10 clusters of 10 000 partitions, or fewer for few."""
    days = max(1, changes // 10_000_000)
    each = max(1, changes // CLUSTERS // days)
    topics = min(1_000, max(1, each // 100))
    return Plan(clusters=CLUSTERS, topics=topics, days=days, changes=each, toggles=4)


@contextmanager
def made_history(plan: Plan) -> Iterator[Path]:
    """Yields a folder with the history of a plan; the folder goes unless it is to be kept."""
    kept = os.environ.get("RDMETA_BENCH_HISTORIES")
    with TemporaryDirectory(dir=kept) as folder:
        made = Path(folder, "history")
        if kept is None:
            make_history(made, 1, plan)
            yield made
            return
        place = Path(kept, "-".join(str(value) for value in plan).replace("/", ""))
        if not place.exists():
            make_history(made, 1, plan)
            made.rename(place)
    yield place


def timed(
    history: Path, *, workers: int | None = None, engine: Callable[[], Engine] | None = None
) -> tuple[float, Made]:
    """Returns the seconds of plan and run into a new folder, and what was made."""
    with TemporaryDirectory() as folder:
        begin = perf_counter()
        plan = pipeline.plan([history], Path(folder, "out"), in_place=True)
        made = pipeline.run(plan, engine=engine() if engine else None, workers=workers)
        return perf_counter() - begin, made
