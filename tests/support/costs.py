"""What a test costs: CPU time, its children's with it, and time asleep; unmarked tests have little.

CPU time rises less than wall time on a busy machine, so a limit of it does not flake: it at most
doubles, where cores share caches and units. So a test that takes more than half a second of it on a
quiet machine should be cheaper, or marked. Only the body of a test counts: what several tests share
is made by fixtures.
"""

from __future__ import annotations

import asyncio
import builtins
import resource
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

CPU_S, ASLEEP_S, LOOK_S = 1.0, 0.5, 0.05
# Tests with one of these marks may cost what they need.
COSTLY = ("proof", "slow", "nightly", "packaging", "real")


class Sleeps:
    """Adds up the seconds for which the main thread asked to sleep, or to wait until a time-out.

    A shorter sleep is a look at something that will happen: how many there are depends on the
    machine. So those of up to `LOOK_S` do not count.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        if seconds > LOOK_S and threading.current_thread() is threading.main_thread():
            self.seconds += seconds

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Replaces what sleeps until `patch` is undone."""
        sleep, wait, pause = time.sleep, threading.Condition.wait, asyncio.sleep

        def sleeping(seconds: float) -> None:
            sleep(seconds)  # one that a signal interrupts does not count
            self.add(seconds)

        def waiting(condition: Any, timeout: float | None = None) -> bool:
            if not (notified := wait(condition, timeout)):
                self.add(timeout or 0)
            return notified

        async def pausing(delay: float, result: Any = None) -> Any:
            result = await pause(delay, result)  # one that is cancelled does not count
            self.add(delay)
            return result

        patch.setattr(time, "sleep", sleeping)
        patch.setattr(threading.Condition, "wait", waiting)
        patch.setattr(asyncio, "sleep", pausing)


class Imports:
    """Adds up the CPU time of imports: the first test of a process that uses a library pays it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._is_inside = False

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Replaces what imports until `patch` is undone."""
        load = builtins.__import__

        def importing(*arguments: Any, **named: Any) -> Any:
            if self._is_inside or threading.current_thread() is not threading.main_thread():
                return load(*arguments, **named)
            begun, self._is_inside = time.thread_time(), True
            try:
                return load(*arguments, **named)
            finally:
                self.seconds += time.thread_time() - begun
                self._is_inside = False

        patch.setattr(builtins, "__import__", importing)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def watched(item: pytest.Item) -> Generator[None, Any, Any]:
    """Wraps the call of a test: fails one without a mark that costs more than it may."""
    sleeps, imports, before = Sleeps(), Imports(), _cpu_s()
    with pytest.MonkeyPatch.context() as patch:
        sleeps.watch(patch)
        imports.watch(patch)
        result = yield
    cpu = _cpu_s() - before - imports.seconds
    item.user_properties += [("cpu", round(cpu, 2)), ("asleep", round(sleeps.seconds, 2))]
    if not any(item.get_closest_marker(name) for name in COSTLY):
        check(cpu, sleeps.seconds)
    return result


def check(cpu: float, asleep: float) -> None:
    """Fails if a test without a mark costs more than it may."""
    for what, cost, most in (("CPU time", cpu, CPU_S), ("sleep", asleep, ASLEEP_S)):
        if cost > most:
            pytest.fail(
                f"a test without a mark has {most} s of {what}, and this one used {cost:.2f} s: "
                f"make it cheaper, or mark it proof or slow (CONTRIBUTING.md)",
                pytrace=False,
            )
