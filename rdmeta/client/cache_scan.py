"""Reads the cache for the policy: what is due, what is known now, and what has moved.

A poll calls look() only if an answer came, the application said something, or the cache's version
has moved. That may be by another door: another writer, a sweep, a leader hint. Its cost depends on
the topics that are due, waited for, complained of, unknown, or led by a suspect. It does not depend
on the number of needed topics. The cache finds those of the watched names that changed; look()
reads only these.

look() counts the steps forward: a topic that is no longer due, an epoch that moved, a wait that
ended. An answer with none is an *equivalent* answer.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable

from rdmeta._core import DENIED, INVALID, MetadataCache
from rdmeta.client.actions import Problem, RequestKind
from rdmeta.client.complaints import Complaints
from rdmeta.client.flights import Flight
from rdmeta.client.nodes import Nodes
from rdmeta.client.poll_output import PollOutput
from rdmeta.client.retry_schedule import DUE, Elections, RetrySchedule, Why
from rdmeta.client.subscriptions import Subscriptions
from rdmeta.client.suspects import Suspects
from rdmeta.client.waiting_calls import Waiters
from rdmeta.config import Config
from rdmeta.core import waits
from rdmeta.errors import Error, from_code
from rdmeta.model import Advice, Applied, Change

# So many change records are read; more would cost too much, and are treated as "anything".
MOST_RECORDS = 1000
MOST_PARTITIONS = 10
DENIED_LOOK = 1.0
LISTENER_NOT_FOUND = 72
UNKNOWN_STATE = waits.UNKNOWN_TOPIC


class CacheScan:
    """Compares the cache with what the policy knew."""

    def __init__(
        self,
        cache: MetadataCache,
        config: Config,
        output: PollOutput,
        *,
        nodes: Nodes,
        subscriptions: Subscriptions,
        schedule: RetrySchedule,
        elections: Elections,
        waiters: Waiters,
        suspects: Suspects,
        complaints: Complaints,
    ) -> None:
        self._cache, self._output, self._nodes = cache, output, nodes
        self._propagation_max = config.propagation_max
        self._subscriptions, self._schedule = subscriptions, schedule
        self._elections, self._waiters = elections, waiters
        self._suspects, self._complaints = suspects, complaints
        # Whether the cache must be looked at although its version is the same.
        self._is_changed = True
        self._seen = cache.version
        # Needed topics that an answer did not bring, and since when.
        self._unknown: dict[str, float] = {}
        # Denied topics become due by time alone, at a time that only the cache knows.
        self._denied: set[str] = set()
        self._denied_at = math.inf
        self._propagating: deque[tuple[float, str]] = deque()
        self._reported: dict[str, int] = {}
        # The watched topics that have changed since the last look.
        self._changed: set[str] = set()
        self._recreated: list[str] = []
        # Whether a needed topic is absent; the policy asks nodes in turn.
        self.is_any_absent = False

    def look_again(self) -> None:
        """Notes that there is something to look at though the cache's version is the same."""
        self._is_changed = True

    def take_recreated(self) -> list[str]:
        """Returns the topics that were created again since the last call."""
        names, self._recreated = self._recreated, []
        return names

    def look(self, now: float, all_asked: bool = False) -> int:
        """Looks at the cache; returns how many things came nearer.

        `all_asked` says that an answer about every needed topic has come since the last look.
        """
        self._is_changed = False
        since, self._seen = self._seen, self._cache.version
        moved = 0
        if self._seen != since:
            if self._nodes.knows_brokers:
                self._nodes.use_brokers(self._cache.brokers, now)
            records = self._records(since)
            self._follow_records(records)
            moved += self._follow_changes(since, records, now, all_asked)
        moved += self._look_at_due(now)
        moved += self._look_at_unknown(now)
        moved += self._look_at_waits(now)
        return moved

    def is_needed_now(self, now: float) -> bool:
        """Returns whether look() has something to look at."""
        self._end_propagation(now)
        if self._denied_at <= now:
            still = {name for name in self._denied if self._cache.state(name) == DENIED}
            self._is_changed |= len(still) < len(self._denied)
            self._denied, self._denied_at = still, now + DENIED_LOOK if still else math.inf
        self._output.later(self._denied_at)
        return self._is_changed or self._cache.version != self._seen

    def _end_propagation(self, now: float) -> None:
        """Drops the topics that have been unknown for too long."""
        while self._propagating and self._propagating[0][0] <= now:
            _, name = self._propagating.popleft()
            since = self._unknown.get(name)
            if since is not None and since + self._propagation_max <= now:
                self._schedule.drop(Why.UNKNOWN, name)
        if self._propagating:
            self._output.later(self._propagating[0][0])

    # ---- changes ----

    def _follow_changes(
        self, since: int, records: Collection[Change] | None, now: float, all_asked: bool
    ) -> int:
        """Looks at those of the watched topics that changed."""
        fast = self._schedule.names()
        if records is not None:
            changed = {record.topic for record in records if record.topic}
        else:
            watched = list(
                dict.fromkeys([*fast, *self._suspects.topics(), *self._complaints.topics()])
            )
            changed = {watched[i] for i in self._cache._changed(watched, since)}
        self._changed = changed
        marks = {name: _mark(self._cache, name) for name in fast if name in changed}
        moved = self._schedule.progressed(marks, now)
        moved += self._suspects.changed(changed, now, all_asked)
        over, topics = self._complaints.changed(changed)
        for name in topics:
            self._schedule.drop(Why.COMPLAINT, name)
        return moved + over

    def _follow_records(self, records: Collection[Change] | None) -> None:
        """Reads the change records, unless they are too many: topics that came, went, returned."""
        if self._subscriptions.has_patterns:
            if records is None:
                self.match_patterns()
            else:
                is_there = {
                    r.topic: r.kind in _CAME
                    for r in records  # the last record of a topic counts
                    if r.topic and (r.kind in _CAME or r.kind == "topic_removed")
                }
                added = [name for name, there in is_there.items() if there]
                self._subscriptions.match(added, is_there.keys() - set(added))
        if records is not None:
            self._recreated += [
                r.topic
                for r in records
                if r.kind == "topic_recreated" and r.topic and r.topic in self._subscriptions
            ]

    def match_patterns(self) -> None:
        """Looks for the topics of every pattern among all that the cache knows."""
        cache = self._cache
        self._subscriptions.match_all(lambda prefix: cache.names(prefix=prefix, allow_stale=True))

    def _records(self, since: int) -> Collection[Change] | None:
        changes = self._cache.changes(since)
        if changes.resync or len(changes) > MOST_RECORDS:
            return None
        return changes.records

    # ---- what is due ----

    def _look_at_due(self, now: float) -> int:
        found = {name: int(why) for name, why in self._cache.due()}
        # A topic that an older answer brought back is not matched by a pattern until it is there.
        due = {
            name: why
            for name, why in found.items()
            if name in self._subscriptions
            or (why & Why.KEPT_BACK and self._subscriptions.has_pattern_for(name))
        }
        asked = [name for name in found if name in due or name in self._schedule]
        if not any(found[name] & Why.KEPT_BACK for name in asked):
            self._nodes.clear_behind()
        self.is_any_absent = any(why & Why.ABSENT for why in due.values())
        leaderless = [name for name in due if found[name] & Why.NO_LEADER]
        begun = [
            n for n in leaderless if n in self._changed or not self._schedule.why(n) & Why.NO_LEADER
        ]
        self._changed = set()
        dropped = self._schedule.assign(DUE, due, now)
        for name in begun:
            until = self._elections.open(name, now, lambda each: each.leaderless)
            self._schedule.hurry(name, now, until)
        return len(dropped)

    def _look_at_unknown(self, now: float) -> int:
        """Drops the unknown topics that are known now."""
        found = [
            n
            for n in self._unknown
            if n not in self._subscriptions or not _is_unknown(self._cache, n)
        ]
        for name in found:
            del self._unknown[name]
            self._schedule.drop(Why.UNKNOWN, name)
        return len(found)

    def note_unknown(self, names: Iterable[str], now: float) -> None:
        """Notes that an answer, or a failed request, did not bring needed topics.

        That request was the first of their fast schedule.
        """
        missing = [
            name for name in names if name in self._subscriptions and name not in self._unknown
        ]
        found = _unknown_among(self._cache, missing)
        for name in found:
            self._unknown[name] = now
            self._schedule.add(Why.UNKNOWN, name, now)
            self._propagating.append((now + self._propagation_max, name))
        self._schedule.asked(found, now)

    def is_unknown(self, name: str) -> bool:
        """Returns whether a needed topic is one that an answer did not bring."""
        return name in self._unknown

    @property
    def unknown(self) -> int:
        """How many needed topics an answer did not bring."""
        return len(self._unknown)

    def forget(self, names: Iterable[str]) -> None:
        """Takes topics that are needed no longer."""
        for name in names:
            self._unknown.pop(name, None)
        self.look_again()

    def answered(self, flight: Flight, applied: Applied, now: float) -> None:
        """Finds the needed topics that an answer should have brought, and did not."""
        self.note_unknown(self._missing(flight, applied), now)

    def forget_excluded(self, flight: Flight) -> None:
        """Removes topics of topic.blacklist that an answer about all topics, or ids, brought."""
        if self._subscriptions.has_exclusions and flight.topics and not flight.asked:
            names = self._cache.names(allow_stale=True)
            self._cache.forget([n for n in names if self._subscriptions.is_excluded(n)])

    def _missing(self, flight: Flight, applied: Applied) -> Iterable[str]:
        if flight.kind is RequestKind.FULL and not flight.asked:
            names: Collection[str] = self._subscriptions.names()
        elif (
            applied.negative
            or applied.topics < len(flight.asked)
            or Advice.ASK_AGAIN in applied.advice  # a topic's error of which nothing was stored
        ):
            names = flight.asked
        else:
            names = ()
        return names

    # ---- waits ----

    def _look_at_waits(self, now: float) -> int:
        """Ends the waits for topics that are there, denied or invalid; returns how many."""
        before = len(self._waiters)
        for name in self._waiters.topics():
            self.look_at_waits_for(name, now)
        return before - len(self._waiters)

    def look_at_waits_for(self, name: str, now: float) -> None:
        """Ends the waits for one topic if it is there, denied or invalid; a wait is a use of it."""
        self._subscriptions.touch(name, now)
        for waiter in self._waiters.of_topic(name):
            try:
                found, _ = waits.look(self._cache, name, waiter.partition, waiter.first_answer)
            except Error as error:
                self._waiters.finish(waiter.number, error)
            else:
                if found is not None:
                    self._subscriptions.keep(name)
                    self._waiters.finish(waiter.number, None)

    # ---- errors of topics ----

    def report(self, applied: Applied, now: float) -> None:
        """Adds an event for each needed topic whose error is new.

        An error is new again once the topic has been valid.
        """
        errors: dict[str, int] = {}
        self._reported = {n: each for n, each in self._reported.items() if self._cache.state(n)}
        if applied.negative:
            for state in (UNKNOWN_STATE, DENIED, INVALID):
                names = self._cache.names(state=state)
                errors.update((name, state) for name in names if name in self._subscriptions)
        for name, state in errors.items():
            if self._reported.get(name) != state:
                error = from_code(state, f"topic {name!r}")
                self._output.report(Problem(error, None, "a topic has an error", name))
        self._reported.update(errors)
        self._denied.update(name for name, state in errors.items() if state == DENIED)
        if self._denied:
            self._denied_at = min(self._denied_at, now + DENIED_LOOK)
        if applied.listener_not_found:
            self._report_listeners(applied.listener_not_found)

    def last_error(self, name: str) -> int | None:
        """Returns the last reported error of a needed topic, None if it has none.

        The cache keeps "there is no such topic" for a moment only.
        """
        return self._reported.get(name)

    def _report_listeners(self, count: int) -> None:
        found: list[str] = []
        for name in self._schedule.names():
            topic = (
                self._cache.topic(name, None) if self._schedule.why(name) & Why.NO_LEADER else None
            )
            partitions = topic.partitions if topic else ()
            found += [f"{name}-{p.partition}" for p in partitions if p.error == LISTENER_NOT_FOUND]
            if len(found) >= MOST_PARTITIONS:
                break
        if found:
            shown = tuple(found[:MOST_PARTITIONS])
            error = from_code(LISTENER_NOT_FOUND, f"{count} partitions: {', '.join(shown)}")
            text = "leaders do not have the listener that the client uses"
            self._output.report(Problem(error, None, text, partitions=shown))


_CAME = frozenset(("topic_added", "topic_recreated"))


def _mark(cache: MetadataCache, name: str) -> object:
    """Returns a value that changes when a leader or an epoch does; None without the topic."""
    topic = cache.topic(name, None, allow_stale=True)
    if topic is None:
        return None
    return tuple((p.partition, p.leader, p.leaderless, p.leader_epoch) for p in topic.partitions)


def _is_unknown(cache: MetadataCache, name: str) -> bool:
    return cache.state(name) in waits.NOTHING_KNOWN


def _unknown_among(cache: MetadataCache, names: list[str]) -> list[str]:
    if not names:
        return []
    codes = cache.leaders(names, [0] * len(names))
    return [names[i] for i, code in enumerate(codes) if code in waits.NOTHING_KNOWN]
