"""A line at the end of a terminal's output that says how a command that keeps running stands.

Status draws it. A Spinner turns in it as a sign of life, for a command that waits.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rdmeta._escaping import escaped
from rdmeta.cli.messages import Messages

_CLEAR = "\r\x1b[2K"


class Status(Messages):
    """Draws the line on stderr, if that is a terminal; other lines of the command push it down.

    The command writes these others through it, or within cleared(). Threads may share it. With -q,
    or on a dumb terminal, there is no line.
    """

    def __init__(self, messages: Messages) -> None:
        super().__init__()
        self.level = messages.level
        self._lock = threading.RLock()
        self._text = ""
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.is_drawn = is_terminal and messages.level >= 0 and os.environ.get("TERM") != "dumb"

    def show(self, text: str) -> None:
        """Draws the line anew; what is wider than the terminal is cut off."""
        with self._lock:
            self._text = escaped(text)
            self._draw()

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Takes the line away for the time of the block, in which the caller writes other lines."""
        with self._lock:
            if self.is_drawn and self._text:
                _draw(_CLEAR)
            try:
                yield
            finally:
                self._draw()

    def end(self) -> None:
        """Takes the line away for good."""
        with self._lock:
            if self.is_drawn and self._text:
                _draw(_CLEAR)
            self._text = ""

    def failure(self, error: BaseException, cluster: str | None = None) -> int:
        with self.cleared():
            return super().failure(error, cluster)

    def _write(self, text: str, cluster: str | None) -> None:
        with self.cleared():
            super()._write(text, cluster)

    def _draw(self) -> None:
        if self.is_drawn and self._text:
            _draw(_CLEAR + self._text[: _width() - 1])


def _width() -> int:
    """Returns the columns of the terminal now; it may have been resized."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _draw(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


_FRAMES = "|/-\\"
_FRAME_S = 0.12


class Spinner:
    """Turns in front of a text while it is entered, where a Status draws its line."""

    def __init__(self, status: Status) -> None:
        self._status, self._text = status, "waiting for an answer"
        self._is_over = False
        self._thread = threading.Thread(target=self._turn, name="rdmeta-spinner", daemon=True)

    def __enter__(self) -> Spinner:
        if self._status.is_drawn:
            self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over = True
        if self._thread.ident is not None:
            self._thread.join(1)
        self._status.end()

    def say(self, text: str) -> None:
        """Changes the text."""
        self._text = text

    def _turn(self) -> None:
        frame = 0
        while not self._is_over:
            self._status.show(f"{_FRAMES[frame % len(_FRAMES)]} {self._text}")
            frame += 1
            time.sleep(_FRAME_S)
