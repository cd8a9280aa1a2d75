"""Helpers that apply answers to a cache: any topics, or topics by name with one leader."""

from __future__ import annotations

from typing import Any

import frames
from frames import P, T

from rdmeta import ALL, Applied, MetadataCache


def apply_answer(
    cache: MetadataCache, *topics: T, asked: Any = None, broker: int | None = 1
) -> Applied:
    """Applies one Metadata v12 answer of these topics; returns what apply() returns."""
    return cache.apply(frames.response(12, topics), 12, asked, broker)


def apply_topics(
    cache: MetadataCache, leader: int = 1, epoch: int = 1, names: str = "orders"
) -> None:
    """Applies an all-topics answer: three partitions per topic, all with this leader and epoch.

    `names` holds the topics' names, with spaces between them.
    """
    topics = [
        T(name, [P(i, leader, epoch) for i in range(3)], id=frames.topic_id(name))
        for name in names.split()
    ]
    apply_answer(cache, *topics, asked=ALL, broker=None)
