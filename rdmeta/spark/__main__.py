"""`python -m rdmeta.spark IN OUT`: makes tables in OUT from the history in IN."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rdmeta.errors import Error
from rdmeta.spark.session import build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rdmeta.spark.pipeline import Made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job; returns 0 if it made the tables, 2 for bad usage, input or a missing extra."""
    parser = argparse.ArgumentParser(prog="python -m rdmeta.spark", description=__doc__)
    parser.add_argument("source", metavar="IN", help="the directory that a recorder wrote to")
    parser.add_argument("out", metavar="OUT", help="the directory for the tables; made if missing")
    parser.add_argument("--master", help="Spark's master URL; every core of this machine if absent")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    sessions: list[SparkSession] = []

    def session() -> SparkSession:
        sessions.append(build_session(chosen.master))
        return sessions[-1]

    def show_progress(text: str) -> None:
        print(f"[{time.monotonic() - began:5.1f} s] {text} ...", file=sys.stderr, flush=True)

    try:
        from rdmeta.spark.pipeline import make, plan

        made = make(plan(chosen.source, chosen.out), session, show_progress)
    except Error as error:
        print(f"python -m rdmeta.spark: {error}", file=sys.stderr)
        return 2
    finally:
        for started in sessions:
            started.stop()
    print(_as_json(made, time.monotonic() - began) if chosen.json else _as_text(made))
    return 0


def _as_json(made: Made, seconds: float) -> str:
    return json.dumps(
        {
            "out": str(made.out),
            "made": list(made.made),
            "unchanged": list(made.unchanged),
            "tables": {
                table: {"path": str(made.out / table), "rows": rows}
                for table, rows in made.rows.items()
            },
            "seconds": round(seconds, 3),
        }
    )


def _as_text(made: Made) -> str:
    lines = [f"{rows:>10} rows  {made.out / table}" for table, rows in made.rows.items()]
    clusters = f"{len(made.made)} made, {len(made.unchanged)} unchanged"
    return "\n".join([*lines, f"clusters: {clusters}"])


if __name__ == "__main__":
    sys.exit(main())
