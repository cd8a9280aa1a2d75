"""Point lookups from Python. To compare two states of the tree:

    pytest bench --benchmark-save=before
    pytest bench --benchmark-compare

Each call of the measured function asks once for every topic: divide by 10 000.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

import pytest

import rdmeta
from bench import build
from bench.leader import PARTITIONS

Queries: TypeAlias = list[tuple[str, int]]

pytestmark = pytest.mark.benchmark(group="lookups of 10 000 topics")


@pytest.fixture
def queries(names: list[str]) -> Queries:
    """Each topic once, in a random order, with a random partition."""
    chance = random.Random(20)
    return [(topic, chance.randrange(PARTITIONS)) for topic in chance.sample(names, len(names))]


def ask(method: Any, queries: Queries) -> None:
    """Calls `method` with every query."""
    for topic, partition in queries:
        method(topic, partition)


def test_no_op_method(benchmark: Any, queries: Queries) -> None:
    benchmark(ask, build.noop().Noop().leader, queries)


def test_leader(benchmark: Any, cache: rdmeta.MetadataCache, queries: Queries) -> None:
    assert cache.leader(*queries[0]) > 0
    benchmark(ask, cache.leader, queries)


def test_partition(benchmark: Any, cache: rdmeta.MetadataCache, queries: Queries) -> None:
    assert len(cache.partition(*queries[0]).replicas) == 3
    benchmark(ask, cache.partition, queries)
