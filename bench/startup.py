"""Times `import rdmeta` in fresh interpreters, beside interpreters that import nothing."""

from __future__ import annotations

import statistics
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
    """Milliseconds on the wall: `bare`, and `imported`, which has bare's median taken off."""
    start("import rdmeta")  # writes the bytecode, warms the page cache
    bare: list[float] = []
    imported: list[float] = []
    for _ in range(rounds):
        bare.append(start("pass"))
        imported.append(start("import rdmeta"))
    usual = statistics.median(bare)
    return {"bare": bare, "imported": [took - usual for took in imported]}
