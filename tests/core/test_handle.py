"""Handles of topics: they follow their topic through every change; partitions of keys."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref
from array import array
from collections import Counter
from enum import Enum
from typing import Any

import frames
import numpy as np
import pytest
from answers import apply_answer
from clocks import Clock
from frames import P, T

import rdmeta
from rdmeta import MetadataCache, TopicHandle


def apply_all(cache: MetadataCache, *topics: T, asked: Any = rdmeta.ALL) -> None:
    apply_answer(cache, *topics, asked=asked)


def orders(*leaders: int, id: bytes = frames.topic_id("orders"), epoch: int = 1) -> T:
    return T("orders", [P(i, leader, epoch) for i, leader in enumerate(leaders)], id=id)


def cache_of(*topics: T, **settings: Any) -> MetadataCache:
    cache = MetadataCache(**settings)
    apply_all(cache, *topics)
    return cache


# ---- lookups by a handle -------------------------------------------------------------------------


def test_a_handle_returns_what_the_cache_returns() -> None:
    cache = cache_of(orders(1, 300, 70000, -1))
    handle = cache.resolve("orders")
    for partition in range(3):
        assert handle.leader(partition) == cache.leader("orders", partition)
    assert (handle.topic, handle.partitions, len(handle)) == ("orders", 4, 4)
    assert (handle.state(), handle.state(0)) == (0, 0)
    assert (handle.state(3), handle.state(4)) == (rdmeta.NO_LEADER, rdmeta.NO_PARTITION)
    assert repr(handle) == "<rdmeta.TopicHandle 'orders' partitions=4>"


def test_a_handle_takes_its_default_by_keyword() -> None:
    cache = cache_of(orders(1, -1))
    handle, unknown = cache.resolve("orders"), cache.resolve("payments")
    assert (handle.leader(0, default=None), handle.leader(1, default=None)) == (1, None)
    assert handle.last_leader(9, default=-1) == -1
    assert handle.partition_for(b"key", default=None) in (0, 1)
    assert unknown.partition_for(b"key", default=None) is None
    with pytest.raises(rdmeta.NoSuchPartitionError, match="the topic has 2 partitions"):
        handle.leader(9)


def test_absence_raises_the_caches_errors_or_returns_the_default() -> None:
    cache = cache_of(orders(1, -1))
    handle = cache.resolve("orders")
    unknown = cache.resolve("payments")
    with pytest.raises(rdmeta.LeaderNotAvailableError, match=r"partition 1 of 'orders'"):
        handle.leader(1)
    with pytest.raises(rdmeta.NoSuchPartitionError, match=r"partition 7 of 'orders'"):
        handle.leader(7)
    with pytest.raises(rdmeta.NoSuchPartitionError):
        handle.leader(-1)
    with pytest.raises(rdmeta.NotCachedError, match=r"partition 0 of 'payments'"):
        unknown.leader(0)
    with pytest.raises(rdmeta.NotCachedError, match=r"topic 'payments'"):
        len(unknown)
    with pytest.raises(rdmeta.NotCachedError, match=r"topic 'payments'"):
        unknown.partition_for(b"key")
    assert handle.leader(1, None) is None
    assert unknown.leader(0, "absent") == "absent"
    assert unknown.partition_for(b"key", -5) == -5
    assert repr(unknown) == "<rdmeta.TopicHandle 'payments' NOT_CACHED>"


def test_a_handle_is_true_even_without_its_topic() -> None:
    assert MetadataCache().resolve("nothing")


def test_a_handle_follows_its_topic_through_deletion_recreation_and_purge() -> None:
    cache = cache_of(orders(1, 2))
    handle = cache.resolve("orders")
    apply_all(cache, orders(2, 2, epoch=2))
    assert handle.leader(0) == 2
    apply_all(cache, T("orders", [], error=3), asked=["orders"])
    assert handle.state() == rdmeta.UNKNOWN_TOPIC
    apply_all(cache, orders(3, 3, 3, id=frames.topic_id("again")))
    assert (handle.leader(2), len(handle)) == (3, 3)
    cache.purge()
    assert handle.state() == rdmeta.NOT_CACHED
    apply_all(cache, orders(1))
    assert handle.leader(0) == 1


def test_a_name_may_be_resolved_before_it_is_known() -> None:
    cache = MetadataCache()
    handle = cache.resolve("orders")
    assert handle.state() == rdmeta.NOT_CACHED
    cache.hint(["orders"])
    assert handle.state() == rdmeta.WAITING
    apply_all(cache, orders(2))
    assert handle.leader(0) == 2


def test_a_handle_of_a_stale_topic_is_stale_and_returns_the_last_leader() -> None:
    clock = Clock()
    cache = cache_of(orders(1, 2), clock=clock, max_age=10.0)
    handle = cache.resolve("orders")
    assert handle.leader(1) == 2
    clock.advance(11)
    with pytest.raises(rdmeta.StaleError):
        handle.leader(1)
    assert handle.last_leader(1) == 2
    assert handle.last_leader(5, None) is None


def test_a_handles_name_is_any_str_of_valid_length() -> None:
    class Name(str, Enum):
        ORDERS = "orders"

    cache = cache_of(orders(1), T("grün", [P(0, 3)]))
    assert cache.resolve(Name.ORDERS).leader(0) == 1
    assert cache.resolve("grün").leader(0) == 3
    assert cache.resolve("grün").topic == "grün"
    for wrong in (b"orders", None, 5):
        with pytest.raises(TypeError, match="topic must be str"):
            cache.resolve(wrong)  # type: ignore[arg-type]
    for long in ("", "x" * 32768):
        with pytest.raises(rdmeta.ArgumentError, match="1 to 32767 bytes"):
            cache.resolve(long)


def test_a_partition_may_be_an_integer_of_any_kind() -> None:
    handle = cache_of(orders(1, 2)).resolve("orders")
    one: Any = np.int64(1)
    assert handle.leader(one) == handle.leader(True) == 2
    with pytest.raises(TypeError, match="partition must be an int"):
        handle.leader("1")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="partition"):
        handle.leader(1 << 31)
    with pytest.raises(TypeError):
        handle.leader()  # type: ignore[call-overload]


# ---- life ---------------------------------------------------------------------------------------


def test_a_handle_keeps_its_cache_alive_and_the_cache_counts_it() -> None:
    cache = cache_of(orders(1))
    one, two = cache.resolve("orders"), cache.resolve("orders")
    other = cache.resolve("payments")
    assert cache.stats()["handles"] == 2
    del one, other
    assert cache.stats()["handles"] == 1
    gone = weakref.ref(cache)
    del cache
    gc.collect()
    assert two.leader(0) == 1
    del two
    gc.collect()
    assert gone() is None


def test_a_cycle_through_a_handle_is_collected() -> None:
    class Own(MetadataCache):
        kept: TopicHandle

    cache = Own()
    cache.kept = cache.resolve("orders")
    gone = weakref.ref(cache)
    del cache
    gc.collect()
    assert gone() is None


def test_a_handle_cannot_be_pickled_or_copied() -> None:
    handle = MetadataCache().resolve("orders")
    with pytest.raises(TypeError, match="live state"):
        pickle.dumps(handle)
    with pytest.raises(TypeError, match="live state"):
        copy.copy(handle)


def test_a_child_of_a_fork_can_use_its_handles() -> None:
    cache = cache_of(orders(1, 2))
    handle = cache.resolve("orders")
    child = os.fork()
    if child == 0:
        os._exit(0 if handle.leader(1) == 2 and cache.resolve("orders").leader(0) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_read_a_handle_while_its_topic_comes_and_goes() -> None:
    cache = cache_of(orders(1, 1))
    handle = cache.resolve("orders")
    stop = threading.Event()
    seen: list[set[int]] = []

    def read() -> None:
        mine = set()
        while not stop.is_set():
            mine.add(handle.leader(1, 0))
            mine.add(cache.resolve("orders").leader(1, 0))
        seen.append(mine)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(300):
        apply_all(cache, orders(2, 2, id=frames.topic_id(turn)))
        cache.purge()
        apply_all(cache, orders(3, 3, id=frames.topic_id(turn)))
    stop.set()
    for reader in readers:
        reader.join()
    assert set().union(*seen) <= {0, 1, 2, 3}
    assert handle.leader(1) == 3


# ---- keys ---------------------------------------------------------------------------------------


class Raw(bytes):
    """A subclass of bytes, as NumPy's bytes_ is."""


def test_a_key_may_be_bytes_of_any_kind() -> None:
    handle = cache_of(orders(*[1] * 50)).resolve("orders")
    where = handle.partition_for(b"key-7")
    for key in (bytearray(b"key-7"), memoryview(b"key-7"), array("B", b"key-7"), Raw(b"key-7")):
        assert handle.partition_for(key) == where
    numbers: Any = np.frombuffer(b"key-7", np.uint8)
    assert handle.partition_for(numbers) == where
    assert handle.partition_for(b"") == handle.partition_for(bytearray())
    assert len({handle.partition_for(bytearray()) for _ in range(50)}) == 1
    for wrong in ("key-7", 7, ["k"]):
        with pytest.raises(TypeError, match="bytes or a buffer"):
            handle.partition_for(wrong)  # type: ignore[call-overload]
    with pytest.raises(BufferError):
        handle.partition_for(memoryview(b"key-7")[::2])


def test_a_missing_key_chooses_among_all_partitions_with_a_leader() -> None:
    handle = cache_of(orders(1, -1, 2, 3)).resolve("orders")
    seen = Counter(handle.partition_for(None) for _ in range(3000))
    assert set(seen) == {0, 2, 3}
    assert min(seen.values()) > 700


def test_partition_for_takes_a_stale_topic_only_with_allow_stale() -> None:
    clock = Clock()
    cache = cache_of(orders(*[1] * 50), clock=clock, max_age=10.0)
    handle = cache.resolve("orders")
    where = handle.partition_for(b"key-7")
    clock.advance(11)
    with pytest.raises(rdmeta.StaleError):
        handle.partition_for(b"key-7")
    with pytest.raises(rdmeta.StaleError):
        cache.partition_for("orders", b"key-7")
    assert handle.partition_for(b"key-7", allow_stale=True) == where
    readings: tuple[rdmeta.Reading, ...] = (cache, cache.image())
    for reading in readings:
        assert reading.partition_for("orders", b"key-7", allow_stale=True) == where
    assert handle.partition_for(None, allow_stale=True) in range(50)
    assert cache.partition_for("unknown", b"key-7", None, allow_stale=True) is None


def test_resolved_returns_the_names_that_live_handles_hold() -> None:
    cache = cache_of(orders(1))
    assert cache.resolved() == []
    handles = [cache.resolve(name) for name in ("orders", "not cached", "orders", "h\udcff")]
    assert set(cache.resolved()) == {"orders", "not cached", "h\udcff"}
    assert len(cache.resolved()) == 3
    cache.forget(["orders"])
    assert "orders" in cache.resolved()
    with pytest.raises(rdmeta.NotCachedError):
        handles[0].leader(0)
    apply_all(cache, orders(2))
    assert handles[0].leader(0) == 2
    del handles[0], handles[0]
    assert set(cache.resolved()) == {"orders", "h\udcff"}
    handles.clear()
    assert cache.resolved() == []
