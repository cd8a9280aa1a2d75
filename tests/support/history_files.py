"""Small recordings in a directory, and files of them that are written again with a fault."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fake_cache import FakeCache, FakeClock

from rdmeta.history import Recorder

__all__ = ["record", "rewrite"]


def record(directory: Path, cluster_id: str = "cluster-A", changes: int = 1) -> list[Path]:
    """Writes a recording: a baseline, a file for each change, an end; returns their paths."""
    clock = FakeClock()
    cache = FakeCache(clock, cluster_id)
    cache.add_broker(1)
    cache.add_topic("orders", None, [1])
    with Recorder(cache, directory, clock=clock) as recorder:
        recorder.observe()
        for leader in range(2, changes + 2):
            clock.pass_seconds(1)
            cache.set_leader("orders", 0, leader)
            recorder.observe()
            recorder.flush()
    return list(recorder.files)


def rewrite(path: Path, table: pa.Table | None = None, **metadata: str) -> None:
    """Writes a file again with another table, or with other entries in its footer."""
    table = pq.read_table(path) if table is None else table
    words = {**pq.read_schema(path).metadata}
    words.update((f"rdmeta.{k}".encode(), v.encode()) for k, v in metadata.items())
    pq.write_table(table.replace_schema_metadata(words), path)
