"""The retry schedule: topics that are asked for again and again while a reason holds.

A Schedule is that of one topic: at once, then after the fast interval, doubled, +-20 %, up to the
longest backoff. While an election may be under way the wait does not double. A schedule that has
seen no progress for 30 s goes on every 10 s. A new reason, and progress after the 30 s, begin anew.

RetrySchedule has a Schedule per topic. A topic stays for as long as it has at least one reason. The
reasons come from several sources, each of which says now and then which topics it wants: assign()
replaces what that source said before. The times are in a heap. An entry of the heap counts only if
it has the topic's present time. So a change of a time costs one push, and no search.

Topics that are due at almost the same time share a request. So a request also takes topics that
would be due within half of their own interval.

A topic whose name is in flight in another request is skipped: it is due again when a request ends.

Elections has the windows in which an election may be under way: after a complaint, the loss of a
connection to a leader, or leader -1, Kafka names the successor within some seconds. A window opens
once for each leader epoch of a partition (without epochs: for each leader). A complaint that comes
again does not renew it: a partition that stays without a leader costs the same as before, once its
window is over.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Container, Iterable, Mapping
from enum import IntFlag
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from rdmeta.client.backoff import JITTER, Backoff, jittered
from rdmeta.model import Partition

if TYPE_CHECKING:
    from rdmeta._core import MetadataCache

ELECTION_S = 15.0
MANY = 1000

# What is kept of a partition: topic id, leader epoch, leader.
Mark: TypeAlias = "tuple[str | None, int | None, int | None]"


class Elections:
    """The windows, by topic and partition: that of the last epoch of each."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._windows: dict[str, dict[int, tuple[Mark, float]]] = {}
        self._room = MANY

    def open(self, name: str, now: float, concerns: Callable[[Partition], bool]) -> float:
        """Opens the windows of a topic's partitions that an election concerns.

        Returns when the last of them ends; one of this epoch that was open before has its old end.
        """
        topic = self._cache.topic(name, None, allow_stale=True)
        ends = -math.inf
        for each in topic.partitions if topic is not None else ():
            if concerns(each):
                ends = max(ends, self._open(each, now))
        return ends

    def _open(self, each: Partition, now: float) -> float:
        windows = self._windows.get(each.topic)
        if windows is None:
            self._make_room()
            windows = self._windows[each.topic] = {}
        known = windows.get(each.partition)
        ends = now + ELECTION_S if known is None or _is_other(each, known[0]) else known[1]
        windows[each.partition] = (each.topic_id, each.leader_epoch, each.leader), ends
        return ends

    def _make_room(self) -> None:
        """Drops the windows of topics that the cache no longer has, once there are many."""
        if len(self._windows) < self._room:
            return
        for name in [n for n in self._windows if self._cache.topic(n, None) is None]:
            del self._windows[name]
        self._room = max(MANY, 2 * len(self._windows))


def _is_other(each: Partition, before: Mark) -> bool:
    """Returns whether a partition has another leader epoch, or another id, than before.

    Brokers of several versions may answer: what one of the two does not say is no difference.
    """
    topic_id, epoch, leader = before
    if each.topic_id and topic_id and each.topic_id != topic_id:
        return True
    if each.leader_epoch is None or epoch is None:
        return each.leader != leader
    return each.leader_epoch != epoch


SLOW_AFTER = 30.0
SLOW_INTERVAL = 10.0
AT_ONCE = 1000  # topics in one request


class Why(IntFlag):
    """Why a topic is asked for; the first six are those of DueReason."""

    NO_LEADER = 1
    UNREACHABLE = 2
    KEPT_BACK = 4
    ASK_BY_NAME = 8
    ABSENT = 16
    DENIED = 32
    UNKNOWN = 64
    WAITED = 128
    COMPLAINT = 256
    ONCE = 512


DUE = Why.NO_LEADER | Why.UNREACHABLE | Why.KEPT_BACK | Why.ASK_BY_NAME | Why.ABSENT | Why.DENIED


_CALLS = Why.WAITED | Why.COMPLAINT
_MAY_PROPAGATE = int(Why.UNKNOWN | Why.WAITED)

# The reason of a request: the first of these that one of its topics has.
LABELS = (
    (Why.WAITED, "waited for"),
    (Why.COMPLAINT, "complaint"),
    (Why.NO_LEADER, "no leader"),
    (Why.UNREACHABLE, "unreachable leader"),
    (Why.KEPT_BACK, "older answer"),
    (Why.ASK_BY_NAME, "unknown id"),
    (Why.ABSENT, "absent"),
    (Why.DENIED, "denied"),
    (Why.UNKNOWN, "unknown"),
    (Why.ONCE, "confirmation"),
)


class Rules:
    """The intervals of every pace of a client."""

    def __init__(
        self, first: float, longest: float, random: Random, propagation: float = SLOW_AFTER
    ) -> None:
        self.backoff = Backoff(first, longest, random)
        self.longest = longest
        self.propagation = propagation
        self.random = random

    def jitter(self) -> float:
        """Returns a factor of 0.8 to 1.2."""
        return jittered(1.0, self.random)


class Schedule:
    """One schedule: `at` is the time of the next request, `since` that of the last progress."""

    __slots__ = ("asked_at", "at", "hurries_until", "since", "step")

    def __init__(self, now: float) -> None:
        self.since = self.at = now
        self.step = 0
        self.asked_at = -math.inf
        self.hurries_until = -math.inf

    def begin(self, now: float, at: float | None = None) -> None:
        """Begins anew: the next request is due at once, or at `at`."""
        self.since, self.step = now, 0
        self.at = now if at is None else at

    def asked(self, now: float, rules: Rules, jitter: float) -> None:
        """Notes a request; the next one is due an interval later."""
        if now < self.hurries_until:
            self.step = 0
            jitter /= 1 + JITTER  # at most the interval
        else:
            self.step += 1
        self.asked_at = now
        self.at = now + self.interval(now, rules) * jitter

    def hurry(self, now: float, until: float, rules: Rules) -> None:
        """Asks every first interval until then, as an election may be under way."""
        self.hurries_until = max(self.hurries_until, until)
        if now < self.hurries_until:
            self.step = 0
            self.at = min(self.at, max(now, self.asked_at + rules.backoff.mean(1)))

    def slow_after(self, rules: Rules) -> float:
        """Returns how long the pace is fast without progress."""
        return SLOW_AFTER

    def is_slow(self, now: float, rules: Rules) -> bool:
        """Returns whether there has been no progress for too long."""
        return now - self.since >= self.slow_after(rules)

    def interval(self, now: float, rules: Rules) -> float:
        """Returns the time between the last request and the next one, without jitter."""
        if self.is_slow(now, rules) and now >= self.hurries_until:
            return SLOW_INTERVAL
        return rules.backoff.mean(max(self.step, 1))

    def progressed(self, now: float, rules: Rules) -> None:
        """Notes progress; a slow pace begins anew."""
        if self.is_slow(now, rules):
            self.begin(now)
        self.since = now


class _Item(Schedule):
    __slots__ = ("mark", "seen", "why")

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self.why = 0
        self.seen = 0  # every reason since the topic came: one that comes back is not new
        self.mark: object = None

    def slow_after(self, rules: Rules) -> float:
        """Returns the same; a topic that is only unknown has the time of its propagation."""
        return SLOW_AFTER if self.why & ~_MAY_PROPAGATE else rules.propagation


class RetrySchedule:
    """The topics of the fast schedule, by name."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._items: dict[str, _Item] = {}
        self._wanted_by: dict[int, set[str]] = {}
        self._heap: list[tuple[float, str]] = []
        self._skipped: set[str] = set()
        # The topics whose pace hurries, up to those of one request.
        self._hurried: dict[str, _Item] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def names(self) -> list[str]:
        """Returns the names of all topics of the schedule."""
        return list(self._items)

    def label(self, names: Iterable[str]) -> str | None:
        """Returns the reason of a request with these names; None if no topic has one."""
        why = 0
        for name in names:
            item = self._items.get(name)
            why |= item.why if item is not None else 0
        return next((label for bit, label in LABELS if why & bit), None)

    def why(self, name: str) -> Why:
        """Returns a topic's reasons."""
        item = self._items.get(name)
        return Why(0) if item is None else Why(item.why)

    # ---- reasons ----

    def assign(self, source: Why, wanted: Mapping[str, int], now: float) -> set[str]:
        """Replaces the topics of a source, with their reasons; returns those that it dropped."""
        bits = int(source)
        before = self._wanted_by.get(bits, set())
        for name, why in wanted.items():
            self._set(name, bits, int(why), now)
        dropped = before.difference(wanted)
        for name in dropped:
            self._set(name, bits, 0, now)
        self._wanted_by[bits] = set(wanted)
        return dropped

    def add(self, source: Why, name: str, now: float, at: float | None = None) -> None:
        """Adds a topic to a source that has one reason; the first request is due at `at`.

        A wait or a complaint is a call of the application: each one ends a slow pace, or puts it
        off.
        """
        self._wanted_by.setdefault(int(source), set()).add(name)
        item = self._items.get(name)
        if item is not None and source & _CALLS:
            if item.is_slow(now, self._rules):
                item.seen &= ~int(source)
            item.since = now
        self._set(name, int(source), int(source), now, at)

    def drop(self, source: Why, name: str) -> None:
        """Removes a topic from a source that has one reason."""
        self._wanted_by.get(int(source), set()).discard(name)
        self._set(name, int(source), 0, 0.0)

    def drop_each(self, source: Why, names: Container[str]) -> None:
        """Removes those topics from a source that has one reason which are among `names`."""
        for name in [each for each in self._wanted_by.get(int(source), ()) if each in names]:
            self.drop(source, name)

    def _set(self, name: str, bits: int, why: int, now: float, at: float | None = None) -> None:
        """Replaces the `bits` of a topic's reasons by `why`; a new reason begins anew."""
        item = self._items.get(name)
        if item is None:
            if why:
                item = self._items[name] = _Item(now)
                item.begin(now, at)
                item.why = item.seen = why
                self._push(name, item)
            return
        item.why = (item.why & ~bits) | why
        if not item.why:
            del self._items[name]
            self._skipped.discard(name)
        elif item.why & ~item.seen:
            item.seen |= item.why
            item.begin(now, None if at is None else min(at, max(item.at, now)))
            self._push(name, item)

    # ---- elections ----

    def hurry(self, name: str, now: float, until: float) -> None:
        """Asks for a topic of the schedule every first interval until then."""
        item = self._items.get(name)
        if item is None or until <= now or len(self._hurried) >= AT_ONCE:
            return
        self._hurried[name] = item
        item.hurry(now, until, self._rules)
        self._push(name, item)

    def hurried_at(self, now: float) -> float:
        """Returns the time at which the next topic that hurries is due."""
        self._hurried = {
            name: item
            for name, item in self._hurried.items()
            if now < item.hurries_until and self._items.get(name) is item
        }
        return min((item.at for item in self._hurried.values()), default=math.inf)

    def all_hurry(self, names: Iterable[str]) -> bool:
        """Returns whether each of these topics hurries."""
        return self._hurried.keys() >= set(names)

    # ---- times ----

    def _push(self, name: str, item: _Item) -> None:
        heapq.heappush(self._heap, (item.at, name))
        if len(self._heap) > 4 * len(self._items) + 64:
            self._heap = [(each.at, name) for name, each in self._items.items()]
            heapq.heapify(self._heap)

    def _is_current(self, entry: tuple[float, str]) -> bool:
        item = self._items.get(entry[1])
        return item is not None and item.at == entry[0]

    def next_at(self) -> float | None:
        """Returns the time at which the next topic is due; None if there is none."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float, most: int = AT_ONCE) -> list[str]:
        """Returns the topics to ask for now: the most overdue first, up to `most`.

        It is empty unless a topic is due; then it has topics that are almost due as well. The
        caller calls asked() or skip() for each of them.
        """
        at = self.next_at()
        if at is None or at > now:
            return []
        names: dict[str, None] = {}
        early: list[tuple[float, str]] = []
        while self._heap and self._heap[0][0] <= now + self._rules.longest / 2:
            entry = heapq.heappop(self._heap)
            if not self._is_current(entry) or entry[1] in names:
                continue
            item = self._items[entry[1]]
            if item.at - now <= item.interval(now, self._rules) / 2 and len(names) < most:
                names[entry[1]] = None
            else:
                early.append(entry)
                if len(names) >= most:
                    break
        for entry in (*early, *((self._items[name].at, name) for name in names)):
            heapq.heappush(self._heap, entry)
        return list(names)

    def asked(self, names: Iterable[str], now: float) -> None:
        """Notes that a request with these names leaves; names without a reason do not matter."""
        if not self._items:
            return
        jitter = self._rules.jitter()
        for name in names:
            item = self._items.get(name)
            if item is not None:
                item.asked(now, self._rules, jitter)
                self._skipped.discard(name)
                self._push(name, item)

    def skip(self, names: Iterable[str], now: float) -> None:
        """Notes that these names are in flight: they are due again after release().

        They are due after the longest interval at the latest, as another user of the cache may have
        asked for them.
        """
        for name in names:
            item = self._items.get(name)
            if item is not None:
                item.at = now + self._rules.longest
                self._push(name, item)
                self._skipped.add(name)

    def release(self, now: float) -> None:
        """Makes the skipped topics due: a request has ended."""
        skipped, self._skipped = self._skipped, set()
        for name in skipped:
            item = self._items[name]
            if item.at > now:
                item.at = now
                self._push(name, item)

    def progressed(self, marks: Mapping[str, object], now: float) -> int:
        """Takes the present marks of some topics; returns how many differ from those before.

        A mark is a value that changes when the topic comes nearer to health; None is no progress. A
        topic without a mark has changed for the first time, which counts.
        """
        moved = 0
        for name, mark in marks.items():
            item = self._items.get(name)
            if item is None or item.mark == mark:
                continue
            if mark is None:
                item.mark = None
                continue
            moved += 1
            before, item.mark = item.at, mark
            item.progressed(now, self._rules)
            if item.at != before:
                self._push(name, item)
        return moved

    def forget(self, names: Iterable[str]) -> None:
        """Drops topics, whatever their reasons are."""
        for name in names:
            if self._items.pop(name, None) is not None:
                self._skipped.discard(name)
                for wanted in self._wanted_by.values():
                    wanted.discard(name)
