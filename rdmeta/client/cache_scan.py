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
from rdmeta.client.flights import Flight
from rdmeta.client.retry_schedule import DUE, Why
from rdmeta.client.state import State
from rdmeta.core import waits
from rdmeta.errors import Error, from_code
from rdmeta.model import Advice, Applied, Change

__all__ = ["CacheScan"]

# So many change records are read; more would cost too much, and are treated as "anything".
MOST_RECORDS = 1000
MOST_PARTITIONS = 10
DENIED_LOOK = 1.0
LISTENER_NOT_FOUND = 72
UNKNOWN_STATE = waits.UNKNOWN_TOPIC


class CacheScan:
    """Compares the cache with what the policy knew."""

    def __init__(self, state: State) -> None:
        self._s = state
        self._seen = state.cache.version
        # Denied topics become due by time alone, at a time that only the cache knows.
        self._denied: set[str] = set()
        self._denied_at = math.inf
        self._propagating: deque[tuple[float, str]] = deque()
        self._reported: dict[str, int] = {}
        # The watched topics that have changed since the last look.
        self._changed: set[str] = set()
        # Topics that were created again; the policy asks another node.
        self.recreated: list[str] = []
        # Whether a needed topic is absent; the policy asks nodes in turn.
        self.is_any_absent = False

    def look(self, now: float, all_asked: bool = False) -> int:
        """Looks at the cache; returns how many things came nearer.

        `all_asked` says that an answer about every needed topic has come since the last look.
        """
        s = self._s
        s.is_changed = False
        since, self._seen = self._seen, s.cache.version
        moved = 0
        if self._seen != since:
            if s.nodes.knows_brokers:
                s.nodes.use_brokers(s.cache.brokers, now)
            records = self._records(since)
            self._follow_records(records)
            moved += self._follow_changes(since, records, now, all_asked)
        moved += self._look_at_due(now)
        moved += self._look_at_unknown(now)
        moved += self._look_at_waits(now)
        return moved

    def is_needed_now(self, now: float) -> bool:
        """Returns whether look() has something to look at."""
        s = self._s
        self._end_propagation(now)
        if self._denied_at <= now:
            still = {name for name in self._denied if s.cache.state(name) == DENIED}
            s.is_changed |= len(still) < len(self._denied)
            self._denied, self._denied_at = still, now + DENIED_LOOK if still else math.inf
        s.later(self._denied_at)
        return s.is_changed or s.cache.version != self._seen

    def _end_propagation(self, now: float) -> None:
        """Drops the topics that have been unknown for too long."""
        while self._propagating and self._propagating[0][0] <= now:
            _, name = self._propagating.popleft()
            since = self._s.unknown.get(name)
            if since is not None and since + self._s.config.propagation_max <= now:
                self._s.schedule.drop(Why.UNKNOWN, name)
        if self._propagating:
            self._s.later(self._propagating[0][0])

    # ---- changes ----

    def _follow_changes(
        self, since: int, records: Collection[Change] | None, now: float, all_asked: bool
    ) -> int:
        """Looks at those of the watched topics that changed."""
        s = self._s
        fast = s.schedule.names()
        if records is not None:
            changed = {record.topic for record in records if record.topic}
        else:
            watched = list(dict.fromkeys([*fast, *s.suspects.topics(), *s.complaints.topics()]))
            changed = {watched[i] for i in s.cache._changed(watched, since)}
        self._changed = changed
        marks = {name: _mark(s.cache, name) for name in fast if name in changed}
        moved = s.schedule.progressed(marks, now)
        moved += s.suspects.changed(changed, now, all_asked)
        over, topics = s.complaints.changed(changed)
        for name in topics:
            s.schedule.drop(Why.COMPLAINT, name)
        return moved + over

    def _follow_records(self, records: Collection[Change] | None) -> None:
        """Reads the change records, unless they are too many: topics that came, went, returned."""
        s = self._s
        if s.subscriptions.has_patterns:
            if records is None:
                self.match_patterns()
            else:
                is_there = {
                    r.topic: r.kind in _CAME
                    for r in records  # the last record of a topic counts
                    if r.topic and (r.kind in _CAME or r.kind == "topic_removed")
                }
                added = [name for name, there in is_there.items() if there]
                s.subscriptions.match(added, is_there.keys() - set(added))
        if records is not None:
            self.recreated += [
                r.topic
                for r in records
                if r.kind == "topic_recreated" and r.topic and r.topic in s.subscriptions
            ]

    def match_patterns(self) -> None:
        """Looks for the topics of every pattern among all that the cache knows."""
        cache = self._s.cache
        self._s.subscriptions.match_all(lambda prefix: cache.names(prefix=prefix, allow_stale=True))

    def _records(self, since: int) -> Collection[Change] | None:
        changes = self._s.cache.changes(since)
        if changes.resync or len(changes) > MOST_RECORDS:
            return None
        return changes.records

    # ---- what is due ----

    def _look_at_due(self, now: float) -> int:
        s = self._s
        found = {name: int(why) for name, why in s.cache.due()}
        # A topic that an older answer brought back is not matched by a pattern until it is there.
        due = {
            name: why
            for name, why in found.items()
            if name in s.subscriptions
            or (why & Why.KEPT_BACK and s.subscriptions.has_pattern_for(name))
        }
        asked = [name for name in found if name in due or name in s.schedule]
        if not any(found[name] & Why.KEPT_BACK for name in asked):
            s.nodes.clear_behind()
        self.is_any_absent = any(why & Why.ABSENT for why in due.values())
        leaderless = [name for name in due if found[name] & Why.NO_LEADER]
        begun = [
            n for n in leaderless if n in self._changed or not s.schedule.why(n) & Why.NO_LEADER
        ]
        self._changed = set()
        dropped = s.schedule.assign(DUE, due, now)
        for name in begun:
            until = s.elections.open(name, now, lambda each: each.leaderless)
            s.schedule.hurry(name, now, until)
        return len(dropped)

    def _look_at_unknown(self, now: float) -> int:
        """Drops the unknown topics that are known now."""
        s = self._s
        found = [n for n in s.unknown if n not in s.subscriptions or not _is_unknown(s.cache, n)]
        for name in found:
            del s.unknown[name]
            s.schedule.drop(Why.UNKNOWN, name)
        return len(found)

    def unknown(self, names: Iterable[str], now: float) -> None:
        """Notes that an answer, or a failed request, did not bring needed topics.

        That request was the first of their fast schedule.
        """
        s = self._s
        missing = [name for name in names if name in s.subscriptions and name not in s.unknown]
        found = _unknown_among(s.cache, missing)
        for name in found:
            s.unknown[name] = now
            s.schedule.add(Why.UNKNOWN, name, now)
            self._propagating.append((now + s.config.propagation_max, name))
        s.schedule.asked(found, now)

    def answered(self, flight: Flight, applied: Applied, now: float) -> None:
        """Finds the needed topics that an answer should have brought, and did not."""
        self.unknown(self._missing(flight, applied), now)

    def _missing(self, flight: Flight, applied: Applied) -> Iterable[str]:
        s = self._s
        if flight.kind is RequestKind.FULL and not flight.asked:
            names: Collection[str] = s.subscriptions.names()
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
        s = self._s
        before = len(s.waiters)
        for name in s.waiters.topics():
            self.look_at_waits_for(name, now)
        return before - len(s.waiters)

    def look_at_waits_for(self, name: str, now: float) -> None:
        """Ends the waits for one topic if it is there, denied or invalid; a wait is a use of it."""
        s = self._s
        s.subscriptions.touch(name, now)
        for waiter in s.waiters.of_topic(name):
            try:
                found, _ = waits.look(s.cache, name, waiter.partition, waiter.first_answer)
            except Error as error:
                s.waiters.finish(waiter.number, error)
            else:
                if found is not None:
                    s.subscriptions.keep(name)
                    s.waiters.finish(waiter.number, None)

    # ---- errors of topics ----

    def report(self, applied: Applied, now: float) -> None:
        """Adds an event for each needed topic whose error is new.

        An error is new again once the topic has been valid.
        """
        s = self._s
        errors: dict[str, int] = {}
        self._reported = {n: each for n, each in self._reported.items() if s.cache.state(n)}
        if applied.negative:
            for state in (UNKNOWN_STATE, DENIED, INVALID):
                names = s.cache.names(state=state)
                errors.update((name, state) for name in names if name in s.subscriptions)
        for name, state in errors.items():
            if self._reported.get(name) != state:
                error = from_code(state, f"topic {name!r}")
                s.events.append(Problem(error, None, "a topic has an error", name))
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
        s = self._s
        found: list[str] = []
        for name in s.schedule.names():
            topic = s.cache.topic(name, None) if s.schedule.why(name) & Why.NO_LEADER else None
            partitions = topic.partitions if topic else ()
            found += [f"{name}-{p.partition}" for p in partitions if p.error == LISTENER_NOT_FOUND]
            if len(found) >= MOST_PARTITIONS:
                break
        if found:
            shown = tuple(found[:MOST_PARTITIONS])
            error = from_code(LISTENER_NOT_FOUND, f"{count} partitions: {', '.join(shown)}")
            text = "leaders do not have the listener that the client uses"
            s.events.append(Problem(error, None, text, partitions=shown))


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


def forget_excluded(state: State, flight: Flight) -> None:
    """Removes the topics of topic.blacklist that an answer about all topics, or ids, brought."""
    if state.subscriptions.has_exclusions and flight.topics and not flight.asked:
        names = state.cache.names(allow_stale=True)
        state.cache.forget([name for name in names if state.subscriptions.is_excluded(name)])
