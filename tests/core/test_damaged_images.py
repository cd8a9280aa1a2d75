"""Errors of damaged files: they name the file, the damage, and its position."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answers import apply_topics

from rdmeta import Attached, Image, MalformedError, MetadataCache, attach


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cache = MetadataCache()
    apply_topics(cache, names="orders other third")
    cache.image().save(tmp_path / "state")
    return tmp_path / "state"


def damage(path: Path, at: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.unlink()
    path.write_bytes(data)


def topic_at(path: Path, name: bytes) -> int:
    """Returns where the topic's block begins: 16 bytes before its name."""
    return path.read_bytes().index(name) - 16


OPENS: list[Callable[[Path], object]] = [
    Image.open,
    lambda path: Image.open(path, copy=True),
    attach,
    MetadataCache.load,
]


@pytest.mark.parametrize("opens", OPENS)
def test_the_error_of_opening_a_damaged_file_names_the_damage_and_its_position(
    opens: Callable[[Path], object], path: Path
) -> None:
    size, whole = path.stat().st_size, path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(MalformedError, match=r"state\': the file ends .*, at byte 100 \(head\)"):
        opens(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(MalformedError, match=r"size .* not the file\'s, at byte 16 \(head\)"):
        opens(path)
    path.write_bytes(b"x" * size)
    with pytest.raises(MalformedError, match=r"does not begin as an image does, at byte 0"):
        opens(path)


def test_verify_names_the_damage_and_its_position(path: Path) -> None:
    at = topic_at(path, b"other")
    damage(path, at + 8, b"\xff\xff\xff\xff")
    image = Image.open(path)
    assert image.path == str(path)
    with pytest.raises(
        MalformedError, match=rf"{path}\': a topic is malformed, at byte {at} \(blocks\)"
    ):
        image.verify()
    with pytest.raises(
        MalformedError, match=rf"{path}\': a topic is malformed, at byte {at} \(blocks\)"
    ):
        MetadataCache.load(path)


def test_the_error_of_a_lookup_names_the_file(path: Path) -> None:
    damage(path, topic_at(path, b"other") + 8, b"\xff\xff\xff\xff")
    attached = Attached(path)
    for reading in (Image.open(path), attached, attached.image()):
        for lookup, what in (
            (lambda: reading.topic("other"), "topic 'other'"),  # noqa: B023
            (lambda: reading.partition("other", 0), "partition 0 of 'other'"),  # noqa: B023
            (lambda: reading.topics(), "walk over topics"),  # noqa: B023
        ):
            with pytest.raises(MalformedError, match=rf"{what} in the image '{path}': call"):
                lookup()
        assert reading.topic("orders").name == "orders"


def test_the_error_of_a_difference_names_the_file(path: Path) -> None:
    whole = MetadataCache().image()
    assert whole.path is None
    damage(path, topic_at(path, b"other") + 8, b"\xff\xff\xff\xff")
    with pytest.raises(MalformedError, match=rf"diff of '{path}'"):
        whole.diff(Image.open(path))


# ---- impossible times ------------------------------------------------------------------------

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
TIMES = [LOWEST, LOWEST + 1, LOWEST + 3, -(1 << 59), 0, 1 << 59, 1 << 62]
MAX_AGE, SHARED_DEADLINE = 64, 72  # positions in the head
MASK = (1 << 64) - 1


def head_checksum(head: bytes) -> int:
    """Returns the XXH64 of a head: 512 bytes, so there are only whole steps of 32."""
    p1, p2, p4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63

    def rotate(v: int, bits: int) -> int:
        return (v << bits | v >> (64 - bits)) & MASK

    def step(v: int, word: int) -> int:
        return rotate((v + word * p2) & MASK, 31) * p1 & MASK

    sums = [(p1 + p2) & MASK, p2, 0, -p1 & MASK]
    for words in struct.iter_unpack("<4Q", head):
        sums = [step(*pair) for pair in zip(sums, words, strict=True)]
    h = sum(rotate(v, bits) for v, bits in zip(sums, (1, 7, 12, 18), strict=True)) & MASK
    for v in sums:
        h = ((h ^ step(0, v)) * p1 + p4) & MASK
    h = (h + len(head)) & MASK
    h = (h ^ h >> 33) * p2 & MASK
    h = (h ^ h >> 29) * 0x165667B19E3779F9 & MASK
    return h ^ h >> 32


def set_in_head(path: Path, at: int, value: int) -> None:
    """Writes a number into the head, and the checksum of the result."""
    head = bytearray(path.read_bytes()[:512])
    struct.pack_into("<q", head, at, value)
    struct.pack_into("<Q", head, 24, 0)
    struct.pack_into("<Q", head, 24, head_checksum(bytes(head)))
    damage(path, 0, bytes(head))


def age_in_table(reading: Any) -> float:
    pa = pytest.importorskip("pyarrow")
    rows = pa.table(reading.to_arrow("topics", allow_stale=True)).to_pylist()
    return float(next(row["age"] for row in rows if row["topic"] == "orders"))


def test_no_time_in_a_file_makes_an_age_wrong(path: Path) -> None:
    whole = path.read_bytes()
    for deadline, max_age in itertools.product(TIMES, (1, 1 << 40, HIGHEST)):
        path.unlink()
        path.write_bytes(whole)
        damage(path, topic_at(path, b"orders"), struct.pack("<q", deadline))
        set_in_head(path, MAX_AGE, max_age)
        set_in_head(path, SHARED_DEADLINE, deadline)
        wanted = min(max(max_age - deadline, 0), HIGHEST) / 1e6
        for reading in (Image.open(path), attach(path)):
            assert math.isclose(reading.age("orders"), wanted, rel_tol=1e-3, abs_tol=5)
            assert math.isclose(age_in_table(reading), wanted, rel_tol=1e-3, abs_tol=5)
            if deadline >= -(1 << 59):
                assert math.isclose(reading.age() or 0, wanted, rel_tol=1e-3, abs_tol=5)
            else:
                assert reading.age() is None  # a time so long ago means never
        warm = MetadataCache.load(path)
        assert warm.age("orders") >= 0
        assert math.isclose(age_in_table(warm), warm.age("orders"), abs_tol=5)
