"""Times the commits of a run to tables of Delta and Iceberg beside the writing of their files."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from bench.spark.histories import made_history
from bench.spark.small import clusters_of_few_rows
from rdmeta import pipeline
from rdmeta._atomic import commit
from rdmeta.pipeline.committing import EVERY_TABLE
from rdmeta.pipeline.layout import StoredName, TableKind
from rdmeta.pipeline.logs import logs_of
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import made_from, parquet_writer


def measure(number: int, rounds: int) -> dict[str, Any]:
    """Returns seconds of the commits of so many files: delta, iceberg; delta_run: all else.

    delta_files are those of writing the same files once more, alone.
    """
    out: dict[str, Any] = {}
    with made_history(clusters_of_few_rows(max(1, number // len(EVERY_TABLE)))) as history:
        for kind in ("delta", "iceberg"):
            found = [_seconds(history, kind) for _ in range(rounds)]
            keys = (kind, f"{kind}_files", f"{kind}_run")
            out |= dict(zip(keys, map(list, zip(*found, strict=True)), strict=True))
    return out


def _seconds(history: Path, kind: str) -> tuple[float, float, float]:
    """Returns the seconds of the commits of a run, of writing its files alone, and of all else."""
    with TemporaryDirectory() as folder:
        logs: Any = type(logs_of(Store(folder), TableKind(kind)))
        committed, taken = logs.commit, 0.0

        def timed(*arguments: object) -> None:
            nonlocal taken
            begin = perf_counter()
            committed(*arguments)
            taken += perf_counter() - begin

        plan = pipeline.plan([history], Path(folder, "out"), tables=kind, gold=True, in_place=True)
        begin = perf_counter()
        with patch.object(logs, "commit", timed):
            made = pipeline.run(plan, workers=2)
        assert len(made.made) == len(EVERY_TABLE) * len(made.plan.days)
        rest = perf_counter() - begin - taken
        return taken, _written(Path(folder, "out"), [e.stored for e in made.files.values()]), rest


def _written(out: Path, names: list[str]) -> float:
    """Writes files again, those of a period together as tasks do; returns the seconds."""
    periods: dict[tuple[str, str, str], list[tuple[str, pa.Table, str]]] = {}
    for name in names:
        if (about := StoredName.parse(name)) is None:
            continue
        rows = pq.read_table(out / name, partitioning=None)
        text = made_from(Store(out), name) or ""
        key = (about.layer, about.cluster_id, about.period)
        periods.setdefault(key, []).append((name, rows, text))
    again, begin = Store(out.with_name("again")), perf_counter()
    for files in periods.values():
        with ExitStack() as stack:
            drafts = [stack.enter_context(again.draft(name)) for name, *_ in files]
            for draft, (_, rows, text) in zip(drafts, files, strict=True):
                with parquet_writer(draft.path, rows.schema, text) as writer:
                    writer.write_table(rows)
            commit(drafts)
    return perf_counter() - begin
