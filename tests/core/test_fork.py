"""The child of a fork can read and free; its writes are refused, whatever its parent was doing."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from frames import P, T, response
from processes import in_a_child

from rdmeta import NOT_CACHED, MetadataCache, fetch
from rdmeta.errors import ForkedError, TransportError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")
NAMES = [f"t{i}" for i in range(200)]


@pytest.fixture
def cache() -> MetadataCache:
    cache = MetadataCache()
    apply_epoch(cache, 0)
    return cache


def answer(epoch: int) -> bytes:
    rows = [P(i, (epoch + i) % 3 + 1, epoch) for i in range(20)]
    return response(12, [T(name, rows) for name in NAMES])


def apply_epoch(cache: MetadataCache, epoch: int) -> None:
    cache.apply(answer(epoch), 12)


def read(cache: MetadataCache) -> None:
    for name in NAMES[::20]:
        topic = cache.topic(name)
        assert len({p.leader_epoch for p in topic.partitions}) == 1
        assert [p.leader for p in topic.partitions] == list(cache.leaders([name] * 20, range(20)))
        assert cache.leader(name, 3) == cache.partition(name, 3).leader
        assert cache.replica_in(name, 3, "rack") == cache.partition(name, 3).leader
        assert cache.age(name) >= 0
    assert len(cache.brokers) == 3
    assert cache.stats()["topics"] == len(NAMES)


def walk(cache: MetadataCache) -> None:
    """Walks all topics, images and handles; each topic must be whole after any fork."""
    names = sorted(NAMES)
    assert list(cache) == names
    assert len(cache) == len(names)
    assert [topic.name for topic in cache.topics(prefix="t1")] == [n for n in names if n[1] == "1"]
    topics = cache.topics()
    assert all(len({p.leader_epoch for p in topic.partitions}) == 1 for topic in topics)
    assert sum(len(cache.partitions_on(broker)) for broker in (1, 2, 3)) == 20 * len(names)
    image = cache.image()
    assert image.topics() == topics
    assert list(image.diff(cache.image())) == []
    assert pa.table(cache.to_arrow("partitions")).num_rows == 20 * len(names)
    handle = cache.resolve("t5")
    assert handle.leader(3) == cache.leader("t5", 3)
    assert len(handle) == 20
    assert cache.resolve("not there").state() == NOT_CACHED


WRITES: list[Callable[[MetadataCache], object]] = [
    lambda cache: apply_epoch(cache, 9),
    lambda cache: cache.request(NAMES),
    lambda cache: cache.apply_failure(NAMES),
    lambda cache: cache.apply_leader_hint("t0", 0, 1, 99),
    lambda cache: cache.hint(["new"]),
    lambda cache: cache.purge_hints(),
    lambda cache: cache.purge(),
    lambda cache: cache.forget(NAMES),
    lambda cache: cache.due(),
    lambda cache: cache.resolved(),
    lambda cache: cache.sweep(),
    lambda cache: cache.wait_change(cache.version),
    lambda cache: cache.wait_for_topic("new", timeout=None),
]


def follow(cache: MetadataCache) -> None:
    changes = cache.changes(cache.version - 1)
    assert changes.until == cache.version
    assert changes
    assert not changes.resync


def refused(cache: MetadataCache) -> None:
    for write in WRITES:
        with pytest.raises(ForkedError):
            write(cache)


@pytest.mark.slow
def test_a_fork_in_the_middle_of_a_write_leaves_a_child_that_reads(cache: MetadataCache) -> None:
    stop = threading.Event()

    def write() -> None:
        epoch = 0
        while not stop.is_set():
            epoch += 1
            body = answer(epoch)
            for _ in range(100):
                cache.apply(body, 12)
                cache.hint(["new"])

    def act() -> None:
        read(cache)
        walk(cache)
        refused(cache)
        read(cache)
        follow(cache)

    walk(cache)  # imports here what each child would import otherwise
    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(20):
            in_a_child(act)
            time.sleep(0.001)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    read(cache)


@pytest.mark.slow
def test_a_child_can_free_everything_that_it_inherits() -> None:
    caches = [MetadataCache() for _ in range(3)]
    for cache in caches:
        apply_epoch(cache, 1)
        cache.topics()
    sink = os.open(os.devnull, os.O_WRONLY)
    watches = [cache._watch(sink) for cache in caches]

    def act() -> None:
        watches[0].close()
        read(caches[1])
        watches.clear()
        caches.clear()
        gc.collect()

    for _ in range(5):
        in_a_child(act)
    walk(caches[0])
    for watch in watches:
        watch.close()
    os.close(sink)


@pytest.mark.slow
def test_an_image_reads_in_the_child_and_may_outlive_its_cache(cache: MetadataCache) -> None:
    image = cache.image()
    topics = image.topics()
    apply_epoch(cache, 5)

    def act() -> None:
        nonlocal cache, image
        assert image.topics() == topics
        del cache
        gc.collect()
        assert image.leader("t7", 3) == topics[0].partitions[3].leader
        del image
        gc.collect()

    for _ in range(10):
        in_a_child(act)
    apply_epoch(cache, 6)
    assert image.topics() == topics


def test_a_loop_in_the_child_can_read_and_its_waits_are_refused(cache: MetadataCache) -> None:
    async def wait() -> None:
        with pytest.raises(ForkedError):
            await cache.wait_change_async(cache.version, 10)
        assert cache.leader("t0", 0) in (1, 2, 3)

    async def parent() -> None:
        waiter = asyncio.create_task(cache.wait_change_async(cache.version, 50))
        await asyncio.sleep(0.01)
        for _ in range(5):
            in_a_child(lambda: asyncio.set_event_loop(None))
        apply_epoch(cache, 3)
        assert await waiter == cache.version

    in_a_child(lambda: asyncio.run(wait()))
    asyncio.run(parent())


def test_waits_that_end_in_the_child_go_on_in_the_parent(cache: MetadataCache) -> None:
    async def parent() -> None:
        waiter = asyncio.create_task(cache.wait_change_async(cache.version, 20))
        await asyncio.sleep(0.01)
        # The child's interpreter does this at its exit.
        in_a_child(lambda: waiter.get_coro().close())
        apply_epoch(cache, 3)
        assert await waiter == cache.version

    begun = time.monotonic()
    asyncio.run(parent())
    assert time.monotonic() - begun < 15  # the change ended the wait, not its timeout


def test_a_fetch_in_the_child_raises_forked_whatever_the_server(cache: MetadataCache) -> None:
    def act() -> None:
        for server in ("127.0.0.1:1", "a:b"):
            with pytest.raises(ForkedError, match=r"child of a fork.*make a new MetadataCache"):
                fetch(cache, server, ["t1"])
        with pytest.raises(TransportError, match="cannot connect"):
            fetch(MetadataCache(), "127.0.0.1:1")

    in_a_child(act)
