"""The fixtures of tests in several modules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clocks import Clock
from hypothesis import HealthCheck, settings

from rdmeta import MetadataCache
from rdmeta.embedded import EmbeddedCluster

# The machine decides how long an example takes, so examples have no deadline.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until a test moves it."""
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> MetadataCache:
    """An empty cache with that clock; modules have caches of their own."""
    return MetadataCache(clock=clock)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """A cluster of three brokers for one test."""
    with EmbeddedCluster(brokers=3) as embedded:
        yield embedded
