"""Times history to intervals: the fold beside DuckDB or polars, each alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.spark.histories import days_of_changes, made_history


def measure(peer: str, changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds as fold and peer, and MiB as fold_memory and peer_memory.

    Both must have made the same time and the same rows. A peer that is not installed is missing.
    The error of a peer that fails ends the program.
    """
    out: dict[str, Any] = {"fold": [], "fold_memory": [], "peer": [], "peer_memory": []}
    with made_history(days_of_changes(changes)) as history:
        for _ in range(rounds):
            fold, other = run_way("fold", history), run_way(peer, history)
            if "missing" in other:
                return {"missing": {"peer": other["missing"], "peer_memory": other["missing"]}}
            compare(peer, fold, other)
            for name, found in (("fold", fold), ("peer", other)):
                out[name].append(found["seconds"])
                out[f"{name}_memory"].append(found["mib"])
    return out


def compare(peer: str, fold: dict[str, Any], other: dict[str, Any]) -> None:
    """Ends the program if a peer has made something else than the fold."""
    for each in ("us", "rows"):
        if fold[each] != other[each]:
            raise SystemExit(f"{peer} made {other[each]} {each}, the fold {fold[each]}")


def run_way(way: str, history: Path) -> dict[str, Any]:
    """Returns what a process of its own prints; ends the program with its error if it fails."""
    with TemporaryDirectory() as folder:
        made = str(Path(folder, way))
        command = [sys.executable, "-m", "bench.spark.worker", way, str(history), made]
        env = {**os.environ, "POLARS_MAX_THREADS": "2"}
        done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{way} has failed: {_reason(done.stderr)}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _reason(text: str) -> str:
    """Returns the line of a traceback that names the error, and a few behind it."""
    lines = text.strip().splitlines()
    errors = [n for n, line in enumerate(lines) if "Error" in line or "Exception" in line]
    first = next((n for n in errors if not lines[n].startswith((" ", "\t"))), 0)
    return "\n".join(lines[first : first + 4])[:1_000]
