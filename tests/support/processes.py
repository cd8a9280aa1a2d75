"""The environment of Python processes that tests start, and processes below another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Returns an environment in which a process imports this tree and the tests' modules."""
    folders = [_TESTS.parent, _TESTS / "support", _TESTS / "net"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}


def below(ancestor: int, word: bytes) -> Iterator[int]:
    """Yields the processes below that one whose command line has a word."""
    for entry in Path("/proc").iterdir():
        try:
            words = entry.joinpath("cmdline").read_bytes()
            if word in words and _is_below(int(entry.name), ancestor):
                yield int(entry.name)
        except (OSError, ValueError):
            continue


def _is_below(pid: int, ancestor: int) -> bool:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid == ancestor:
            return True
    return False
