"""The application's calls that wait.

A waiter is one call: a refresh, a wait for a topic, or another request. It ends exactly once: with
its outcome, with an error, or at its deadline; a cancelled one ends without a word. The deadlines
are in a heap, in which ended waiters stay until their time: a poll looks at the top only.

While the outcomes are held, none is handed out before its deadline: an error may still replace it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rdmeta.client.actions import Finish, OtherRequest
from rdmeta.errors import Error

__all__ = ["Waiter", "Waiters"]


@dataclass(eq=False)
class Waiter:
    """One call of the application."""

    number: int
    deadline: float
    topic: str | None = None
    partition: int | None = None
    first_answer: object = None
    call: OtherRequest | None = None
    is_sent: bool = False


class _Held(NamedTuple):
    """An outcome that is not handed out yet."""

    deadline: float
    value: tuple[int, bytes] | None


class Waiters:
    """The waiters, by number and by topic."""

    def __init__(
        self,
        finish: Callable[[Finish], None],
        version: Callable[[], int],
        not_waited: Callable[[str], None],
    ) -> None:
        """Takes what to call with each end, and with each topic that nothing waits for any more."""
        self._finish, self._version, self._not_waited = finish, version, not_waited
        self._waiters: dict[int, Waiter] = {}
        self._by_topic: dict[str, dict[int, Waiter]] = {}
        self._deadlines: list[tuple[float, int]] = []
        # A failure of which no waiter has been told, because there was none.
        self._untold: Error | None = None
        self.is_holding = False
        self._held: dict[int, _Held] = {}
        # Whether no outcome has been handed out yet.
        self.is_first = True

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, number: int) -> bool:
        return number in self._waiters

    def add(self, waiter: Waiter) -> None:
        """Adds a waiter."""
        self._waiters[waiter.number] = waiter
        if waiter.topic is not None:
            self._by_topic.setdefault(waiter.topic, {})[waiter.number] = waiter
        if waiter.deadline < math.inf:
            heapq.heappush(self._deadlines, (waiter.deadline, waiter.number))

    def remove(self, number: int) -> bool:
        """Removes a waiter without a word; returns whether there was one."""
        self._held.pop(number, None)
        waiter = self._waiters.pop(number, None)
        if waiter is None:
            return False
        if waiter.topic is not None:
            others = self._by_topic[waiter.topic]
            del others[number]
            if not others:
                del self._by_topic[waiter.topic]
                self._not_waited(waiter.topic)
        return True

    def finish(
        self, number: int, error: Error | None, value: tuple[int, bytes] | None = None
    ) -> None:
        """Ends a waiter, if it has not ended, with an error or its outcome."""
        waiter = self._waiters.get(number)
        if waiter is None:
            return
        self.remove(number)
        if self.is_holding and error is None:
            self._held[number] = _Held(waiter.deadline, value)
        else:
            self.is_first &= error is not None
            self._finish(Finish(number, error, self._version(), value))

    def finish_each(self, numbers: Iterable[int], error: Error | None) -> None:
        """Ends several waiters."""
        for number in list(numbers):
            self.finish(number, error)

    def fail_all(self, error: Error) -> None:
        """Ends every waiter with an error; without any, it keeps the error for fail_late()."""
        held, self._held = self._held, {}
        self._untold = None if self._waiters or held else error
        self.finish_each(self._waiters, error)
        for number in held:
            self._finish(Finish(number, error, self._version()))

    def fail_late(self) -> None:
        """Ends the waiters that began after a failure with its error, if none was told of it."""
        if self._untold is not None and self._waiters:
            self.fail_all(self._untold)

    def forget_failure(self) -> None:
        """Drops the failure of which no waiter has been told."""
        self._untold = None

    # ---- outcomes that are held ----

    @property
    def held_until(self) -> float:
        """The earliest deadline of an outcome that is held."""
        return min((each.deadline for each in self._held.values()), default=math.inf)

    @property
    def has_held(self) -> bool:
        """Whether an outcome is held."""
        return bool(self._held)

    def hand_out(self, now: float = math.inf) -> None:
        """Hands out the held outcomes whose deadline has come; without `now` all of them."""
        for number, held in list(self._held.items()):
            if held.deadline <= now:
                del self._held[number]
                self.is_first = False
                self._finish(Finish(number, None, self._version(), held.value))

    # ---- topics ----

    def topics(self) -> list[str]:
        """Returns the topics that are waited for."""
        return list(self._by_topic)

    def topic_of(self, number: int) -> str | None:
        """Returns the topic that a waiter waits for, if it does."""
        waiter = self._waiters.get(number)
        return None if waiter is None else waiter.topic

    def waits_for(self, topic: str) -> bool:
        """Returns whether a topic is waited for."""
        return topic in self._by_topic

    def of_topic(self, topic: str) -> list[Waiter]:
        """Returns the waiters of a topic."""
        return list(self._by_topic.get(topic, {}).values())

    def unsent_calls(self) -> list[Waiter]:
        """Returns the waiters whose other request has not left, in order."""
        return [each for each in self._waiters.values() if each.call and not each.is_sent]

    # ---- deadlines ----

    @property
    def deadline(self) -> float:
        """The earliest deadline."""
        while self._deadlines and self._deadlines[0][1] not in self._waiters:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else math.inf

    def expired(self, now: float) -> list[Waiter]:
        """Returns the waiters whose deadline has come."""
        found = []
        while self.deadline <= now:
            found.append(self._waiters[heapq.heappop(self._deadlines)[1]])
        return found
