"""The environment of Python processes that tests start, and the executor of one of Spark's."""

from __future__ import annotations

import os
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Returns an environment in which a process imports this tree and the tests' modules."""
    folders = [_TESTS.parent, _TESTS / "support", _TESTS / "net"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}


def executor_of(worker: int) -> int:
    """Returns the executor that has started a Python worker of Spark; raises OSError at its end."""
    pid = worker
    while pid > 1:
        process = Path(f"/proc/{pid}")
        if b"CoarseGrainedExecutorBackend" in process.joinpath("cmdline").read_bytes():
            return pid
        pid = int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    raise ProcessLookupError(f"process {worker} is below no executor")
