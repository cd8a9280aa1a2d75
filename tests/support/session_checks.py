"""Checks that any session of Spark must pass, run by a process with a session of its own.

    python session_checks.py MODULE FOLDER MASTER

MODULE has the functions, in CHECKS. Each of them gets the session and a folder.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest
from processes import environment
from pyspark.sql import SparkSession

from rdmeta.spark import build_session

Check = Callable[[SparkSession, Path], None]


def marked(checks: Sequence[Check], proof: Check) -> list[Any]:
    """Returns the parameters of a test: one check is `proof`, the others are slow."""
    return [
        pytest.param(
            check,
            marks=pytest.mark.proof if check is proof else pytest.mark.slow,
            id=check.__name__,
        )
        for check in checks
    ]


def assert_passes(
    module: str, checks: Sequence[Check], folder: Path, master: str, env: Mapping[str, str] = {}
) -> None:
    """Runs the checks of a module in a process."""
    # The process has this one's Spark, which may be an older one in a folder of its own.
    base = environment()
    base["PYTHONPATH"] += f"{os.pathsep}{Path(pyspark.__file__).parents[1]}"
    done = subprocess.run(
        [sys.executable, __file__, module, str(folder), master],
        capture_output=True, text=True, timeout=280, check=False,
        env={**base, "PYSPARK_PYTHON": sys.executable, **env}, cwd=folder,
    )  # fmt: skip
    print(done.stdout, done.stderr[-5000:])
    assert done.returncode == 0
    for check in checks:
        assert f"passed {check.__name__}" in done.stdout


def main(module: str, folder: str, master: str) -> None:
    session = build_session(master, short=True)
    if master.startswith("sc://"):
        # As in a session that starts its own server.
        session.conf.set("spark.sql.artifact.isolation.enabled", "true")
    print(f"Spark {session.version}")
    for check in importlib.import_module(module).CHECKS:
        root = Path(folder, check.__name__)
        root.mkdir()
        check(session, root)
        print(f"passed {check.__name__}", flush=True)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
