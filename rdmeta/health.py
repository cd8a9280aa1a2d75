"""Which partitions need care, and how evenly brokers are loaded: pure functions over facts.

    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, "localhost:9092")
    for topic in cache.topics():
        for partition in topic.partitions:
            if rdmeta.health.is_under_replicated(partition):
                print(partition.topic, partition.partition)

`rdmeta list` and `rdmeta wait` are made of them. `health()` of a cache counts without objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

from rdmeta.model import Broker, Partition

__all__ = [
    "MIN_ISR",
    "BrokerLoad",
    "RackLoad",
    "Skew",
    "counts",
    "has_offline_replica",
    "is_at_min_isr",
    "is_leaderless",
    "is_lost_without",
    "is_not_preferred",
    "is_under_min_isr",
    "is_under_replicated",
    "skew",
]

MIN_ISR = "min.insync.replicas"
"""The topic's configuration key of the least replicas that acks=all needs in sync."""


def is_leaderless(partition: Partition) -> bool:
    """Returns whether the partition has no leader now: it can be neither read nor written."""
    return partition.leader is None or partition.leaderless


def is_under_replicated(partition: Partition) -> bool:
    """Returns whether a replica is not in sync."""
    return len(partition.isr) < len(partition.replicas)


def has_offline_replica(partition: Partition) -> bool:
    """Returns whether a replica is on a broker, or a disk, that is down."""
    return bool(partition.offline_replicas)


def is_not_preferred(partition: Partition) -> bool:
    """Returns whether another replica than the first one leads."""
    if is_leaderless(partition) or not partition.replicas:
        return False
    return partition.leader != partition.replicas[0]


def is_under_min_isr(partition: Partition, least: int) -> bool:
    """Returns whether producers with acks=all are refused; `least` is the topic's MIN_ISR."""
    return len(partition.isr) < least


def is_at_min_isr(partition: Partition, least: int) -> bool:
    """Returns whether producers with acks=all would be refused after one more loss."""
    return len(partition.isr) == least


def is_lost_without(partition: Partition, brokers: Collection[int]) -> bool:
    """Returns whether the partition would lose its last in-sync replica without these brokers."""
    return bool(partition.isr) and all(each in brokers for each in partition.isr)


class BrokerLoad(NamedTuple):
    """The partitions that a broker leads and stores.

    `leaders_above` is how far its leaders are above the mean of all brokers: 0.25 is a quarter
    above, -1.0 is none at all. It is None if no broker leads. `replicas_above` is the same for
    replicas. `rack` is None if the broker has none, or is not among the brokers now.
    """

    broker: int
    rack: str | None
    leaders: int
    leaders_above: float | None
    replicas: int
    replicas_above: float | None


class RackLoad(NamedTuple):
    """The same for the brokers of a rack together; the means are those of all racks."""

    rack: str | None
    brokers: int
    leaders: int
    leaders_above: float | None
    replicas: int
    replicas_above: float | None


class Skew(NamedTuple):
    """The load of each broker in the order of ids, and of each rack; none if no broker has one."""

    brokers: tuple[BrokerLoad, ...]
    racks: tuple[RackLoad, ...]


def counts(partitions: Iterable[Partition]) -> tuple[dict[int, int], dict[int, int]]:
    """Returns how many partitions each broker leads, and of how many it has a replica."""
    leaders: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for partition in partitions:
        if partition.leader is not None and not partition.leaderless:
            leaders[partition.leader] = leaders.get(partition.leader, 0) + 1
        for broker in partition.replicas:
            replicas[broker] = replicas.get(broker, 0) + 1
    return leaders, replicas


def skew(
    brokers: Iterable[Broker], leaders: Mapping[int, int], replicas: Mapping[int, int]
) -> Skew:
    """Returns how evenly leaders and replicas are spread, from counts by broker id.

    The counts are those of counts(), or of `health()`: `leaders` and `replicas_on`. A broker that
    only the counts name is one of the brokers here, as its replicas wait for it.

        found = cache.health()
        rdmeta.health.skew(cache.brokers, found.leaders, found.replicas_on)
    """
    racks = {broker.id: broker.rack for broker in brokers}
    ids = sorted({*racks, *leaders, *replicas})
    by_broker = _loads({each: [each] for each in ids}, leaders, replicas)
    of_brokers = tuple(BrokerLoad(each, racks.get(each), *by_broker[each]) for each in ids)
    if not any(racks.values()):
        return Skew(of_brokers, ())
    members: dict[str | None, list[int]] = {}
    for each in ids:
        members.setdefault(racks.get(each), []).append(each)
    by_rack = _loads(members, leaders, replicas)
    order = sorted(members, key=lambda rack: (rack is None, rack or ""))
    return Skew(of_brokers, tuple(RackLoad(r, len(members[r]), *by_rack[r]) for r in order))


_Load = tuple[int, float | None, int, float | None]
_Key = TypeVar("_Key")


def _loads(
    members: Mapping[_Key, list[int]], leaders: Mapping[int, int], replicas: Mapping[int, int]
) -> dict[_Key, _Load]:
    """Returns for each group of brokers its leaders, replicas, and how far they are above."""
    sums = {
        key: (sum(leaders.get(b, 0) for b in ids), sum(replicas.get(b, 0) for b in ids))
        for key, ids in members.items()
    }
    means = [sum(each[i] for each in sums.values()) / (len(sums) or 1) for i in (0, 1)]
    return {
        key: (led, _above(led, means[0]), stored, _above(stored, means[1]))
        for key, (led, stored) in sums.items()
    }


def _above(count: int, mean: float) -> float | None:
    return count / mean - 1 if mean else None
