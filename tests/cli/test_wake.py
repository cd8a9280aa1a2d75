"""A signal at any moment leaves a Wake as it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType

from rdmeta.cli.wake import Wake


class Interrupted(BaseException):
    """The signal came."""


@contextmanager
def interrupting() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


def wait_for_ever(wake: Wake, seconds: float) -> None:
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            wake.set()
            wake.wait(0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_it_is_set_and_waited_for_after_a_signal_at_any_moment() -> None:
    """A threading.Event is left locked by a fifth of these signals."""
    random, wake, came = Random(1), Wake(), 0
    with interrupting():
        for _ in range(1000):
            try:
                wait_for_ever(wake, random.uniform(5e-6, 2e-4))
            except Interrupted:
                came += 1
            wake.set()
            assert wake.wait(1)
    assert came == 1000


def test_a_wait_ends_without_a_set_and_each_set_ends_one() -> None:
    wake = Wake()
    assert not wake.wait(0)
    wake.set()
    wake.set()
    assert wake.wait(0)
    assert not wake.wait(0.001)
