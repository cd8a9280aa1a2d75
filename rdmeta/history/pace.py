"""How far observations lie apart, and whether the wall clock was set between two of them.

A distance is a gap if it is longer than a limit: 3 times the usual distance, and at least 60 s. The
usual distance is the median of the last 15, the lower one of two. So only a majority of long
distances raises the limit.

A first distance of at most 60 s is no gap at any pace. A longer one may be the pace of a slow
poller, or a hole before the second look of a fast one. Only the next distance can tell:

* The two are alike, so neither is longer than 3 times the other one. Then they are the pace, and
  no gap. A poller that looks each 300 s loses nothing.
* They differ. Then the first one is a gap, and tells nothing of the pace. The next one is the first
  distance now: at most 60 s, or one that waits for its successor in turn.

So one hole never passes as a pace. Two holes of like length in a row do, at the very beginning
only. The footer's longest_gap_us tells their length then. An observation that waits is in no file.
A process that dies meanwhile has observed its first moment. If nothing follows, the distance is a
gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

# The least limit: a distance within it is no gap at any pace.
LEAST_GAP_S = 60.0
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
    `is_open` says that the pace is not known, so that only the next observation tells whether
    there was a gap before this one.
    """

    now: datetime
    passed: float | None
    stepped: float
    max_gap: float
    is_open: bool = False

    @property
    def is_gap(self) -> bool:
        """Whether the observation before is too long ago; so it is while that is open."""
        return self.passed is not None and self.passed > self.max_gap

    @property
    def is_step(self) -> bool:
        """Whether the wall clock was set."""
        return abs(self.stepped) > max(_STEP_S, _STEP_SHARE * (self.passed or 0.0))

    def judged(self, after: Sight) -> Sight:
        """Returns an open one with the limit that the next observation tells."""
        is_pace = after.passed is not None and _is_alike(self.passed or 0.0, after.passed)
        limit = after.max_gap if is_pace else self.max_gap
        return self._replace(max_gap=limit, is_open=False)


class Pace:
    """Measures the distances of observations, by a wall clock and by a monotonic one.

    `max_gap` is the longest distance within a recording, in seconds. None: it follows the usual
    distance, as the text of this module says.
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
        # A first distance that is too long for a pace, until the next one tells what it is.
        self._open: float | None = None
        self._last: tuple[datetime, float] | None = None

    @property
    def max_gap(self) -> float:
        """The longest distance within a recording at present, in seconds."""
        if self._given is not None:
            return self._given
        if not self._distances:
            return LEAST_GAP_S
        usual = sorted(self._distances)[(len(self._distances) - 1) // 2]
        return max(_TIMES_USUAL * usual, LEAST_GAP_S)

    def now(self) -> datetime:
        """Returns the wall clock's time."""
        return self._clock()

    def look(self) -> Sight:
        """Notes that an observation is made now; returns it.

        If the one before is open, `Sight.judged` tells what it is.
        """
        now, ticks = self._clock(), self._monotonic()
        last, self._last = self._last, (now, ticks)
        if last is None:
            return Sight(now, None, 0.0, self.max_gap)
        passed = ticks - last[1]
        stepped = (now - last[0]).total_seconds() - passed
        if self._open is not None and _is_alike(self._open, passed):
            self._distances.append(self._open)
        self._open = None
        sight = Sight(now, passed, stepped, self.max_gap)
        if self._given is None and not self._distances and sight.is_gap:
            self._open = passed
            return sight._replace(is_open=True)
        self._distances.append(passed)
        return sight


def _is_alike(one: float, other: float) -> bool:
    """Returns whether two distances may be those of one pace."""
    return max(one, other) <= _TIMES_USUAL * min(one, other)
