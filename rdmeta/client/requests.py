"""Decides which Metadata requests leave, and what they ask for.

Four kinds can be in flight at once, one request of each, with its hedges:

    NEW       new names, at once; not counted by the budget
    FULL      the needed topics by name, or all topics
    BROKERS   the brokers alone, if nothing is needed
    NAMES     what the fast schedule, the suspects and the refreshes by name want, in one request

A poll goes through them in that order. But NAMES goes before a FULL that lacks one of its topics,
as fast reasons go first. It also goes before a FULL of many topics, as a small question is answered
sooner. A request serves every reason that it covers: a FULL counts as asked for each needed topic
of the fast schedule. The cache's hints keep a name that is in flight out of other requests; only
force and hedges ask for it again.

A FULL is *urgent* at the start, after a rebootstrap, when a connection works again, and when the
subscription changes. It may be *periodic*. Otherwise it waits for the gate of the two counters. All
requests but NEW and periodic ones take from the budget, and so do all hedges. Those for elections
do not, either: they are 2/3 of a fast interval apart at least, and each election has a bounded
time. A request that finds no budget, no link or no slot stays wanted.

Brokers before Metadata v4 create the topics that they are asked for, and cannot be told not to. So
names go to newer brokers only, unless allow.auto.create.topics is set.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import TypeAlias
from uuid import UUID

from rdmeta._core import MetadataCache
from rdmeta.client.actions import Problem, RequestKind, Send
from rdmeta.client.backoff import JITTER, Budget, Gate, jittered
from rdmeta.client.cache_scan import CacheScan
from rdmeta.client.connecting import Connecting
from rdmeta.client.flights import LONGEST_HEDGE, Attempt, Flight, Flights
from rdmeta.client.nodes import Link, Nodes, Wish, addresses
from rdmeta.client.poll_output import PollOutput
from rdmeta.client.retry_schedule import RetrySchedule, Why
from rdmeta.client.subscriptions import Subscriptions
from rdmeta.client.suspects import Suspects
from rdmeta.client.waiting_calls import Scope, Waiters, Want, Wants
from rdmeta.config import Config
from rdmeta.config.address import Address
from rdmeta.errors import UnsupportedVersionError
from rdmeta.model import ALL, All, Applied

# A FULL of up to so many topics goes before NAMES, and covers them.
SMALL = 1000
BROKERS_INTERVAL = 10.0
# The shortest time between two requests for elections, in fast intervals.
HURRIED_SHARE = (1 - JITTER) / (1 + JITTER)
FIRST_WITHOUT_CREATION = 4
FIRST_WITH_BROKERS_ALONE = 1
FIRST_WITH_IDS = 12

AskedTopics: TypeAlias = "All | Collection[str] | Collection[UUID | bytes]"


@dataclass
class _Full:
    """A full refresh that is due."""

    reason: str
    is_urgent: bool
    is_periodic: bool


class Requests:
    """Decides about requests of Metadata."""

    def __init__(
        self,
        cache: MetadataCache,
        config: Config,
        random: Random,
        output: PollOutput,
        *,
        nodes: Nodes,
        subscriptions: Subscriptions,
        schedule: RetrySchedule,
        waiters: Waiters,
        wants: Wants,
        suspects: Suspects,
        gate: Gate,
        flights: Flights,
        connecting: Connecting,
        scan: CacheScan,
    ) -> None:
        self._cache, self._config, self._random, self._output = cache, config, random, output
        self._nodes, self._subscriptions, self._schedule = nodes, subscriptions, schedule
        self._waiters, self._wants, self._suspects = waiters, wants, suspects
        self._gate, self._flights, self._connecting, self._scan = gate, flights, connecting, scan
        self._budget = Budget(config.retry_backoff_max)
        # The requests by reason and result (sent, hedged, answered, failed), and the last one's
        # time, for stats().
        self.counts: Counter[tuple[str, str]] = Counter()
        self.last_try: float | None = None
        self._topics_in_all = 0  # the topics of the last all-topics answer
        self._full: _Full | None = None
        # The reason of a full refresh without the names that were in flight. If their request
        # fails, they are still to be refreshed.
        self._left_out: str | None = None
        self._periodic_at = math.inf
        # When the full refresh that waits may leave, as the gate was when it began to wait.
        self._promised: dict[RequestKind, float] = {}
        # Since when it waits only for the budget.
        self._held: dict[RequestKind, float] = {}
        # When the last periodic refresh of the brokers alone was scheduled; None: of topics too.
        self._brokers_alone_since: float | None = None
        # Where the next request of NAMES does not go: servers whose answer it is to confirm.
        self._around: frozenset[Address] = frozenset()
        # When a request of NAMES may leave that elections want.
        self._hurried_opens = -math.inf
        self._names_min = 0 if config.allow_auto_create else FIRST_WITHOUT_CREATION

    # ---- what is wanted ----

    def want_full(self, reason: str, urgent: bool = False, periodic: bool = False) -> None:
        """Makes a full refresh due."""
        if self._full is None:
            self._full = _Full(reason, urgent, periodic)
            return
        if periodic or (urgent and not (self._full.is_urgent or self._full.is_periodic)):
            self._full.reason = reason
        self._full.is_urgent |= urgent
        self._full.is_periodic |= periodic

    def confirm_elsewhere(self, address: Address) -> None:
        """Sends the next request of NAMES to another server, if there is one."""
        self._around |= {address}

    @property
    def due(self) -> int:
        """How many refreshes wait for a request."""
        return len(self._wants) + (self._full is not None)

    @property
    def is_asking(self) -> bool:
        """Whether there is anything to ask for, or a request without an answer."""
        wanted = self._full is not None or len(self._wants) or self._subscriptions.new
        return bool(
            wanted or self._flights.metadata() or len(self._schedule) or len(self._suspects)
        )

    def periodic(self, now: float) -> None:
        """Makes the periodic refresh due when its time has come."""
        if self._brokers_alone_since is not None and not self._subscriptions.is_empty:
            self._schedule_periodic(self._brokers_alone_since)  # topics do not wait for as long
        if now >= self._periodic_at:
            self._periodic_at = math.inf
            self.want_full("interval", periodic=True)
        self._output.later(self._periodic_at)

    def _schedule_periodic(self, now: float) -> None:
        if self._config.refresh_interval is None:
            return
        is_alone = self._subscriptions.is_empty
        self._brokers_alone_since = now if is_alone else None
        shortest = BROKERS_INTERVAL if is_alone else 0.0
        interval = max(self._config.refresh_interval, shortest)
        self._periodic_at = now + jittered(interval, self._random)

    # ---- the order ----

    def run(self, now: float) -> None:
        """Sends what is due."""
        self._hedge(now)
        self._ask_new(now)
        steps = [self._ask_names, self._ask_full]
        if self._full_covers_fast():
            steps.reverse()
        steps += [self._ask_brokers, self._ask_ids]
        if self._is_starved(now):
            steps = [self._ask_full, self._ask_brokers, self._ask_names, self._ask_ids]
        for step in steps:
            step(now)

    def _is_starved(self, now: float) -> bool:
        """Returns whether fast topics have taken the budget of a full refresh for too long."""
        held = min(self._held.values(), default=math.inf)
        return now >= held + self._config.retry_backoff_max

    def _full_covers_fast(self) -> bool:
        """Returns whether a small full refresh has every topic of the fast schedule."""
        if self._subscriptions.wants_all:
            return self._topics_in_all <= SMALL
        return self._subscriptions.most_names <= SMALL and all(
            name in self._subscriptions for name in self._schedule.names()
        )

    def _is_free(self, kind: RequestKind) -> bool:
        return self._flights.of_kind(kind) is None

    def _may_leave(self, now: float, opens: float, is_free_of_charge: bool = False) -> bool:
        """Returns whether a request may leave that must wait until `opens`, and for the budget."""
        at = opens if is_free_of_charge else max(opens, self._budget.opens)
        if at <= now:
            return True
        self._output.later(at)
        return False

    def _link(self, now: float, wish: Wish) -> Link | None:
        """Returns a link that fits; without one, or with an orphan only, it wishes for one."""
        link = self._nodes.pick(now, wish)
        if link is None or link.is_orphan:
            self._connecting.wish(wish)
        return link

    # ---- NEW ----

    def _ask_new(self, now: float) -> None:
        if not self._subscriptions.new or not self._is_free(RequestKind.NEW):
            return
        if now < self._subscriptions.new_at:
            self._output.later(self._subscriptions.new_at)
            return
        names, unkept = list(self._subscriptions.new), self._subscriptions.unkept()
        if self._is_too_old(now, names):
            return
        link = self._link(now, Wish(self._names_min))
        if link is None:
            return
        to_ask = (
            *self._to_ask(unkept),
            *self._cache.hint(self._not_in_flight(names), ttl=self._ttl()),
        )
        self._subscriptions.sent(names)
        self._schedule.asked(to_ask, now)
        if to_ask:
            self._send(
                now,
                link,
                self._names_flight(RequestKind.NEW, "need", to_ask),
                is_free_of_charge=True,
            )

    # ---- FULL and BROKERS ----

    def _ask_full(self, now: float) -> None:
        wants = self._wants.whole(Scope.NEEDED, Scope.ALL)
        wants_all = self._subscriptions.wants_all or any(want.scope is Scope.ALL for want in wants)
        if self._subscriptions.is_empty and not wants_all:
            self._not_waiting(RequestKind.FULL)  # _ask_brokers() serves it
            return
        full, lowest = self._full, 0 if wants_all else self._names_min
        link = self._full_link(now, RequestKind.FULL, full, wants, lowest)
        if link is None:
            return
        reason = full.reason if full is not None else "refresh"
        is_periodic = full is not None and full.is_periodic
        self._full = None
        self._schedule_periodic(now)
        self._suspects.asked(self._subscriptions.__contains__, now)
        if wants_all:
            self._schedule.asked(self._served(self._schedule.names()), now)
            flight = self._flight(RequestKind.FULL, reason, ALL)
        else:
            flight = self._names_flight(RequestKind.FULL, reason, self._needed_to_ask(now, wants))
        if not wants_all and len(flight.asked) < self._subscriptions.most_names:
            self._left_out = reason
        if flight.topics:
            self._wants.take(wants, flight.covered)
            self._send(now, link, flight, is_free_of_charge=is_periodic)
        if not wants_all:
            self._leave_the_rest(flight, wants)

    def _ask_brokers(self, now: float) -> None:
        full = self._full if self._subscriptions.is_empty else None
        scopes = (Scope.BROKERS, Scope.NEEDED) if self._subscriptions.is_empty else (Scope.BROKERS,)
        wants = self._wants.whole(*scopes)
        if full is None and not wants:
            self._not_waiting(RequestKind.BROKERS)
            return
        # Metadata v0 cannot ask for the brokers alone: it gets all topics with them.
        topics: AskedTopics = ALL if self._nodes.speaks_none(FIRST_WITH_BROKERS_ALONE) else ()
        lowest = 0 if topics is ALL else FIRST_WITH_BROKERS_ALONE
        link = self._full_link(now, RequestKind.BROKERS, full, wants, lowest)
        if link is None:
            return
        if full is not None:
            self._full = None
            self._schedule_periodic(now)
        flight = self._flight(RequestKind.BROKERS, full.reason if full else "refresh", topics)
        self._wants.take(wants, flight.covered)
        self._send(now, link, flight, is_free_of_charge=full is not None and full.is_periodic)

    def _full_link(
        self, now: float, kind: RequestKind, full: _Full | None, wants: list[Want], min_version: int
    ) -> Link | None:
        """Returns the link for a full refresh, or for the brokers alone, if it may leave now."""
        if (full is None and not wants) or not self._is_free(kind):
            self._not_waiting(kind)
            return None
        is_periodic = full is not None and full.is_periodic
        opens = self._gate.opens_after_failures if is_periodic else self._promise(kind)
        if full is not None and full.is_urgent:
            opens = -math.inf
        if opens <= now:
            self._held.setdefault(kind, now)
        if not self._may_leave(now, opens, is_periodic):
            if not self._nodes.is_any_ready:
                self._connecting.wish(Wish(min_version))  # the link takes time as well
            return None
        if min_version == self._names_min and self._is_too_old(now, (), wants):
            return None
        link = self._link(now, Wish(min_version))
        if link is not None:
            self._not_waiting(kind)
        return link

    def _not_waiting(self, kind: RequestKind) -> None:
        """Notes that no full refresh of a kind waits to leave."""
        self._promised.pop(kind, None)
        self._held.pop(kind, None)

    def _promise(self, kind: RequestKind) -> float:
        """Returns when the full refresh that waits may leave.

        Answers to other requests move the gate. They do not put it off: topics that are asked for
        again and again would hold it up for as long.
        """
        return min(self._promised.setdefault(kind, self._gate.opens), self._gate.opens)

    def _needed_to_ask(self, now: float, wants: list[Want]) -> tuple[str, ...]:
        """Returns the needed names, without those that are in flight unless a want forces them."""
        names = self._subscriptions.names()
        to_ask = self._to_ask(
            names, [name for name in _again(wants) if name in self._subscriptions]
        )
        self._subscriptions.sent(names)
        self._schedule.asked(self._served(to_ask), now)
        return to_ask

    def _served(self, names: Collection[str]) -> Collection[str]:
        """Returns those of the names that a full refresh serves: not absent ones.

        Another server is to say that they are not there.
        """
        if not self._around:
            return names
        return [name for name in names if not self._schedule.why(name) & Why.ABSENT]

    def _leave_the_rest(self, flight: Flight, wants: list[Want]) -> None:
        """Leaves to each want the names that were in flight before: NAMES asks for them later."""
        names = self._subscriptions.names() if wants else []
        rest = [name for name in names if name not in flight.asked]
        for want in wants:
            want.whole, want.names = False, dict.fromkeys(rest)
        self._wants.end()

    # ---- NAMES ----

    def _ask_names(self, now: float) -> None:
        at = min(
            t
            for t in (self._schedule.next_at(), self._suspects.next_at(), math.inf)
            if t is not None
        )
        wants = self._wants.named()
        if wants:
            at = min(at, self._gate.opens)
        if at == math.inf:
            self._around = frozenset()  # there is nothing to confirm
            return
        if not self._is_free(RequestKind.NAMES):
            return
        hurried_at = min(self._schedule.hurried_at(now), self._suspects.hurried_at(now))
        hurried_at = max(hurried_at, self._hurried_opens)
        is_hurried = hurried_at <= now
        fast, suspects = self._schedule.due(now), self._suspects.due(now)
        if not is_hurried:
            self._output.later(hurried_at)
            if fast and not (suspects or wants) and self._schedule.all_hurry(fast):
                return
            if not self._may_leave(now, at):
                return
        wanted = {name: None for want in wants for name in want.names}
        names = list(dict.fromkeys([*fast, *suspects, *wanted]))
        if self._is_too_old(now, names, wants):
            return
        link = self._link(now, Wish(self._names_min, not_servers=self._around))
        if link is not None:
            self._send_names(now, link, names, wants, is_hurried)

    def _send_names(
        self,
        now: float,
        link: Link,
        names: list[str],
        wants: list[Want],
        is_hurried: bool,
    ) -> None:
        """Asks for names, but for those that are in flight and not forced."""
        again = [n for want in wants for n in want.again if n in want.names]
        to_ask = dict.fromkeys(self._to_ask(names, again))
        reason = self._schedule.label(to_ask) or (
            "suspect" if self._suspects.due(now) else "refresh"
        )
        flight = self._names_flight(RequestKind.NAMES, reason, tuple(to_ask))
        self._schedule.skip((name for name in names if name not in to_ask), now)
        self._schedule.asked(to_ask, now)
        self._suspects.asked(frozenset(names).__contains__, now)
        if to_ask:
            self._subscriptions.sent(to_ask)
            self._around = frozenset()
            if is_hurried:
                self._hurried_opens = now + HURRIED_SHARE * self._config.fast_interval
            self._send(now, link, flight, is_free_of_charge=is_hurried)
        elif wants:
            self._output.later(now + self._config.retry_backoff_max)

    def _ask_ids(self, now: float) -> None:
        want = next(iter(self._wants.whole(Scope.IDS)), None)
        if want is None or not self._is_free(RequestKind.NAMES):
            return
        if not self._may_leave(now, self._gate.opens):
            return
        if self._nodes.speaks_none(FIRST_WITH_IDS):
            error = UnsupportedVersionError(
                f"no broker speaks Metadata v{FIRST_WITH_IDS}, which topic ids need"
            )
            self._fail([want], error)
            return
        link = self._link(now, Wish(FIRST_WITH_IDS))
        if link is not None:
            flight = self._flight(RequestKind.NAMES, "refresh", want.ids, FIRST_WITH_IDS)
            self._wants.take([want], flight.covered)
            self._send(now, link, flight)

    # ---- brokers that create topics ----

    def _is_too_old(self, now: float, names: Collection[str], wants: Collection[Want] = ()) -> bool:
        """Returns whether no server can be asked for names; then the waits for them fail."""
        if not self._names_min or not self._nodes.speaks_none(self._names_min):
            return False
        if self._subscriptions.wants_all:
            self._ask_all_instead(now, names)
            return True
        error = UnsupportedVersionError(
            f"no broker speaks Metadata v{self._names_min} (Kafka 0.11): older ones create each"
            " topic that they are asked for, unless allow.auto.create.topics is true"
        )
        for name in names:
            for waiter in self._waiters.of_topic(name):
                self._waiters.finish(waiter.number, error)
        self._scan.note_unknown(names, now)
        self._subscriptions.sent(names)
        self._schedule.asked(names, now)
        self._suspects.asked(frozenset(names).__contains__, now)
        self._fail(wants, error)
        if not names:
            if self._full is not None:
                self._full = None
                self._schedule_periodic(now)
            self._wants.add(Want(Scope.BROKERS, whole=True))
        return True

    def _ask_all_instead(self, now: float, names: Collection[str]) -> None:
        """Makes a refresh of all topics due, since these cannot be asked for by name."""
        self.want_full(self._schedule.label(names) or "refresh")
        self._subscriptions.sent(names)
        self._schedule.asked(names, now)
        self._suspects.asked(frozenset(names).__contains__, now)
        self._ask_full(now)

    def _fail(self, wants: Collection[Want], error: UnsupportedVersionError) -> None:
        self._output.report(Problem(error, None, "the request cannot be sent"))
        self._wants.fail(wants, error)

    # ---- hedges ----

    def _hedge(self, now: float) -> None:
        for flight in self._flights.metadata():
            if now < flight.hedge_at:
                self._output.later(flight.hedge_at)
                continue
            links = [attempt.link for attempt in flight.attempts.values()]
            for link in links:
                link.is_silent = True
            numbers = frozenset(link.number for link in links)
            if not self._may_leave(now, -math.inf):
                continue
            link_ = self._link(now, Wish(flight.min_version, numbers, addresses(links)))
            if link_ is not None:
                self._flights.hedged(flight)
                self._send(now, link_, flight, is_hedge=True)
            elif self._nodes.speaks_none(flight.min_version):
                if now >= flight.brokers_at:
                    flight.brokers_at = now + LONGEST_HEDGE  # a newer broker may have come back
                    self._wants.add(Want(Scope.BROKERS, whole=True))
                self._output.later(flight.brokers_at)

    # ---- sending ----

    def _ttl(self) -> float:
        """Returns how long a name is in flight at most; its flight ends it before."""
        return 10 * self._config.socket_timeout

    def _to_ask(self, names: Collection[str], again: Collection[str] = ()) -> tuple[str, ...]:
        """Puts names in flight; returns those that were not, and those of `again` that were."""
        hint, ttl = self._cache.hint, self._ttl()
        to_ask = hint(self._not_in_flight(names), ttl=ttl, force=True)
        if again:
            more = set(again).difference(to_ask)
            to_ask += hint(sorted(more), ttl=ttl, force=True, replace=True)
        return tuple(to_ask)

    def _not_in_flight(self, names: Collection[str]) -> Collection[str]:
        """Returns the names that no request of this client has.

        The cache's hints say the same, unless another writer's answer has ended them.
        """
        busy = [flight.asked for flight in self._flights.metadata() if flight.asked]
        return [name for name in names if not any(name in each for each in busy)] if busy else names

    def _flight(
        self, kind: RequestKind, reason: str, topics: AskedTopics, min_version: int | None = None
    ) -> Flight:
        """Returns the flight of a request that names no topics, or ids."""
        if min_version is None:
            min_version = 0 if topics is ALL else FIRST_WITH_BROKERS_ALONE
        return Flight(kind, reason, min_version, self._flights.hedge_after(kind), topics)

    def _names_flight(self, kind: RequestKind, reason: str, names: tuple[str, ...]) -> Flight:
        """Returns the flight of a request by name."""
        hedge_after = self._flights.hedge_after(kind)
        return Flight(kind, reason, self._names_min, hedge_after, names, frozenset(names))

    def _send(
        self,
        now: float,
        link: Link,
        flight: Flight,
        is_free_of_charge: bool = False,
        is_hedge: bool = False,
    ) -> None:
        request = self._cache.request(
            flight.topics, allow_auto_create=self._config.allow_auto_create, reason=flight.reason
        )
        if not is_hedge:
            flight.request = request
            self._cover(flight)
        attempt = Attempt(self._output.number(), link, request, now)
        self._flights.add(flight, attempt)
        self._nodes.sent(attempt.number, link, now)
        self._connecting.tried(now)
        if not is_free_of_charge:
            self._budget.take(now)
        elif flight.kind not in (RequestKind.NEW, RequestKind.NAMES):
            self._gate.begin_anew()  # it is the periodic refresh
        self.last_try = now
        self.counts[flight.reason, "hedged" if is_hedge else "sent"] += 1
        self._output.do(
            Send(link.number, attempt.number, request, flight.kind, flight.reason, is_hedge)
        )
        self._output.later(flight.hedge_at)

    def _cover(self, flight: Flight) -> None:
        """Gives a flight what it asks for of each refresh."""
        if not len(self._wants):
            return
        all_needed = not self._subscriptions.wants_all and flight.asked.issuperset(
            self._subscriptions.names()
        )
        self._wants.cover(
            None if flight.topics is ALL else flight.asked, flight.covered, all_needed
        )

    # ---- outcomes ----

    def succeeded(self, flight: Flight, applied: Applied, now: float) -> None:
        """Ends what an answer has covered."""
        self.counts[flight.reason, "answered"] += 1
        if flight.topics is ALL:
            self._topics_in_all = applied.topics
        self._schedule.drop_each(Why.ONCE, self._schedule if flight.topics is ALL else flight.asked)
        self._schedule.release(now)
        self._wants.succeeded(flight.covered)
        if self._is_free(RequestKind.NAMES) and self._is_free(RequestKind.NEW):
            self._left_out = None

    def failed(self, flight: Flight, now: float) -> None:
        """Takes back what a failed request was to cover."""
        if flight.request is not None:
            self._cache.apply_failure(flight.request)
        self._gate.failed(now)
        self.counts[flight.reason, "failed"] += 1
        self._wants.failed(flight.covered, self._subscriptions.__contains__)
        if flight.kind in (RequestKind.FULL, RequestKind.BROKERS):
            self.want_full(flight.reason)
        elif self._left_out is not None:
            self.want_full(self._left_out)
        if flight.kind is RequestKind.NEW:
            self._scan.note_unknown(flight.asked, now)
            for name in flight.asked:
                if name in self._subscriptions and not self._scan.is_unknown(name):
                    self._schedule.add(Why.ONCE, name, now, self._gate.opens)
        self._schedule.release(now)
        self._scan.look_again()


def _again(wants: Collection[Want]) -> set[str]:
    return {name for want in wants for name in want.again}
