"""Functions that the compat classes need on a reading: a cache, an image or an attached reader."""

from __future__ import annotations

import time

from rdmeta._core import DENIED, INVALID, UNKNOWN_TOPIC, Attached, MetadataCache, Reading
from rdmeta.core.waits import LOOK_S
from rdmeta.model import Partition, Topic

# Kafka's codes for the states of a topic that cannot be used.
CODES = {UNKNOWN_TOPIC: 3, DENIED: 29, INVALID: 17}


def answers(reading: Reading) -> object:
    """Returns a value that differs after each answer that was applied, None for an image."""
    if isinstance(reading, MetadataCache):
        stats = reading.stats()
        return int(stats["applies"]) - int(stats["apply_failures"])
    return reading.taken if isinstance(reading, Attached) else None


def wait(reading: Reading, since: int, timeout: float | None) -> int:
    """Sleeps until something may have changed, at most `timeout` seconds; returns the version.

    Raises ForkedError for a cache in the child of a fork.
    """
    seconds = LOOK_S if timeout is None else min(timeout, LOOK_S)
    if isinstance(reading, MetadataCache):
        return reading.wait_change(since, seconds) or since
    time.sleep(seconds)
    return reading.version


def image_of(reading: Reading) -> Reading:
    """Returns an image of the reading, so that several lookups see the same state.

    A writer may change a cache between two lookups. In the image of an attached reader no time
    passes after its publication.
    """
    return reading.image() if isinstance(reading, MetadataCache | Attached) else reading


def leader_of(partition: Partition) -> int:
    """Returns the leader of a partition that was read with allow_stale, -1 if it is leaderless."""
    leader = partition.leader
    return -1 if leader is None or partition.leaderless else leader


def stale_topics(reading: Reading) -> list[Topic]:
    """Returns the image's stale topics, as the last answers described them."""
    valid = set(reading.names())
    stale = [name for name in reading.names(allow_stale=True) if name not in valid]
    found = [reading.topic(name, None, allow_stale=True) for name in stale]
    return [topic for topic in found if topic is not None]
