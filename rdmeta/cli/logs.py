"""The client's log as lines on stderr. Only a command that shows a log imports this."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["show"]

_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}


class _Lines(logging.Handler):
    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        self._write(record.getMessage())


def show(write: Callable[[str], None], level: int) -> None:
    """Gives each line of the loggers below `rdmeta` to `write`; `level` is that of Messages."""
    logger = logging.getLogger("rdmeta")
    logger.handlers = [_Lines(write)]
    logger.setLevel(_LEVELS.get(level, logging.DEBUG))
    logger.propagate = False
