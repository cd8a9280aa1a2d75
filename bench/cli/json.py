"""Times `rdmeta list --json` beside the plain output, and compares its peak memory with its output.

Both are whole processes that write into a pipe; the broker answers with canned frames.
"""

from __future__ import annotations

import json
from typing import Any

from bench.cli import process
from bench.client.canned import served
from bench.figure import PER_TOPIC


def measure(topics: int, rounds: int) -> dict[str, Any]:
    """Returns milliseconds: json, plain; and MiB: memory, output."""
    with served(topics, answer=process.answer) as address:
        plain = process.rdmeta("list", "-b", "{}:{}".format(*address))
        out: dict[str, Any] = process.timed({"json": [*plain, "--json"], "plain": plain}, rounds)
        sizes = [process.peak(*plain[3:], "--json") for _ in range(min(rounds, 3))]
        found = json.loads(process.run([*plain, "--json"]).out)
    out["memory"] = [memory / 2**20 for memory, _ in sizes]
    out["output"] = [output / 2**20 for _, output in sizes]
    count = sum(len(topic["partitions"]) for topic in found["topics"])
    if count != topics * PER_TOPIC:
        raise SystemExit(f"rdmeta list --json: {count} partitions of {topics} topics")
    return out
