"""The fixtures of the suites: one response, and a cache with it."""

from __future__ import annotations

import pytest

import rdmeta
from bench import build
from bench.leader import name

TOPICS = 10_000
API_VERSION = 12


@pytest.fixture(scope="session")
def response() -> bytes:
    """A Metadata v12 body of 10 000 topics with 10 partitions each."""
    return build.response(TOPICS, 8, 1)


@pytest.fixture
def cache(response: bytes) -> rdmeta.MetadataCache:
    """A cache with default settings that has the response."""
    filled = rdmeta.MetadataCache()
    filled.apply(response, API_VERSION, asked=rdmeta.ALL)
    return filled


@pytest.fixture(scope="session")
def names() -> list[str]:
    """The topics of the response."""
    return [name(i) for i in range(TOPICS)]
