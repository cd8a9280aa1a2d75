"""Whole processes that write into a pipe: how long each takes, what it writes, its peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

from bench.build import ROOT, response

COMMAND = "from rdmeta.cli import main; main()"

# At its end the process writes the most memory that it ever had, in KiB, as the last line of
# stderr. The kernel's account for the parent would count the parent's own memory, too.
TELLING = """\
import atexit, re, sys
def tell():
    status = open("/proc/self/status").read()
    print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1], file=sys.stderr)
atexit.register(tell)
"""


class Done(NamedTuple):
    """A process that has ended: milliseconds from its start to its end, and its two outputs."""

    took: float
    out: bytes
    err: str


def rdmeta(*arguments: str) -> list[str]:
    """Returns the words that start the command."""
    return [sys.executable, "-c", COMMAND, *arguments]


def surroundings() -> dict[str, str]:
    """Returns an environment like that of a user: no option of rdmeta, and bytecode is kept."""
    odd = ("RDMETA_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    return {name: value for name, value in os.environ.items() if not name.startswith(odd)}


def run(words: Sequence[str]) -> Done:
    """Runs a process to its end; ends this program if it fails."""
    environment = surroundings()
    begin = perf_counter()
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, timeout=300)
    took = (perf_counter() - begin) * 1e3
    err = done.stderr.decode()
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}: {err}")
    return Done(took, done.stdout, err)


def timed(ways: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[float]]:
    """Returns milliseconds of each way, by turns; a first turn fills the caches and is not kept."""
    out: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, words in ways.items():
            took = run(words).took
            if turn:
                out[name].append(took)
    return out


def peak(*arguments: str) -> tuple[int, int]:
    """Returns the bytes of memory that the command has at most, and those of its output."""
    done = run([sys.executable, "-c", TELLING + COMMAND, *arguments])
    return int(done.err.split()[-1]) * 1024, len(done.out)


def answer(topics: int) -> bytes:
    """Returns an answer of so many topics on 30 brokers, their replicas at random."""
    return response(topics, 8, 1)
