"""Handles and statistics of the state that another process publishes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import frames
import pytest
from answers import apply_answer
from clocks import Clock
from frames import B, P, T
from waiting import LONG, published

from rdmeta import (
    ALL,
    ArgumentError,
    Attached,
    LeaderNotAvailableError,
    MetadataCache,
    NotCachedError,
    StaleError,
    TopicHandle,
    UnknownTopicError,
    attach,
)
from rdmeta.cache import NO_LEADER, NO_PARTITION, NOT_CACHED, STALE, UNKNOWN_TOPIC

KEYS = [None, b"", b"a", b"another key", bytearray(b"one"), memoryview(b"more")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def cache(path: Path) -> Iterator[MetadataCache]:
    with published(path, negative_ttl=60, denied_ttl=60) as cache:
        yield cache


def seen(attached: Attached, cache: MetadataCache) -> None:
    """Waits until `attached` has the cache's session and version."""
    version = attached.version
    while version < cache.version or version.session != cache.session:
        later = attached.wait_change(version, LONG)
        assert later is not None
        version = later


# ---- handles ------------------------------------------------------------------------------------


def same(mine: TopicHandle, theirs: TopicHandle) -> None:
    """Checks that a handle returns what the cache's own handle returns."""
    for partition in range(-1, 5):
        assert mine.state(partition) == theirs.state(partition)
        assert mine.leader(partition, None) == theirs.leader(partition, None)
        assert mine.last_leader(partition, None) == theirs.last_leader(partition, None)
    assert (mine.state(), mine.topic, bool(mine)) == (theirs.state(), theirs.topic, True)
    assert repr(mine) == repr(theirs)
    for key in KEYS[1:]:
        assert mine.partition_for(key, None) == theirs.partition_for(key, None)
    if mine.state() == 0:
        assert mine.partitions == len(mine) == len(theirs)
        assert mine.partition_for(None) in range(len(mine))
        return
    lookups: list[Callable[[TopicHandle], object]] = [
        lambda handle: handle.leader(0),
        lambda handle: handle.last_leader(0),
        lambda handle: handle.partition_for(b"a"),
        len,
    ]
    for lookup in lookups:
        errors = []
        for handle in (mine, theirs):
            with pytest.raises((NotCachedError, UnknownTopicError)) as raised:
                lookup(handle)
            # The advice in the texts differs: another process refreshes an attached state.
            errors.append((type(raised.value), str(raised.value).split(": nothing")[0]))
        assert errors[0] == errors[1]


def test_a_handle_follows_its_topic_through_every_change(cache: MetadataCache, path: Path) -> None:
    attached = attach(path, look=0.001)
    mine, theirs = attached.resolve("orders"), cache.resolve("orders")
    new, their_new = attached.resolve("new"), cache.resolve("new")
    first, second = frames.topic_id("first"), frames.topic_id("second")
    steps: list[tuple[list[T], Any]] = [
        ([T("orders", [P(0, 2, 1), P(1, 3, 1), P(2, -1, 1)], id=first)], None),
        ([T("new", [], error=3)], ["new"]),
        ([T("new", [P(0, 1), P(1, 2), P(2, 3)])], ["new"]),
        ([T("orders", [], error=3)], ["orders"]),
        ([T("orders", [P(0, 1, 0)], id=second)], ["orders"]),
        ([T("other")], ALL),
        ([T("orders", [P(0, 3, 5), P(1, 3, 5)], id=second)], None),
    ]
    for topics, asked in steps:
        apply_answer(cache, *topics, asked=asked)
        seen(attached, cache)
        same(mine, theirs)
        same(new, their_new)
    cache.purge()
    seen(attached, cache)
    same(mine, theirs)


def test_a_handle_survives_a_restart_of_the_publisher(path: Path) -> None:
    handle = None
    for leader in (1, 2, 3):
        with published(path) as cache:
            attached = attach(path, look=0.001)
            handle = handle or attached.resolve("orders")
            apply_answer(cache, T("orders", [P(0, leader, 1)]))
            seen(attached, cache)
            attached.wait_for_topic("orders")
            while handle.leader(0) != leader:  # the lookup reads the file by itself
                pass
        assert handle.leader(0) == leader


def test_a_handle_obeys_deadlines_and_its_errors_name_the_cause(path: Path) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=60)
    apply_answer(cache, T("orders", [P(0, 1, 0), P(1, -1, 0)]))
    cache.image().save(path)
    attached = Attached(path, 0.02, clock=clock)
    handle, none = attached.resolve("orders"), attached.resolve("none")
    assert (handle.leader(0), handle.leader(0, None), len(handle)) == (1, 1, 2)
    assert (handle.state(1), handle.state(2)) == (NO_LEADER, NO_PARTITION)
    assert (handle.state(), none.state(), none.state(0)) == (0, NOT_CACHED, NOT_CACHED)
    with pytest.raises(LeaderNotAvailableError, match="partition 1 of 'orders'"):
        handle.leader(1)
    clock.advance(1000)
    assert (handle.state(), handle.state(0), handle.last_leader(0)) == (STALE, STALE, 1)
    with pytest.raises(StaleError):
        handle.partition_for(b"a")
    cache.apply(frames.response(12, [T("orders", [], error=3)]), 12, ["orders"])
    cache.image().save(path)
    assert attached.wait_change(attached.version, 0) is None  # this read the file
    assert handle.state() == UNKNOWN_TOPIC


def test_a_handle_needs_a_valid_name_and_a_source_that_changes(
    cache: MetadataCache, path: Path
) -> None:
    attached, given = attach(path), cache.image()
    for name in ("", "a" * 32768):
        with pytest.raises(ArgumentError, match="1 to 32767 bytes"):
            attached.resolve(name)
    with pytest.raises(TypeError, match="str"):
        attached.resolve(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not Image"):
        TopicHandle(given, "orders")  # type: ignore[arg-type]
    assert attached.resolve("caf\xe9 \udcff").topic == "caf\xe9 \udcff"


def test_a_handle_keeps_its_source_alive_and_works_in_the_child_of_a_fork(
    cache: MetadataCache, path: Path
) -> None:
    handle = attach(path, look=0.001).resolve("orders")
    child = os.fork()
    if child == 0:
        try:
            assert handle.leader(0) == 1
            assert repr(handle) == "<rdmeta.TopicHandle 'orders' partitions=1>"
            del handle
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert handle.leader(0) == 1


# ---- stats --------------------------------------------------------------------------------------


def test_stats_describe_the_state_and_its_file(cache: MetadataCache, path: Path) -> None:
    apply_answer(
        cache, T("orders", [P(0), P(1)]), T("gone", [], error=3), T("secret", [], error=29)
    )
    attached = attach(path, look=1000)
    seen(attached, cache)
    image, stats = attached.image(), attached.stats()
    assert {key: stats[key] for key in ("version", "topics", "partitions", "negatives")} == {
        key: cache.stats()[key] for key in ("version", "topics", "partitions", "negatives")
    }
    assert (stats["topics"], stats["partitions"], stats["negatives"]) == (2, 3, 2)
    assert (stats["session"], stats["taken"]) == (cache.session, image.taken)
    assert stats["version"].session == cache.session
    assert stats["brokers"] == len(cache.brokers) == len(frames.BROKERS)
    assert (stats["path"], stats["bytes"]) == (str(path), path.stat().st_size)
    assert stats["mapped"]
    assert not attach(path, copy=True).stats()["mapped"]


def test_stats_count_looks_states_and_errors(path: Path) -> None:
    cache = MetadataCache()
    for generation in range(3):
        apply_answer(cache, T("orders", [P(0, 1, generation)]))
        cache.image().save(path)
        if not generation:
            attached = attach(path, look=1000)
        stats = attached.stats()
        assert stats["generations"] == generation + 1
        assert (stats["version"], stats["topics"]) == (generation + 1, 1)
        assert stats["brokers"] == len(frames.BROKERS)
        assert (stats["errors"], stats["error"]) == (0, None)
    cache.apply(frames.response(12, brokers=[B(1)]), 12, ())
    path.unlink()
    first = attached.stats()
    assert (first["errors"], first["error"], first["version"]) == (1, "IO", 3)
    path.write_bytes(b"no image")
    second = attached.stats()
    assert second["error"] == "MALFORMED"
    assert second["looks"] > first["looks"]
    cache.image().save(path)
    last = attached.stats()
    assert (last["error"], last["generations"], last["brokers"]) == (None, 4, 1)
    assert last["errors"] >= 2
