"""Times `rdmeta report` beside the making of gold: whole processes on a made-up fleet."""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.cli.process import COMMAND, TELLING, rdmeta, run

BEGIN, END = "2026-10-01", "2026-10-31"
MOST_ROUNDS = 3
# Makes gold in one process, as `rdmeta pipeline gold` does.
_GOLD = """\
import sys
from rdmeta import pipeline
plan = pipeline.plan([], sys.argv[1], silver=False, gold=True)
assert plan.months
pipeline.run(plan, workers=1)
"""


def measure(clusters: int, days: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: report, gold; MiB: report_memory, gold_memory; bytes: html, json."""
    out: dict[str, Any] = {}
    with TemporaryDirectory() as directory:
        made, silver, gold = (Path(directory, name) for name in ("made", "silver", "gold"))
        sizes = ("--clusters", str(clusters), "--days", str(days), "--begin", BEGIN, "-q")
        run(rdmeta("generate", "bad-friday", str(made), *sizes))
        run(rdmeta("pipeline", "silver", str(made), str(silver), "--engine", "local", "-q"))
        report = ("report", str(gold), "--since", BEGIN, "--until", END)
        for _ in range(min(rounds, MOST_ROUNDS)):
            shutil.rmtree(gold, ignore_errors=True)
            shutil.copytree(silver, gold)
            for name, program, words in (
                ("gold", _GOLD, (str(gold),)),
                ("report", COMMAND, report),
            ):
                done = run([sys.executable, "-c", TELLING + program, *words])
                out.setdefault(name, []).append(done.took / 1e3)
                out.setdefault(f"{name}_memory", []).append(int(done.err.split()[-1]) / 1024)
        for form in ("html", "json"):
            text = run(rdmeta(*report, "--format", form)).out
            out[form] = [len(gzip.compress(text, mtime=0))]
    return out
