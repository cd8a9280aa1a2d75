"""The environment of Python processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Returns an environment in which a process imports this tree and the tests' modules."""
    folders = [_TESTS.parent, _TESTS / "support", _TESTS / "net"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
