"""What the parts of the policy hand to the driver: actions, events, and the time of the next poll.

Each part is handed the one PollOutput of its policy, and adds to it while it runs.
"""

from __future__ import annotations

import math
from itertools import count

from rdmeta.client.actions import Action, Event, Poll


class PollOutput:
    """Collects the output of a poll, and gives links, requests and waiters their numbers."""

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._events: list[Event] = []
        self._numbers = count(1)
        self._next_poll = math.inf

    def do(self, action: Action) -> None:
        """Has the driver do something after this poll."""
        self._actions.append(action)

    def report(self, event: Event) -> None:
        """Adds an event for the application."""
        self._events.append(event)

    def later(self, at: float) -> None:
        """Asks for a poll at that time."""
        self._next_poll = min(self._next_poll, at)

    def number(self) -> int:
        """Returns a number that nothing else has."""
        return next(self._numbers)

    def begin(self) -> None:
        """Begins a poll: the times asked for before it no longer count."""
        self._next_poll = math.inf

    def take(self, now: float) -> Poll:
        """Returns the actions, and the time of the next poll, which is later than `now`."""
        actions, self._actions = tuple(self._actions), []
        return Poll(actions, max(self._next_poll, math.nextafter(now, math.inf)))

    def take_events(self) -> list[Event]:
        """Returns what happened since the last call, in order."""
        events, self._events = self._events, []
        return events
