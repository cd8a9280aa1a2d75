"""What the shapes ask of a reading: of a cache, an image, or what `rdmeta.attach` gives."""

from __future__ import annotations

import time

from rdmeta._core import DENIED, INVALID, UNKNOWN_TOPIC, Attached, MetadataCache, Reading
from rdmeta.model import Partition, Topic

__all__ = ["CODES", "answers", "hold", "leader_of", "stale_topics", "wait"]

# Kafka's codes for what state() says of a topic that is none.
CODES = {UNKNOWN_TOPIC: 3, DENIED: 29, INVALID: 17}

# An answer that changed nothing wakes nobody, nor does another process: how often to look, seconds.
LOOK_S = 0.05


def answers(reading: Reading) -> object:
    """What tells one answer from the next: different after each that was taken."""
    if isinstance(reading, MetadataCache):
        stats = reading.stats()
        return int(stats["applies"]) - int(stats["apply_failures"])
    return reading.taken if isinstance(reading, Attached) else None


def wait(reading: Reading, since: int, most: float | None) -> int:
    """Sleep until there may be something new, `most` seconds at most; returns the version.

    ForkedError for a cache in the child of a fork.
    """
    left = LOOK_S if most is None else min(most, LOOK_S)
    if isinstance(reading, MetadataCache):
        return reading.wait_change(since, left) or since
    time.sleep(left)
    return reading.version


def hold(reading: Reading) -> Reading:
    """What it says now, for who reads more than once: somebody may write between two lookups.

    In the image of what is attached no time has passed since it was published.
    """
    return reading.image() if isinstance(reading, MetadataCache | Attached) else reading


def leader_of(partition: Partition) -> int:
    """The leader, -1 for none now, of a partition that was read with allow_stale."""
    leader = partition.leader
    return -1 if leader is None or partition.leaderless else leader


def stale_topics(reading: Reading) -> list[Topic]:
    """The topics past their deadline, as last told; of what is held."""
    valid = set(reading.names())
    stale = [name for name in reading.names(allow_stale=True) if name not in valid]
    found = [reading.topic(name, None, allow_stale=True) for name in stale]
    return [topic for topic in found if topic is not None]
