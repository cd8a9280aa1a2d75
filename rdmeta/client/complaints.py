"""Complaints of the application about a partition whose leader is not the leader any more.

leader_unavailable() says that a leader refused or was not there. epoch_seen() says that there is a
newer leader epoch. Both are claims about what is known at that moment, so a Complaint has a mark of
that: the partition's epoch and leader. It is over when the mark moves; one of epoch_seen(), when
the known epoch is that one, or later. It is over 30 s after the application last said so: a false
one must not poll for ever.

All complaints last equally long, so the order in which they last came is that in which they end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from rdmeta.client.retry_schedule import SLOW_AFTER
from rdmeta.model import Partition

if TYPE_CHECKING:
    from rdmeta._core import MetadataCache

# The codes whose exceptions derive from Kafka's InvalidMetadataException (clients 4.3.0).
INVALID_METADATA = frozenset((3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103))


class _Complaint(NamedTuple):
    epoch: int | None
    leader: int | None
    wanted_epoch: int | None
    ends_at: float


class Complaints:
    """The open complaints, by topic and partition, in the order in which they end."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._open: dict[tuple[str, int], _Complaint] = {}
        self._topics: dict[str, int] = {}
        # The last epoch that was seen of each partition whose own epoch is not known.
        self._seen: dict[tuple[str, int], int] = {}

    def unavailable(self, topic: str, partition: int, code: int, now: float) -> bool:
        """Takes leader_unavailable(); returns whether it is a complaint."""
        if code not in INVALID_METADATA:
            return False
        return self._add(topic, partition, None, now)

    def epoch_seen(self, topic: str, partition: int, epoch: int, now: float) -> bool:
        """Takes epoch_seen(); returns whether it is newer than a known partition's."""
        known = self._cache.partition(topic, partition, None, allow_stale=True)
        if known is None or not self._is_newer(known, epoch):
            return False
        before = self._open.get((topic, partition))
        if before is not None and (before.wanted_epoch or -1) < epoch:
            self._remove((topic, partition))
        return self._add(topic, partition, epoch, now)

    def _is_newer(self, known: Partition, epoch: int) -> bool:
        """Returns whether an epoch is newer than the known one, or than any that was seen.

        Brokers before Metadata v9 do not say an epoch that counts.
        """
        key = (known.topic, known.partition)
        if known.leader_epoch is not None:
            self._seen.pop(key, None)
            return epoch > known.leader_epoch
        if epoch <= self._seen.get(key, -1):
            return False
        self._seen[key] = epoch
        return True

    def _add(self, topic: str, partition: int, wanted: int | None, now: float) -> bool:
        key = (topic, partition)
        if key in self._open:  # it begins its time anew
            self._open[key] = self._open.pop(key)._replace(ends_at=now + SLOW_AFTER)
            return True
        known = self._cache.partition(topic, partition, None, allow_stale=True)
        epoch, leader = (known.leader_epoch, known.leader) if known else (None, None)
        self._open[key] = _Complaint(epoch, leader, wanted, now + SLOW_AFTER)
        self._topics[topic] = self._topics.get(topic, 0) + 1
        return True

    def _remove(self, key: tuple[str, int]) -> bool:
        """Removes a complaint; returns whether it was the topic's last one."""
        del self._open[key]
        self._topics[key[0]] -= 1
        if self._topics[key[0]]:
            return False
        del self._topics[key[0]]
        return True

    @property
    def ends_at(self) -> float:
        """The time at which the oldest complaint ends."""
        return next(iter(self._open.values())).ends_at if self._open else math.inf

    def expire(self, now: float) -> list[str]:
        """Ends the complaints that are too old; returns the topics without any other."""
        old = [key for key, _ in takewhile(lambda e: e[1].ends_at <= now, self._open.items())]
        return [key[0] for key in old if self._remove(key)]

    def changed(self, topics: Collection[str]) -> tuple[int, list[str]]:
        """Looks at topics that changed.

        Returns how many complaints are over, and the topics without any other.
        """
        keys = [key for key in self._open if key[0] in topics] if topics else []
        over = [key for key in keys if self._is_over(key)]
        return len(over), [key[0] for key in over if self._remove(key)]

    def forget(self, is_gone: Callable[[str], bool]) -> list[str]:
        """Ends the complaints about topics that are gone; returns these topics."""
        self._seen = {key: epoch for key, epoch in self._seen.items() if not is_gone(key[0])}
        keys = [key for key in self._open if is_gone(key[0])]
        return [key[0] for key in keys if self._remove(key)]

    def topics(self) -> list[str]:
        """Returns the topics with complaints."""
        return list(self._topics)

    def _is_over(self, key: tuple[str, int]) -> bool:
        complaint = self._open[key]
        known = self._cache.partition(*key, None, allow_stale=True)
        if known is None:
            return False
        if complaint.wanted_epoch is not None and known.leader_epoch is not None:
            return known.leader_epoch >= complaint.wanted_epoch
        if complaint.epoch is not None and known.leader_epoch is not None:
            return known.leader_epoch != complaint.epoch
        return known.leader != complaint.leader
