"""Daemon threads and latches, also under a rain of signals."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest
from waiting import until

from rdmeta.client.thread import Daemon, Latch


def test_a_latch_that_is_set_lets_every_waiter_pass() -> None:
    latch = Latch()
    assert not latch.wait()
    passed: list[bool] = []

    def wait() -> None:
        while not latch.wait():
            pass
        passed.append(True)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    latch.set()
    for thread in threads:
        thread.join(20)
    assert passed == [True] * 4
    assert latch.wait()


def test_a_daemon_is_joined_once_it_has_ended() -> None:
    going_on, seen = threading.Event(), []

    def target() -> None:
        seen.append((threading.current_thread().name, daemon.is_current))
        going_on.wait(20)

    daemon = Daemon(target, "rdmeta-test")
    daemon.start()
    assert not daemon.is_current
    begun = time.monotonic()
    assert not daemon.join(0.1)
    assert 0.1 <= time.monotonic() - begun < 5
    going_on.set()
    assert daemon.join(20)
    assert daemon.join(0)
    assert seen == [("rdmeta-test", True)]
    assert "rdmeta-test" not in [each.name for each in threading.enumerate()]


def test_ctrl_c_in_a_start_leaves_no_thread_that_hangs() -> None:
    class Pressed(BaseException):
        pass

    def press(*_: Any) -> None:
        raise Pressed

    before = set(threading.enumerate())  # those of other tests in this process
    old = signal.signal(signal.SIGALRM, press)
    pressed = 0
    try:
        for n in range(300):
            daemon = Daemon(lambda: None, "rdmeta-test")
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + n * 1e-6)
                daemon.start()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Pressed:
                pressed += 1
            assert daemon.join(0.3)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert pressed

    def have_gone() -> bool:
        names = [each.name for each in set(threading.enumerate()) - before]
        return not any(name == "rdmeta-test" or name.startswith("Dummy") for name in names)

    until(have_gone, "the threads have ended")


def test_a_process_without_room_for_a_thread_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    daemon = Daemon(lambda: None, "rdmeta-test")
    with pytest.raises(RuntimeError, match="can't start"):
        daemon.start()
    assert daemon.join(0)
