"""What the tests of waits share: something that happens soon, and Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import frames
import pytest
from frames import P, T

from rdmeta import Attached, MetadataCache, RequestTimedOutError

# Longer than any of these tests may take: waits that are not woken fail by it.
LONG = 50.0
MOMENT = 0.05

Wait = Callable[..., Any]


def tell(cache: MetadataCache, *topics: T, asked: Any = None) -> int:
    """One answer; the version after it."""
    return cache.apply(frames.response(12, topics), 12, asked, 1).version


def two_topics(**settings: Any) -> MetadataCache:
    """A cache of "orders", led by 1, and "other"."""
    cache = MetadataCache(**settings)
    tell(cache, T("orders", [P(0, 1, 0)]), T("other"))
    return cache


@contextmanager
def published(path: Path, **settings: Any) -> Iterator[MetadataCache]:
    """The same, published."""
    cache = two_topics(**settings)
    with cache.publish(path, interval=0.001):
        yield cache


@contextmanager
def soon(act: Callable[[], object]) -> Iterator[None]:
    """`act` in another thread, once the block has begun to wait; its exceptions come out here."""

    def later() -> object:
        time.sleep(MOMENT)
        return act()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(later)
        yield
        done.result()


def interrupted_after(wait: Callable[[], object]) -> float:
    """Seconds from Ctrl-C to its KeyboardInterrupt."""
    pressed, begun = 0.0, threading.Event()

    def press() -> None:
        nonlocal pressed
        begun.wait()
        time.sleep(0.03 + random.random() * 0.03)
        pressed = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()

    def wait_for_it() -> None:
        begun.set()
        wait()

    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for_it()
        return time.monotonic() - pressed
    finally:
        thread.join()


def cancel_at_any_moment(
    subject: MetadataCache | Attached, change: Callable[[str, int], object], rounds: int
) -> None:
    """Fifty waits at a time are cancelled while `change(topic, epoch)` is called over and over."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    stop = threading.Event()

    def write() -> None:
        epoch = 0
        while not stop.is_set():
            epoch += 1
            change(rng.choice(["orders", "other", "third"]), epoch)

    async def one() -> None:
        waits: list[Wait] = [
            lambda: subject.wait_change_async(subject.version, LONG, ["never"]),
            lambda: subject.wait_change_async(subject.version, LONG),
            lambda: subject.wait_for_topic_async("never", timeout=rng.choice([None, 0.01])),
        ]
        task = asyncio.create_task(rng.choice(waits)())
        await asyncio.sleep(rng.choice([0, 0, 0.001, 0.02]))
        task.cancel()
        with suppress(asyncio.CancelledError, RequestTimedOutError):
            await task

    async def many() -> None:
        for _ in range(rounds):
            await asyncio.gather(*(one() for _ in range(50)))
        loop: Any = asyncio.get_running_loop()
        assert len(asyncio.all_tasks()) == 1
        assert [timer for timer in loop._scheduled if not timer.cancelled()] == []

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            asyncio.run(many())
        finally:
            stop.set()
        writer.result()
