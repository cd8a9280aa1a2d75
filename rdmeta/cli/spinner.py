"""A sign of life at the end of a terminal's output, for a command that waits."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from rdmeta.cli.status import Status

__all__ = ["Spinner"]

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

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
