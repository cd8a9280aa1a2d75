"""The windows in which an election may be under way.

After a complaint, the loss of a connection to a leader, or leader -1, Kafka names the successor
within some seconds. For so long the topic is asked for every fast interval, and the wait does not
double. A window opens once for each leader epoch of a partition (without epochs: for each leader).
A complaint that comes again does not renew it: a partition that stays without a leader costs the
same as before, once its window is over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeAlias

from rdmeta.model import Partition, Topic

__all__ = ["ELECTION_S", "Elections"]

ELECTION_S = 15.0
MANY = 1000

# What is kept of a partition: topic id, leader epoch, leader.
Mark: TypeAlias = "tuple[str | None, int | None, int | None]"


class KnownLeaders(Protocol):
    """The cache from which leaders and epochs are read."""

    def topic(self, topic: str, default: None, *, allow_stale: bool = False) -> Topic | None: ...


class Elections:
    """The windows, by topic and partition: that of the last epoch of each."""

    def __init__(self, cache: KnownLeaders) -> None:
        self._cache = cache
        self._windows: dict[str, dict[int, tuple[Mark, float]]] = {}
        self._room = MANY

    def open(self, name: str, now: float, concerns: Callable[[Partition], bool]) -> float:
        """Opens the windows of a topic's partitions that an election concerns.

        Returns when the last of them ends; one of this epoch that was open before has its old end.
        """
        topic = self._cache.topic(name, None, allow_stale=True)
        ends = -math.inf
        for each in topic.partitions if topic is not None else ():
            if concerns(each):
                ends = max(ends, self._open(each, now))
        return ends

    def _open(self, each: Partition, now: float) -> float:
        windows = self._windows.get(each.topic)
        if windows is None:
            self._make_room()
            windows = self._windows[each.topic] = {}
        known = windows.get(each.partition)
        ends = now + ELECTION_S if known is None or _is_other(each, known[0]) else known[1]
        windows[each.partition] = (each.topic_id, each.leader_epoch, each.leader), ends
        return ends

    def _make_room(self) -> None:
        """Drops the windows of topics that the cache no longer has, once there are many."""
        if len(self._windows) < self._room:
            return
        for name in [n for n in self._windows if self._cache.topic(n, None) is None]:
            del self._windows[name]
        self._room = max(MANY, 2 * len(self._windows))


def _is_other(each: Partition, before: Mark) -> bool:
    """Returns whether a partition has another leader epoch, or another id, than before.

    Brokers of several versions may answer: what one of the two does not say is no difference.
    """
    topic_id, epoch, leader = before
    if each.topic_id and topic_id and each.topic_id != topic_id:
        return True
    if each.leader_epoch is None or epoch is None:
        return each.leader != leader
    return each.leader_epoch != epoch
