"""Caches that were told something."""

from __future__ import annotations

from typing import Any

import frames
from frames import P, T

from rdmeta import ALL, Applied, MetadataCache


def tell(cache: MetadataCache, *topics: T, asked: Any = None, broker: int = 1) -> Applied:
    """One answer of Metadata v12."""
    return cache.apply(frames.response(12, topics), 12, asked, broker)


def told(cache: MetadataCache, leader: int = 1, epoch: int = 1, names: str = "orders") -> None:
    """Answer about some topics with one leader."""
    topics = [
        T(name, [P(i, leader, epoch) for i in range(3)], id=frames.topic_id(name))
        for name in names.split()
    ]
    cache.apply(frames.response(12, topics=topics), 12, ALL)
