"""A command that runs in the process of the tests leaves that process as it was."""

from __future__ import annotations

import gc
import locale
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import commands
import in_process
import pytest
from in_process import Running


def state() -> dict[str, Any]:
    """Returns what a command may change of its process."""
    mask = os.umask(0)
    os.umask(mask)
    loggers = [logging.getLogger(name) for name in (None, "rdmeta", "rdmeta.client", "new")]
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "mask": mask,
        "locale": locale.setlocale(locale.LC_ALL),
        "collects": gc.isenabled(),
        "streams": (sys.stdin, sys.stdout, sys.stderr, sys.argv),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook),
        "filters": warnings.filters[:],
        "signals": [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)],
        "logging": [
            (each.level, each.getEffectiveLevel(), each.propagate, each.disabled)
            + (each.handlers[:], each.filters[:], each.isEnabledFor(logging.DEBUG))
            for each in loggers
        ],
    }


def change_all(words: Sequence[str]) -> int:
    """Changes all of it, as no command does."""
    os.environ["NEW"] = "1"
    del os.environ["PATH"]
    os.chdir("/")
    os.umask(0o777)
    locale.setlocale(locale.LC_ALL, "C.UTF-8" if state()["locale"] == "C" else "C")
    (gc.disable if gc.isenabled() else gc.enable)()
    sys.stdin, sys.argv = None, []
    hook: Any = lambda *_: None  # noqa: E731
    sys.excepthook = threading.excepthook = sys.unraisablehook = hook
    warnings.simplefilter("ignore")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for name in (None, "rdmeta", "rdmeta.client", "new"):
        logger = logging.getLogger(name)
        logger.handlers, logger.filters = [logging.NullHandler()], [lambda record: False]
        logger.setLevel(5)
        logger.propagate, logger.disabled = False, True
    return 0


@pytest.mark.parametrize("error", [None, RuntimeError("a defect")])
def test_all_that_a_command_changes_is_restored(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(words: Sequence[str]) -> int:
        change_all(words)
        changed.update(state())
        if error is not None:
            raise error
        return 0

    changed: dict[str, Any] = {}
    monkeypatch.setattr(in_process, "run_command", change)
    before = state()
    if error is None:
        assert commands.run() == (0, "", "")
    else:
        with pytest.raises(RuntimeError, match="a defect"):
            commands.run()
    assert state() == before
    assert [name for name in before if changed[name] == before[name]] == []


def test_a_command_has_its_words_its_environment_and_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def show(words: Sequence[str]) -> int:
        print(words, os.environ.get("GIVEN"), "HOME" in os.environ, os.getcwd())
        return 7

    monkeypatch.setattr(in_process, "run_command", show)
    done = commands.run("a", "b", env={"GIVEN": "x", "HOME": None}, cwd=tmp_path)
    assert done == (7, f"('a', 'b') x False {tmp_path}\n", "")


def test_a_test_reads_lines_meanwhile_and_presses_ctrl_c(tmp_path: Path) -> None:
    lines = []

    def read(running: Running) -> None:
        lines.append(running.out.next_line())
        running.interrupt()
        lines.extend([running.out.next_line(), running.err.next_line()])
        running.interrupt()  # it comes too late, and reaches nothing

    done = commands.run("embedded", "--brokers", "1", meanwhile=read)
    assert (done.code, done.err, lines[1:]) == (130, "", ["", ""])
    assert done.out == lines[0] != ""


def test_an_error_of_a_test_ends_the_command(tmp_path: Path) -> None:
    def fail(running: Running) -> None:
        running.out.next_line()
        raise AssertionError("not so")

    with pytest.raises(AssertionError, match="not so"):
        commands.run("embedded", "--brokers", "1", meanwhile=fail)
