"""Helpers of the tests of waits: actions once a wait has begun, Ctrl-C, cancellation."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from answers import apply_answer
from frames import P, T

from rdmeta import Attached, MetadataCache, RequestTimedOutError
from rdmeta.core import waits

# Longer than any of these tests may take: a wait that is not woken fails its test.
LONG = 50.0
# The bound of what must not wait, on any machine. What it would wait for must take longer.
PROMPT = 5.0
MOMENT = 0.05

Wait = Callable[..., Any]


def two_topics(**settings: Any) -> MetadataCache:
    """Returns a cache of "orders", whose leader is 1, and "other"."""
    cache = MetadataCache(**settings)
    apply_answer(cache, T("orders", [P(0, 1, 0)]), T("other"))
    return cache


@contextmanager
def published(path: Path, **settings: Any) -> Iterator[MetadataCache]:
    """Yields the cache of two_topics(), published at `path`."""
    cache = two_topics(**settings)
    with cache.publish(path, interval=0.001):
        yield cache


def is_waiting(subject: MetadataCache | Attached) -> bool:
    """Returns whether a wait for `subject` sleeps; for an Attached, a wait of the main thread."""
    if isinstance(subject, MetadataCache):
        stats = subject.stats()
        return bool(stats["waiters"] or stats["watches"])
    # A sleeping wait has nap() as its top frame, or the time.sleep() of costs.py. Another thread
    # must not walk the frames below.
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    napping = frame is not None and (
        frame.f_code is waits.nap.__code__ or frame.f_code.co_name == "sleeping"
    )
    return napping or len(subject._loops) > 0


def until(holds: Callable[[], object], what: str = "it") -> None:
    """Returns when `holds()` is true; fails the test if that takes too long."""
    end = time.monotonic() + LONG / 2
    while not holds():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.001)


def until_waiting(subject: MetadataCache | Attached) -> None:
    """Returns when a wait for `subject` has begun, however busy the machine is."""
    until(lambda: is_waiting(subject), "a wait begins")


@contextmanager
def soon(subject: MetadataCache | Attached, act: Callable[[], object]) -> Iterator[None]:
    """Calls `act` in another thread once the block waits for `subject`; raises its exceptions."""

    def later() -> object:
        until_waiting(subject)
        return act()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(later)
        try:
            yield
        finally:  # also after a timeout: an exception of `act` is the cause of it
            done.result()


def interrupted_after(
    wait: Callable[[], object], subject: MetadataCache | Attached | None = None
) -> float:
    """Sends Ctrl-C once a wait for `subject` has begun; returns the seconds until it ends."""
    pressed, begun = 0.0, threading.Event()

    def press() -> None:
        nonlocal pressed
        begun.wait()
        if subject is not None:
            until_waiting(subject)
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


def check_interrupts(
    wait: Callable[[], object], subject: MetadataCache | Attached | None = None
) -> None:
    """Checks that Ctrl-C ends `wait` within 100 ms, plus the time that it takes to end a sleep.

    A wait that checks for signals too seldom is nearly always late. A correct wait is late only
    when a busy machine does not run it. So at least two of four waits must end in time.
    """
    took, usual = [], []
    for _ in range(4):
        usual.append(interrupted_after(lambda: time.sleep(LONG)))
        took.append(interrupted_after(wait, subject))
    assert sorted(took)[1] < 0.1 + 2 * max(usual), (took, usual)


def cancel_at_any_moment(
    subject: MetadataCache | Attached, change: Callable[[str, int], object], rounds: int
) -> None:
    """Cancels fifty waits at a time while a thread calls `change(topic, epoch)` again and again."""
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
