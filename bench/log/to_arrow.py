"""Times the change records of a log to Arrow, beside as many that tell an image of its state."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time_ns
from typing import Any

import pyarrow as pa

from bench.build import OUT
from rdmeta import KraftLog
from rdmeta.model import Changes


def write_log(directory: str, partitions: int, changes: int) -> Path:
    """Writes a log of so many partitions and changes; returns its segment."""
    program = str(OUT / "metadata_log")
    subprocess.run([program, str(partitions), str(changes), "1", "1", directory], check=True)
    (segment,) = Path(directory).glob("*.log")
    return segment


def measure(partitions: int, rounds: int) -> dict[str, Any]:
    """Returns nanoseconds per row: log, image."""
    out: dict[str, Any] = {"log": [], "image": []}
    with TemporaryDirectory() as directory:
        write_log(directory, partitions, 0)
        log = KraftLog(directory, cluster_id="bench")
        ways = {"log": log.changes(), "image": log.state().image().changes()}
    for _ in range(rounds):
        for name, changes in ways.items():
            out[name].append(_timed(changes))
    return out


def _timed(changes: Changes) -> float:
    begin = process_time_ns()
    rows: int = pa.RecordBatchReader.from_stream(changes.to_arrow()).read_all().num_rows
    return (process_time_ns() - begin) / rows
