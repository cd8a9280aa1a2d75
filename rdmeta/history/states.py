"""Reading a cache that others write to: its whole state at one version, or what changed in full.

A cache tells of a new topic with one record that does not list partitions. Their states have to be
looked up, and the cache may have moved on since the record was made. `drain` therefore looks until
a pull of changes no longer touches what was looked up, and then walks the changes backwards: the
state now, with every later change undone, is the state at the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from rdmeta._change_table import END_KINDS, WHOLE_KINDS
from rdmeta.errors import Error
from rdmeta.model import Broker, Change, Partition, Topic

__all__ = ["Cache", "Changes", "Drained", "FellBehindError", "State", "drain", "read_state"]

# How often a read is tried again because the cache changed under it.
ROUNDS = 100


class Changes(Protocol):
    """What `changes()` of a cache returns: records in order, and up to which version."""

    @property
    def until(self) -> int: ...

    @property
    def resync(self) -> bool: ...

    def __iter__(self) -> Iterator[Change]: ...


class Cache(Protocol):
    """As much of `MetadataCache` as a recorder needs."""

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
    """The changes asked for are no longer held, or come faster than they can be read."""


class State(NamedTuple):
    """Everything a cache knew at one version."""

    version: int
    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]


class Drained(NamedTuple):
    """Changes in full: each record about whole topics followed by one for each partition."""

    rows: list[Change]
    until: int


class _Standing(NamedTuple):
    """How a partition stood while changes are undone."""

    leader: int | None
    epoch: int | None
    isr: tuple[int, ...] | None
    replicas: tuple[int, ...] | None


def read_state(cache: Cache) -> State:
    """The whole state at one version; FellBehindError if the cache never stands still."""
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
    raise FellBehindError("the cache changed too fast for its state to be read")


def drain(cache: Cache, since: int) -> Drained:
    """What changed after version `since`, in full and in order.

    FellBehindError if the cache no longer holds all of it.
    """
    records: list[Change] = []
    found: dict[str, Topic | None] = {}
    for _ in range(ROUNDS):
        pulled = cache.changes(since)
        if pulled.resync:
            raise FellBehindError(f"the cache no longer holds what changed after version {since}")
        news, since = list(pulled), pulled.until
        records += news
        names = {
            record.topic
            for record in news
            if record.topic is not None and (_is_whole(record) or record.topic in found)
        }
        if not names:
            return Drained(_in_full(records, found), since)
        found.update((name, _find(cache, name)) for name in names)
    raise FellBehindError("the cache changed too fast for new topics to be read")


def partition_rows(record: Change, partitions: Iterable[Partition]) -> Iterator[Change]:
    """The rows of `record`'s kind that say how each of a topic's partitions stood."""
    return (_row(record, p.partition, _standing(p)) for p in partitions)


def _is_whole(record: Change) -> bool:
    """Whether the record is about all partitions of a topic, whose states it does not say.

    A cache tells of a new topic with one such record; in a file one row per partition follows it.
    """
    return record.kind in WHOLE_KINDS and record.partition is None


def _find(cache: Cache, name: str) -> Topic | None:
    """The topic as it stands; None where it is not known, denied, stale or gone."""
    try:
        return cache.topic(name)
    except Error:
        return None


def _in_full(records: list[Change], found: dict[str, Topic | None]) -> list[Change]:
    """`records` with the partitions' rows behind those that need them."""
    standing = {
        name: {p.partition: _standing(p) for p in topic.partitions} if topic else {}
        for name, topic in found.items()
    }
    behind = [
        _undo(record, standing[record.topic]) if record.topic in standing else [record]
        for record in reversed(records)
    ]
    return [row for rows in reversed(behind) for row in rows]


def _undo(record: Change, now: dict[int, _Standing]) -> list[Change]:
    """Take `record` back from its topic's partitions as of `now`; the rows to be written for it."""
    if record.partition is None:
        rows = [record]
        if _is_whole(record):
            rows += [_row(record, partition, now[partition]) for partition in sorted(now)]
        # What an older topic of that name had is not known.
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
    now[record.partition] = stood
    return [record]


def _standing(partition: Partition) -> _Standing:
    return _Standing(
        partition.leader, partition.leader_epoch, tuple(partition.isr), tuple(partition.replicas)
    )


def _row(record: Change, partition: int, now: _Standing) -> Change:
    return record._replace(
        partition=partition,
        new_leader=now.leader,
        new_leader_epoch=now.epoch,
        new_isr=now.isr,
        new_replicas=now.replicas,
    )
