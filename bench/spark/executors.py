"""Times one and two executors of local-cluster beside one and two plain processes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.spark import sessions
from bench.spark.histories import days_of_changes, timed


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns the time on two as a part of that on one: spark and plain."""
    times: dict[str, list[float]] = {}
    with TemporaryDirectory() as folder:
        history = Path(folder, "history")
        days_of_changes(history, changes)
        for count in (1, 2):
            times[f"plain{count}"] = [timed(history, workers=count)[0] for _ in range(rounds)]
            with sessions.local(f"local-cluster[{count},1,1024]") as session:
                sessions.first_job(session)
                run = partial(sessions.engine, session)
                times[f"spark{count}"] = [timed(history, engine=run)[0] for _ in range(rounds)]
    return {
        way: [two / one for one, two in zip(times[f"{way}1"], times[f"{way}2"], strict=True)]
        for way in ("spark", "plain")
    }
