"""Times `rdmeta log dump --json` beside kafka-dump-log: whole processes that write to a file."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from kraft_logs import LOG
from real_kafka import JARS, RealKafka, missing

from bench.build import ROOT
from bench.cli.process import rdmeta, surroundings
from bench.figure import Missing
from bench.log.to_arrow import write_log

PARTITIONS, REAL = 10_000, 2000
MOST_ROUNDS = 3
_JAVA = ("java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp")


def measure(changes: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: rdmeta, kafka; and of a real log: rdmeta_real, kafka_real."""
    if reason := missing("4.3.0"):
        raise Missing(reason)
    out: dict[str, Any] = {}
    with TemporaryDirectory() as directory:
        large, real = write_log(directory, PARTITIONS, changes), _real_log(directory)
        for suffix, path in (("", large), ("_real", real)):
            ways = {f"rdmeta{suffix}": _ours(path), f"kafka{suffix}": words_of_kafka(path)}
            for _ in range(min(rounds, MOST_ROUNDS)):
                for name, words in ways.items():
                    out.setdefault(name, []).append(seconds_of(words, directory))
    return out


def _real_log(directory: str) -> Path:
    """Makes some 2 000 records on Apache Kafka; returns their segment."""
    node = Path(directory, "real")
    node.mkdir()
    with RealKafka("4.3.0", 1, node) as kafka:
        for number in range(REAL // 200):
            kafka.create(f"topic-{number}", [[1]] * 200)
    return node / "n1" / LOG / f"{0:020d}.log"


def _ours(path: Path) -> list[str]:
    return rdmeta("log", "dump", "--json", str(path))


def words_of_kafka(path: Path) -> list[str]:
    """Returns the words of Kafka's tool, which prints the records of a segment."""
    tool = "org.apache.kafka.tools.DumpLogSegments"
    return [*_JAVA, f"{JARS / '4.3.0'}/*", tool, "--cluster-metadata-decoder", "--files", str(path)]


def seconds_of(words: Sequence[str], directory: str) -> float:
    """Returns how long a process takes that prints into a file; raises Missing if it fails."""
    begin = perf_counter()
    with open(Path(directory, "out"), "wb") as out:
        done = subprocess.run(
            words, cwd=ROOT, env=surroundings(), stdout=out, stderr=subprocess.PIPE
        )
    took = perf_counter() - begin
    if done.returncode:
        raise Missing(f"{words[-1]}: exit code {done.returncode}: {done.stderr.decode()[-300:]}")
    return took
