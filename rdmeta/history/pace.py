"""How far observations lie apart, and whether the wall clock was set between two of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

__all__ = ["Pace", "Sight"]

# The limit until a distance is known, and the least one that follows from distances.
_LEAST_GAP_S = 60.0
_TIMES_USUAL = 3
# The usual distance is the median of so many.
_REMEMBERED = 15
# NTP may slew a clock by 0.05 %. A difference beyond both limits is a step.
_STEP_S = 1.0
_STEP_SHARE = 0.001


class Sight(NamedTuple):
    """One observation: its time, and the time that has passed since the one before.

    `passed` is in seconds of the monotonic clock, None for the first one. `stepped` is the time by
    which somebody set the wall clock meanwhile, or by which the machine slept, in seconds.
    """

    now: datetime
    passed: float | None
    stepped: float
    max_gap: float

    @property
    def is_gap(self) -> bool:
        """Whether the observation before is too long ago."""
        return self.passed is not None and self.passed > self.max_gap

    @property
    def is_step(self) -> bool:
        """Whether the wall clock was set."""
        return abs(self.stepped) > max(_STEP_S, _STEP_SHARE * (self.passed or 0.0))


class Pace:
    """Measures the distances of observations, by a wall clock and by a monotonic one.

    `max_gap` is the longest distance within a recording, in seconds. None: it is 3 times the usual
    distance, which is the median of the last 15, and at least 60 s. The first distance is not known
    when it is judged, so it must be within 60 s.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        max_gap: float | None,
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._given = max_gap
        self._distances: deque[float] = deque(maxlen=_REMEMBERED)
        self._last: tuple[datetime, float] | None = None

    @property
    def max_gap(self) -> float:
        """The longest distance within a recording at present, in seconds."""
        if self._given is not None:
            return self._given
        if not self._distances:
            return _LEAST_GAP_S
        usual = sorted(self._distances)[len(self._distances) // 2]
        return max(_TIMES_USUAL * usual, _LEAST_GAP_S)

    def now(self) -> datetime:
        """Returns the wall clock's time."""
        return self._clock()

    def look(self) -> Sight:
        """Notes that an observation is made now."""
        now, ticks = self._clock(), self._monotonic()
        passed, stepped, max_gap = None, 0.0, self.max_gap
        if self._last is not None:
            passed = ticks - self._last[1]
            stepped = (now - self._last[0]).total_seconds() - passed
            self._distances.append(passed)
        self._last = now, ticks
        return Sight(now, passed, stepped, max_gap)
