"""Times `import rdmeta` in fresh interpreters, beside interpreters that import nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
from time import perf_counter_ns

from bench.build import ROOT


def start(code: str) -> float:
    """Returns the milliseconds that an interpreter takes to start, run `code` and end."""
    begin = perf_counter_ns()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    return (perf_counter_ns() - begin) / 1e6


def measure(rounds: int) -> dict[str, list[float]]:
    """Returns milliseconds on the wall: `bare`, and `imported` less the median of bare."""
    start("import rdmeta")  # writes the bytecode, warms the page cache
    bare: list[float] = []
    imported: list[float] = []
    for _ in range(rounds):
        bare.append(start("pass"))
        imported.append(start("import rdmeta"))
    usual = statistics.median(bare)
    return {"bare": bare, "imported": [took - usual for took in imported]}
