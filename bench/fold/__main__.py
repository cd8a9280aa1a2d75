"""Measures one part of the fold: `python -m bench.fold PART`, used by bench.run.

    intervals  a Parquet file of changes to one of intervals: the fold beside DuckDB, each in a
               process of its own; their time and the most memory

It prints one JSON object: samples by series.
"""

from __future__ import annotations

import sys

from bench.parts import Program

PROGRAM = Program("bench.fold", {"intervals": ("changes", "rounds")})

if __name__ == "__main__":
    sys.exit(PROGRAM.main(__doc__))
