"""One part of a bench as a program: it prints what it measured, or why it cannot.

`bench.client` and `bench.cli` are such programs. A part is a module with a `measure()`. It returns
samples by series, and under `missing` the reasons of series that cannot be measured here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from bench.figure import ANY, Missing

# The packages of other clients, and those that the tests' brokers and certificates need.
PACKAGES = (
    "kafka",
    "confluent_kafka",
    "trustme",
    "cryptography",
    "scramp",
    "prometheus_client",
    "pyspark",
)


class Program(NamedTuple):
    """The parts of a package, and the options that each takes, in the order of its measure().

    The parts in `kafka` start Apache Kafka.
    """

    package: str
    parts: Mapping[str, Sequence[str]]
    kafka: Sequence[str] = ()

    def run(self, part: str, args: argparse.Namespace) -> dict[str, Any]:
        """Measures a part; if it is missing here, returns the reason."""
        if part in self.kafka and not args.rounds:
            return {"missing": {ANY: "a quick run starts no Kafka"}}
        try:
            module = import_module(f"{self.package}.{part}")
            values = (getattr(args, name) for name in self.parts[part])
            found: dict[str, Any] = module.measure(*values)
        except Missing as reason:
            return {"missing": {ANY: str(reason)}}
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in PACKAGES:
                raise
            return {"missing": {ANY: f"{error.name} is not installed"}}
        return found

    def main(self, doc: str | None) -> int:
        """Measures the part that the command line names, and prints it."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.package}", description=doc)
        parser.add_argument("part", choices=self.parts)
        parser.add_argument("--topics", type=int, default=10_000)
        parser.add_argument("--changes", type=int, default=1_000_000)
        parser.add_argument("--sizes", default="1000000", help="changes, such as 1000,10000")
        parser.add_argument("--peer", default="duckdb", help="duckdb or polars")
        parser.add_argument(
            "--kind", choices=("clusters", "files", "engines", "executors"), default="clusters"
        )
        parser.add_argument("--number", type=int, default=1_000, help="of clusters or of files")
        parser.add_argument("--days", type=int, default=100)
        parser.add_argument("--keys", type=int, default=2_000_000)
        parser.add_argument("--partitions", type=int, default=100_000)
        parser.add_argument("--rounds", type=int, default=9)
        parser.add_argument("--clients", type=int, default=1_000)
        parser.add_argument(
            "--seconds", type=float, default=12.0, help="how long idle ones are watched"
        )
        args = parser.parse_args()
        print(json.dumps({"bench": args.part, **self.run(args.part, args)}))
        return 0
