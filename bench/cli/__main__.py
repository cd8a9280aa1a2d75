"""Measures one part of the command: `python -m bench.cli PART`, used by bench.run.

    listing  `rdmeta list` into a pipe, beside a script over confluent's list_topics(), and kcat
    json     `rdmeta list --json` beside the plain one; its peak memory beside its output
    start    `rdmeta --help` and `--version` beside `import click`
    waiting  `rdmeta wait` after a topic is created, beside a script over wait_for_topic() (Kafka)
    scrape   a scrape of Prometheus, beside one pass of to_arrow("partitions")

Each part prints one JSON object: samples by series, and `missing`, the reasons of series that
cannot be measured here.
"""

from __future__ import annotations

import sys

from bench.parts import Program

PROGRAM = Program(
    "bench.cli",
    {
        "listing": ("topics", "rounds"),
        "json": ("topics", "rounds"),
        "start": ("rounds",),
        "waiting": ("rounds",),
        "scrape": ("topics", "rounds"),
    },
    kafka=("waiting",),
)

if __name__ == "__main__":
    sys.exit(PROGRAM.main(__doc__))
