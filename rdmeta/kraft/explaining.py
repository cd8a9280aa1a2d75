"""Says how a partition or a broker came to be as it is: each turn, how long it stood, its cause.

    for turn in log.explain("orders", 3):
        print(turn.time, turn.offset, turn.what, turn.value, turn.stood, turn.cause)

The cause of a turn is what else its commit has: a broker that was fenced, shuts down or is back, an
unclean election, a reassignment. The log does not say why the controller wrote a commit that has
nothing else. Then the cause is *inferred* from the rules by which Kafka makes such records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from rdmeta.health import MIN_ISR
from rdmeta.kraft.log_state import KraftState
from rdmeta.model import Change

_EVENTS = {
    "broker_added": "broker {} registered",
    "broker_changed": "broker {} registered again",
    "broker_fenced": "broker {} was fenced",
    "broker_unfenced": "broker {} was unfenced",
    "broker_shutting_down": "broker {} shuts down in good order",
    "broker_removed": "broker {} was unregistered",
}
# The cause shown for what a snapshot already had: the log does not reach back further.
_KNOWN = "known"
_BEGINS = {
    "topic_added": "the topic was created",
    "partitions_added": "the topic got more partitions",
    _KNOWN: "a snapshot says so: then, or before",
}


class Turn(NamedTuple):
    """From here on, and for the time `stood`, `what` was `value`; None: it still is so at the end.

    `what` is leader, isr, elr, reassignment, topic or registration. A leader is a dict of `leader`
    and `leader_epoch`, an ISR or ELR has ids, the others are words. `partitions` counts those that
    changed in the same commit.
    """

    offset: int | None
    time: datetime
    partition: int | None
    broker: int | None
    what: str
    value: Any
    stood: timedelta | None
    cause: str | None
    is_inferred: bool
    partitions: int


class _Cause(NamedTuple):
    text: str | None
    is_inferred: bool = False


def known_at_begin(state: KraftState, topic: str | None, broker: int | None) -> Iterator[Change]:
    """Yields what a log's begin says about a topic or a broker, as changes."""
    blank: dict[str, Any] = dict.fromkeys(Change._fields)
    blank |= {"version": state.offset, "topic": topic, "kind": _KNOWN}
    for row in state.partitions(topic) if topic is not None else ():
        yield Change(
            **{
                **blank, "observed_at": row.mark.time, "offset": row.mark.offset,
                "partition": row.partition, "new_leader": row.leader,
                "new_leader_epoch": row.leader_epoch, "new_isr": row.isr,
                "new_replicas": row.replicas, "new_adding": row.adding,
                "new_removing": row.removing, "new_elr": row.elr,
            }
        )  # fmt: skip
    found = None if broker is None else state.brokers.get(broker)
    if found is not None:
        is_ending = "shuts down in good order" if found.shutting_down else "unfenced"
        at = {"observed_at": found.mark.time, "offset": found.mark.offset, "broker": broker}
        detail = {"detail": "fenced" if found.fenced else is_ending, "broker_epoch": found.epoch}
        yield Change(**{**blank, **at, **detail})


def explained(
    changes: Iterable[Change],
    topic: str | None = None,
    partition: int | None = None,
    broker: int | None = None,
) -> list[Turn]:
    """Returns the turns of a topic, of one of its partitions, or of a broker, by offset.

    `changes` are those of a log, from the begin of what is of interest.
    """
    found: list[Turn] = []
    partitions: dict[int, _PartitionTurns] = {}
    registration = _BrokerTurns(broker)
    for _, group in groupby(changes, attrgetter("version")):
        rows = list(group)
        own = [row for row in rows if row.topic == topic] if topic is not None else []
        if not own and topic is not None:
            continue
        commit = _Commit(rows)
        if topic is None:
            found += registration.of(commit)
        for row in own:
            if row.kind == "topic_removed":
                found.append(commit.turn(row, "topic", "removed", _Cause(None)))
                partitions.clear()
            elif row.partition is not None and partition in (None, row.partition):
                turns = partitions.setdefault(row.partition, _PartitionTurns())
                found += turns.of(row, commit)
    return _with_times(found)


def _with_times(turns: Sequence[Turn]) -> list[Turn]:
    """Returns turns with the time until the next of their kind, or until their topic's end."""
    ends: dict[Any, datetime] = {}
    removed: datetime | None = None
    found = []
    for turn in reversed(turns):
        key = (turn.what, turn.partition, turn.broker)
        end = ends.get(key, removed)
        ends[key] = turn.time
        if turn.what == "topic":
            ends, removed, end = {}, turn.time, None
        found.append(turn._replace(stood=None if end is None else end - turn.time))
    return found[::-1]


class _Commit:
    """The changes of one commit, and what they say about brokers."""

    def __init__(self, rows: Sequence[Change]) -> None:
        self.rows = rows
        self.partitions = len(
            {(row.topic, row.partition) for row in rows if row.partition is not None}
        )
        self._events: dict[int | None, Change] = {}
        for row in rows:
            if row.kind in _EVENTS:
                self._events.setdefault(row.broker, row)

    def event(self, *brokers: int | None) -> str | None:
        """Returns what the commit says about the first of these brokers that it has."""
        for broker in brokers:
            row = None if broker is None else self._events.get(broker)
            if row is not None:
                return f"{_EVENTS[row.kind].format(broker)} (offset {row.offset})"
        return None

    def has(self, kind: str, row: Change) -> bool:
        """Returns whether a change of this kind is about the partition of another one."""
        place = (row.topic, row.partition)
        return any(
            each.kind == kind and (each.topic, each.partition) == place for each in self.rows
        )

    def cause(self, row: Change, *brokers: int | None) -> _Cause | None:
        """Returns what else the commit has that explains a change, first of these brokers."""
        event = self.event(*brokers)
        if self.has("unclean_election", row):
            return _Cause("an unclean election" + (f": {event}" if event else ""))
        if event:
            return _Cause(event)
        return _Cause("the reassignment") if self.has("reassignment_changed", row) else None

    def setting(self, topic: str | None) -> str | None:
        """Returns which min.insync.replicas of a topic, or of brokers, the commit sets."""
        for row in self.rows:
            is_min_isr = row.kind == "config_changed" and str(row.detail).startswith(MIN_ISR)
            if is_min_isr and row.topic in (None, topic):
                done = "set" if "=" in str(row.detail) else "removed"
                return f"{row.detail} was {done} (offset {row.offset})"
        return None

    def turn(self, row: Change, what: str, value: Any, cause: _Cause) -> Turn:
        return Turn(
            row.offset, row.observed_at, row.partition, row.broker, what, value, None, *cause,
            self.partitions,
        )  # fmt: skip


class _PartitionTurns:
    """Makes the turns of one partition, and keeps what its causes rest on."""

    def __init__(self) -> None:
        self._leader: int | None = None
        self._replicas: tuple[int, ...] = ()
        self._isr: tuple[int, ...] = ()
        self._elr: tuple[int, ...] = ()
        self._adding: tuple[int, ...] = ()
        self._moves = False

    def of(self, row: Change, commit: _Commit) -> Iterator[Turn]:
        """Yields the turns that a change makes."""
        if row.kind in _BEGINS:
            yield from self._begin(row, commit)
        elif row.kind in ("leader_changed", "leader_epoch_changed"):
            cause = self._of_leader(row, commit)
            self._leader = row.new_leader
            yield commit.turn(row, "leader", _leader(row), cause)
        elif row.kind == "isr_changed":
            cause = self._of_isr(row, commit)
            self._isr = row.new_isr or ()
            yield commit.turn(row, "isr", self._isr, cause)
        elif row.kind == "elr_changed":
            cause = self._of_elr(row, commit)
            self._elr = row.new_elr or ()
            yield commit.turn(row, "elr", self._elr, cause)
        elif row.kind == "replicas_changed":
            self._replicas = row.new_replicas or ()
            if not commit.has("reassignment_changed", row):
                text = f"replicas are {_ids(self._replicas)}"
                yield commit.turn(row, "reassignment", text, _Cause("it was asked for", True))
        elif row.kind == "reassignment_changed":
            yield self._reassignment(row, commit)

    def _begin(self, row: Change, commit: _Commit) -> Iterator[Turn]:
        self._leader, self._isr = row.new_leader, row.new_isr or ()
        self._replicas, self._elr = row.new_replicas or (), row.new_elr or ()
        self._adding = row.new_adding or ()
        self._moves = bool(self._adding or row.new_removing)
        cause = _Cause(_BEGINS[row.kind])
        yield commit.turn(row, "leader", _leader(row), cause)
        yield commit.turn(row, "isr", self._isr, cause)
        if self._elr:
            yield commit.turn(row, "elr", self._elr, cause)
        if self._moves:
            yield commit.turn(row, "reassignment", _moved(row), cause)

    def _of_leader(self, row: Change, commit: _Commit) -> _Cause:
        old, new = row.old_leader, row.new_leader
        if known := commit.cause(row, old, new):
            return known
        if new is None:
            return _Cause("no replica could lead", True)
        if old is None:
            return _Cause("a replica could lead again", True)
        if old == new:
            return _Cause("the controller raised the epoch of the same leader", True)
        is_preferred = self._replicas[:1] == (new,)
        return _Cause(
            f"the {'preferred' if is_preferred else 'asked-for'} replica was elected", True
        )

    def _of_isr(self, row: Change, commit: _Commit) -> _Cause:
        old, new = row.old_isr or (), row.new_isr or ()
        lost, gained = sorted({*old} - {*new}), sorted({*new} - {*old})
        if known := commit.cause(row, *lost, *gained):
            return known
        leader = "the leader" if self._leader is None else f"leader {self._leader}"
        if lost:
            return _Cause(f"{_ids(lost)} fell behind, and {leader} took it out", True)
        return _Cause(f"{_ids(gained)} caught up with {leader}", True)

    def _of_elr(self, row: Change, commit: _Commit) -> _Cause:
        gained = sorted({*(row.new_elr or ())} - {*self._elr})
        lost = sorted({*self._elr} - {*(row.new_elr or ())})
        if known := commit.cause(row, *gained, *lost):
            return known
        if setting := commit.setting(row.topic):
            return _Cause(setting)
        if gained:
            text = f"{_ids(gained)} left the ISR, which is below min.insync.replicas"
            return _Cause(text, True)
        return _Cause("the ISR has min.insync.replicas again", True)

    def _reassignment(self, row: Change, commit: _Commit) -> Turn:
        moved, self._moves = self._moves, bool(row.new_adding or row.new_removing)
        wanted, self._adding = self._adding, row.new_adding or ()
        if self._moves:
            cause = _Cause("it was changed" if moved else "it was asked for", True)
            return commit.turn(row, "reassignment", _moved(row), cause)
        is_done = {*wanted} <= {*self._replicas}
        text = f"{'done' if is_done else 'cancelled'}: replicas are {_ids(self._replicas)}"
        cause = _Cause("the new replicas are in the ISR" if is_done else "it was asked for", True)
        return commit.turn(row, "reassignment", text, cause)


class _BrokerTurns:
    """Makes the turns of one broker's registration."""

    def __init__(self, broker: int | None) -> None:
        self._broker = broker
        self._epoch: int | None = None
        self._is_ending = False

    def of(self, commit: _Commit) -> Iterator[Turn]:
        kinds = (*_EVENTS, _KNOWN)
        rows = [row for row in commit.rows if row.broker == self._broker and row.kind in kinds]
        registers = any(row.kind in ("broker_added", "broker_changed") for row in rows)
        for row in rows:
            if registers and row.kind == "broker_fenced":
                continue  # a broker is fenced until its first heartbeat
            value, cause = self._said(row)
            yield commit.turn(row, "registration", value, cause)
            self._is_ending = row.kind == "broker_shutting_down"
            self._epoch = row.broker_epoch

    def _said(self, row: Change) -> tuple[str, _Cause]:
        """Returns the state of the broker, and why."""
        if row.kind == _KNOWN:
            return str(row.detail), _Cause(_BEGINS[_KNOWN])
        if row.kind == "broker_fenced":
            gone = "its shutdown ended" if self._is_ending else "its heartbeats stayed out"
            return "fenced", _Cause(gone, True)
        if row.kind == "broker_unfenced":
            return "unfenced", _Cause("it has read the metadata log", True)
        if row.kind == "broker_shutting_down":
            return "shuts down in good order", _Cause("it asked for that", True)
        if row.kind == "broker_removed":
            return "unregistered", _Cause("it was asked for", True)
        value = f"registered with epoch {row.broker_epoch}, {row.detail}"
        if self._epoch is None:
            return value, _Cause("it started", True)
        is_new = row.broker_epoch != self._epoch
        return value, _Cause("it started again" if is_new else "it registered once more", True)


def _leader(row: Change) -> dict[str, int | None]:
    return {"leader": row.new_leader, "leader_epoch": row.new_leader_epoch}


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "none"


def _moved(row: Change) -> str:
    return f"adding {_ids(row.new_adding or ())}, removing {_ids(row.new_removing or ())}"
