"""A cluster that changes at random while recorders start, crash and return, and what they saw.

`Simulation` runs real recorders on a fake cache. It also keeps what each recording can know, in a
few lines and without reading any file. `periods` and `slots` compute from that the rows which the
tables should have.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from fake_cache import START, FakeCache, FakeClock

from rdmeta.history import Recorder

MAX_GAP = 20.0
TOPICS = ("orders", "payments")
Step = tuple[object, ...]

IDS = ("A" * 22, "B" * 22, None)
LEADERS = (1, 2, 3, None)
ISRS = ((1, 2, 3), (2, 1, 3), (1, 2), (3,))

KINDS = ("topic_removed", "topic_absent", "topic_error")


def history(seed: int, length: int = 60) -> list[Step]:
    """Returns random steps of a cluster: changes of it, time, and the recorders' actions."""
    random = Random(seed)
    choose = random.choice

    def step() -> Step:
        topic, partition, recorder = choose(TOPICS), random.randrange(2), random.randrange(2)
        return random.choices(
            [
                ("lead", topic, partition, choose(LEADERS), random.random() < 0.8),
                ("isr", topic, partition, choose(ISRS)),
                ("add", topic, choose(IDS), choose(LEADERS)),
                ("remove", topic, choose(KINDS)),
                ("grow", topic, choose(LEADERS)),
                ("pass", random.randint(1, 9)),
                ("observe", recorder),
                ("flush", recorder),
                ("crash", recorder),
                ("close", recorder),
                ("pass", 30),
                ("forget",),
            ],
            weights=[6, 4, 3, 2, 1, 6, 8, 2, 1, 1, 1, 1],
        )[0]

    return [("observe", 0), *(step() for _ in range(length))]


class Seen(NamedTuple):
    """One recording: its begin and end, and what it knew of each partition at each step."""

    session: str
    begin: datetime
    end: datetime
    steps: list[tuple[datetime, dict[tuple[str, int], tuple[object, ...]]]]


class _Watcher:
    """A recorder, its recording's looks at the cache, and how many of them are on disk."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.session: str | None = None
        self.begin = self.looked = self.kept = START
        self.looks: list[int] = []
        self.kept_looks = 0


class Simulation:
    """Plays a list of steps on one cluster; skips the steps that are impossible."""

    def __init__(self, cluster_id: str, directory: Path, steps: list[Step]) -> None:
        self.clock = FakeClock()
        self.cache = FakeCache(self.clock, cluster_id)
        for topic in TOPICS:
            self.cache.add_topic(topic, IDS[0], [1, 2])
        self.seen: list[Seen] = []
        self._directory = directory
        self._watchers = (_Watcher(), _Watcher())
        self._floor = 0
        for name, *arguments in steps:
            getattr(self, f"_{name}")(*arguments)
        for watcher in range(2):
            self._crash(watcher)

    def _pass(self, seconds: int) -> None:
        self.clock.pass_seconds(seconds)

    def _forget(self) -> None:
        self.cache.forget_changes()
        self._floor = self.cache.version

    def _add(self, topic: str, topic_id: str | None, leader: int | None) -> None:
        self.cache.add_topic(topic, topic_id, [leader, 2])

    def _remove(self, topic: str, kind: str) -> None:
        if self._count(topic):
            self.cache.remove_topic(topic, kind)

    def _grow(self, topic: str, leader: int | None) -> None:
        if self._count(topic):
            self.cache.grow(topic, leader)

    def _lead(self, topic: str, partition: int, leader: int | None, elected: bool) -> None:
        if self._count(topic):
            now = self.cache.topic(topic).partitions[partition]
            if elected or leader != now.leader:
                self.cache.set_leader(topic, partition, leader, None if elected else 0)

    def _isr(self, topic: str, partition: int, isr: tuple[int, ...]) -> None:
        if self._count(topic):
            self.cache.set_isr(topic, partition, isr)

    def _count(self, topic: str) -> int:
        return sum(len(t.partitions) for t in self.cache.topics() if t.name == topic)

    def _observe(self, number: int) -> None:
        w = self._watchers[number]
        if w.recorder is None:
            w.recorder = Recorder(
                self.cache, self._directory, clock=self.clock, max_gap=MAX_GAP, flush_every=1e9
            )
        w.recorder.observe()
        late = (self.clock.now - w.looked).total_seconds() > MAX_GAP
        if w.session and (late or w.looks[-1] < self._floor):
            self._ended(w, kept=False)
        if w.session is None:
            w.session, w.begin, w.looks = w.recorder.session, self.clock.now, []
            w.kept, w.kept_looks = self.clock.now, 1
        w.looks.append(self.cache.version)
        w.looked = self.clock.now

    def _flush(self, number: int) -> None:
        w = self._watchers[number]
        if w.recorder and w.session:
            w.recorder.flush()
            w.kept, w.kept_looks = w.looked, len(w.looks)

    def _close(self, number: int) -> None:
        w = self._watchers[number]
        if w.recorder and w.session:
            w.recorder.close()
            self._ended(w, kept=False)

    def _crash(self, number: int) -> None:
        w = self._watchers[number]
        if w.recorder and w.session:
            w.recorder = None
            self._ended(w, kept=True)

    def _ended(self, w: _Watcher, kept: bool) -> None:
        """Ends the recording; with `kept`, only the part that was flushed to disk is left."""
        assert w.session is not None
        looks = w.looks[: w.kept_looks] if kept else w.looks
        steps = [(w.begin, _known(self.cache, looks[0]))]
        for version in range(looks[0] + 1, looks[-1] + 1):
            steps.append((self.cache.truth[version][0], _known(self.cache, version)))
        self.seen.append(Seen(w.session, w.begin, w.kept if kept else w.looked, steps))
        w.session = None


def _known(cache: FakeCache, version: int) -> dict[tuple[str, int], tuple[object, ...]]:
    """Returns what a recorder knows of each partition after `version`."""
    return {
        key: (at.created, at.topic_id, at.leader, at.epoch, at.isr)
        for key, at in cache.truth[version][1].items()
    }


def periods(seen: Seen) -> Iterator[tuple[object, ...]]:
    """Yields the rows of partition_interval for one recording alone."""
    keys = {key for _, known in seen.steps for key in known}
    for key in keys:
        now: tuple[object, ...] | None = None
        since = seen.begin
        for when, known in [*seen.steps, (seen.end, {})]:
            after = known.get(key)
            if after == now and (when, known) != (seen.end, {}):
                continue
            if now is not None:
                yield (*key, *now[1:], since, when, seen.session)
            now, since = after, when


def slots(recordings: list[Seen]) -> dict[tuple[object, ...], tuple[object, ...]]:
    """Returns the state of each partition in each second, and its recording.

    Where recordings overlap, it is the one that began first.
    """
    chosen: dict[tuple[object, ...], tuple[object, ...]] = {}
    for seen in sorted(recordings, key=lambda s: (s.begin, s.session)):
        mine: dict[tuple[object, ...], tuple[object, ...]] = {}
        for topic, partition, *state, begin, end, session in periods(seen):
            at = begin
            while at < end:  # type: ignore[operator]
                mine[at, topic, partition] = (*state, session)
                at += timedelta(seconds=1)  # type: ignore[operator]
        at = seen.begin
        while at < seen.end:
            if not any(s.begin <= at < s.end for s in recordings if _before(s, seen)):
                chosen.update({key: value for key, value in mine.items() if key[0] == at})
            at += timedelta(seconds=1)
    return chosen


def _before(one: Seen, other: Seen) -> bool:
    return (one.begin, one.session) < (other.begin, other.session)
