"""Times `rdmeta generate` beside the pipeline over what it made; its memory for longer times."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.cli.process import COMMAND, TELLING, Done, rdmeta, run
from bench.report.page import BEGIN, MOST_ROUNDS

TIMES_LONGER = 4


def measure(days: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: generate, pipeline; MiB of `days`, and of four times that: short, long."""
    out: dict[str, Any] = {name: [] for name in ("generate", "pipeline", "short", "long")}
    with TemporaryDirectory() as directory:
        made, tables = Path(directory, "made"), Path(directory, "tables")
        words = ("pipeline", "all", str(made), str(tables), "--engine", "local", "-q")
        for _ in range(min(rounds, MOST_ROUNDS)):
            out["long"].append(_memory(_generated(made, TIMES_LONGER * days)))
            done = _generated(made, days)
            out["short"].append(_memory(done))
            out["generate"].append(done.took / 1e3)
            out["pipeline"].append(run(rdmeta(*words)).took / 1e3)
            shutil.rmtree(tables)
    return out


def _generated(made: Path, days: int) -> Done:
    """Generates so many days in a folder of their own."""
    shutil.rmtree(made, ignore_errors=True)
    words = ("generate", "bad-friday", str(made), "--days", str(days), "--begin", BEGIN, "-q")
    return run([sys.executable, "-c", TELLING + COMMAND, *words])


def _memory(done: Done) -> float:
    """Returns the MiB that a process had at most."""
    return int(done.err.split()[-1]) / 1024
