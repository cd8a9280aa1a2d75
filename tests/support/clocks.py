"""A clock for caches; tests move it by hand."""

from __future__ import annotations


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
