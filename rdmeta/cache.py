"""The cache, and what its lookups say in place of a broker id.

`MetadataCache` is the extension's own class, so that a lookup is one call into C. The codes are
those of rdmeta.h: in the buffers of `leaders()`, and from `state()`.
"""

from __future__ import annotations

from rdmeta._core import (
    DENIED,
    INVALID,
    NO_LEADER,
    NO_PARTITION,
    NOT_CACHED,
    STALE,
    UNKNOWN_TOPIC,
    WAITING,
    MetadataCache,
    TopicHandle,
)

__all__ = [
    "DENIED",
    "INVALID",
    "NOT_CACHED",
    "NO_LEADER",
    "NO_PARTITION",
    "STALE",
    "UNKNOWN_TOPIC",
    "WAITING",
    "MetadataCache",
    "TopicHandle",
]
