"""Times changes to intervals, Parquet to Parquet: the fold beside a query of DuckDB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.fold import changes as recording


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds of each way, and MiB: fold, duckdb, fold_memory, duckdb_memory."""
    out: dict[str, Any] = {"fold": [], "duckdb": [], "fold_memory": [], "duckdb_memory": []}
    with TemporaryDirectory() as folder:
        source = Path(folder, "changes.parquet")
        recording.write(source, changes)
        for _ in range(rounds):
            for way in ("fold", "duckdb"):
                made = _run(way, str(source), str(Path(folder, f"{way}.parquet")))
                if made["rows"] < changes / 2:
                    raise SystemExit(f"{way} made {made['rows']} rows of {changes} changes")
                out[way].append(made["seconds"])
                out[f"{way}_memory"].append(made["mib"])
    return out


def _run(way: str, source: str, made: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.fold.worker", way, source, made]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
