"""A cluster that follows Kafka's rules: what is done to it becomes a list of timed changes.

Each change has its time in microseconds, the name of a method of `ClusterTruth`, and its arguments.
Recordings and logs are made of this list alone, and so is the truth that tests compare them with.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any, NamedTuple

from rdmeta.generate.logs import uuid_text
from rdmeta.model import Broker

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
# broker.session.timeout.ms and leader.imbalance.check.interval.seconds, Kafka's defaults.
_SESSION_US = 9 * SECOND_US
_IMBALANCE_US = 300 * SECOND_US
# When a reassignment is looked at again whose replicas are away.
_RETRY_S = 60.0
CONTROLLERS = (101, 102, 103)
Ids = tuple[int, ...]


class TimedChange(NamedTuple):
    """What changed: its time after the begin, a method of `ClusterTruth`, its arguments."""

    at: int
    name: str
    arguments: tuple[Any, ...]


@dataclass
class PartitionState:
    """A partition as its controller knows it; `offline` follows from brokers that are away."""

    replicas: Ids
    isr: Ids
    leader: int | None
    leader_epoch: int = 0
    offline: Ids = ()
    adding: Ids = ()
    removing: Ids = ()
    is_recovering: bool = False


@dataclass
class TopicState:
    """A topic; `min_isr` is None while no source tells it."""

    topic_id: str
    partitions: list[PartitionState]
    min_isr: int | None = None


@dataclass
class ClusterTruth:
    """What is true of a cluster. A log tells all of it; an answer, what has no note here.

    `fenced` and `leaving` brokers, the controller, and reassignments are in logs only.
    `static_min_isr`, of topics without their own, is in no log: brokers have it in their files.
    """

    brokers: dict[int, Broker] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)
    leaving: set[int] = field(default_factory=set)
    topics: dict[str, TopicState] = field(default_factory=dict)
    controller: int = CONTROLLERS[0]
    static_min_isr: int | None = None

    def apply(self, change: TimedChange) -> None:
        getattr(self, change.name)(*change.arguments)

    def set_broker(self, broker: Broker) -> None:
        """Registers a broker, and takes it into service."""
        self.brokers[broker.id] = broker
        self.fenced.discard(broker.id)
        self.leaving.discard(broker.id)

    def shut_down(self, broker: int) -> None:
        """Begins a controlled shutdown."""
        self.leaving.add(broker)

    def remove_broker(self, broker: int) -> None:
        """Fences a broker; it stays registered."""
        self.fenced.add(broker)

    def set_controller(self, node: int) -> None:
        self.controller = node

    def add_topic(
        self, name: str, topic_id: str, leaders: Iterable[int | None], replicas: Iterable[Ids]
    ) -> None:
        pairs = zip(leaders, replicas, strict=True)
        parts = [PartitionState(ids, ids, leader) for leader, ids in pairs]
        self.topics[name] = TopicState(topic_id, parts)

    def remove_topic(self, name: str, kind: str = "topic_removed") -> None:
        del self.topics[name]

    def grow(self, name: str, leader: int | None, replicas: Ids) -> None:
        self.topics[name].partitions.append(PartitionState(replicas, replicas, leader))

    def set_min_isr(self, name: str, value: int | None) -> None:
        self.topics[name].min_isr = value

    def set_static_min_isr(self, value: int | None) -> None:
        self.static_min_isr = value

    def min_isrs(self) -> dict[str, int | None]:
        """Returns what brokers answer for each topic."""
        static = self.static_min_isr
        return {n: static if t.min_isr is None else t.min_isr for n, t in self.topics.items()}

    def set_leader(self, name: str, partition: int, leader: int | None) -> None:
        """Elects a leader, or ends the leader's term without another; the epoch rises by one."""
        found = self.topics[name].partitions[partition]
        found.leader, found.leader_epoch = leader, found.leader_epoch + 1

    def set_isr(self, name: str, partition: int, isr: Ids) -> None:
        self.topics[name].partitions[partition].isr = isr

    def set_replicas(self, name: str, partition: int, replicas: Ids) -> None:
        self.topics[name].partitions[partition].replicas = replicas

    def set_offline(self, name: str, partition: int, offline: Ids) -> None:
        self.topics[name].partitions[partition].offline = offline

    def set_moving(self, name: str, partition: int, adding: Ids, removing: Ids) -> None:
        found = self.topics[name].partitions[partition]
        found.adding, found.removing = adding, removing

    def set_recovering(self, name: str, partition: int, is_so: bool) -> None:
        """Marks a leader that was not in sync; it comes right before the election."""
        self.topics[name].partitions[partition].is_recovering = is_so


@dataclass
class ClusterEvent:
    """What was done to a cluster, or to those who watch it; times are microseconds."""

    begin: int
    end: int
    kind: str
    brokers: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)


class WatchPlan(NamedTuple):
    """A recorder: its clock is ahead by `skew`; it sees nothing in `holes`, or dies at `killed`."""

    phase: int = 7 * SECOND_US
    skew: int = 0
    holes: tuple[tuple[int, int], ...] = ()
    killed: int | None = None


class GeneratedCluster:
    """A cluster that runs what is planned in the order of time, and notes what it changes."""

    def __init__(self, cluster_id: str, random: Random) -> None:
        self.cluster_id, self.random = cluster_id, random
        self.state = ClusterTruth()
        self.changes: list[TimedChange] = []
        self.events: list[ClusterEvent] = []
        self.now = 0
        # Its recorders, and which parts of its log are lost or damaged on all nodes.
        self.watches: list[WatchPlan] = [WatchPlan()]
        self.lost: list[tuple[int, int]] = []
        self.corrupt: list[int] = []
        self._due: list[tuple[int, int, Callable[[], object]]] = []
        self._order = count()
        self._down: set[int] = set()
        # When the controller will look at preferred leaders.
        self._checks: set[int] = set()

    # ---- the clock ------------------------------------------------------------------------------

    def at(self, when: int, action: Callable[..., object], *arguments: Any) -> None:
        """Plans an action; times are whole milliseconds, as a log has them."""
        planned: Callable[[], object] = partial(action, *arguments)
        heapq.heappush(self._due, (when - when % 1000, next(self._order), planned))

    def after(self, seconds: float, action: Callable[..., object], *arguments: Any) -> None:
        self.at(self.now + round(seconds * SECOND_US), action, *arguments)

    def run(self, until: int) -> None:
        """Runs what is planned before a time."""
        while self._due and self._due[0][0] < until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until

    def put(self, name: str, *arguments: Any) -> None:
        """Changes something now."""
        self.changes.append(TimedChange(self.now, name, arguments))
        self.state.apply(self.changes[-1])

    # ---- what there is --------------------------------------------------------------------------

    def partitions(self, broker: int | None = None) -> Iterator[tuple[str, int, PartitionState]]:
        """Yields all partitions, or those with a replica on a broker."""
        for name, topic in self.state.topics.items():
            for number, each in enumerate(topic.partitions):
                if broker is None or broker in each.replicas:
                    yield name, number, each

    def topics_on(self, *brokers: int) -> list[str]:
        """Returns the topics with a replica on one of these brokers."""
        found = {name for broker in brokers for name, *_ in self.partitions(broker)}
        return sorted(found)

    def is_up(self, broker: int) -> bool:
        return broker in self.state.brokers and broker not in self.state.fenced

    def create(self, name: str, replicas: list[Ids], min_isr: int | None) -> None:
        leaders = [next((b for b in ids if self.is_up(b)), None) for ids in replicas]
        topic_id = uuid_text(self.random.getrandbits(128))
        self.put("add_topic", name, topic_id, tuple(leaders), tuple(replicas))
        if min_isr is not None:
            self.put("set_min_isr", name, min_isr)

    # ---- brokers --------------------------------------------------------------------------------

    def kill(self, broker: int) -> None:
        """Kills a broker; the controller fences it when its session ends."""
        self._down.add(broker)
        self.after(_SESSION_US / SECOND_US, self._fence, broker)

    def stop(self, broker: int) -> None:
        """Stops a broker in good order, if it is there: its leaders move, then it goes."""
        if not self.can_lead(broker):
            return
        self._down.add(broker)
        self.put("shut_down", broker)
        self._step_down(broker)
        self.after(self.random.uniform(1.0, 3.0), self._fence, broker)

    def start(self, broker: int) -> None:
        """Starts a broker that is down; then it catches up, partition by partition."""
        if broker not in self._down:
            return
        self._down.discard(broker)
        self.put("set_broker", self.state.brokers[broker])
        for name, number, each in self.partitions(broker):
            if broker in each.offline:
                gone = tuple(b for b in each.offline if b != broker)
                self.put("set_offline", name, number, gone)
            if each.leader is None and broker in each.isr:
                self.put("set_leader", name, number, broker)
        self.catch_up(broker, 3.0, 40.0)

    def catch_up(self, broker: int, least: float, most: float) -> None:
        """Brings a broker back into each ISR after some seconds."""
        for name, number, _ in list(self.partitions(broker)):
            wait = self.random.uniform(least, most)
            self.after(wait, self._join, name, number, broker)

    def _fence(self, broker: int) -> None:
        if broker not in self._down or not self.is_up(broker):
            return
        self.put("remove_broker", broker)
        self._step_down(broker)
        for name, number, each in self.partitions(broker):
            self.put("set_offline", name, number, tuple(sorted({*each.offline, broker})))

    def _step_down(self, broker: int) -> None:
        """Takes a broker out of leaderships and of ISRs; the last of an ISR stays in it."""
        for name, number, each in self.partitions(broker):
            if broker not in each.isr:
                continue
            rest = tuple(b for b in each.isr if b != broker)
            new = next((b for b in each.replicas if b in rest and self.can_lead(b)), None)
            if each.leader == broker:
                self.put("set_leader", name, number, new)
            if rest and each.leader is not None:
                self.put("set_isr", name, number, rest)

    def can_lead(self, broker: int) -> bool:
        return self.is_up(broker) and broker not in self.state.leaving

    def _join(self, name: str, number: int, broker: int) -> None:
        each = self._part(name, number)
        if each is None or not self.can_lead(broker) or broker in self._down:
            return
        if each.leader is not None and broker in each.replicas and broker not in each.isr:
            self.put("set_isr", name, number, ordered(each.replicas, {*each.isr, broker}))
        self._plan_check()

    def lag(self, broker: int, name: str, number: int) -> None:
        """Lets a follower fall out of an ISR."""
        each = self._part(name, number)
        if each is None or each.leader in (None, broker):
            return
        if broker in each.isr:
            self.put("set_isr", name, number, tuple(b for b in each.isr if b != broker))

    def slow_down(self, broker: int, until: int) -> None:
        """Makes a follower slow: it falls out of ISRs, and comes back to some, until a time."""
        parts = [(name, number) for name, number, each in self.partitions(broker)]
        at = self.now
        while at < until:
            for name, number in self.random.sample(parts, max(1, len(parts) // 3)):
                self.at(at, self.lag, broker, name, number)
                back = at + round(self.random.uniform(20, 110) * SECOND_US)
                self.at(back, self._join, name, number, broker)
            at += round(self.random.uniform(120, 400) * SECOND_US)
        self.at(until, self.catch_up, broker, 1.0, 30.0)

    # ---- leaders --------------------------------------------------------------------------------

    def _plan_check(self) -> None:
        """Plans the controller's next look at preferred leaders, unless there is one."""
        when = (self.now // _IMBALANCE_US + 1) * _IMBALANCE_US
        if when not in self._checks:
            self._checks.add(when)
            self.at(when, self.prefer)

    def prefer(self, share: float = 0.1) -> None:
        """Elects preferred leaders of brokers that lead too few of theirs."""
        wanted: dict[int, list[tuple[str, int, bool]]] = {}
        for name, number, each in self.partitions():
            first = each.replicas[0]
            wanted.setdefault(first, []).append((name, number, each.leader != first))
        for broker, parts in wanted.items():
            if sum(is_other for *_, is_other in parts) <= share * len(parts):
                continue
            for name, number, is_other in parts:
                isr = self.state.topics[name].partitions[number].isr
                if is_other and broker in isr and self.can_lead(broker):
                    self.put("set_leader", name, number, broker)

    def elect_uncleanly(self, name: str, number: int, broker: int) -> None:
        """Elects a replica that is not in sync; it recovers within seconds."""
        self.put("set_recovering", name, number, True)
        self.put("set_leader", name, number, broker)
        self.put("set_isr", name, number, (broker,))
        self.after(4.0, self.put, "set_recovering", name, number, False)

    # ---- reassignments --------------------------------------------------------------------------

    def move(self, name: str, number: int, target: Ids) -> None:
        """Begins a reassignment: the new replicas come first, those that will go behind them."""
        each = self._part(name, number)
        if each is None or each.adding or each.removing:
            return
        adding = tuple(b for b in target if b not in each.replicas)
        removing = tuple(b for b in each.replicas if b not in target)
        self.put("set_replicas", name, number, (*target, *removing))
        self.put("set_moving", name, number, adding, removing)

    def end_move(self, name: str, number: int, is_cancelled: bool = False) -> None:
        """Ends a reassignment as soon as new replicas are in sync: the old ones go.

        One that is cancelled ends as soon as an old replica is in sync: the new ones go.
        """
        each = self._part(name, number)
        if each is None or not (each.adding or each.removing):
            return
        gone = each.adding if is_cancelled else each.removing
        replicas = tuple(b for b in each.replicas if b not in gone)
        up = [self.can_lead(b) for b in replicas if not is_cancelled or b in each.isr]
        if not (any(up) if is_cancelled else each.leader is not None and all(up)):
            self.after(_RETRY_S, self.end_move, name, number, is_cancelled)
            return
        isr = ordered(replicas, {*each.isr, *each.adding})
        self.put("set_replicas", name, number, replicas)
        self.put("set_moving", name, number, (), ())
        self.put("set_isr", name, number, isr)
        if each.leader not in replicas:
            self.put("set_leader", name, number, next(b for b in isr if self.can_lead(b)))
        self._plan_check()

    def _part(self, name: str, number: int) -> PartitionState | None:
        """Returns a partition, None if its topic is gone."""
        topic = self.state.topics.get(name)
        return topic.partitions[number] if topic else None


def ordered(replicas: Ids, isr: Iterable[int]) -> Ids:
    """Returns an ISR in the order of the replicas."""
    return tuple(b for b in replicas if b in isr)
