"""Suspect brokers: those that may be dead although every answer still names them as leaders.

After a broker is killed, the others name it as leader until its session ends, 3 to 9 s later. Their
answers are equal all that time, so nothing in them says that a question is worth repeating. The
connection that broke says so. So the broker of a failed connection becomes suspect. As long as it
leads a needed topic, 100 of its topics are asked for on the fast schedule, in turn. Once the leader
of one of them has moved, all of them are asked for. The topics of which the broker has a replica
are asked for once then, as their in-sync replicas have changed as well.

A suspect is probed by connecting. It is cleared when a connection is ready for requests, or when it
leads nothing that is needed. If it becomes suspect again within 30 s, its schedule goes on where it
was: a broker that comes and goes causes no flood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from rdmeta.client.retry_schedule import Elections, Rules, Schedule

if TYPE_CHECKING:
    from rdmeta._core import MetadataCache

SAMPLE = 100
REMEMBERED = 30.0


class _Suspect:
    """A suspect broker, with the topics that it leads, the next one to ask for first."""

    def __init__(self, now: float) -> None:
        self.pace = Schedule(now)
        self.topics: dict[str, None] = {}
        # Topics that have a replica on the broker; they are asked for once, after a move.
        self.replicas: dict[str, None] = {}
        self.has_moved = False  # since the last request
        self.has_ever_moved = False

    def sample(self) -> list[str]:
        """Returns the topics to ask for now."""
        if self.has_moved:
            return list(self.topics | self.replicas)
        return list(islice(self.topics, SAMPLE))

    def asked(self, now: float, rules: Rules, jitter: float, names: Iterable[str]) -> None:
        """Notes a request: the topics in it come last next time."""
        self.pace.asked(now, rules, jitter)
        self.has_moved, self.replicas = False, {}
        for name in names:
            if name in self.topics:
                del self.topics[name]
                self.topics[name] = None


class Suspects:
    """The suspect brokers, by id."""

    def __init__(
        self,
        cache: MetadataCache,
        rules: Rules,
        is_needed: Callable[[str], bool],
        elections: Elections,
    ) -> None:
        self._cache, self._rules, self._is_needed = cache, rules, is_needed
        self._elections = elections
        self._suspects: dict[int, _Suspect] = {}
        self._past: dict[int, tuple[float, Schedule]] = {}

    def __len__(self) -> int:
        return len(self._suspects)

    def ids(self) -> list[int]:
        """Returns the ids of the suspect brokers."""
        return list(self._suspects)

    def add(self, broker: int, now: float) -> bool:
        """Makes a broker suspect; returns False if it was, or leads nothing that is needed."""
        if broker in self._suspects:
            return False
        suspect = _Suspect(now)
        cleared, pace = self._past.pop(broker, (None, None))
        if pace is not None and cleared is not None and now - cleared < REMEMBERED:
            pace.since += now - cleared  # the time between does not count
            pace.hurries_until = -math.inf  # that was for the topics that it led then
            suspect.pace = pace
        self._suspects[broker] = suspect
        self._read(broker, suspect, now)
        for name in suspect.sample():
            self._hurry(broker, suspect, name, now)
        return broker in self._suspects

    def _hurry(self, broker: int, suspect: _Suspect, name: str, now: float) -> None:
        """Hurries while an election may be under way for what the broker leads of a topic."""
        until = self._elections.open(name, now, lambda each: each.leader == broker)
        suspect.pace.hurry(now, until, self._rules)

    def hurried_at(self, now: float) -> float:
        """Returns the time at which the next suspect's topics are due that hurries."""
        paces = [each.pace for each in self._suspects.values()]
        return min((pace.at for pace in paces if now < pace.hurries_until), default=math.inf)

    def clear(self, broker: int, now: float) -> None:
        """Ends a suspicion."""
        suspect = self._suspects.pop(broker, None)
        if suspect is None:
            return
        self._past = {b: past for b, past in self._past.items() if now - past[0] < REMEMBERED}
        self._past[broker] = (now, suspect.pace)

    def _read(self, broker: int, suspect: _Suspect, now: float) -> None:
        """Reads the needed topics that a broker leads; without any it is cleared."""
        led = dict.fromkeys(each.topic for each in self._cache.partitions_on(broker))
        suspect.topics = {name: None for name in led if self._is_needed(name)}
        if not suspect.topics:
            self.clear(broker, now)

    def topics(self) -> list[str]:
        """Returns the topics that suspect brokers lead, each once."""
        return list({name: None for each in self._suspects.values() for name in each.topics})

    def changed(self, names: Collection[str], now: float, all_asked: bool) -> int:
        """Looks at topics that changed; returns how many of them a suspect no longer leads.

        `all_asked` says that they changed by an answer about every needed topic.
        """
        count = 0
        for broker, suspect in list(self._suspects.items()):
            moved = [n for n in names if n in suspect.topics and not self._leads(broker, n)]
            for name in moved:
                del suspect.topics[name]
            count += len(moved)
            if moved and not all_asked:
                self._moved(broker, suspect, now)
            if moved and not (suspect.topics or suspect.replicas):
                self._read(broker, suspect, now)
        return count

    def _moved(self, broker: int, suspect: _Suspect, now: float) -> None:
        """Makes every topic of a suspect due: those that it leads, and once its replicas."""
        if not suspect.has_ever_moved:
            on = dict.fromkeys(p.topic for p in self._cache.partitions_on(broker, "replica"))
            suspect.replicas = {name: None for name in on if self._is_needed(name)}
        suspect.has_ever_moved = True
        if not suspect.has_moved:
            suspect.has_moved = True
            suspect.pace.begin(now)

    def learn(self, names: Iterable[str], now: float) -> None:
        """Looks at topics that an answer had: a suspect may lead them, and they may be new."""
        for name in names if self._suspects else ():
            for broker, suspect in self._suspects.items():
                is_new = name not in suspect.topics and self._is_needed(name)
                if is_new and self._leads(broker, name):
                    suspect.topics[name] = None
                    self._hurry(broker, suspect, name, now)

    def forget(self, now: float) -> None:
        """Drops the topics that are no longer needed."""
        for broker, suspect in list(self._suspects.items()):
            suspect.topics = {name: None for name in suspect.topics if self._is_needed(name)}
            suspect.replicas = {n: None for n in suspect.replicas if self._is_needed(n)}
            if not suspect.topics:
                self.clear(broker, now)

    def _leads(self, broker: int, name: str) -> bool:
        topic = self._cache.topic(name, None)
        return topic is not None and any(each.leader == broker for each in topic.partitions)

    def next_at(self) -> float | None:
        """Returns the time at which the next suspect's topics are due; None if there is none."""
        return min((each.pace.at for each in self._suspects.values()), default=None)

    def due(self, now: float) -> list[str]:
        """Returns the topics to ask for now."""
        due = [each for each in self._suspects.values() if self._is_due(each.pace, now)]
        return list({name: None for each in due for name in each.sample()})

    def _is_due(self, pace: Schedule, now: float) -> bool:
        """Returns whether it is; one that hurries shares the request of almost the same time."""
        early = pace.interval(now, self._rules) / 2 if now < pace.hurries_until else 0.0
        return pace.at - early <= now

    def asked(self, is_asked: Callable[[str], bool], now: float) -> None:
        """Notes that a request leaves which has every topic for which `is_asked` is true."""
        jitter = self._rules.jitter()
        for broker, suspect in list(self._suspects.items()):
            names = [name for name in suspect.sample() if is_asked(name)]
            if len(names) == len(suspect.sample()):
                suspect.asked(now, self._rules, jitter, names)
                if not suspect.topics:
                    self.clear(broker, now)
