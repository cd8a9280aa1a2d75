"""Times the commits of a run to tables of Delta and Iceberg beside the rest of the run."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from unittest.mock import patch

from bench.spark.histories import made_history
from bench.spark.small import clusters_of_few_rows
from rdmeta import pipeline
from rdmeta.pipeline.committing import EVERY_TABLE
from rdmeta.pipeline.layout import TableKind
from rdmeta.pipeline.logs import logs_of
from rdmeta.pipeline.store import Store


def measure(number: int, rounds: int) -> dict[str, Any]:
    """Returns seconds of the commits of so many files, such as delta, and the rest: delta_run."""
    out: dict[str, Any] = {}
    with made_history(clusters_of_few_rows(max(1, number // len(EVERY_TABLE)))) as history:
        for kind in ("delta", "iceberg"):
            pairs = [_seconds(history, kind) for _ in range(rounds)]
            out[kind], out[f"{kind}_run"] = map(list, zip(*pairs, strict=True))
    return out


def _seconds(history: Path, kind: str) -> tuple[float, float]:
    """Returns the seconds of the commits of a run, and of all else."""
    with TemporaryDirectory() as folder:
        logs: Any = type(logs_of(Store(folder), TableKind(kind)))
        commit, taken = logs.commit, 0.0

        def timed(*arguments: object) -> None:
            nonlocal taken
            begin = perf_counter()
            commit(*arguments)
            taken += perf_counter() - begin

        plan = pipeline.plan([history], Path(folder, "out"), tables=kind, gold=True, in_place=True)
        begin = perf_counter()
        with patch.object(logs, "commit", timed):
            made = pipeline.run(plan, workers=2)
        assert len(made.made) == len(EVERY_TABLE) * len(made.plan.days)
        return taken, perf_counter() - begin - taken
