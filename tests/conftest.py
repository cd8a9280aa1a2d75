"""What tests of several modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clocks import Clock
from hypothesis import HealthCheck, settings

from rdmeta import MetadataCache
from rdmeta.embedded import EmbeddedCluster

# How long an example takes, and to make one, is the machine's business.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until a test moves it."""
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> MetadataCache:
    """An empty cache by that clock; modules have others of their own."""
    return MetadataCache(clock=clock)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Three brokers of its own for one test."""
    with EmbeddedCluster(brokers=3) as embedded:
        yield embedded
