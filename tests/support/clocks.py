"""A clock for caches that tests move by hand."""

from __future__ import annotations


class Clock:
    """Monotonic and wall time, in seconds, whole microseconds as the cache has them."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.epoch = 1_750_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.epoch + self.now

    def advance(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 6)
