"""Clocks that tests move by hand: one for caches, one for the loops of asyncio."""

from __future__ import annotations

import asyncio
import time


class Clock:
    """A monotonic and a wall clock, in seconds; rounded to microseconds, as the cache counts."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.epoch = 1_750_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.epoch + self.now

    def advance(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 6)


class RunningClock:
    """Runs as time.monotonic() does, and a test moves it on: an hour passes in a moment.

    After `rule()` the running loop uses it, so a timer of the loop is due as soon as the clock says
    so. A loop of uvloop has a clock of its own.
    """

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds

    def rule(self) -> None:
        asyncio.get_running_loop().time = self  # type: ignore[method-assign]
