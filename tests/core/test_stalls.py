"""Checks that other Python threads run during a write, and during a wait for a writer.

One thread ticks while another applies a million partitions. The test compares the longest gap
between two ticks with the time of the apply. A busy machine makes gaps as well, so each test has
some tries. It also compares the gap with the usual gap beside a loop in Python that lasts as long.
A call that keeps the GIL fails every try.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from frames import P, T, response
from large_frames import large_name, large_response

from rdmeta import ALL, MetadataCache
from rdmeta.errors import MalformedError

TOPICS, PARTITIONS = 10_000, 100
TRIES = 6
SOME = response(12, [T("some", [P(0)])])


class Ticker:
    """A thread that reads the clock all the time; `gap` is the longest time between two reads."""

    def __init__(self) -> None:
        self.gap = 0.0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.tick)

    def tick(self) -> None:
        last = time.perf_counter()
        while not self.stop.is_set():
            time.sleep(0.0002)
            now = time.perf_counter()
            self.gap = max(self.gap, now - last)
            last = now


@contextmanager
def ticking() -> Iterator[Ticker]:
    ticker = Ticker()
    ticker.thread.start()
    try:
        yield ticker
    finally:
        ticker.stop.set()
        ticker.thread.join()


class Large:
    """A cache, and answers about a million partitions; each answer changes all of them."""

    def __init__(self) -> None:
        self.cache = MetadataCache()
        self.epoch = 0

    def apply(self) -> threading.Thread:
        """Starts a thread that applies the next answer; `took` is then its time in seconds."""
        self.epoch += 1
        body = large_response(TOPICS, PARTITIONS, self.epoch)

        def apply() -> None:
            start = time.perf_counter()
            assert self.cache.apply(body, 12, asked=ALL).changed >= TOPICS
            self.took = time.perf_counter() - start

        thread = threading.Thread(target=apply)
        thread.start()
        return thread


@pytest.fixture(scope="module")
def large() -> Large:
    return Large()


def usual_gap(seconds: float) -> float:
    """Returns the longest gap beside a loop in Python that takes `seconds`."""
    with ticking() as ticker:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
    return ticker.gap


def tried(what: str, attempt: Callable[[], tuple[float, float]], most: float = 1) -> None:
    """Passes once the longest gap is below a quarter of the time taken, and below `most` seconds.

    A gap below three times the usual gap passes too, if it is below 0.6 of the time taken.
    """
    seen = []
    for _ in range(TRIES):
        took, gap = attempt()
        seen.append(f"{gap * 1e3:.1f} of {took * 1e3:.0f} ms")
        if gap < min(took / 4, most) or gap < min(3 * usual_gap(took), 0.6 * took):
            break
    else:
        pytest.fail(f"{what} kept a thread from running: {', '.join(seen)}")
    print(f"{what}: longest gap {seen[-1]}")


def test_a_million_partitions_are_applied_while_other_threads_run() -> None:
    body = large_response(TOPICS, PARTITIONS)

    def attempt() -> tuple[float, float]:
        cache = MetadataCache()
        with ticking() as ticker:
            start = time.perf_counter()
            assert cache.apply(body, 12, asked=ALL).changed == TOPICS
            return time.perf_counter() - start, ticker.gap

    tried("apply", attempt)


@pytest.mark.proof
def test_lookups_go_on_while_a_million_partitions_are_applied(large: Large) -> None:
    names = [large_name(i) for i in range(0, TOPICS, 100)]
    large.apply().join()

    def attempt() -> tuple[float, float]:
        apply = large.apply()
        gap, last = 0.0, time.perf_counter()
        while apply.is_alive():
            for name in names:
                assert large.cache.leader(name, 7) in (1, 2, 3)
                assert large.cache.leaders([name], [7])[0] in (1, 2, 3)
            now = time.perf_counter()
            gap, last = max(gap, now - last), now
        return large.took, gap

    tried("apply beside lookups", attempt)


Call = Callable[[MetadataCache], Any]
CALLS: dict[str, Call] = {
    "apply": lambda cache: cache.apply(SOME, 12, ["some"]),
    "apply_failure": lambda cache: cache.apply_failure(["some"]),
    "apply_leader_hint": lambda cache: cache.apply_leader_hint("some", 0, 1, 9),
    "hint": lambda cache: cache.hint(["some", "other"]),
    "purge_hints": lambda cache: cache.purge_hints(),
    "purge": lambda cache: cache.purge(),
    "due": lambda cache: cache.due(),
    "forget": lambda cache: cache.forget(["some"]),
    "resolved": lambda cache: cache.resolved(),
    "sweep": lambda cache: cache.sweep(),
    "stats": lambda cache: cache.stats(),
    "repr": repr,
    "changes": lambda cache: cache.changes(1 << 60),
    "a walk": lambda cache: cache.topics(prefix="some"),
    "wait_change": lambda cache: cache.wait_change(cache.version, 0, ["some"]),
    "a watch": lambda cache: cache._watch(2).close(),
    "image": lambda cache: cache.image(),
    "age": lambda cache: cache.age(),
    "resolve": lambda cache: cache.resolve("some"),
    "to_arrow": lambda cache: cache.to_arrow("partitions").__arrow_c_stream__(),
}
# Each makes an object before the apply, and returns the call that needs it.
Prepare = Callable[[MetadataCache, Path], Callable[[], Any]]
PREPARED: dict[str, Prepare] = {
    "image.stats": lambda cache, path: cache.image().stats,
    "the end of an image": lambda cache, path: [cache.image()].clear,
    "the end of a handle": lambda cache, path: [cache.resolve("some")].clear,
    "the end of a stream": lambda cache, path: (
        [cache.to_arrow("partitions").__arrow_c_stream__()].clear
    ),
    "a publisher": lambda cache, path: cache.publish(path, interval=0.001).close,
}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([*CALLS, *PREPARED], marks=pytest.mark.proof, id="all"),
        *(pytest.param([name], marks=pytest.mark.slow, id=name) for name in (*CALLS, *PREPARED)),
    ],
)
def test_calls_that_wait_for_a_large_apply_let_other_threads_run(
    names: list[str], large: Large, tmp_path: Path
) -> None:
    """All at once, each in a thread; one by one they say which of them does not."""

    def attempt() -> tuple[float, float]:
        calls = [
            PREPARED[name](large.cache, tmp_path / name)
            if name in PREPARED
            else partial(CALLS[name], large.cache)
            for name in names
        ]
        with ThreadPoolExecutor(len(calls)) as pool:
            apply = large.apply()
            time.sleep(0.01)  # it has the lock now
            with ticking() as ticker:
                done = [pool.submit(call) for call in calls]
                apply.join()
                for each in done:
                    each.result()
        return large.took, ticker.gap

    tried(" and ".join(names), attempt)


def wide() -> MetadataCache:
    """Returns a cache of one topic with 300 000 partitions."""
    cache = MetadataCache()
    cache.apply(large_response(1, 300_000), 12)
    return cache


def leaderless() -> MetadataCache:
    """Returns a cache of 100 000 topics without a leader."""
    cache = MetadataCache()
    cache.apply(response(12, [T(large_name(i), [P(0, -1)]) for i in range(100_000)]), 12)
    return cache


VERY_MANY = 1_000_000
MAKES: dict[str, Call] = {
    "changes": lambda cache: cache.changes(cache.version - 1),
    "topics": lambda cache: cache.topics(),
    "partitions_on": lambda cache: cache.partitions_on(1),
}
TAKES: dict[str, Callable[[], Callable[[], Any]]] = {
    "one topic": lambda: partial(wide().topic, large_name(0)),
    "names": lambda: partial(MetadataCache().purge_hints, [large_name(0)] * 3 * VERY_MANY),
    "names to ask for": lambda: partial(
        MetadataCache().hint, [large_name(i) for i in range(VERY_MANY)], replace=True
    ),
    "due topics": lambda: leaderless().due,
    "ids": lambda: partial(MetadataCache().apply_failure, [b"0123456789abcdef"] * VERY_MANY),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKES)
def test_making_very_many_objects_lets_other_threads_run(name: str, large: Large) -> None:
    for _ in range(2):  # the first may have recorded whole topics only
        large.apply().join()

    def attempt() -> tuple[float, float]:
        with ticking() as ticker:
            start = time.perf_counter()
            made = MAKES[name](large.cache)
            took = time.perf_counter() - start
        del made
        return took, ticker.gap

    gc.disable()  # a collection would make gaps of its own
    try:
        tried(name, attempt, most=0.05)  # these may take long
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKES)
def test_converting_very_many_values_lets_other_threads_run(name: str) -> None:
    call = TAKES[name]()

    def attempt() -> tuple[float, float]:
        with ticking() as ticker:
            start = time.perf_counter()
            made = call()
            took = time.perf_counter() - start
        del made
        return took, ticker.gap

    gc.disable()
    try:
        tried(name, attempt, most=0.05)
    finally:
        gc.enable()


def test_a_large_answer_is_refused_while_other_threads_run() -> None:
    body = large_response(TOPICS, PARTITIONS)
    # The cache refuses it at its second topic, then reads it to its end to find the reason.
    body = body.replace(large_name(1).encode(), large_name(0).encode())
    cache = MetadataCache()

    def attempt() -> tuple[float, float]:
        with ticking() as ticker:
            start = time.perf_counter()
            with pytest.raises(MalformedError, match="twice"):
                cache.apply(body, 12, asked=ALL)
            return time.perf_counter() - start, ticker.gap

    tried("a refused answer", attempt)
