"""An asyncio loop in a thread of its own, for servers that blocking and asyncio tests share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class LoopThread:
    """A context manager that runs a loop in a daemon thread.

    At its end it cancels the tasks that are left and waits for them. Every method may be called
    from any thread but the loop's.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(_cancel_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(30)
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Returns what `work` returns in the loop, or raises its exception."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def call(self, function: Callable[[], R]) -> R:
        """Calls `function` in the loop; returns its result."""

        async def work() -> R:
            return function()

        return self.run(work())


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)  # transports that those tasks closed end here
