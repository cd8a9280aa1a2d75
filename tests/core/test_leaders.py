"""leaders(): many rows at once, in chunks of plain str, or all together with other names."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import frames
import numpy as np
import pytest
from frames import P, T

import rdmeta

NAMES = [f"topic-{i}" for i in range(700)] + [f"größe-{i}" for i in range(3)]


class Name(str):
    """A subclass of str."""


@pytest.fixture(scope="module")
def cache() -> rdmeta.MetadataCache:
    found = rdmeta.MetadataCache()
    topics = [T(name, [P(0, 1 + i % 3), P(1, 2)]) for i, name in enumerate(NAMES)]
    found.apply(frames.response(12, topics), 12, rdmeta.ALL)
    return found


def one_by_one(
    cache: rdmeta.MetadataCache, names: Sequence[str], partitions: Iterable[int]
) -> object:
    return [
        cache.leader(name, partition) if cache.state(name, partition) == 0
        else cache.state(name, partition)
        for name, partition in zip(names, partitions, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 31, 32, 33, 511, 512, 513, 1024, 1700])
@pytest.mark.parametrize("shape", [list, tuple, iter])
def test_leaders_returns_what_leader_returns_for_any_number_of_rows(
    cache: rdmeta.MetadataCache, rows: int, shape: Callable[[list[str]], Iterable[str]]
) -> None:
    names = [NAMES[i * 7 % 700] if i % 5 else f"unknown-{i}" for i in range(rows)]
    partitions = [i % 3 for i in range(rows)]
    found = cache.leaders(shape(names), partitions)
    assert list(found) == one_by_one(cache, names, partitions)


def test_leaders_fills_and_returns_an_array_of_numpy(cache: rdmeta.MetadataCache) -> None:
    # There is no Any here, so `make lint` also checks that mypy accepts such a call.
    partitions, out = np.array([0, 1], np.int32), np.empty(2, np.int32)
    assert cache.leaders(NAMES[:2], partitions, out) is out
    assert out.tolist() == [1, 2]


def test_a_list_whose_length_another_thread_changes_meanwhile_is_an_error(
    cache: rdmeta.MetadataCache,
) -> None:
    names, is_over = NAMES[:1] * 100_000, threading.Event()

    def change() -> None:
        while not is_over.is_set() and len(names) < 300_000:
            names.append(NAMES[0])

    def look_up() -> None:
        for _ in range(50):
            numbers = np.zeros(len(names), np.int32)
            with suppress(ValueError):  # their number has changed before the call
                cache.leaders(names, numbers)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="the list of topics changed its length"):
            look_up()
    finally:
        is_over.set()
        thread.join()
        sys.setswitchinterval(before)


@pytest.mark.parametrize("place", [0, 100, 511, 512, 600])
@pytest.mark.parametrize("odd", ["größe-1", Name("topic-5"), "\udcff", "x" * 70000, ""])
def test_one_odd_name_among_many_changes_nothing(
    cache: rdmeta.MetadataCache, place: int, odd: str
) -> None:
    names = NAMES[:650]
    names[place] = odd
    assert list(cache.leaders(names, [0] * 650)) == one_by_one(cache, names, [0] * 650)


def test_a_wrong_name_or_number_is_refused_at_any_position(cache: rdmeta.MetadataCache) -> None:
    for place in (0, 600):
        names: list[object] = list(NAMES[:650])
        names[place] = b"topic-1"
        with pytest.raises(TypeError, match="a topic must be str"):
            cache.leaders(names, [0] * 650)  # type: ignore[arg-type]
        numbers: list[object] = [0] * 650
        numbers[place] = "1"
        with pytest.raises(TypeError, match="partition must be an int"):
            cache.leaders(NAMES[:650], numbers)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="650 topics, but 649 partitions"):
        cache.leaders(NAMES[:650], [0] * 649)


def test_another_thread_may_change_the_list_during_the_call(cache: rdmeta.MetadataCache) -> None:
    names = NAMES[:600] * 20
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            names[:] = [str(name) + "x" for name in names[::-1]]
            names.append("more")
            names.pop()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            try:
                found = cache.leaders(names, [0] * 12_000)
            except (RuntimeError, ValueError):  # its length changed
                continue
            assert set(found) <= {1, 2, 3, rdmeta.NOT_CACHED}
    finally:
        stop.set()
        thread.join()
