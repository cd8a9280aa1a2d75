"""Times `rdmeta list` into a pipe as a whole process, beside others that print the same.

The broker answers with canned frames. A script over confluent's list_topics() prints the same
tables, as far as that client knows them: it has no racks, epochs and offline replicas. `kcat -L`
prints the same in words of its own.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

from bench.cli import process
from bench.client import lacks
from bench.client.canned import served
from bench.figure import PER_TOPIC


def check(topics: int, ours: bytes, theirs: bytes | None) -> None:
    """Ends the program if the outputs have other partitions, or other leaders, replicas or ISR."""
    told = [output.decode().partition("\n\n")[2].splitlines() for output in (ours, theirs or ours)]
    if len(told[0]) != 1 + topics * PER_TOPIC:
        raise SystemExit(f"rdmeta list: {len(told[0])} lines for {topics} topics")
    columns = [[line.split("\t") for line in lines] for lines in told]
    known = [[(*row[:3], *row[4:6]) for row in rows] for rows in columns]
    if known[0] != known[1]:
        raise SystemExit("rdmeta list and the script over list_topics() print other partitions")


def measure(topics: int, rounds: int) -> dict[str, Any]:
    """Returns milliseconds: command, confluent and kcat if they are installed."""
    missing: dict[str, str] = {}
    with served(topics, answer=process.answer) as address:
        bootstrap = "{}:{}".format(*address)
        ways = {"command": process.rdmeta("list", "-b", bootstrap)}
        script = [sys.executable, "-m", "bench.cli.confluent_list", bootstrap]
        if reason := lacks("confluent_kafka"):
            missing["confluent"] = reason
        else:
            ways["confluent"] = script
        if kcat := shutil.which("kcat"):
            ways["kcat"] = [kcat, "-L", "-b", bootstrap]
        else:
            missing["kcat"] = "kcat is not installed"
        ours = process.run(ways["command"]).out
        check(topics, ours, process.run(script).out if "confluent" in ways else None)
        out = process.timed(ways, rounds)
    return {**out, "missing": missing}
