"""Waiting for changes and topics: blocking, interrupted, and on event loops."""

from __future__ import annotations

import _thread
import asyncio
import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import frames
import pytest
from answers import apply_answer
from frames import P, T
from processes import held
from waiting import LONG, MOMENT, soon, two_topics

from rdmeta import ALL, MetadataCache
from rdmeta.errors import ForkedError


@pytest.fixture
def cache() -> MetadataCache:
    return two_topics()


# ---- blocking -----------------------------------------------------------------------------------


def test_a_change_before_the_wait_is_not_missed(cache: MetadataCache) -> None:
    since = cache.version
    version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
    assert cache.wait_change(since) == version
    assert cache.wait_change(since, 0) == version
    assert cache.wait_change(since, LONG, ["orders"]) == version


def test_a_wait_without_a_change_is_over_in_time(cache: MetadataCache) -> None:
    assert cache.wait_change(cache.version, 0) is None
    assert cache.wait_change(cache.version, MOMENT) is None
    assert cache.wait_change(cache.version, MOMENT, ["orders"]) is None


def test_a_change_in_another_thread_ends_a_wait(cache: MetadataCache) -> None:
    since = cache.version
    with soon(cache, lambda: apply_answer(cache, T("orders", [P(0, 2, 1)]))):
        assert cache.wait_change(since, LONG) == since + 1


def test_a_wait_for_topics_sleeps_through_changes_of_others(cache: MetadataCache) -> None:
    since = cache.version

    def changes() -> None:
        apply_answer(cache, T("other", [P(0, 2, 1)]))
        apply_answer(cache, T("new"))
        time.sleep(MOMENT)
        apply_answer(cache, T("orders", [P(0, 2, 1)]))

    with soon(cache, changes):
        assert cache.wait_change(since, LONG, ["orders", "nothing"]) == since + 3


def test_the_removal_of_a_topic_ends_a_wait_for_it(cache: MetadataCache) -> None:
    since = cache.version
    with soon(cache, lambda: apply_answer(cache, T("other"), asked=ALL)):
        assert cache.wait_change(since, LONG, ["orders"]) is not None
    since = cache.version
    with soon(cache, cache.purge):
        assert cache.wait_change(since, LONG, ["other"]) is not None


def test_ctrl_c_ends_a_wait(cache: MetadataCache) -> None:
    for wait in (
        lambda: cache.wait_change(cache.version, LONG),
        lambda: cache.wait_for_topic("nothing", timeout=LONG),
    ):
        with pytest.raises(KeyboardInterrupt), soon(cache, _thread.interrupt_main):
            wait()
    assert cache.stats()["waiters"] == 0


def test_many_threads_wait_at_once(cache: MetadataCache) -> None:
    since = cache.version
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(cache.wait_change, since, LONG) for _ in range(8)]
        while cache.stats()["waiters"] < 8:
            time.sleep(0.001)
        version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
        assert [wait.result() for wait in waits] == [version] * 8


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_an_invalid_time_out_is_a_value_error(timeout: float, cache: MetadataCache) -> None:
    for wait in (cache.wait_change, cache.wait_for_topic):
        subject: Any = cache.version if wait == cache.wait_change else "orders"
        with pytest.raises(ValueError, match="timeout"):
            wait(subject, timeout=timeout)
    with pytest.raises(ValueError, match="timeout"):
        asyncio.run(cache.wait_change_async(cache.version, timeout))


def test_a_wait_for_no_topics_is_a_value_error(cache: MetadataCache) -> None:
    with pytest.raises(ValueError, match="no topics"):
        cache.wait_change(cache.version, 0, [])
    with pytest.raises(ValueError, match="no topics"):
        asyncio.run(cache.wait_change_async(cache.version, 0, []))


def test_topics_to_await_may_be_an_iterator(cache: MetadataCache) -> None:
    async def main() -> None:
        version, names = cache.version, ["zz", "zy"]
        task = asyncio.create_task(cache.wait_change_async(version, 30, (n for n in names)))
        await asyncio.sleep(0.01)
        cache.apply(frames.response(12, [T("another")]), 12)
        await asyncio.sleep(0.01)
        assert not task.done()
        cache.apply(frames.response(12, [T("zy")]), 12)
        assert await task == cache.version

    asyncio.run(main())


# ---- event loops --------------------------------------------------------------------------------


def test_a_change_in_a_thread_ends_an_awaited_wait(cache: MetadataCache) -> None:
    since = cache.version
    with soon(cache, lambda: apply_answer(cache, T("orders", [P(0, 2, 1)]))):
        assert asyncio.run(cache.wait_change_async(since, LONG)) == since + 1
    assert asyncio.run(cache.wait_change_async(since)) == since + 1
    assert asyncio.run(cache.wait_change_async(since + 1, 0)) is None
    assert asyncio.run(cache.wait_change_async(since + 1, MOMENT)) is None


def test_a_change_by_a_task_of_the_same_loop_ends_an_awaited_wait(cache: MetadataCache) -> None:
    async def both() -> int | None:
        wait = asyncio.create_task(cache.wait_change_async(cache.version, LONG, ["orders"]))
        await asyncio.sleep(0)
        apply_answer(cache, T("other", [P(0, 2, 1)]))
        await asyncio.sleep(0)
        apply_answer(cache, T("orders", [P(0, 2, 1)]))
        return await wait

    assert asyncio.run(both()) == cache.version


def test_waiters_of_a_loop_share_one_watch_and_need_no_thread(cache: MetadataCache) -> None:
    async def many() -> None:
        threads = set(threading.enumerate())
        waits = [
            asyncio.create_task(cache.wait_change_async(cache.version, LONG)) for _ in range(200)
        ]
        await asyncio.sleep(MOMENT)
        assert set(threading.enumerate()) <= threads
        assert cache.stats()["watches"] == 1
        version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
        assert await asyncio.gather(*waits) == [version] * 200
        assert cache.stats()["watches"] == 0

    before = held()
    asyncio.run(many())
    assert (len(cache._loops), held() - before) == (0, set())


def test_loops_of_several_threads_wait_at_once(cache: MetadataCache) -> None:
    since = cache.version
    with ThreadPoolExecutor(4) as pool:
        waits = [
            pool.submit(lambda: asyncio.run(cache.wait_change_async(since, LONG))) for _ in range(4)
        ]
        while cache.stats()["watches"] < 4:
            time.sleep(0.001)
        version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
        assert [wait.result() for wait in waits] == [version] * 4
    assert (cache.stats()["watches"], len(cache._loops)) == (0, 0)


def test_a_cancelled_wait_leaves_nothing_behind_and_others_go_on(cache: MetadataCache) -> None:
    async def cancel() -> None:
        since = cache.version
        waits = [asyncio.create_task(cache.wait_change_async(since, LONG)) for _ in range(3)]
        await asyncio.sleep(MOMENT)
        waits[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits[0]
        assert cache.stats()["watches"] == 1
        apply_answer(cache, T("orders", [P(0, 2, 1)]))
        assert await asyncio.gather(*waits[1:]) == [cache.version] * 2

    before = held()
    asyncio.run(cancel())
    assert (cache.stats()["watches"], len(cache._loops), held() - before) == (0, 0, set())


def test_wait_for_of_asyncio_gives_up_a_wait(cache: MetadataCache) -> None:
    async def give_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(cache.wait_change_async(cache.version), MOMENT)

    asyncio.run(give_up())
    assert (cache.stats()["watches"], len(cache._loops)) == (0, 0)


def test_a_loop_that_cannot_watch_files_is_an_error_and_nothing_is_left(
    cache: MetadataCache,
) -> None:
    def blind(*_: object) -> None:
        raise NotImplementedError("no files")

    async def refused() -> None:
        for _ in range(3):
            with pytest.raises(NotImplementedError, match="no files"):
                await cache.wait_change_async(cache.version, LONG)

    loop = asyncio.new_event_loop()
    loop.add_reader = blind  # type: ignore[method-assign, assignment]
    try:
        before = held()
        loop.run_until_complete(refused())
        assert (cache.stats()["watches"], len(cache._loops), held() - before) == (0, 0, set())
    finally:
        loop.close()


def abandon(cache: MetadataCache) -> None:
    """Closes a loop while one of its tasks waits."""
    loop = asyncio.new_event_loop()
    wait = loop.create_task(cache.wait_change_async(cache.version, LONG))
    wait._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.run_until_complete(asyncio.sleep(MOMENT))
    loop.close()


def test_a_loop_that_is_closed_during_a_wait_does_no_harm(cache: MetadataCache) -> None:
    before = held()
    abandon(cache)
    since = cache.version
    apply_answer(cache, T("orders", [P(0, 2, 1)]))
    assert asyncio.run(cache.wait_change_async(since, LONG)) == since + 1
    since = cache.version
    with soon(cache, lambda: apply_answer(cache, T("orders", [P(0, 3, 2)]))):
        assert asyncio.run(cache.wait_change_async(since, LONG)) == since + 1
    gc.collect()
    assert (cache.stats()["watches"], len(cache._loops), held() - before) == (0, 0, set())


def test_the_waiters_of_a_closed_loop_are_freed_with_its_tasks(cache: MetadataCache) -> None:
    before = held()
    abandon(cache)
    gc.collect()
    assert (cache.stats()["watches"], len(cache._loops), held() - before) == (0, 0, set())


def test_a_cache_is_freed_with_the_waiters_of_a_closed_loop() -> None:
    before = held()
    abandon(MetadataCache())
    gc.collect()
    assert held() - before == set()


# ---- threads ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_look_up_and_write_at_once(cache: MetadataCache) -> None:
    stop = threading.Event()
    names = [f"t{i}" for i in range(50)]

    def write() -> None:
        epoch = 0
        while not stop.is_set():
            epoch += 1
            apply_answer(
                cache, *(T(n, [P(0, epoch % 3 + 1, epoch), P(1, 2, epoch)]) for n in names)
            )
            cache.hint(["h"])
            cache.sweep()

    def read() -> int:
        rounds = 0
        while not stop.is_set():
            for name in names:
                assert cache.leader(name, 0, None) in (None, 1, 2, 3)
                found = cache.partition(name, 0, None)
                assert found is None or found.leader == (found.leader_epoch or 0) % 3 + 1
            assert set(cache.leaders(names, [1] * 50)) <= {2, -100}
            assert all(topic.partitions for topic in cache.topics(prefix="t"))
            cache.changes(max(cache.version - 3, 0))
            rounds += 1
        return rounds

    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(write) for _ in range(2)]
        readers = [pool.submit(read) for _ in range(3)]
        time.sleep(1.0)
        stop.set()
        assert all(reader.result() for reader in readers)
        for writer in writers:
            writer.result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")
def test_the_child_of_a_fork_reads_and_is_refused_writes_and_waits(cache: MetadataCache) -> None:
    child = os.fork()
    if child == 0:
        try:
            assert cache.leader("orders", 0) == 1
            assert cache.topic("orders").partitions[0] == cache.partition("orders", 0)
            assert list(cache.leaders(["orders"], [0])) == [1]
            assert len(cache.brokers) == len(frames.BROKERS)
            with pytest.raises(ForkedError):
                apply_answer(cache, T("new"))
            for wait in (
                lambda: cache.wait_change(cache.version),
                lambda: cache.wait_change(0, LONG, ["new"]),
                lambda: cache.wait_for_topic("new", timeout=None),
                lambda: asyncio.run(cache.wait_change_async(cache.version, MOMENT)),
                lambda: asyncio.run(cache.wait_for_topic_async("new", timeout=None)),
            ):
                with pytest.raises(ForkedError):
                    wait()
            assert cache.wait_change(0) == cache.version
            assert cache.wait_for_topic("orders", timeout=None).name == "orders"
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
