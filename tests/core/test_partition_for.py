"""Compares keys' partitions with the Java client's, which golden/Murmur2Golden.java printed."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import frames
import pytest
from frames import P, T

import rdmeta

GOLDEN = Path(__file__).resolve().parents[1] / "golden/murmur2.txt"
COUNTS = (3, 12, 1000)
KEYS = 500


def key(i: int) -> bytes:
    """Returns the i-th key, as the generator makes it."""
    length = i % 65 if i < KEYS - 10 else 1000 * (i - (KEYS - 11))
    blocks = (sha256(f"{i}/{n}".encode()).digest() for n in range(-(-length // 32)))
    return b"".join(blocks)[:length]


@pytest.fixture(scope="module")
def golden() -> list[tuple[bytes, list[int]]]:
    """Returns, for each key, its hash and its partitions for each of COUNTS, from Java."""
    *lines, digest = GOLDEN.read_text(encoding="ascii").splitlines()
    keys = [key(i) for i in range(KEYS)]
    assert sha256(b"".join(keys)).hexdigest() == digest, "these are not the generator's keys"
    return [(k, [int(n) for n in line.split()]) for k, line in zip(keys, lines, strict=True)]


@pytest.mark.parametrize("count", COUNTS)
def test_keys_go_where_the_java_client_puts_them(
    golden: list[tuple[bytes, list[int]]], count: int
) -> None:
    cache = rdmeta.MetadataCache()
    topic = T("orders", [P(i) for i in range(count)])
    cache.apply(frames.response(12, [topic]), 12, rdmeta.ALL)
    handle = cache.resolve("orders")
    column = 1 + COUNTS.index(count)
    wrong = [k for k, row in golden if handle.partition_for(k) != row[column]]
    assert wrong == []


def test_the_partition_comes_from_the_hash_without_its_sign(
    golden: list[tuple[bytes, list[int]]],
) -> None:
    assert any(hash < 0 for _, (hash, *_) in golden)
    for _, (hash, *partitions) in golden:
        assert partitions == [(hash & 0x7FFFFFFF) % count for count in COUNTS]
