"""The client's log as lines on stderr. Only a command that shows a log imports this."""

from __future__ import annotations

import logging
from collections.abc import Callable

_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}
# What is wrong with the options is logged for each client that is made of them.
_CONFIG = "rdmeta.config"


class _Lines(logging.Handler):
    """Writes lines; those about the options once. `shown` are those that have been written."""

    def __init__(self, write: Callable[[str], None], shown: set[str]) -> None:
        super().__init__()
        self._write = write
        self.shown = shown

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.name == _CONFIG:
            if text in self.shown:
                return
            self.shown.add(text)
        self._write(text)


def show(write: Callable[[str], None], level: int, *, quietly: bool = False) -> None:
    """Gives each line of the loggers below `rdmeta` to `write`; `level` is that of Messages.

    With `quietly`, warnings need -v, but for those about the options, such as a password that is
    sent in the clear: no command says the same itself.
    """
    logger = logging.getLogger("rdmeta")
    shown: set[str] = set().union(*(h.shown for h in logger.handlers if isinstance(h, _Lines)))
    logger.handlers = [_Lines(write, shown)]
    logger.setLevel(_level(-1 if quietly and level == 0 else level))
    logger.propagate = False
    logging.getLogger(_CONFIG).setLevel(_level(level))


def _level(loudness: int) -> int:
    return _LEVELS.get(loudness, logging.DEBUG)
