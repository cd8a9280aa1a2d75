"""Times history to intervals: the fold beside Spark's windows, DuckDB and polars, each alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.spark.histories import days_of_changes
from bench.spark.worker import WAYS


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds of each way, and MiB as WAY_memory; a way that cannot run is missing."""
    out: dict[str, Any] = {"missing": {}}
    with TemporaryDirectory() as folder:
        history = Path(folder, "history")
        days_of_changes(history, changes)
        for number in range(rounds):
            for way in WAYS:
                if way in out["missing"]:
                    continue
                made = Path(folder, f"{way}-{number}")
                found = _run(way, str(history), str(made))
                if "missing" in found:
                    out["missing"] |= {way: found["missing"], f"{way}_memory": found["missing"]}
                    continue
                if found["rows"] < changes / 2:
                    raise SystemExit(f"{way} made {found['rows']} rows of {changes} changes")
                out.setdefault(way, []).append(found["seconds"])
                out.setdefault(f"{way}_memory", []).append(found["mib"])
    return out


def _run(way: str, history: str, made: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.spark.worker", way, history, made]
    threads = {"POLARS_MAX_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads})
    if done.returncode and way != "fold":
        lines = [line for line in done.stderr.splitlines() if "Exception" in line]
        return {"missing": f"it failed: {(lines or ['no reason given'])[0][:300]}"}
    if done.returncode:
        raise SystemExit(f"{way}: {done.stderr.strip()[-2_000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
