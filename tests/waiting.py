"""What the tests of waits share: something that happens soon, and Ctrl-C."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import frames
import pytest
from frames import P, T

from rdmeta import MetadataCache

# Longer than any of these tests may take: waits that are not woken fail by it.
LONG = 50.0
MOMENT = 0.05

Wait = Callable[..., Any]


def tell(cache: MetadataCache, *topics: T, asked: Any = None) -> int:
    """One answer; the version after it."""
    return cache.apply(frames.response(12, topics), 12, asked, 1).version


@contextmanager
def published(path: Path, **settings: Any) -> Iterator[MetadataCache]:
    """A cache that is published: of "orders", led by 1, and "other"."""
    cache = MetadataCache(**settings)
    tell(cache, T("orders", [P(0, 1, 0)]), T("other"))
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
