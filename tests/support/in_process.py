"""Runs the command `rdmeta` in the process of the tests, and leaves the process as it was."""

from __future__ import annotations

import gc
import io
import locale
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rdmeta.cli.app import run as run_command
from rdmeta.cli.messages import INTERRUPTED


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


class Written(io.FileIO):
    """A file that a command writes; another thread may read it line by line meanwhile."""

    def __init__(self) -> None:
        super().__init__(os.memfd_create("written"), "w")
        self._kept = os.dup(self.fileno())  # the command may send the rest of its output nowhere
        self._news = threading.Condition()
        self._taken = 0
        self._is_over = False

    def write(self, data: Any) -> int:
        with self._news:
            written = super().write(data)
            self._news.notify_all()
        return written

    @property
    def content(self) -> bytes:
        """What the command has written so far."""
        return os.pread(self._kept, os.fstat(self._kept).st_size, 0)

    def next_line(self) -> str:
        """Waits for the next line; returns "" when the command has ended without one."""
        with self._news:
            while (end := self.content.find(b"\n", self._taken) + 1) == 0 and not self._is_over:
                self._news.wait()
            line = self.content[self._taken : end]
            self._taken = end or self._taken
            return line.decode()

    def end(self) -> None:
        """Ends the lines for the thread that reads them."""
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def close(self) -> None:
        if not self.closed:
            os.close(self._kept)
        super().close()


class Running:
    """A command that runs in the main thread, for what a test does meanwhile in another one."""

    def __init__(self) -> None:
        self.out, self.err = Written(), Written()
        self.has_ended = self.is_interrupted = False

    def interrupt(self) -> None:
        """Presses Ctrl-C once, unless the command has ended."""
        main = threading.main_thread().ident
        if not self.has_ended and not self.is_interrupted and main is not None:
            self.is_interrupted = True
            signal.pthread_kill(main, signal.SIGINT)

    def interrupt_after_a_line(self) -> None:
        """Presses Ctrl-C when there is a line of output."""
        self.out.next_line()
        self.interrupt()

    def press(self, number: int, frame: object) -> None:
        """Handles SIGINT; a late one does not reach the tests."""
        if not self.has_ended:
            raise KeyboardInterrupt


@contextmanager
def unchanged() -> Iterator[None]:
    """Restores at the end what a command may change of its process: all but modules and threads."""
    environment, folder, collects = dict(os.environ), os.getcwd(), gc.isenabled()
    language, mask = locale.setlocale(locale.LC_ALL), os.umask(0)
    os.umask(mask)
    streams = sys.stdin, sys.stdout, sys.stderr, sys.argv
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    handlers = {each: signal.getsignal(each) for each in signal.valid_signals()}
    loggers = {each: _settings(each) for each in _loggers()}
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        for logger in _loggers():
            level, *settings = loggers.get(logger, (logging.NOTSET, True, [], [], False))
            logger.propagate, logger.handlers, logger.filters, logger.disabled = settings
            logger.setLevel(level)
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        sys.stdin, sys.stdout, sys.stderr, sys.argv = streams
        locale.setlocale(locale.LC_ALL, language)
        os.umask(mask)
        (gc.enable if collects else gc.disable)()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(each for each in known if isinstance(each, logging.Logger))]


def _settings(logger: logging.Logger) -> tuple[Any, ...]:
    return logger.level, logger.propagate, logger.handlers[:], logger.filters[:], logger.disabled


def _text(file: Written, by_line: bool = False) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(file), "utf-8", line_buffering=by_line)


def run_here(
    words: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None,
    meanwhile: Callable[[Running], object] | None,
) -> Done:
    """Runs a command line with that environment; `meanwhile` runs in another thread.

    An exception of `meanwhile` interrupts the command, and is raised.
    """
    running = Running()
    failures: list[BaseException] = []

    def act() -> None:
        assert meanwhile is not None
        try:
            meanwhile(running)
        except BaseException as error:
            failures.append(error)
            running.interrupt()

    other = threading.Thread(target=act)
    with unchanged(), _text(running.out) as out, _text(running.err, True) as err:
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd or os.getcwd())
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        sys.stdout, sys.stderr = out, err
        sys.argv = ["rdmeta", *words]
        signal.signal(signal.SIGINT, running.press)
        try:
            if meanwhile is not None:
                other.start()
            code = run_command(words)
            out.flush()
        except KeyboardInterrupt:
            code = INTERRUPTED  # it came before the command was ready for it
        finally:
            running.has_ended = True
            running.out.end()
            running.err.end()
            if other.ident is not None:
                other.join()
        if failures:
            raise failures[0]
        if code == INTERRUPTED and not running.is_interrupted:
            raise KeyboardInterrupt  # a user ends the tests
        return Done(code, running.out.content.decode(), running.err.content.decode())
