"""What tests of several modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rdmeta.embedded import EmbeddedCluster


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Three brokers of its own for one test."""
    with EmbeddedCluster(brokers=3) as embedded:
        yield embedded
