"""A cluster and a cache of it in plain Python: what a recorder sees, and what was true.

Every method that changes something is one write. The version goes up by one, and a change record
says what differed. `truth` keeps the state of every partition after each version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from rdmeta._change_table import WHOLE_KINDS
from rdmeta.errors import UnknownTopicError
from rdmeta.history import CHANGE_SCHEMA, Recorder
from rdmeta.model import Broker, Change, Partition, Topic

Ids = tuple[int, ...]
START = datetime(2025, 6, 1, 12, 0, tzinfo=timezone.utc)
NOTHING = Change(*[None] * len(Change._fields))  # type: ignore[arg-type]


# The kinds of a topic that came; one record per partition follows.
_CAME = set(WHOLE_KINDS) - {"partitions_added"}


class FakeClock:
    """A wall clock; tests move it by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_seconds(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


class Instant(NamedTuple):
    """The state of one partition, and the version at which its topic came."""

    created: int
    topic_id: str | None
    leader: int | None
    epoch: int | None
    isr: tuple[int, ...]


class FakeChanges:
    def __init__(self, records: list[Change], until: int, resync: bool = False) -> None:
        self.records, self.until, self.resync = records, until, resync

    def __iter__(self) -> Iterator[Change]:
        return iter(self.records)

    def to_arrow(self) -> pa.Table:
        schema = pa.schema([CHANGE_SCHEMA.field(name) for name in Change._fields])
        return pa.Table.from_pylist([record._asdict() for record in self.records], schema)


class FakeImage:
    """The state of a cache at one version."""

    def __init__(self, cache: FakeCache) -> None:
        self.version, self.cluster_id = cache.version, cache.cluster_id
        self._now = cache.clock.now
        self._brokers, self._topics = cache.brokers, dict(cache._topics)

    def topic(self, name: str, /) -> Topic:
        if name not in self._topics:
            raise UnknownTopicError(name)
        return self._topics[name]

    def changes(self) -> FakeChanges:
        first = NOTHING._replace(
            version=self.version,
            cluster_id=self.cluster_id,
            session="a cache's life",
            observed_at=self._now,
            source="poll",
        )
        records = [
            first._replace(kind="broker_added", broker=b.id, detail=shown(b)) for b in self._brokers
        ]
        for _, topic in sorted(self._topics.items()):
            row = first._replace(kind="topic_added", topic=topic.name, topic_id=topic.topic_id)
            records += [row, *(whole(row, p) for p in topic.partitions)]
        return FakeChanges(records, self.version)


def whole(record: Change, p: Partition) -> Change:
    """Returns a record of that kind about a partition's whole state."""
    return record._replace(
        partition=p.partition,
        new_leader=p.leader,
        new_leader_epoch=p.leader_epoch,
        new_isr=p.isr,
        new_replicas=p.replicas,
        new_offline=p.offline_replicas,
    )


def shown(broker: Broker) -> str:
    """Returns what a change record says about a broker."""
    rack = "" if broker.rack is None else f" rack={broker.rack}"
    return f"{broker.host}:{broker.port}{rack}"


class FakeCache:
    """The part of a cache's interface that a recorder uses; tests change it by its methods."""

    def __init__(self, clock: FakeClock, cluster_id: str | None = "cluster-A") -> None:
        self.clock = clock
        self.version = 0
        self.cluster_id = cluster_id
        self.brokers: tuple[Broker, ...] = ()
        # changes() calls each of these once: another writer that writes since the last image.
        self.meanwhile: list[Callable[[], object]] = []
        self._topics: dict[str, Topic] = {}
        self._records: list[Change] = []
        self._floor = 0
        # For each version: its time, and the state of every partition after it.
        self.truth: list[tuple[datetime, dict[tuple[str, int], Instant]]] = [(clock.now, {})]

    def topics(self) -> list[Topic]:
        return list(self._topics.values())

    def topic(self, name: str, /) -> Topic:
        return self.image().topic(name)

    def image(self) -> FakeImage:
        return FakeImage(self)

    def changes(self, since: int = 0, *, whole: bool = False) -> FakeChanges:
        while self.meanwhile:
            self.meanwhile.pop()()
        if since < self._floor:
            return FakeChanges([], self.version, resync=True)
        found = [r for r in self._records if r.version > since]
        if not whole:
            found = [r for r in found if r.partition is None or r.kind not in _CAME]
        return FakeChanges(found, self.version)

    def forget_changes(self) -> None:
        """Drops all change records: readers that have not read them must resync."""
        self._floor = self.version
        self._records.clear()

    def add_broker(self, broker: int) -> None:
        self.brokers = (*self.brokers, Broker(broker, "localhost", 9092 + broker))
        self._write(kind="broker_added", broker=broker)

    def set_broker(self, new: Broker) -> None:
        """Adds a broker, or gives it another address or rack."""
        others = tuple(b for b in self.brokers if b.id != new.id)
        kind = "broker_added" if others == self.brokers else "broker_changed"
        self.brokers = tuple(sorted((*others, new)))
        self._write(kind=kind, broker=new.id, detail=shown(new))

    def remove_broker(self, broker: int) -> None:
        gone = next(b for b in self.brokers if b.id == broker)
        self.brokers = tuple(b for b in self.brokers if b.id != broker)
        self._write(kind="broker_removed", broker=broker, detail=shown(gone))

    def purge(self) -> None:
        """Forgets everything, as MetadataCache.purge does."""
        self.cluster_id, self.brokers = None, ()
        self._topics.clear()
        self._write(kind="cluster_changed")

    def become(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self._topics.clear()
        self._write(kind="cluster_changed")

    def add_topic(
        self,
        name: str,
        topic_id: str | None,
        leaders: Sequence[int | None],
        replicas: Sequence[Ids] | None = None,
    ) -> None:
        """Adds a topic, if not told otherwise on brokers 1 to 3; recreates it if it exists."""
        kind = "topic_recreated" if name in self._topics else "topic_added"
        partitions = tuple(
            Partition(name, topic_id, p, leader, 0, ids, ids, (), 0)
            for p, (leader, ids) in enumerate(
                zip(leaders, replicas or [(1, 2, 3)] * len(leaders), strict=True)
            )
        )
        self._topics[name] = Topic(name, topic_id, False, partitions)
        self._write(kind=kind, topic=name, topic_id=topic_id)

    def remove_topic(self, name: str, kind: str = "topic_removed") -> None:
        gone = self._topics.pop(name)
        self._write(kind=kind, topic=name, topic_id=gone.topic_id)

    def record(self, name: str, kind: str, **fields: object) -> None:
        """Adds a change record about a topic; no partition's state changes."""
        self._write(kind=kind, topic=name, topic_id=self._topics[name].topic_id, **fields)

    def grow(self, name: str, leader: int | None, replicas: Ids = (1, 2, 3)) -> None:
        """Adds one partition to the topic."""
        topic = self._topics[name]
        number = len(topic.partitions)
        new = Partition(name, topic.topic_id, number, leader, 0, replicas, replicas, (), 0)
        self._topics[name] = topic._replace(partitions=(*topic.partitions, new))
        self._write(
            kind="partitions_added",
            topic=name,
            topic_id=topic.topic_id,
            partition=number,
            new_leader=leader,
            new_leader_epoch=0,
            new_isr=new.isr,
            new_replicas=new.replicas,
            new_offline=new.offline_replicas,
        )

    def set_leader(
        self,
        name: str,
        partition: int,
        leader: int | None,
        epoch: int | None = None,
        kind: str = "leader_changed",
    ) -> None:
        old = self._topics[name].partitions[partition]
        new_epoch = epoch if epoch is not None else (old.leader_epoch or 0) + 1
        self._replace(old._replace(leader=leader, leader_epoch=new_epoch))
        self._write(
            kind=kind,
            topic=name,
            topic_id=old.topic_id,
            partition=partition,
            old_leader=old.leader,
            new_leader=leader,
            old_leader_epoch=old.leader_epoch,
            new_leader_epoch=new_epoch,
        )

    def set_isr(self, name: str, partition: int, isr: tuple[int, ...]) -> None:
        old = self._topics[name].partitions[partition]
        self._replace(old._replace(isr=isr))
        self._write(
            kind="isr_changed",
            topic=name,
            topic_id=old.topic_id,
            partition=partition,
            old_isr=old.isr,
            new_isr=isr,
        )

    def set_replicas(self, name: str, partition: int, replicas: tuple[int, ...]) -> None:
        old = self._topics[name].partitions[partition]
        self._replace(old._replace(replicas=replicas))
        self._write(
            kind="replicas_changed",
            topic=name,
            topic_id=old.topic_id,
            partition=partition,
            old_replicas=old.replicas,
            new_replicas=replicas,
        )

    def set_offline(self, name: str, partition: int, offline: tuple[int, ...]) -> None:
        old = self._topics[name].partitions[partition]
        self._replace(old._replace(offline_replicas=offline))
        self._write(
            kind="offline_changed",
            topic=name,
            topic_id=old.topic_id,
            partition=partition,
            old_offline=old.offline_replicas,
            new_offline=offline,
        )

    def _replace(self, new: Partition) -> None:
        topic = self._topics[new.topic]
        partitions = tuple(new if p.partition == new.partition else p for p in topic.partitions)
        self._topics[new.topic] = topic._replace(partitions=partitions)

    def _write(self, **fields: object) -> None:
        self.version += 1
        self._records.append(
            NOTHING._replace(
                version=self.version,
                cluster_id=self.cluster_id,
                session="a cache's life",
                observed_at=self.clock.now,
                source="poll",
                **fields,  # type: ignore[arg-type]
            )
        )
        record = self._records[-1]
        if record.kind in _CAME and record.topic is not None:
            topic = self._topics[record.topic]
            self._records += [whole(record, p) for p in topic.partitions]
        self.truth.append((self.clock.now, self._instants(record)))

    def _instants(self, change: Change) -> dict[tuple[str, int], Instant]:
        recreated = change.topic if change.kind == "topic_recreated" else None
        old = {key: at for key, at in self.truth[-1][1].items() if key[0] != recreated}
        now = {}
        for p in (p for topic in self._topics.values() for p in topic.partitions):
            was = old.get((p.topic, p.partition))
            now[p.topic, p.partition] = Instant(
                was.created if was else self.version,
                p.topic_id,
                p.leader,
                p.leader_epoch,
                tuple(sorted(p.isr)),
            )
        return now


class Observed(NamedTuple):
    """A cache, its clock, and the folder into which its changes are recorded."""

    cache: FakeCache
    clock: FakeClock
    path: Path

    def recorder(self, **options: Any) -> Recorder:
        return Recorder(self.cache, self.path, clock=self.clock, **options)

    @contextmanager
    def observed(self, **options: Any) -> Iterator[Recorder]:
        """Yields a recorder that has looked once."""
        with self.recorder(**options) as recorder:
            recorder.observe()
            yield recorder
