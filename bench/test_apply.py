"""Responses of 100 000 partitions into a cache, from Python. test_lookups says how to compare."""

from __future__ import annotations

from typing import Any

import pytest

import rdmeta
from bench.conftest import API_VERSION, TOPICS

pytestmark = pytest.mark.benchmark(group="apply of 100 000 partitions")


def test_apply_to_an_empty_cache(benchmark: Any, response: bytes) -> None:
    def fill(cache: rdmeta.MetadataCache) -> int:
        return cache.apply(response, API_VERSION, asked=rdmeta.ALL).changed

    changed = benchmark.pedantic(fill, setup=lambda: ((rdmeta.MetadataCache(),), {}), rounds=20)
    assert changed == TOPICS


def test_apply_the_same_again(benchmark: Any, cache: rdmeta.MetadataCache, response: bytes) -> None:
    applied = benchmark(cache.apply, response, API_VERSION, rdmeta.ALL)
    assert applied.changed == 0
