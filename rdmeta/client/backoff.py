"""How long to wait after a failure, and how many requests may leave.

Backoff doubles a wait with each failure, up to a longest one. Each wait has a jitter of +-20 %, so
that clients which failed together do not come back together.

Gate has two counters, as Kafka's Java client has: failed attempts, and answers in which nothing
missing came nearer. Each gives a wait; a refresh "with backoff" waits for the longer one. A success
clears the first counter. Only progress clears the second. Otherwise a refresh in a loop, or a topic
that stays away, could flood the brokers with requests that succeed.

Budget counts requests. It lets 8 leave at once, and one more per interval. It stores one number:
the time at which it will be whole again. Each request moves that time one interval further. A
request may leave while that time is less than 8 intervals away ("generic cell rate algorithm"). So
no window of W seconds has more than 8 + W / interval requests, whatever the clock does.
"""

from __future__ import annotations

import math
from random import Random

JITTER = 0.2
# The budget: so many requests at once, then one per share of retry.backoff.max.ms.
_BURST = 8
_BUDGET_SHARE = 0.8
_DOUBLINGS = 62  # beyond any number of doublings that a longest wait allows


def jittered(seconds: float, random: Random) -> float:
    """Returns `seconds` +-20 %."""
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)


class Backoff:
    """Waits that double from `first` to `longest` seconds, each +-20 %."""

    def __init__(self, first: float, longest: float, random: Random) -> None:
        self._first, self._longest, self._random = first, longest, random

    def after(self, failures: int) -> float:
        """Returns the seconds to wait after so many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        return jittered(self.mean(failures), self._random)

    def mean(self, failures: int) -> float:
        """Returns the same, without jitter."""
        return min(self._first * 2.0 ** min(failures - 1, _DOUBLINGS), self._longest)


class Gate:
    """The time from which a refresh with backoff may leave."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self.failures = 0
        self.equivalents = 0
        self._failed_until = -math.inf
        self._equivalent_until = -math.inf

    @property
    def opens(self) -> float:
        """The time from which a refresh may leave."""
        return max(self._failed_until, self._equivalent_until)

    @property
    def opens_after_failures(self) -> float:
        """The time from which a refresh may leave that equivalent answers do not hold up."""
        return self._failed_until

    def after_one(self, now: float) -> float:
        """Returns when a refresh may leave that waits once more, if nothing else happens."""
        return max(self.opens, now + self._backoff.after(1))

    def failed(self, now: float) -> None:
        """Counts a failed attempt."""
        self.failures += 1
        self._failed_until = now + self._backoff.after(self.failures)

    def answered(self, now: float, progress: bool) -> None:
        """Counts an answer; `progress` says that something missing came nearer."""
        self.succeeded()
        self.equivalents = 0 if progress else self.equivalents + 1
        self._equivalent_until = now + self._backoff.after(self.equivalents)

    def succeeded(self) -> None:
        """Clears the failed attempts."""
        self.failures, self._failed_until = 0, -math.inf

    def begin_anew(self) -> None:
        """Clears the equivalent answers: there are new topics, or the periodic refresh is due."""
        self.equivalents, self._equivalent_until = 0, -math.inf


class Budget:
    """At most 8 requests at once, and one more per 0.8 x `longest`, the longest backoff."""

    def __init__(self, longest: float) -> None:
        self._interval = _BUDGET_SHARE * longest
        self._slack = (_BURST - 1) * self._interval
        self._whole_at = -math.inf

    @property
    def opens(self) -> float:
        """The time from which one more request may leave."""
        return self._whole_at - self._slack

    def take(self, now: float) -> None:
        """Counts a request that leaves now."""
        self._whole_at = max(self._whole_at, now) + self._interval
