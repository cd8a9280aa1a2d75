"""The waiters that a change wakes, by any way of writing, and the cleanup after waits."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from answers import apply_answer
from frames import P, T, response
from processes import held
from waiting import (
    LONG,
    cancel_at_any_moment,
    check_interrupts,
    interrupted_after,
    two_topics,
    until,
)

from rdmeta import MetadataCache
from rdmeta.core import waits


@pytest.fixture
def cache() -> MetadataCache:
    return two_topics()


def left_behind(cache: MetadataCache) -> set[object]:
    """Returns what a wait may leave behind: open files, threads, watches, waiters and loops."""
    stats = cache.stats()
    return held() | {(stats["watches"], stats["waiters"], len(cache._loops))}


# ---- only the waiters of the change, and once ---------------------------------------------------


@pytest.fixture
def wakes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which waiters of a loop were woken."""
    times: list[float] = []
    end_sleep = waits.end_sleep

    def count(waiter: asyncio.Future[None]) -> None:
        times.append(time.monotonic())
        end_sleep(waiter)

    monkeypatch.setattr(waits, "end_sleep", count)
    return times


def test_of_1000_waiters_on_a_loop_only_those_of_the_change_are_woken_and_once(
    cache: MetadataCache, wakes: list[float]
) -> None:
    async def many() -> None:
        since = cache.version
        waiting = {
            topic: [
                asyncio.create_task(cache.wait_change_async(since, LONG, [topic, "none"]))
                for _ in range(500)
            ]
            for topic in ("orders", "other")
        }
        await asyncio.sleep(0.05)
        assert cache.stats()["watches"] == 1
        for epoch in range(20):
            apply_answer(cache, T("third", [P(0, 1 + epoch % 2, epoch)]))
            await asyncio.sleep(0.002)
        assert not wakes
        version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
        assert await asyncio.gather(*waiting["orders"]) == [version] * 500
        assert len(wakes) == 500
        assert not any(wait.done() for wait in waiting["other"])
        version = apply_answer(cache, T("other", [P(0, 2, 1)])).version
        assert await asyncio.gather(*waiting["other"]) == [version] * 500
        assert len(wakes) == 1000

    before = left_behind(cache)
    asyncio.run(many())
    assert left_behind(cache) <= before


def test_waiters_with_a_later_version_or_a_repeated_name_are_woken_by_their_own_changes(
    cache: MetadataCache, wakes: list[float]
) -> None:
    async def some() -> None:
        since = cache.version
        twice = asyncio.create_task(cache.wait_change_async(since, LONG, ["orders", "orders"]))
        await asyncio.sleep(0.01)
        apply_answer(cache, T("orders", [P(0, 2, 1)]))  # the loop does not know of it yet
        after = cache.version
        late = asyncio.create_task(cache.wait_change_async(after, LONG, ["orders"]))
        later = asyncio.create_task(cache.wait_change_async(after + 1, LONG))
        latest = asyncio.create_task(cache.wait_change_async(after + 1, LONG, ["orders"]))
        assert await twice == after
        await asyncio.sleep(0.01)
        assert (len(wakes), late.done(), later.done(), latest.done()) == (1, False, False, False)
        apply_answer(cache, T("orders", [P(0, 3, 2)]))
        assert await late == after + 1
        await asyncio.sleep(0.01)
        assert (len(wakes), later.done(), latest.done()) == (2, False, False)
        apply_answer(cache, T("orders", [P(0, 1, 3)]))
        assert await later == await latest == after + 2
        assert len(wakes) == 4

    before = left_behind(cache)
    asyncio.run(some())
    assert left_behind(cache) <= before


def test_a_change_costs_a_loop_one_check_per_topic_and_not_per_waiter(
    cache: MetadataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[waits.Wait] = []
    asked: list[list[str]] = []
    original = waits.Wait.passed

    def count(wait: waits.Wait, source: waits.WaitSource) -> int | None:
        passed.append(wait)
        return original(wait, source)

    class Counting(MetadataCache):
        def _changed(self, topics: Any, since: int, /) -> list[int]:
            asked.append(topics)
            return super()._changed(topics, since)

    async def many(cache: MetadataCache) -> None:
        since = cache.version
        two: list[tuple[Any, ...]] = [(since, LONG, ["orders", "other"]), (since + 100, LONG)]
        waiting = [
            asyncio.create_task(cache.wait_change_async(*arguments))
            for arguments in two
            for _ in range(500)
        ]
        await asyncio.sleep(0.05)
        monkeypatch.setattr(waits.Wait, "passed", count)
        apply_answer(cache, T("third", [P(0, 2, 1)]))
        await asyncio.sleep(0.05)
        assert len(passed) == 1  # one of the waits for any change after `since + 100`
        assert [sorted(topics) for topics in asked] == [["orders", "other"]]
        for wait in waiting:
            wait.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    counting = Counting()
    apply_answer(counting, T("orders", [P(0, 1, 0)]), T("other"))
    asyncio.run(many(counting))


def test_loops_in_several_threads_are_each_woken_once(
    cache: MetadataCache, wakes: list[float]
) -> None:
    since, before = cache.version, left_behind(cache)
    ready = threading.Barrier(5)

    async def some() -> list[int | None]:
        waiting = [
            asyncio.create_task(cache.wait_change_async(since, LONG, ["orders"]))
            for _ in range(250)
        ]
        await asyncio.sleep(0.05)
        ready.wait(LONG)
        return await asyncio.gather(*waiting)

    with ThreadPoolExecutor(4) as pool:
        loops = [pool.submit(lambda: asyncio.run(some())) for _ in range(4)]
        ready.wait(LONG)
        apply_answer(cache, T("other", [P(0, 3, 1)]))
        version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
        for loop in loops:
            assert loop.result() == [version] * 250
    assert len(wakes) == 1000
    assert left_behind(cache) <= before


def test_threads_that_wait_for_another_topic_sleep_on(cache: MetadataCache) -> None:
    since = cache.version
    with ThreadPoolExecutor(8) as pool:
        mine = [pool.submit(cache.wait_change, since, LONG, ["orders"]) for _ in range(4)]
        others = [pool.submit(cache.wait_change, since, LONG, ["other"]) for _ in range(4)]
        while cache.stats()["waiters"] < 8:
            time.sleep(0.001)
        version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
        assert [wait.result() for wait in mine] == [version] * 4
        assert not any(wait.done() for wait in others)
        version = apply_answer(cache, T("other", [P(0, 2, 1)])).version
        assert [wait.result() for wait in others] == [version] * 4


# ---- by any way of writing ----------------------------------------------------------------------


def through_cffi(cache: MetadataCache, body: bytes) -> None:
    pytest.importorskip("cffi", reason="cffi is not installed")
    from rdmeta import ffi

    now = ffi.now()
    null = ffi.ffi.NULL
    assert not ffi.lib.rdmeta_cache_apply(ffi.cache(cache), body, len(body), 12, null, now, null)


def through_c(cache: MetadataCache, body: bytes) -> None:
    """Applies an answer as a C extension does: calls the function in the shared object."""

    class Time(ctypes.Structure):
        _fields_ = (("mono_us", ctypes.c_int64), ("wall_us", ctypes.c_int64))

    pytest.importorskip("cffi", reason="cffi is not installed, which knows the address")
    from rdmeta import ffi

    address = int(ffi.ffi.cast("intptr_t", ffi.lib.rdmeta_cache_apply))
    pointer = int(ffi.ffi.cast("intptr_t", ffi.cache(cache)))
    apply = ctypes.CFUNCTYPE(
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int16,
        ctypes.c_void_p,
        Time,
        ctypes.c_void_p,
    )(address)
    now = Time(time.monotonic_ns() // 1000, time.time_ns() // 1000)
    assert apply(pointer, body, len(body), 12, None, now, None) == 0


def through_python(cache: MetadataCache, body: bytes) -> None:
    cache.apply(body, 12)


WRITERS = (through_python, through_cffi, through_c)


@pytest.mark.parametrize("write", WRITERS)
def test_any_way_of_writing_wakes_threads_and_loops(
    write: Callable[[MetadataCache, bytes], None], cache: MetadataCache
) -> None:
    since = cache.version
    with ThreadPoolExecutor(3) as pool:
        blocking = pool.submit(cache.wait_change, since, LONG, ["orders"])
        topic = pool.submit(cache.wait_for_topic, "new", timeout=LONG)
        awaited = pool.submit(lambda: asyncio.run(cache.wait_change_async(since, LONG)))
        while (cache.stats()["waiters"], cache.stats()["watches"]) != (2, 1):
            time.sleep(0.001)
        write(cache, response(12, [T("orders", [P(0, 2, 1)]), T("new")]))
        assert blocking.result() == since + 1
        assert topic.result().name == "new"
        assert awaited.result() == since + 1


# ---- Ctrl-C -------------------------------------------------------------------------------------


WAITS: dict[str, Callable[[MetadataCache], object]] = {
    "wait_change": lambda cache: cache.wait_change(cache.version),
    "wait_change of topics": lambda cache: cache.wait_change(cache.version, LONG, ["orders"]),
    "wait_for_topic": lambda cache: cache.wait_for_topic("none", timeout=None),
    "wait_change_async": lambda cache: asyncio.run(cache.wait_change_async(cache.version)),
    "wait_for_topic_async": lambda cache: asyncio.run(
        cache.wait_for_topic_async("none", timeout=None)
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_ends_every_wait_within_100_ms(name: str, cache: MetadataCache) -> None:
    before = left_behind(cache)
    check_interrupts(lambda: WAITS[name](cache), cache)
    assert left_behind(cache) <= before


def test_ctrl_c_ends_the_close_of_a_publisher_that_saves_for_long(
    cache: MetadataCache, tmp_path: Path
) -> None:
    before = left_behind(cache)
    took, usual = [], []
    for number in range(4):
        publisher: Any = cache.publish(tmp_path / "state", interval=0.001)
        saving, go_on = threading.Event(), threading.Event()

        def save(cache: MetadataCache, again: bool) -> None:
            saving.set()  # noqa: B023
            go_on.wait(LONG)  # noqa: B023

        publisher._save = save
        apply_answer(cache, T("orders", [P(0, 1 + number % 2, 10 + number)]))
        assert saving.wait(LONG)
        usual.append(interrupted_after(lambda: time.sleep(LONG)))
        took.append(interrupted_after(publisher.close))
        go_on.set()
        publisher.close()  # close() works after an interruption, and releases the path
    assert sorted(took)[1] < 0.1 + 2 * max(usual), (
        took,
        usual,
    )  # the same limit as in check_interrupts()
    until(lambda: left_behind(cache) <= before)  # the thread ends by itself


def test_a_close_that_ctrl_c_ended_waits_for_the_save_when_it_is_called_again(
    cache: MetadataCache, tmp_path: Path
) -> None:
    publisher: Any = cache.publish(tmp_path / "state", interval=0.001)
    saving, go_on, at_once = threading.Event(), threading.Event(), threading.Lock()
    overlaps = []

    def save(cache: MetadataCache, again: bool = False) -> None:
        overlaps.append(not at_once.acquire(blocking=False))
        saving.set()
        go_on.wait(LONG)
        if not overlaps[-1]:
            at_once.release()

    publisher._save = save
    apply_answer(cache, T("orders", [P(0, 1, 10)]))
    assert saving.wait(LONG)
    interrupted_after(publisher.close)
    again = threading.Thread(target=publisher.close)
    again.start()
    again.join(0.2)  # a close() that does not wait would save now
    go_on.set()
    again.join(LONG)
    assert overlaps == [False, False]  # the thread's save, and then close()'s own


# ---- cancellation -------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", [["orders"], None])
def test_1000_cancelled_waits_leave_the_entries_of_the_one_that_stays(
    cache: MetadataCache, topics: list[str] | None
) -> None:
    async def main() -> None:
        since = cache.version
        stays = asyncio.create_task(cache.wait_change_async(since, LONG, topics))
        await asyncio.sleep(0)
        registered = cache._loops[asyncio.get_running_loop()]
        before = ({**registered.any}, {**registered.topics}, set(registered.by_answer))
        wanted = [[f"a{i}", f"b{i}", f"a{i}", "orders"] for i in range(500)]
        others = [
            *(cache.wait_change_async(since, LONG, names) for names in wanted),
            *(cache.wait_change_async(since + i % 2, LONG) for i in range(500)),
        ]
        tasks = [asyncio.create_task(other) for other in others]
        await asyncio.sleep(0)
        assert (len(registered.topics), len(registered.any)) == (1001, 2)
        assert registered.users == 1001
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}
        assert (registered.any, registered.topics, registered.by_answer) == before
        assert sum(map(len, [*registered.any.values(), *registered.topics.values()])) == 1
        assert registered.users == 1
        version = apply_answer(cache, T("orders", [P(0, 2, 1)])).version
        assert await stays == version
        assert (registered.any, registered.topics) == ({}, {})

    before = left_behind(cache)
    asyncio.run(main())
    assert left_behind(cache) <= before


def test_waits_cancelled_at_any_moment_leave_nothing_behind(cache: MetadataCache) -> None:
    def change(topic: str, epoch: int) -> None:
        apply_answer(cache, T(topic, [P(0, epoch % 3 + 1, epoch)]))

    before = left_behind(cache)
    cancel_at_any_moment(cache, change, rounds=20)
    assert left_behind(cache) <= before
