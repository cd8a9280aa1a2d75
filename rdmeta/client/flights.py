"""The requests in flight, and when to ask a second node because the first one is silent.

A Flight is one question: a kind, what it asks for, and the reason. It has one or more attempts:
each is a request with a number of its own on a link. There is one flight at most of each kind of
Metadata. The first answer ends the flight; the numbers of the other attempts are forgotten, so that
a late answer is dropped. A flight fails when its last attempt fails.

A hedge is a second attempt on another node. It is due when no byte has come for some time: 10 x the
slowest of the last 16 answers of the same kind, from 1 s to 10 s. The next hedges wait twice as
long each, up to 10 s.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from rdmeta.client.actions import OtherRequest, RequestKind
from rdmeta.client.nodes import Link
from rdmeta.client.waiting_calls import Covered
from rdmeta.model import All, Request

KEPT_TIMES = 16
HEDGE_FACTOR = 10.0
SHORTEST_HEDGE = 1.0
LONGEST_HEDGE = 10.0


@dataclass(eq=False)
class Attempt:
    """One request on one link."""

    number: int
    link: Link
    request: Request | OtherRequest
    sent_at: float

    @property
    def heard_at(self) -> float:
        """The time of the last sign of life of the link, or of the request's departure."""
        return max(self.sent_at, self.link.heard_at)


@dataclass(eq=False)
class Flight:
    """One question, with its attempts.

    `topics` is what it asks for, `asked` the names in it. `request` is that of the first attempt.
    `covered` is its part of what refreshes want. If no other node speaks its version, the brokers
    are asked for at `brokers_at`.
    """

    kind: RequestKind
    reason: str
    min_version: int
    hedge_after: float
    topics: All | Collection[str] | Collection[UUID | bytes] = ()
    asked: frozenset[str] = frozenset()
    request: Request | None = None
    covered: Covered = field(default_factory=Covered)
    waiter: int | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    brokers_at: float = -math.inf

    @property
    def hedge_at(self) -> float:
        """The time at which another node is asked, if no byte comes before."""
        if not self.attempts or self.kind is RequestKind.CALL:
            return math.inf
        newest = max(each.heard_at for each in self.attempts.values())
        return newest + self.hedge_after


class Flights:
    """The flights, by the number of each attempt, and the times of the last answers."""

    def __init__(self) -> None:
        self._by_number: dict[int, Flight] = {}
        self._by_kind: dict[RequestKind, Flight] = {}
        self._times: dict[RequestKind, deque[float]] = {
            kind: deque(maxlen=KEPT_TIMES) for kind in RequestKind
        }

    def of_kind(self, kind: RequestKind) -> Flight | None:
        """Returns the flight of a kind of Metadata; None if there is none."""
        return self._by_kind.get(kind)

    def metadata(self) -> list[Flight]:
        """Returns the flights of Metadata."""
        return list(self._by_kind.values())

    def hedge_after(self, kind: RequestKind) -> float:
        """Returns the silence after which a request of that kind is hedged."""
        slowest = max(self._times[kind], default=0.0)
        return min(max(HEDGE_FACTOR * slowest, SHORTEST_HEDGE), LONGEST_HEDGE)

    def add(self, flight: Flight, attempt: Attempt) -> None:
        """Adds an attempt of a flight."""
        if attempt.number in self._by_number:
            raise ValueError("the number of an attempt is used once")
        flight.attempts[attempt.number] = attempt
        self._by_number[attempt.number] = flight
        attempt.link.in_flight[attempt.number] = attempt.sent_at
        if flight.kind is not RequestKind.CALL:
            self._by_kind[flight.kind] = flight

    def hedged(self, flight: Flight) -> None:
        """Notes that a hedge has left: the next one waits twice as long."""
        flight.hedge_after = min(2 * flight.hedge_after, LONGEST_HEDGE)

    def answered(self, number: int, now: float) -> tuple[Flight, Attempt] | None:
        """Ends the flight of an attempt that was answered; None if it has ended before."""
        flight = self._by_number.get(number)
        if flight is None:
            return None
        attempt = flight.attempts[number]
        self._times[flight.kind].append(now - attempt.sent_at)
        self.end(flight)
        return flight, attempt

    def failed(self, number: int) -> tuple[Flight, bool] | None:
        """Removes an attempt that failed; returns its flight, and whether it was the last one."""
        flight = self._by_number.pop(number, None)
        if flight is None:
            return None
        flight.attempts.pop(number).link.in_flight.pop(number, None)
        if not flight.attempts:
            self.end(flight)
        return flight, not flight.attempts

    def end(self, flight: Flight) -> None:
        """Forgets a flight: answers to its attempts are dropped from now on.

        Their links go on waiting for them: see Link.in_flight.
        """
        for number in flight.attempts:
            self._by_number.pop(number, None)
        if self._by_kind.get(flight.kind) is flight:
            del self._by_kind[flight.kind]

    def forget(self, names: Iterable[str]) -> None:
        """Notes that answers must not bring these topics back."""
        gone = set(names)
        for flight in self._by_kind.values():
            asks_all = flight.kind is RequestKind.FULL and not flight.asked
            flight.forgotten |= gone if asks_all else gone & flight.asked
