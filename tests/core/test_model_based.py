"""Applies random histories to the cache and to a naive model; their states must be equal."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import frames
import pytest
from clocks import Clock
from frames import B, P, T
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive_model import Answer, Model, NotAppliedError

from rdmeta import ALL, Image, MetadataCache
from rdmeta import cache as codes
from rdmeta._change_table import END_KINDS
from rdmeta.errors import NoBrokersError, WrongClusterError
from rdmeta.model import Change, Request

NAMES = ["a", "b", "orders-with-a-longer-name"]


def reason_of(broker: int | None) -> str | None:
    """Returns the reason of a request to a broker; requests to some brokers have none."""
    return f"broker {broker}" if broker in (1, 2) else None


STATES = {
    "valid": 0,
    "stale": codes.STALE,
    "unknown": codes.UNKNOWN_TOPIC,
    "denied": codes.DENIED,
    "invalid": codes.INVALID,
    "waiting": codes.WAITING,
    "not cached": codes.NOT_CACHED,
}
# Steps of time that end just before and just after each deadline.
STEPS = [0.0, 0.05, 0.1, 1.0, 5.0, 10.0, 15.0, 60.0, 900.0, 901.0]

# Events between the answers that rewind.
EVENTS = [*[""] * 12, "hint", "rise", "even", "id", "error", "late"]

# The facts that a reader sees: of the cluster (), a topic (name,), or a partition (name, id).
Seen = dict[tuple[Any, ...], dict[str, Any]]

brokers = st.sampled_from(
    [frames.BROKERS, frames.BROKERS[:2], (B(1), B(2, "moved"), B(3)), (B(9),)]
)
epochs = st.integers(-1, 4)


@st.composite
def partitions(draw: st.DrawFn) -> list[P]:
    """Draws a few partitions: not always all, not always from 0, in any order."""
    ids = draw(st.lists(st.sampled_from([0, 1, 2, 7]), unique=True, max_size=4))
    return [
        P(
            i,
            draw(st.sampled_from([-1, 1, 2, 3])),
            draw(epochs),
            draw(st.sampled_from([(1, 2, 3), (3, 1), (2,), ()])),
            draw(st.sampled_from([None, (1,), (3, 2), (2, 3)])),
            draw(st.sampled_from([(), (), (3,)])),
            draw(st.sampled_from([0, 0, 5, 9, 72])),
        )
        for i in ids
    ]


@st.composite
def topics(draw: st.DrawFn) -> list[T]:
    """Draws the topics of an answer: some of the names, or all."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    out = []
    for name in names:
        topic_id = draw(
            st.sampled_from([frames.ZERO_ID, *(frames.topic_id((name, i)) for i in range(3))])
        )
        error = draw(st.sampled_from([0, 0, 0, 0, 0, 3, 5, 17, 29, 100, 103]))
        operations = draw(st.sampled_from([frames.NO_OPERATIONS, 8]))
        if error:  # a broker sends nothing else about a topic then
            out.append(T(name, [], error=error))
            continue
        out.append(T(name, draw(partitions()), topic_id, 0, draw(st.booleans()), operations))
    return out


class Histories(RuleBasedStateMachine):
    """The cache and the model side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.model = Model()
        self.last: tuple[Any, ...] | None = None
        self.looks = True

    @initialize(seed=st.integers(1, 1 << 64 - 1))
    def start(self, seed: int) -> None:
        self.cache = MetadataCache(clock=self.clock, seed=seed)
        self.version = 0
        self.seen, self.before = facts(self.cache), self.cache.image()

    # ---- steps --------------------------------------------------------------------------------

    @rule(
        topics=topics(),
        brokers=brokers,
        version=st.sampled_from([13, 12, 10, 9, 8, 5, 1, 0]),
        asked=st.sampled_from([None, ALL, ALL, "those", NAMES]),
        broker=st.sampled_from([None, 1, 2, 3]),
        lag=st.sampled_from([0, 0, 0, 1, 3]),
        hint_lag=st.sampled_from([None, 0, 1, 2]),
        cluster_id=st.sampled_from(["cluster", "cluster", "cluster", None]),
    )
    def apply(
        self,
        topics: list[T],
        brokers: tuple[B, ...],
        version: int,
        asked: Any,
        broker: int | None,
        lag: int,
        hint_lag: int | None,
        cluster_id: str | None,
    ) -> None:
        if asked == "those":
            asked = [topic.name for topic in topics]
        sent = max(self.cache.version - lag, 0)
        body = frames.response(version, topics, brokers, cluster_id=cluster_id)
        self.last = (body, version, asked, broker, topics, brokers, cluster_id)
        hints = None if hint_lag is None else max(self.model.hint_calls - hint_lag, 0)
        self.answer(sent, hints)

    @precondition(lambda self: self.last is not None)
    @rule(again=st.integers(1, 6), step=st.sampled_from([0.0, 1.0, 2.0]), turns=st.booleans())
    def repeat(self, again: int, step: float, turns: bool) -> None:
        """Applies the same answer again and again: a rewind may be believed, or nothing changes."""
        for i in range(again):
            self.clock.advance(step)
            if turns and self.last is not None:
                self.last = (*self.last[:3], i % 3 + 1, *self.last[4:])
            self.answer(self.cache.version)

    @rule(
        name=st.sampled_from(NAMES),
        pattern=st.lists(st.sampled_from([0, -1, -1, None]), min_size=4, max_size=4),
        events=st.lists(st.sampled_from(EVENTS), min_size=4, max_size=9),
        version=st.sampled_from([12, 12, 9, 8]),
        broker=st.sampled_from([None, 1]),
        turns=st.booleans(),
    )
    def go_back(
        self,
        name: str,
        pattern: list[int | None],
        events: list[str],
        version: int,
        broker: int | None,
        turns: bool,
    ) -> None:
        """Applies answers that are lower in some rows, or lack them, with events in between."""
        for i, event in enumerate(events):
            entry = self.model.entries.get(name)
            if entry is None or not entry.rows:
                return
            self.clock.advance(2.0)
            rows = dict(zip(sorted(entry.rows), pattern, strict=False))
            if event in ("hint", "rise"):
                rise = min(entry.rows) if event == "hint" else max(entry.rows)
                if event == "hint":
                    self.leader_hint(name, rise, 1, entry.rows[rise].high + 1)
                else:
                    rows[rise] = 1
            if event == "even":
                rows[max(rows)] = 0
            partitions = [
                P(i, 1 + by % 2, max(entry.rows[i].high + by, -1), (1, 2))
                for i, by in rows.items()
                if by is not None
            ]
            topic_id = entry.past[0] if event == "id" and entry.past else entry.id
            topic = T(name, partitions, topic_id)
            if event == "error":
                topic = T(name, [], error=5)
            sender = i % 3 + 1 if turns else broker
            body = frames.response(version, [topic], frames.BROKERS)
            self.last = (body, version, [name], sender, [topic], frames.BROKERS, "cluster")
            self.answer(0 if event == "late" else self.cache.version)

    def answer(self, sent: int, hints: int | None = None) -> None:
        assert self.last is not None
        body, version, asked, broker, topics, brokers, cluster_id = self.last
        if version < 1:
            topics = [T(t.name, t.partitions, error=t.error) for t in topics]
        if asked is None:
            hints = None
        request = asked if hints is None else Request(asked, sent_hints=hints)
        self.cache.apply(
            body, version, request, broker, sent_version=sent, reason=reason_of(broker)
        )
        names: Collection[str] | None = asked if isinstance(asked, list) else None
        self.model.apply(
            Answer(
                topics=[as_encoded(t, version) for t in topics],
                brokers=[B(b.id, b.host, b.port, b.rack if version else None) for b in brokers],
                cluster_id=cluster_id if version >= 2 else None,
                version=version,
                asked=names,
                all=asked is ALL,
                broker=-1 if broker is None else broker,
                sent=sent,
                hints=math.inf if hints is None else hints,
                now=self.clock.now,
                after=self.cache.version,
            )
        )

    @rule(asked=st.sampled_from([None, ALL, ["a"]]), wrong=st.booleans())
    def failed_refresh(self, asked: Any, wrong: bool) -> None:
        wrong = wrong and self.cache.cluster_id is not None
        body = frames.response(
            12, [T("a")], frames.BROKERS if wrong else (), cluster_id="another" if wrong else None
        )
        with pytest.raises(WrongClusterError if wrong else NoBrokersError):
            self.cache.apply(body, 12, asked, reason="in vain")
        names = asked if isinstance(asked, list) else None
        with pytest.raises(NotAppliedError):
            self.model.apply(
                Answer(
                    [T("a")],
                    frames.BROKERS if wrong else (),
                    "another" if wrong else None,
                    12,
                    names,
                    asked is ALL,
                    -1,
                    0,
                    math.inf,
                    self.clock.now,
                    self.cache.version,
                )  # fmt: skip
            )

    @rule(asked=st.sampled_from([None, ["a", "b"]]))
    def failure(self, asked: list[str] | None) -> None:
        self.cache.apply_failure(asked)
        self.model.purge_hints(asked, self.clock.now)

    @rule(
        names=st.lists(st.sampled_from([*NAMES, "never-there"]), max_size=4),
        replace=st.booleans(),
        force=st.booleans(),
    )
    def hint(self, names: list[str], replace: bool, force: bool) -> None:
        assert self.cache.hint(names, None, replace, force) == self.model.hint(
            names, self.clock.now, replace, force
        )

    @rule(
        name=st.sampled_from(NAMES),
        partition=st.sampled_from([0, 1, 7]),
        leader=st.sampled_from([1, 2, 99]),
        epoch=st.integers(-1, 5),
    )
    def leader_hint(self, name: str, partition: int, leader: int, epoch: int) -> None:
        taken = self.cache.apply_leader_hint(name, partition, leader, epoch).changed
        assert taken == self.model.leader_hint(name, partition, leader, epoch, self.cache.version)

    @rule(names=st.none() | st.lists(st.sampled_from(NAMES), max_size=2))
    def purge_hints(self, names: list[str] | None) -> None:
        self.cache.purge_hints(names)
        self.model.purge_hints(names, self.clock.now)

    @rule(sure=st.integers(0, 4))
    def purge(self, sure: int) -> None:
        if sure == 0:
            self.cache.purge()
            self.model.purge()
            self.last = None

    @rule(names=st.lists(st.sampled_from([*NAMES, "never-there"]), max_size=2, unique=True))
    def forget(self, names: list[str]) -> None:
        assert self.cache.forget(names) == self.model.forget(names)

    @rule()
    def sweep(self) -> None:
        before = self.cache.version
        self.cache.sweep()
        self.model.sweep(self.clock.now, before + 1)

    @rule(step=st.sampled_from(STEPS))
    def pass_time(self, step: float) -> None:
        self.clock.advance(step)

    # ---- invariants ---------------------------------------------------------------------------

    @invariant()
    def changes_lead_from_one_version_to_the_next(self) -> None:
        """The version never goes back, and each fact that differs has a record."""
        changes = self.cache.changes(self.version)
        assert (changes.until, changes.resync) == (self.cache.version, False)
        versions = range(self.version + 1, changes.until + 1)
        assert sorted({change.version for change in changes}) == list(versions)
        image, seen = self.cache.image(), facts(self.cache)
        assert seen == self.seen or changes.until > self.version
        difference = list(self.before.diff(image))
        assert difference if seen != self.seen else True
        assert not difference or changes.until > self.version
        for records in (list(changes), difference):
            assert_recorded(self.seen, seen, records)
        self.version, self.seen, self.before = changes.until, seen, image

    @invariant()
    def topics_are_in_the_same_state(self) -> None:
        for name in [*NAMES, "never-there"]:
            state = STATES[self.model.state(name, self.clock.now)]
            assert self.cache.state(name) == state, name
        valid = [name for name in NAMES if self.model.state(name, self.clock.now) == "valid"]
        assert list(self.cache) == sorted(valid)
        assert len(self.cache) == len(valid)

    @invariant()
    def the_same_topics_are_due_for_the_same_reasons(self) -> None:
        due = self.model.due(self.clock.now)
        if self.looks:
            assert dict(self.cache.due()) == due
            assert len(self.cache.due(1)) == min(len(due), 1)

    @rule(looks=st.booleans())
    def look(self, looks: bool) -> None:
        """Makes due() look after each step, or only after several."""
        self.looks = looks

    @invariant()
    def topics_are_equal(self) -> None:
        for name in NAMES:
            entry = self.model.entries.get(name)
            topic = self.cache.topic(name, None, allow_stale=True)
            if entry is None or entry.state != "valid":
                assert topic is None
                continue
            assert topic is not None
            assert self.cache.reason(name) == reason_of(self.cache.source(name))
            rows = [row for _, row in sorted(entry.rows.items())]
            assert (topic.internal, topic.topic_id is None) == (
                entry.internal, entry.id == frames.ZERO_ID
            )  # fmt: skip
            if topic.topic_id:
                assert self.cache.topic_by_id(entry.id, allow_stale=True) == topic
            assert topic.operations == (
                None if entry.operations == frames.NO_OPERATIONS else entry.operations
            )
            assert [p.partition for p in topic.partitions] == [row.latest.id for row in rows]
            for p, row in zip(topic.partitions, rows, strict=True):
                latest = row.latest
                assert (p.leader_epoch, p.error, p.replicas, p.isr, p.offline_replicas) == (
                    None if latest.epoch < 0 else latest.epoch, latest.error, latest.replicas,
                    latest.isr, latest.offline,
                )  # fmt: skip
                assert self.cache.last_leader(name, latest.id, -1) == row.last
                if self.model.state(name, self.clock.now) == "valid":
                    assert self.cache.leader(name, latest.id, -1) == latest.leader
                    assert self.cache.partition(name, latest.id).leader == (
                        latest.leader if latest.leader >= 0 else None
                    )

    @invariant()
    def brokers_are_equal(self) -> None:
        assert [tuple(b) for b in self.cache.brokers] == [
            (b.id, b.host, b.port, b.rack) for b in self.model.brokers
        ]
        assert self.cache.cluster_id == self.model.cluster_id


def facts(cache: MetadataCache | Image) -> Seen:
    """Returns all facts of brokers and topics; ISR and offline replicas are sets."""
    seen: Seen = {(): {"cluster": cache.cluster_id, "brokers": tuple(cache.brokers)}}
    for t in cache.topics(allow_stale=True):
        seen[t.name,] = {"id": t.topic_id, "internal": t.internal, "operations": t.operations}
        for p in t.partitions:
            seen[t.name, p.partition] = {
                "leader": cache.last_leader(t.name, p.partition, -1) if p.leaderless else p.leader,
                "leaderless": p.leaderless,
                "epoch": p.leader_epoch,
                "replicas": p.replicas,
                "isr": frozenset(p.isr),
                "offline": frozenset(p.offline_replicas),
                "error": p.error,
            }
    return seen


# For each fact, the kinds of change that record it.
RECORDED_BY = {
    "cluster": {"cluster_changed", "cluster_id_learned", "broker_added"},
    "brokers": {"broker_added", "broker_removed", "broker_changed"},
    "id": {"topic_id_learned"},
    "internal": {"internal_changed"},
    "operations": {"operations_changed"},
    "leader": {"leader_changed"},
    "leaderless": {"leader_changed"},
    "epoch": {"leader_changed", "leader_epoch_changed"},
    "replicas": {"replicas_changed"},
    "isr": {"isr_changed"},
    "offline": {"offline_changed"},
    "error": {"partition_error"},
}


def assert_recorded(before: Seen, after: Seen, records: Collection[Change]) -> None:
    """Checks that each fact that differs has a record of its kind, or that its topic has one."""
    kinds: dict[tuple[Any, ...], set[str]] = {}
    for c in records:
        key = (c.topic, c.partition) if c.partition is not None else (c.topic,) if c.topic else ()
        kinds.setdefault(key, set()).add(c.kind)
    for key in before.keys() | after.keys():
        if key and kinds.get(key[:1], set()) & {"topic_added", *END_KINDS}:
            continue
        assert key in after, f"{key} disappeared without a record"
        if key not in before:
            assert "partitions_added" in kinds.get(key, set()), key
            continue
        for name, value in after[key].items():
            if value != before[key][name]:
                assert kinds.get(key, set()) & RECORDED_BY[name], (key, name)


def as_encoded(topic: T, version: int) -> T:
    """Returns a topic with only the fields that a version has."""
    return T(
        topic.name,
        [
            P(
                p.id, p.leader, p.epoch if version >= 7 else -1, p.replicas, p.isr,
                p.offline if version >= 5 else (), p.error,
            )
            for p in topic.partitions
        ],
        topic.id if version >= 10 else frames.ZERO_ID,
        topic.error,
        topic.internal and version >= 1,
        topic.operations if version >= 8 else frames.NO_OPERATIONS,
    )  # fmt: skip


class MoreHistories(Histories):
    """The same in more histories."""


TestHistories = pytest.mark.proof(Histories.TestCase)
TestMoreHistories = pytest.mark.slow(MoreHistories.TestCase)
TestHistories.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    # Phase.explain is left out: it traces every line, which takes minutes for one failure.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
TestMoreHistories.settings = settings(TestHistories.settings, max_examples=150)
