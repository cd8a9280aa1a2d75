"""Waits for another process: their cost, their cleanup, Ctrl-C, and forks."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import apply_answer
from frames import P, T
from processes import held
from waiting import LONG, MOMENT, cancel_at_any_moment, check_interrupts, published, soon, until

from rdmeta import Attached, MetadataCache, attach

Update = Callable[..., int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def cache(path: Path) -> Iterator[MetadataCache]:
    with published(path) as cache:
        yield cache


@pytest.fixture
def attached(cache: MetadataCache, path: Path) -> Attached:
    return attach(path, look=0.005)


@pytest.fixture
def update(cache: MetadataCache) -> Update:
    return lambda *topics, **more: apply_answer(cache, *topics, **more).version


# ---- cost and cleanup ---------------------------------------------------------------------------


def left_behind(attached: Attached) -> set[object]:
    """Returns what a wait may leave behind: open files, threads and loops."""
    gc.collect()
    return held() | {f"{len(attached._loops)} loops"}


@pytest.mark.slow
def test_the_waits_of_a_loop_share_their_looks_and_need_no_thread(
    attached: Attached, update: Update
) -> None:
    async def many() -> None:
        since, threads = attached.version, set(threading.enumerate())
        waits = [
            asyncio.create_task(attached.wait_change_async(since, LONG, [topic, "none"]))
            for topic in ("orders", "other")
            for _ in range(200)
        ]
        await asyncio.sleep(MOMENT)
        assert set(threading.enumerate()) <= threads
        assert len(attached._loops) == 1
        looks, begun = attached.stats()["looks"], time.monotonic()
        await asyncio.sleep(0.5)
        looked = attached.stats()["looks"] - looks
        assert looked < 2 * (time.monotonic() - begun) / 0.005  # not 400 times as often
        version = update(T("orders", [P(0, 2, 1)]))
        assert await asyncio.gather(*waits[:200]) == [version] * 200
        assert not any(wait.done() for wait in waits[200:])
        version = update(T("other", [P(0, 2, 1)]))
        assert await asyncio.gather(*waits[200:]) == [version] * 200
        loop: Any = asyncio.get_running_loop()
        assert [timer for timer in loop._scheduled if not timer.cancelled()] == []

    before = left_behind(attached)
    asyncio.run(many())
    until(lambda: left_behind(attached) <= before)


def test_waits_cancelled_at_any_moment_leave_nothing_behind(
    attached: Attached, update: Update
) -> None:
    def change(topic: str, epoch: int) -> None:
        update(T(topic, [P(0, epoch % 3 + 1, epoch)]))
        time.sleep(0.001)

    before = left_behind(attached)
    cancel_at_any_moment(attached, change, rounds=10)
    until(lambda: left_behind(attached) <= before)


def test_the_waits_of_a_closed_loop_go_with_its_tasks(attached: Attached) -> None:
    before = left_behind(attached)
    loop = asyncio.new_event_loop()
    wait = loop.create_task(attached.wait_change_async(attached.version, LONG))
    wait._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.run_until_complete(asyncio.sleep(MOMENT))
    loop.close()
    del wait, loop
    until(lambda: left_behind(attached) <= before)


# ---- Ctrl-C, forks ------------------------------------------------------------------------------


WAITS: dict[str, Callable[[Attached], object]] = {
    "wait_change": lambda a: a.wait_change(a.version),
    "wait_change of topics": lambda a: a.wait_change(a.version, LONG, ["orders"]),
    "wait_for_topic": lambda a: a.wait_for_topic("none", timeout=None),
    "wait_change_async": lambda a: asyncio.run(a.wait_change_async(a.version)),
    "wait_for_topic_async": lambda a: asyncio.run(a.wait_for_topic_async("none", timeout=None)),
}


@pytest.mark.parametrize("look", [0.02, 10.0])
@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_ends_every_wait_within_100_ms(
    name: str, look: float, cache: MetadataCache, path: Path
) -> None:
    attached = attach(path, look)
    before = left_behind(attached)
    check_interrupts(lambda: WAITS[name](attached), attached)
    until(lambda: left_behind(attached) <= before)


def test_a_change_is_seen_by_a_wait_though_lookups_seldom_look(
    cache: MetadataCache, path: Path
) -> None:
    attached = attach(path, look=1000)
    since, start = attached.version, time.monotonic()
    with soon(attached, lambda: apply_answer(cache, T("orders", [P(0, 2, 1)]))):
        assert attached.wait_change(since, LONG) == since + 1
    assert time.monotonic() - start < LONG / 2
    assert attached.leader("orders", 0) == 2


def test_the_child_of_a_fork_waits_as_its_parent_does(
    cache: MetadataCache, attached: Attached
) -> None:
    since, (read_end, write_end) = attached.version, os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, b".")
            assert attached.wait_change(since, LONG) == since + 1
            assert asyncio.run(attached.wait_change_async(since, LONG)) == since + 1
            assert attached.wait_for_topic("new", timeout=LONG).name == "new"
            os._exit(7)
        finally:
            os._exit(1)
    os.read(read_end, 1)
    apply_answer(cache, T("new"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    os.close(read_end)
    os.close(write_end)


@pytest.mark.slow
def test_the_child_of_a_fork_in_the_middle_of_a_look_waits_too(tmp_path: Path) -> None:
    cache, states, path = MetadataCache(), [], tmp_path / "state"
    names = [f"{i:0240}" for i in range(20000)]  # to copy so many takes a moment
    for epoch in range(3):
        apply_answer(cache, *(T(name, [P(0, 1, epoch)]) for name in names))
        states.append(tmp_path / str(epoch))
        cache.image().save(states[-1])

    def put(state: Path) -> None:
        (tmp_path / "link").hardlink_to(state)
        (tmp_path / "link").rename(path)

    async def wait(attached: Attached, ready: int) -> int:
        since, begun = attached.version, time.monotonic()
        waiter = asyncio.create_task(attached.wait_change_async(since, LONG / 5))
        await asyncio.sleep(0)
        os.write(ready, b".")
        if await waiter is None or time.monotonic() - begun > LONG / 6:
            return 6
        return 7

    for _ in range(20):
        put(states[0])
        attached, (read_end, write_end) = attach(path, look=0.005, copy=True), os.pipe()
        put(states[1])
        looking = threading.Thread(target=attached.image)
        looking.start()
        time.sleep(random.random() * 0.004)
        child = os.fork()
        if child == 0:
            try:
                os._exit(asyncio.run(wait(attached, write_end)))
            finally:
                os._exit(1)
        os.close(write_end)
        os.read(read_end, 1)
        os.close(read_end)
        put(states[2])
        looking.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
