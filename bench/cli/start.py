"""Times `rdmeta --help` and `rdmeta --version` beside an interpreter that imports click."""

from __future__ import annotations

import sys
from typing import Any

from bench.cli import process


def measure(rounds: int) -> dict[str, Any]:
    """Returns milliseconds of whole processes: help, version, click."""
    ways = {
        "help": process.rdmeta("--help"),
        "version": process.rdmeta("--version"),
        "click": [sys.executable, "-c", "import click"],
    }
    return {**process.timed(ways, rounds)}
