"""A hook that tells a test of each rename of a file, and lets the test kill the process there.

Python imports it in each process that has this folder on PYTHONPATH: the driver and the Python
workers of Spark. TEST_RENAMES names a folder. Each rename adds a line to its file `renames`:
number, process and file. After a rename whose number TEST_STOPS divides, the process waits to be
killed, once for each file; a line of the file `stops` says so. A rename takes TEST_SLOW seconds.
With TEST_LOOKS a process waits after a rename until the test adds a line to the file `looks`, with
TEST_TWICE before it renames a part until another one is there, too.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import Any

_PATIENCE = 60.0
_replace = os.replace


def _lines(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read().splitlines()
    except FileNotFoundError:
        return []


def _note(folder: str, file: str, text: str) -> None:
    with open(os.path.join(folder, file), "a", encoding="utf-8") as stream:
        stream.write(f"{text}\n")


def _wait_for_another(folder: str, name: str) -> None:
    """Waits until two processes are about to give a file its name."""
    file = f"about-{name.replace('/', ',')[-200:]}"
    _note(folder, file, str(os.getpid()))
    until = time.monotonic() + _PATIENCE
    while len(set(_lines(os.path.join(folder, file)))) < 2 and time.monotonic() < until:
        time.sleep(0.001)


def _wait_for_a_look(folder: str) -> None:
    looks, until = os.path.join(folder, "looks"), time.monotonic() + _PATIENCE
    before = len(_lines(looks))
    while len(_lines(looks)) == before and time.monotonic() < until:
        time.sleep(0.001)


def _told(folder: str, stops: int, name: str) -> bool:
    """Notes a rename; returns whether this process has to wait for its end."""
    with open(os.path.join(folder, "lock"), "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        number = len(_lines(os.path.join(folder, "renames"))) + 1
        _note(folder, "renames", f"{number} {os.getpid()} {name}")
        before = {line.split(" ", 2)[2] for line in _lines(os.path.join(folder, "stops"))}
        if not stops or number % stops or name in before:
            return False
        _note(folder, "stops", f"{number} {os.getpid()} {name}")
        return True


def _renamed(source: Any, target: Any, **options: Any) -> None:
    folder, name = os.environ["TEST_RENAMES"], os.fspath(target)
    if "TEST_TWICE" in os.environ and "/part-" in name:
        _wait_for_another(folder, name)
    _replace(source, target, **options)
    time.sleep(float(os.environ.get("TEST_SLOW", "0")))
    if "TEST_LOOKS" in os.environ:
        _wait_for_a_look(folder)
    if _told(folder, int(os.environ.get("TEST_STOPS", "0")), name):
        parent, until = os.getppid(), time.monotonic() + _PATIENCE
        while os.getppid() == parent and time.monotonic() < until:
            time.sleep(0.01)
        os._exit(1)


if "TEST_RENAMES" in os.environ:
    setattr(os, "replace", _renamed)  # noqa: B010
