"""Measures one part of the pipeline on Spark: `python -m bench.spark PART`, used by bench.run.

    silver     history to silver: Spark local[2] beside two plain processes, with the start of the
               session and the first job
    memory     the most memory of a Python worker at several sizes, and DuckDB's at one
    intervals  history to intervals: the fold beside DuckDB or polars
    executors  one and two executors of local-cluster beside one and two plain processes
    day        one day more on 100
    logs       metadata logs to silver: Spark and plain processes, beside kafka-dump-log; one day
               more; the most memory at two sizes
    small      many clusters of few rows, or many files of about one row
    year       what a dry run of a year of days takes
    functions  partition_for() in a job beside Python's murmur2; connections and batches by leader
    source     the data source: changes and a log's records beside Parquet, partitions beside Arrow
    gold       silver to gold: plain processes and Spark beside the queries of docs/measures.md
    month      gold of one large month: Spark SQL, on one executor and two, and DuckDB
    bronze     copies of many files beside cp, and twice as many
    commits    the commits of a run to tables of Delta and Iceberg beside the rest of it
    frames     a table as a DataFrame beside Spark's own read of its files

It prints one JSON object: samples by series.
"""

from __future__ import annotations

import sys

from bench.parts import Program

PROGRAM = Program(
    "bench.spark",
    {
        "silver": ("changes", "rounds"),
        "memory": ("sizes", "changes", "rounds"),
        "intervals": ("peer", "changes", "rounds"),
        "executors": ("changes", "rounds"),
        "day": ("changes", "days", "rounds"),
        "logs": ("changes", "days", "rounds"),
        "small": ("kind", "number", "rounds"),
        "year": ("days", "rounds"),
        "functions": ("keys", "rounds"),
        "gold": ("changes", "rounds"),
        "month": ("kind", "changes", "rounds"),
        "bronze": ("number", "rounds"),
        "commits": ("number", "rounds"),
        "frames": ("changes", "rounds"),
        "source": ("changes", "partitions", "rounds"),
    },
)

if __name__ == "__main__":
    sys.exit(PROGRAM.main(__doc__))
