"""Measures one part of the report: `python -m bench.report PART`, used by bench.run.

    page      `rdmeta report` beside making the gold that it reads in one process: time, the most
              memory; and the bytes of the page beside those of its JSON, both compressed
    made      `rdmeta generate` beside the pipeline over what it made; its memory for longer times

It prints one JSON object: samples by series.
"""

from __future__ import annotations

import sys

from bench.parts import Program

PROGRAM = Program(
    "bench.report", {"page": ("number", "days", "rounds"), "made": ("days", "rounds")}
)

if __name__ == "__main__":
    sys.exit(PROGRAM.main(__doc__))
