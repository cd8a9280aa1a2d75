"""A cluster over several days, and recorders that each have a clock, and polls, of their own.

Each recorder has a cache that learns at a poll what the cluster did since the one before. `seen`
keeps what each recording can know, without reading any file. `told` gives the state that tables
must have at a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from fake_cache import FakeCache, FakeClock

from rdmeta.history import Recorder
from rdmeta.model import Broker

__all__ = ["BEGIN", "DAY_US", "EPOCH", "Fleet", "Seen", "State", "told"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
BEGIN = datetime(2026, 11, 1, 21, tzinfo=timezone.utc)
DAY_US = 86_400_000_000
TOPICS = ("orders", "payments", "clicks")
KINDS = ("topic_removed", "topic_absent", "topic_error")
# Changes that no answer tells; a recorder asks for the min ISR.
OF_LOGS = (
    *("set_controller", "set_min_isr", "set_moving", "set_recovering", "set_static_min_isr"),
    "shut_down",
)
RACKS = ("east", "west", None)
State = dict[tuple[Any, ...], tuple[Any, ...]]


class Seen(NamedTuple):
    """One recording: its time in microseconds, and what it knew from each look on."""

    session: str
    begin: int
    end: int
    looks: list[tuple[int, State]]


class _Watcher:
    """A recorder with its own clock and cache; `kept` counts the looks that are on disk."""

    def __init__(self, fleet: Fleet, random: Random) -> None:
        self.fleet, self.random = fleet, random
        self.clock = FakeClock()
        self.cache = FakeCache(self.clock, fleet.cluster_id)
        self.every = random.choice((900, 1200, 1800)) * 1_000_000
        self.phase = random.choice((0, random.randrange(self.every)))
        self.skew = random.choice((0, 700_000, -400_000_000, 95_000_000))
        self.skips = fleet.skips or random.random() < 0.5
        self.true = 0
        self.done = 0
        self.recorder: Recorder | None = None
        self.session: str | None = None
        self.looks: list[tuple[int, State]] = []
        self.kept = self.lost_before = 0
        self.last = 0
        self.racks: dict[int, str | None] = {}
        self.min_isr: dict[str, int] = {}
        self.ids: dict[str, str | None] = {}
        self.new: dict[str, int | None] = {}

    def watch(self, until: int) -> None:
        """Polls until that time of the cluster, and does what recorders do in between."""
        random = self.random
        at = self.phase + random.choice((0, random.randrange(12) * self.every))
        while at < until:
            self.poll(at)
            action = random.choices(
                ("", "flush", "crash", "close", "gap", "forget", "step"),
                weights=(60, 8, 3, 2, 2, 1, 1),
            )[0]
            if action == "flush" and self.recorder:
                self.recorder.flush()
                self.kept = len(self.looks)
            elif action == "crash":
                self.crash()
                at += self.every * random.choice((0, 1, 9))
            elif action == "close" and self.recorder:
                self.recorder.close()
                self.ended()
            elif action == "gap":
                at += self.every * random.randrange(4, 9)
            elif action == "forget":
                self.cache.forget_changes()
                self.lost_before = self.cache.version
            elif action == "step":
                self.skew += random.choice((3_600_000_000, -3_600_000_000, -5_000_000))
            at += self.every
        self.crash()

    def poll(self, at: int) -> None:
        """Learns what happened, and observes it."""
        now = self.fleet.begin + at + self.skew
        self.clock.now = EPOCH + timedelta(microseconds=now)
        passed, self.true = at - self.true, at
        stepped, before = self.fleet.begin + at + self.skew - passed, self.last
        self.last = now
        version = self.cache.version
        came, gone = self.learn(at)
        if self.recorder is None:
            self.recorder = Recorder(
                self.cache,
                self.fleet.directory,
                clock=self.clock,
                monotonic=lambda: self.true / 1e6,
                max_gap=3e-6 * self.every,
                flush_every=1e9,
                uuids=self.fleet.uuid,
            )
        if self.random.random() < 0.2:
            self.ask()
        self.recorder.observe()
        if self.session is not None:
            is_step = abs(stepped - before) > max(1e6, 0.001 * passed)
            is_lost = self.lost_before > version
            if is_step or passed > 3 * self.every or is_lost:
                self.ended()
        is_new = self.session != self.recorder.session
        if self.session is None:
            self.begin(now, {b.id: b.rack for b in self.cache.brokers})
            self.settle()
        else:
            midnight = now - now % DAY_US
            if self.looks[-1][0] < midnight:
                state = self.looks[-1][1]
                self.end(midnight)
                self.begin(
                    midnight, {b: r for b, r in self.racks.items() if ("broker", b) in state}
                )
                self.looks.append((midnight, self.without_lost_racks(state)))
            self.racks.update(came)
            for topic in gone:
                self.forget(topic)
            for topic in [each for each in self.new if each in self.ids_now()]:
                self.keep(topic)
        assert self.session == self.recorder.session
        self.looks.append((now, self.state()))
        if is_new:  # a recorder writes a baseline at once
            self.kept = len(self.looks)

    def learn(self, at: int) -> tuple[dict[int, str | None], list[str]]:
        """Lets the cache learn of the cluster's changes; returns racks and topics that ended."""
        came: dict[int, str | None] = {}
        gone: list[str] = []
        changes = self.fleet.changes
        skipped: dict[Any, int] = {}
        while self.done < len(changes) and changes[self.done][0] <= at:
            _, name, arguments = changes[self.done]
            self.done += 1
            if name == "set_leader":
                topic, partition, leader = arguments
                risen = skipped[topic, partition] = skipped.get((topic, partition), 0) + 1
                if self.skips and self.changes_again(topic, partition, at):
                    continue
                epoch = self.cache.topic(topic).partitions[partition].leader_epoch or 0
                arguments = topic, partition, leader, epoch + risen
                del skipped[topic, partition]
            if name == "set_broker":
                came[arguments[0].id] = arguments[0].rack
            elif name == "remove_topic" or (name == "add_topic" and self.has(arguments[0])):
                gone.append(arguments[0])
            if name in ("add_topic", "remove_topic"):
                skipped = {key: n for key, n in skipped.items() if key[0] != arguments[0]}
            getattr(self.cache, name)(*arguments)
        return came, gone

    def changes_again(self, topic: str, partition: int, until: int) -> bool:
        """Returns whether a partition gets another leader, or ends, by that time, too."""
        return any(
            arguments[:2] == (topic, partition)
            if name == "set_leader"
            else name in ("add_topic", "remove_topic") and arguments[0] == topic
            for when, name, arguments in self.fleet.changes[self.done :]
            if when <= until
        )

    def has(self, topic: str) -> bool:
        return any(each.name == topic for each in self.cache.topics())

    def ask(self) -> None:
        """Tells the recorder min.insync.replicas of topics, as brokers answer it."""
        assert self.recorder is not None
        values = {
            topic: self.random.choice((1, 2, None)) for topic in self.random.sample(TOPICS, 2)
        }
        self.recorder.configs(values)
        for topic, value in values.items():
            if value == self.min_isr.get(topic):
                self.new.pop(topic, None)
            else:
                self.new[topic] = value

    def settle(self) -> None:
        """Keeps a min ISR over an interruption only if an id says that a topic is the same."""
        now = self.ids_now()
        told = [topic for topic in self.new if topic in now]
        for topic, topic_id in list(self.ids.items()):
            if topic not in told and (topic_id is None or now.get(topic) != topic_id):
                self.forget(topic)
        for topic in told:
            self.keep(topic)

    def ids_now(self) -> dict[str, str | None]:
        return {topic.name: topic.topic_id for topic in self.cache.topics()}

    def forget(self, topic: str) -> None:
        for each in (self.min_isr, self.ids, self.new):
            each.pop(topic, None)

    def keep(self, topic: str) -> None:
        value = self.new[topic]
        self.forget(topic)
        if value is not None:
            self.min_isr[topic] = value
            self.ids[topic] = self.ids_now()[topic]

    def state(self) -> State:
        """Returns what the recorder knows now, by table and key."""
        found: State = {("broker", b.id): (b.host, b.port, b.rack) for b in self.cache.brokers}
        for topic in self.cache.topics():
            min_isr = self.min_isr.get(topic.name)
            found["topic", topic.name] = (topic.topic_id, len(topic.partitions))
            if min_isr is not None:
                found["config", "topic", topic.name, "min.insync.replicas"] = (str(min_isr),)
            for p in topic.partitions:
                isr, offline = (tuple(sorted(x)) for x in (p.isr, p.offline_replicas))
                found["partition", topic.name, p.partition] = (
                    topic.topic_id,
                    p.leader,
                    p.leader_epoch,
                    isr,
                    p.replicas,
                    offline,
                    min_isr,
                    self.racks_of(p.replicas),
                )
        return found

    def racks_of(self, replicas: Iterable[int]) -> int | None:
        racks = {self.racks.get(broker) for broker in replicas}
        return None if None in racks else len(racks)

    def without_lost_racks(self, state: State) -> State:
        """Returns a state as a baseline tells it: without the racks of brokers that have gone."""
        return {
            key: (*value[:-1], self.racks_of(value[4])) if key[0] == "partition" else value
            for key, value in state.items()
        }

    def begin(self, at: int, racks: dict[int, str | None]) -> None:
        assert self.recorder is not None
        self.session, self.looks, self.racks = self.recorder.session, [], racks

    def ended(self) -> None:
        self.end(self.looks[-1][0])
        self.session = None

    def crash(self) -> None:
        """Ends the recorder without a word: only what was written is left."""
        if self.session is not None:
            self.looks = self.looks[: self.kept]
            self.ended()
        self.recorder = None
        self.min_isr, self.ids, self.new = {}, {}, {}

    def end(self, at: int) -> None:
        assert self.session is not None
        self.fleet.seen.append(Seen(self.session, self.looks[0][0], at, self.looks))


class Fleet:
    """Makes the history of one cluster at random; the same seed makes the same changes.

    The list of a generated cluster may take their place; what only a log tells is passed over.
    Some caches see only the last leader since the poll before; with `skips` all of them do.
    """

    def __init__(
        self,
        cluster_id: str,
        directory: Path,
        seed: int,
        *,
        hours: int = 30,
        changes: int | Sequence[tuple[int, str, tuple[Any, ...]]] = 100,
        recorders: int = 3,
        skips: bool = False,
    ) -> None:
        self.cluster_id, self.directory = cluster_id, directory
        self.skips = skips
        self.begin = (BEGIN - EPOCH) // timedelta(microseconds=1)
        self.seen: list[Seen] = []
        self._random = random = Random(seed)
        self._uuids = Random(f"{cluster_id} {seed}")
        self._topics: dict[str, list[int | None]] = {}
        self._brokers: list[int] = []
        # The leader that each partition began with, by topic, id and number.
        self.first: dict[tuple[str, str | None, int], int | None] = {}
        self._ids: dict[str, str | None] = {}
        self.changes: list[tuple[int, str, tuple[Any, ...]]] = []
        until = hours * 3_600_000_000
        if isinstance(changes, int):
            for broker in (1, 2, 3):
                self._set_broker(-1, broker)
            self._add(-1, TOPICS[0])
            for at in sorted(self._time(until) for _ in range(changes)):
                self._change(at)
        else:
            self.changes = [each for each in changes if each[1] not in OF_LOGS]
        for _ in range(recorders):
            _Watcher(self, Random(random.random())).watch(until)

    def uuid(self) -> UUID:
        """Returns the UUID of the next recording."""
        return UUID(int=self._uuids.getrandbits(128))

    def _time(self, until: int) -> int:
        """Returns the time of a change; many lie about midnight, and some at it."""
        random = self._random
        midnight = 3 * 3_600_000_000 + DAY_US * random.randrange(until // DAY_US)
        near = midnight + random.randrange(-1_800_000_000, 1_800_000_000)
        return random.choice((random.randrange(until), random.randrange(until), near, midnight))

    def _put(self, at: int, name: str, *arguments: Any) -> None:
        self.changes.append((at, name, arguments))

    def _change(self, at: int) -> None:
        random = self._random
        topic = random.choice(TOPICS)
        if topic not in self._topics:
            self._add(at, topic)
            return
        partition = random.randrange(len(self._topics[topic]))
        some = random.choice(((1, 2, 3), (2, 1, 3), (1, 2), (3,), (3, 4, 2)))
        makes: list[Any] = [
            lambda: self._put(at, "set_leader", topic, partition, random.choice((1, 2, 3, None))),
            lambda: self._put(at, "set_isr", topic, partition, some),
            lambda: self._put(at, "set_replicas", topic, partition, some),
            lambda: self._put(at, "set_offline", topic, partition, random.choice(((), (2,)))),
            lambda: self._set_broker(at, random.randrange(1, 5)),
            lambda: self._remove_broker(at),
            lambda: self._add(at, topic),
            lambda: self._remove(at, topic),
            lambda: self._grow(at, topic),
        ]
        random.choices(makes, weights=(9, 5, 2, 2, 2, 1, 1, 1, 1))[0]()

    def _add(self, at: int, topic: str) -> None:
        leaders = [self._random.choice((1, 2, None)) for _ in range(self._random.randrange(1, 3))]
        self._topics[topic], self._ids[topic] = leaders, self._id()
        self.first |= {(topic, self._ids[topic], n): each for n, each in enumerate(leaders)}
        self._put(at, "add_topic", topic, self._ids[topic], leaders)

    def _id(self) -> str | None:
        """Returns the id of a new topic, None from brokers that do not tell it."""
        if self._random.random() < 0.2:
            return None
        return f"{len(self.changes):022d}"

    def _remove(self, at: int, topic: str) -> None:
        del self._topics[topic]
        self._put(at, "remove_topic", topic, self._random.choice(KINDS))

    def _grow(self, at: int, topic: str) -> None:
        leader = self._random.choice((1, 2, None))
        self.first[topic, self._ids[topic], len(self._topics[topic])] = leader
        self._topics[topic] = [*self._topics[topic], leader]
        self._put(at, "grow", topic, leader)

    def _set_broker(self, at: int, broker: int) -> None:
        host = f"host-{self._random.randrange(2)}"
        if broker not in self._brokers:
            self._brokers.append(broker)
        self._put(at, "set_broker", Broker(broker, host, 9092, self._random.choice(RACKS)))

    def _remove_broker(self, at: int) -> None:
        if len(self._brokers) > 1:
            broker = self._brokers.pop(self._random.randrange(len(self._brokers)))
            self._put(at, "remove_broker", broker)


def told(seen: list[Seen], at: int) -> tuple[str | None, State]:
    """Returns the recording that counts at a moment, and what it knew then."""
    for each in sorted(seen, key=lambda s: (s.begin, s.session)):
        if each.begin <= at < each.end:
            state: State = {}
            for look, known in each.looks:
                if look <= at:
                    state = known
            return each.session, state
    return None, {}
