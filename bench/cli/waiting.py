"""Times `rdmeta wait` that is started when a topic has just been created, on Apache Kafka.

Beside it is a script over Client.wait_for_topic(), started at the same moment after a creation of
its own. Both are whole processes, so the reference has the start of one, too.
"""

from __future__ import annotations

import sys
from time import sleep
from typing import Any

from bench.cli import process
from bench.client import kafka

SCRIPT = """\
import sys
import rdmeta
with rdmeta.Client({"bootstrap.servers": sys.argv[1]}) as client:
    client.wait_for_topic(sys.argv[2], 0, timeout=60)
"""
PAUSE = 0.3  # seconds between two topics


def words(way: str, bootstrap: str, topic: str) -> list[str]:
    """Returns the words that start the command, or the script."""
    if way == "command":
        return process.rdmeta("wait", "-b", bootstrap, "-t", topic)
    return [sys.executable, "-c", SCRIPT, bootstrap, topic]


def measure(rounds: int) -> dict[str, Any]:
    """Returns milliseconds: command, script."""
    out: dict[str, Any] = {"command": [], "script": []}
    with kafka.started() as cluster:
        for turn in range(rounds + 1):
            for way in out:
                topic = f"{way}-{turn}"
                kafka.create(cluster, [topic], cluster.nodes)
                took = process.run(words(way, cluster.bootstrap, topic)).took
                if turn:  # a first turn fills the caches
                    out[way].append(took)
                sleep(PAUSE)
    return out
