"""Measures one part of metadata logs: `python -m bench.log PART`, used by bench.run.

    to_arrow  changes of a log to Arrow, beside as many of an image
    dump      `rdmeta log dump --json` beside kafka-dump-log, of a log with many records and of a
              real one, both to a file (Kafka's jars)

bench/c/metadata_log.c writes the log. Each part prints one JSON object: samples by series, and
`missing`, the reasons of series that cannot be measured here.
"""

from __future__ import annotations

import sys

from bench.parts import Program

PROGRAM = Program(
    "bench.log",
    {"to_arrow": ("partitions", "rounds"), "dump": ("changes", "rounds")},
    kafka=("dump",),
)

if __name__ == "__main__":
    sys.exit(PROGRAM.main(__doc__))
