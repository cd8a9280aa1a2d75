"""Runs the command `rdmeta` here, as a process on pipes, or on a terminal (a pty)."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from in_process import Done as Done
from in_process import Running, run_here
from processes import environment

PROGRAM = "from rdmeta.cli import main; main()"

# A shell lets its jobs in the background ignore Ctrl-C; a command of a test does not.
_HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
_MODULES = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
_TAKE_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"

# The tests' own surroundings must not change what a command does.
_CLEARED = re.compile(r"RDMETA_.*|NO_COLOR|COLUMNS|LINES|FORCE_COLOR|TTY_.*|PYTHONUNBUFFERED")
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])")


def surroundings(given: Mapping[str, str | None] = {}) -> dict[str, str]:
    """Returns the environment of a command; None in `given` removes a variable."""
    base = {k: v for k, v in environment().items() if not _CLEARED.fullmatch(k)}
    merged: dict[str, str | None] = {**base, "TERM": "xterm-256color", **given}
    return {k: v for k, v in merged.items() if v is not None}


def clusters(folder: Path, **bootstraps: str) -> dict[str, str]:
    """Writes a clusters file of these names and servers; returns the environment that has it."""
    file = folder / "clusters.ini"
    file.write_text("".join(f"[{n}]\nbootstrap.servers={b}\n" for n, b in bootstraps.items()))
    return {"RDMETA_CLUSTERS": str(file)}


def command(*arguments: str, program: str = PROGRAM) -> list[str]:
    """Returns the words that start the command."""
    return [sys.executable, "-c", program, *arguments]


def run(
    *arguments: str,
    env: Mapping[str, str | None] = {},
    cwd: Path | None = None,
    meanwhile: Callable[[Running], object] | None = None,
) -> Done:
    """Runs a command to its end in this process, without a terminal; see run_here()."""
    return run_here(arguments, surroundings(env), cwd, meanwhile)


def run_process(
    *arguments: str,
    env: Mapping[str, str | None] = {},
    timeout: float = 60,
    program: str = PROGRAM,
    cwd: Path | None = None,
) -> Done:
    """Runs a command to its end as a process, with pipes for its output."""
    done = subprocess.run(
        command(*arguments, program=program),
        env=surroundings(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        cwd=cwd,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def redirected(redirection: str, *arguments: str) -> Done:
    """Runs a command whose output a shell sends elsewhere, such as "> /dev/full" or "2>&-"."""
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *command(*arguments)]
    done = subprocess.run(
        shell, capture_output=True, text=True, env=surroundings(), timeout=60, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def modules_of(*arguments: str, env: Mapping[str, str | None] = {}) -> set[str]:
    """Returns the modules that a run of the command imports."""
    done = run_process(*arguments, env=env, program=_MODULES + PROGRAM)
    assert done.code == 0, done.err
    return set(done.err.split())


class Started(subprocess.Popen[str]):
    """A command that runs with pipes."""

    stdout: IO[str]
    stderr: IO[str]

    def next_line(self) -> str:
        """Returns the next line that the command prints."""
        return self.stdout.readline().rstrip("\n")

    def ended(self, number: int | None = None, timeout: float = 30) -> Done:
        """Returns how the command ends, by a signal if one is given."""
        if number is not None:
            self.send_signal(number)
        out, err = self.communicate(timeout=timeout)
        return Done(self.returncode, out, err)


@contextmanager
def started(
    *arguments: str,
    env: Mapping[str, str | None] = {},
    program: str = PROGRAM,
    cwd: Path | None = None,
) -> Iterator[Started]:
    """Starts a command with pipes; kills it at the end if it still runs."""
    process = Started(
        command(*arguments, program=_HEED + program),
        env=surroundings(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


class Terminal:
    """A command on a terminal of its own; `text` is what it has printed so far.

    with Terminal("watch", "-b", bootstrap) as terminal:
        terminal.wait_for("orders")
        terminal.type("\\x03")  # Ctrl-C
        assert terminal.end() == 130
    """

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str | None] = {},
        rows: int = 24,
        columns: int = 80,
        program: str = PROGRAM,
    ) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(rows, columns)
        self.process = subprocess.Popen(
            command(*arguments, program=_TAKE_TERMINAL + _HEED + program),
            env=surroundings(env),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._bytes = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    @property
    def raw(self) -> str:
        """All that the command printed, with escape sequences."""
        return self._bytes.decode(errors="replace")

    @property
    def text(self) -> str:
        """All that the command printed, without escape sequences and carriage returns."""
        return _ESCAPES.sub("", self.raw).replace("\r", "")

    @property
    def _end(self) -> str:
        return self.text[-2000:]

    def type(self, text: str) -> None:
        """Types keys; \\x03 is Ctrl-C."""
        os.write(self._ours, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Sets the terminal's size; the command gets SIGWINCH."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, text: str, timeout: float = 30) -> None:
        """Returns when the command has printed `text`; raises AssertionError with the rest."""
        until = time.monotonic() + timeout
        while text not in self.text:
            assert self._read(until) or text in self.text, f"no {text!r} in {self._end!r}"

    def end(self, timeout: float = 30) -> int:
        """Waits for the command's end and returns its exit code; -N for signal N."""
        until = time.monotonic() + timeout
        while self._read(until):
            pass
        return self.process.wait(max(0.1, until - time.monotonic()))

    def _read(self, until: float) -> bool:
        """Reads what there is; returns False at the end of the output."""
        left = until - time.monotonic()
        assert select.select([self._ours], [], [], max(left, 0))[0], f"late: {self._end!r}"
        data = b""
        with suppress(OSError):  # EIO: the command closed its side
            data = os.read(self._ours, 65536)
        self._bytes += data
        return bool(data)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    text = files("rdmeta.cli").joinpath("output.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def checked_json(text: str) -> Any:
    """Returns the object that a command printed, after checking it against the schema."""
    found = json.loads(text)
    _validator().validate(found)
    return found


def examples(name: str) -> list[list[str]]:
    """Returns the examples in the help of a command, as the words after `rdmeta`."""
    help_text = run(name, "--help").out
    lines = help_text.partition("Examples:\n")[2].splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith("rdmeta ")]
