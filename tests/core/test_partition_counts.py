"""partition_counts(): the number of partitions of many topics, or each topic's own error."""

from __future__ import annotations

from pathlib import Path

import frames
import numpy as np
import pyarrow as pa
import pytest
from clocks import Clock
from frames import P, T

import rdmeta


@pytest.fixture(scope="module")
def answer() -> bytes:
    topics = [T(f"topic-{i}", [P(n) for n in range(i)]) for i in range(1, 200)]
    return frames.response(12, topics)


@pytest.fixture
def cache(answer: bytes, clock: Clock) -> rdmeta.MetadataCache:
    found = rdmeta.MetadataCache(max_age=10.0, clock=clock)
    found.apply(answer, 12, rdmeta.ALL)
    return found


def test_each_topic_has_its_number_of_partitions(cache: rdmeta.MetadataCache) -> None:
    names = [f"topic-{i % 199 + 1}" for i in range(2000)]
    wanted = [i % 199 + 1 for i in range(2000)]
    assert list(cache.partition_counts(names)) == wanted
    assert list(cache.partition_counts(pa.array(names).dictionary_encode())) == wanted
    out = np.zeros(2000, np.int32)
    assert cache.partition_counts(pa.array(names), out) is out
    assert out.tolist() == wanted
    assert list(cache.partition_counts([])) == []


def test_a_topic_that_has_no_number_has_its_error(
    cache: rdmeta.MetadataCache, clock: Clock, tmp_path: Path
) -> None:
    names = ["topic-3", "unknown"]
    assert list(cache.partition_counts(names)) == [3, cache.state("unknown")]
    cache.image().save(tmp_path / "image")
    attached = rdmeta.Attached(tmp_path / "image", clock=clock)
    assert list(attached.partition_counts(names)) == [3, rdmeta.NOT_CACHED]
    clock.advance(11)
    assert list(cache.partition_counts(names)) == [rdmeta.STALE, rdmeta.NOT_CACHED]
    assert list(cache.partition_counts(names, allow_stale=True)) == [3, rdmeta.NOT_CACHED]
    assert list(cache.image().partition_counts(names, allow_stale=True)) == [3, rdmeta.NOT_CACHED]


def test_a_wrong_argument_is_refused(cache: rdmeta.MetadataCache) -> None:
    with pytest.raises(ValueError, match="topics.0. is null"):
        cache.partition_counts(pa.array([None], pa.string()))
    with pytest.raises(TypeError):
        cache.partition_counts([b"orders"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="buffer of 1 native int32"):
        cache.partition_counts(["orders"], np.zeros(2, np.int32))
