"""The refreshes of the application, and what each of them still has to ask for.

A Want is the part of a refresh that no answer has covered yet. A refresh returns after answers to
requests that were sent *after* the call. So a want begins with everything to ask for. A request
that leaves takes its part of it. The rest stays: for example names that are still in flight in an
earlier request. A request that fails gives its part back.

A want is done when nothing is left to ask for, and no request with a part of it is unanswered. It
is also done when it is *served*: another request that covers all of it was answered. Calls that
want the same before a request has left share a want.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from rdmeta.client.waiting_calls import Waiters
from rdmeta.errors import Error

__all__ = ["Covered", "Scope", "Want", "Wants"]


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
