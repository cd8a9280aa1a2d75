"""Times one and two executors of local-cluster beside one and two plain processes."""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.spark import sessions
from bench.spark.histories import days_of_changes, made_history, timed


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds, such as spark1 and plain2, and the time on two as a part of that on one."""
    out: dict[str, Any] = {}
    with made_history(days_of_changes(changes)) as history:
        for count in (1, 2):
            with sessions.local(f"local-cluster[{count},1,1024]") as session:
                sessions.first_job(session)
                run = partial(sessions.engine, session)
                out[f"spark{count}"] = [timed(history, engine=run)[0] for _ in range(rounds)]
            # A session that runs would take memory and time from them.
            out[f"plain{count}"] = [timed(history, workers=count)[0] for _ in range(rounds)]
    for way in ("spark", "plain"):
        pairs = zip(out[f"{way}1"], out[f"{way}2"], strict=True)
        out[way] = [two / one for one, two in pairs]
    return out
