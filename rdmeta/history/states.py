"""Reads a cache while other threads write to it: its whole state at one version, or all changes.

For a new topic a cache makes one record, which does not list partitions. `drain` must look up
their states, and the cache may have changed since the record was made. So `drain` pulls changes and
looks up topics until a pull concerns none of the topics that it looked up. Then it walks the
changes backwards: the state now, with every later change undone, is the state at the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from rdmeta._change_table import END_KINDS, WHOLE_KINDS
from rdmeta.errors import Error
from rdmeta.model import Broker, Change, Partition, Topic

__all__ = ["Cache", "Changes", "Drained", "FellBehindError", "State", "drain", "read_state"]

# The number of attempts to read a cache that changes at the same time.
ROUNDS = 100


class Changes(Protocol):
    """The result of a cache's `changes()`: records in order, up to the version `until`."""

    @property
    def until(self) -> int: ...

    @property
    def resync(self) -> bool: ...

    def __iter__(self) -> Iterator[Change]: ...


class Cache(Protocol):
    """The part of `MetadataCache` that a recorder needs."""

    @property
    def version(self) -> int: ...

    @property
    def cluster_id(self) -> str | None: ...

    @property
    def brokers(self) -> Iterable[Broker]: ...

    def topics(self) -> Iterable[Topic]: ...

    def topic(self, name: str, /) -> Topic: ...

    def changes(self, since: int = 0, /) -> Changes: ...


class FellBehindError(Exception):
    """The cache no longer holds the changes asked for, or makes them faster than they are read."""


class State(NamedTuple):
    """Everything a cache knew at one version."""

    version: int
    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]


class Drained(NamedTuple):
    """Changes in full: after each record about a whole topic, one record per partition."""

    rows: list[Change]
    until: int


class _Standing(NamedTuple):
    """A partition's state while changes are undone."""

    leader: int | None
    epoch: int | None
    isr: tuple[int, ...] | None
    replicas: tuple[int, ...] | None
    offline: tuple[int, ...] | None


def read_state(cache: Cache) -> State:
    """Returns the whole state at one version; raises FellBehindError if it changes too fast."""
    since = cache.version
    topics = {topic.name: topic for topic in cache.topics()}
    for _ in range(ROUNDS):
        cluster_id, brokers = cache.cluster_id, tuple(cache.brokers)
        pulled = cache.changes(since)
        if pulled.resync:
            since, topics = cache.version, {topic.name: topic for topic in cache.topics()}
            continue
        records, since = list(pulled), pulled.until
        if not records:
            return State(since, cluster_id, brokers, tuple(topics[name] for name in sorted(topics)))
        for name in {record.topic for record in records if record.topic is not None}:
            found = _find(cache, name)
            if found is None:
                topics.pop(name, None)
            else:
                topics[name] = found
    raise FellBehindError("the cache changed too fast to read its state: call observe() again")


def drain(cache: Cache, since: int) -> Drained:
    """Returns the changes after version `since`, in full and in order.

    Raises FellBehindError if the cache no longer holds all of them.
    """
    records: list[Change] = []
    found: dict[str, Topic | None] = {}
    for _ in range(ROUNDS):
        pulled = cache.changes(since)
        if pulled.resync:
            raise FellBehindError(f"the cache no longer holds the changes after version {since}")
        new_records, since = list(pulled), pulled.until
        records += new_records
        names = {
            record.topic
            for record in new_records
            if record.topic is not None and (_is_whole(record) or record.topic in found)
        }
        if not names:
            return Drained(_in_full(records, found), since)
        found.update((name, _find(cache, name)) for name in names)
    raise FellBehindError("the cache changed too fast to read new topics")


def partition_rows(record: Change, partitions: Iterable[Partition]) -> Iterator[Change]:
    """Yields one row of `record`'s kind per partition, with the partition's state."""
    return (_row(record, p.partition, _standing(p)) for p in partitions)


def _is_whole(record: Change) -> bool:
    """Returns whether the record is about all partitions of a topic, without their states.

    A cache makes one such record for a new topic; in a file one row per partition follows it.
    """
    return record.kind in WHOLE_KINDS and record.partition is None


def _find(cache: Cache, name: str) -> Topic | None:
    """Returns the topic's present state, None if the topic is not valid."""
    try:
        return cache.topic(name)
    except Error:
        return None


def _in_full(records: list[Change], found: dict[str, Topic | None]) -> list[Change]:
    """Returns `records`, with the partitions' rows after the records that need them."""
    states = {
        name: {p.partition: _standing(p) for p in topic.partitions} if topic else {}
        for name, topic in found.items()
    }
    backwards = [
        _undo(record, states[record.topic]) if record.topic in states else [record]
        for record in reversed(records)
    ]
    return [row for rows in reversed(backwards) for row in rows]


def _undo(record: Change, now: dict[int, _Standing]) -> list[Change]:
    """Undoes `record` in `now`, its topic's partitions; returns the rows to write for it."""
    if record.partition is None:
        rows = [record]
        if _is_whole(record):
            rows += [_row(record, partition, now[partition]) for partition in sorted(now)]
        # The partitions of an older topic with that name are not known.
        if _is_whole(record) or record.kind in END_KINDS:
            now.clear()
        return rows
    stood = now.get(record.partition)
    if stood is None:
        return [record]
    if record.kind in WHOLE_KINDS:
        del now[record.partition]
        return [record]
    if record.kind in ("leader_changed", "leader_epoch_changed"):
        stood = stood._replace(leader=record.old_leader, epoch=record.old_leader_epoch)
    elif record.kind == "isr_changed":
        stood = stood._replace(isr=record.old_isr)
    elif record.kind == "replicas_changed":
        stood = stood._replace(replicas=record.old_replicas)
    elif record.kind == "offline_changed":
        stood = stood._replace(offline=record.old_offline)
    now[record.partition] = stood
    return [record]


def _standing(partition: Partition) -> _Standing:
    return _Standing(
        partition.leader,
        partition.leader_epoch,
        tuple(partition.isr),
        tuple(partition.replicas),
        tuple(partition.offline_replicas),
    )


def _row(record: Change, partition: int, now: _Standing) -> Change:
    return record._replace(
        partition=partition,
        new_leader=now.leader,
        new_leader_epoch=now.epoch,
        new_isr=now.isr,
        new_replicas=now.replicas,
        new_offline=now.offline,
    )
