"""The event loops that the package supports, for tests that run on each."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

LOOPS = ("asyncio", "uvloop")

R = TypeVar("R")


def run(loop: str, main: Coroutine[Any, Any, R]) -> R:
    """Returns what `main` returns in a new loop of that kind."""
    if loop == "asyncio":
        return asyncio.run(main)
    if sys.version_info >= (3, 11):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    uvloop.install()
    try:
        return asyncio.run(main)
    finally:
        asyncio.set_event_loop_policy(None)
