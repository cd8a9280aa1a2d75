"""Log lines of a client: the same line comes at most every 30 s, with its count."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

from rdmeta._escaping import escaped

__all__ = ["Lines"]

_PERIOD_S = 30.0
# The different lines whose counts are kept; beyond that the one written longest ago is forgotten.
_MOST = 512


class _Written(NamedTuple):
    at: float
    repeated: int


class Lines:
    """Writes lines to a logger; a line that repeats within 30 s is counted instead.

    The next one after that time says how often it was repeated. An exception of a logging handler
    is printed to stderr, as logging does. One thread at a time may use it.
    """

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._written: dict[str, _Written] = {}

    def write(
        self, level: int, line: str, exc_info: BaseException | None = None, same: str = ""
    ) -> None:
        """Writes a line, or counts it; lines with the same `same` count as the same line."""
        now, line = self._clock(), escaped(line)
        key = same or line
        last = self._written.pop(key, None)
        if last is not None and now - last.at < _PERIOD_S:
            self._written[key] = _Written(last.at, last.repeated + 1)
            return
        self._written[key] = _Written(now, 0)
        if len(self._written) > _MOST:
            del self._written[min(self._written, key=lambda each: self._written[each].at)]
        if last is not None and last.repeated:
            seconds = now - last.at
            line = f"{line} ({last.repeated} times more in the last {seconds:.0f} s)"
        try:
            self._logger.log(level, "%s", line, exc_info=exc_info)
        except Exception:  # of a handler or filter of the application, which must not stop a client
            if logging.raiseExceptions:
                traceback.print_exc()
