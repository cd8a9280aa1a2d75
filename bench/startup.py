"""Times `import rdmeta` in fresh interpreters, beside interpreters that import nothing."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter_ns

from bench.build import ROOT


def start(code: str) -> float:
    """Milliseconds from starting an interpreter that runs `code` until it has ended."""
    begin = perf_counter_ns()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    return (perf_counter_ns() - begin) / 1e6


def measure(rounds: int) -> dict[str, list[float]]:
    """Samples in milliseconds: `bare`, and `imported`, which has `bare` taken off already."""
    start("import rdmeta")  # writes the bytecode, warms the page cache
    out: dict[str, list[float]] = {"bare": [], "imported": []}
    for _ in range(rounds):
        bare = start("pass")
        out["bare"].append(bare)
        out["imported"].append(start("import rdmeta") - bare)
    return out
