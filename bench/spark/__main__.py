"""Measures one part of the pipeline on Spark: `python -m bench.spark PART`, used by bench.run.

    silver     history of several sizes to silver: Spark local[2] beside two plain processes, with
               the start of the session, the first job, and the most memory of a Python worker
    intervals  history to intervals: the fold beside windows of Spark, DuckDB and polars
    executors  one and two executors of local-cluster beside one and two plain processes
    day        one day more on 100
    small      many clusters of few rows, and many files of about one row
    year       what a dry run of a year of days takes

It prints one JSON object: samples by series.
"""

from __future__ import annotations

import sys

from bench.parts import Program

PROGRAM = Program(
    "bench.spark",
    {
        "silver": ("sizes", "rounds"),
        "intervals": ("changes", "rounds"),
        "executors": ("changes", "rounds"),
        "day": ("changes", "days", "rounds"),
        "small": ("clusters", "files", "rounds"),
        "year": ("days", "rounds"),
    },
)

if __name__ == "__main__":
    sys.exit(PROGRAM.main(__doc__))
