"""The application's calls that wait, and what its refreshes still have to ask for.

A waiter is one call: a refresh, a wait for a topic, or another request. It ends exactly once: with
its outcome, with an error, or at its deadline; a cancelled one ends without a word. The deadlines
are in a heap, in which ended waiters stay until their time: a poll looks at the top only.

While the outcomes are held, none is handed out before its deadline: an error may still replace it.

A Want is the part of a refresh that no answer has covered yet. A refresh returns after answers to
requests that were sent *after* the call. So a want begins with everything to ask for. A request
that leaves takes its part of it. The rest stays: for example names that are still in flight in an
earlier request. A request that fails gives its part back.

A want is done when nothing is left to ask for, and no request with a part of it is unanswered. It
is also done when it is *served*: another request that covers all of it was answered. Calls that
want the same before a request has left share a want.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from rdmeta.client.actions import Finish, OtherRequest
from rdmeta.errors import Error


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
        # A failure that no waiter knows of, because there was none.
        self._unreported: Error | None = None
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
        self._unreported = None if self._waiters or held else error
        self.finish_each(self._waiters, error)
        for number in held:
            self._finish(Finish(number, error, self._version()))

    def fail_late(self) -> None:
        """Ends the waiters that began after a failure with its error, if none knows of it."""
        if self._unreported is not None and self._waiters:
            self.fail_all(self._unreported)

    def forget_failure(self) -> None:
        """Drops the failure that no waiter knows of."""
        self._unreported = None

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


class Scope(Enum):
    """The kinds of what a refresh asks for."""

    NEEDED = "needed"
    ALL = "all"
    BROKERS = "brokers"
    NAMES = "names"
    IDS = "ids"


@dataclass(eq=False)
class Want:
    """The rest of a refresh: `whole` says that its one big request must leave.

    `again` has the names that were in flight when a forced refresh began: they are asked for again.
    """

    scope: Scope
    again: frozenset[str] = frozenset()
    whole: bool = False
    names: dict[str, None] = field(default_factory=dict)
    ids: tuple[UUID | bytes, ...] = ()
    in_flight: int = 0
    is_served: bool = False
    waiters: list[int] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether answers have covered everything."""
        return self.is_served or not (self.whole or self.names or self.in_flight)


@dataclass(eq=False)
class Covered:
    """The part of the wants that one request has.

    `parts` says what is to be given back to a want if the request fails: names, or None for the
    whole. `serves` has the wants that the answer ends.
    """

    parts: list[tuple[Want, frozenset[str] | None]] = field(default_factory=list)
    serves: list[Want] = field(default_factory=list)


class Wants:
    """The wants that are not done, in the order in which they came."""

    def __init__(self, waiters: Waiters) -> None:
        self._waiters = waiters
        self._wants: list[Want] = []

    def __len__(self) -> int:
        return len(self._wants)

    def add(self, want: Want, waiter: int | None = None) -> None:
        """Adds a want; it joins an equal one of which nothing has left."""
        waiters = [] if waiter is None else [waiter]
        for other in self._wants:
            is_unsent = other.whole and not other.in_flight
            if is_unsent and other.scope is want.scope and other.again == want.again:
                other.waiters += waiters
                return
        want.waiters += waiters
        self._wants.append(want)
        self.end()

    def whole(self, *scopes: Scope) -> list[Want]:
        """Returns the wants of these scopes whose big request must leave."""
        return [want for want in self._wants if want.whole and want.scope in scopes]

    def named(self) -> list[Want]:
        """Returns the wants that have names to ask for."""
        return [want for want in self._wants if want.names]

    # ---- requests ----

    def take(self, wants: Collection[Want], covered: Covered) -> None:
        """Gives a request the big questions of these wants."""
        for want in wants:
            want.whole = False
            want.in_flight += 1
            covered.parts.append((want, None))

    def cover(self, names: frozenset[str] | None, covered: Covered, all_needed: bool) -> None:
        """Gives a request that leaves now what it asks for of each want, by name or by all (None).

        Every answer brings the brokers. `all_needed` says that it asks for every needed topic.
        """
        served = {Scope.BROKERS, Scope.NEEDED} if all_needed else {Scope.BROKERS}
        self.take(self.whole(*served), covered)
        for want in self._wants:
            if want.scope in served or (names is None and want.scope is not Scope.IDS):
                covered.serves.append(want)
            taken = frozenset(name for name in want.names if names is None or name in names)
            if taken:
                want.names = {name: None for name in want.names if name not in taken}
                want.in_flight += 1
                covered.parts.append((want, taken))

    def succeeded(self, covered: Covered) -> None:
        """Ends the wants that an answer has covered."""
        for want, _ in covered.parts:
            want.in_flight -= 1
        for want in covered.serves:
            want.is_served = True
        self.end()

    def failed(self, covered: Covered, is_needed: Callable[[str], bool]) -> None:
        """Gives the parts of a failed request back to their wants."""
        for want, names in covered.parts:
            want.in_flight -= 1
            if names is None:
                want.whole = True
            else:
                want.names.update(dict.fromkeys(names))
        self.forget(is_needed)

    def forget(self, is_needed: Callable[[str], bool]) -> None:
        """Drops the names that a refresh of the needed topics wants and that are not needed now."""
        for want in self._wants:
            if want.scope is Scope.NEEDED:
                want.names = {name: None for name in want.names if is_needed(name)}
        self.end()

    # ---- ends ----

    def end(self) -> None:
        """Ends the wants that are done."""
        for want in self._wants:
            if want.is_done:
                self._waiters.finish_each(want.waiters, None)
        self._wants = [want for want in self._wants if not want.is_done]

    def fail(self, wants: Collection[Want], error: Error) -> None:
        """Ends wants with an error."""
        for want in wants:
            self._waiters.finish_each(want.waiters, error)
        gone = set(map(id, wants))
        self._wants = [want for want in self._wants if id(want) not in gone]
