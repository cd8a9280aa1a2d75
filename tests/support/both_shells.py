"""The two clients under test: the blocking one, and the asyncio one in a loop of another thread.

with both(conf, "told") as shells:
    for shell in shells:
        shell.call("wait_for_topic", "orders", timeout=30)
        shell.cache.leader("orders", 0)

What a client raises, reports and counts goes to the logger `both_shells` at DEBUG.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from loop_thread import LoopThread
from marked_secrets import described

import rdmeta
from rdmeta import Change, Error, MetadataCache

R = TypeVar("R")

KINDS = ("Client", "AsyncClient")
_log = logging.getLogger(__name__)


class Shell:
    """A client of one kind, which is called in the same way as one of the other kind."""

    def __init__(
        self, kind: str, conf: Mapping[str, object], *, starts: bool = True, **options: Any
    ) -> None:
        """Without `starts`, the first call starts the client."""
        self.kind = kind
        self._starts = starts
        self.client_id = str(conf.get("client.id", "rdmeta"))
        # The Problems that on_error() reported.
        self.errors: list[Any] = []
        # The calls of which the log will say what they have raised.
        self._calls: list[Future[Any]] = []
        self._make = partial(getattr(rdmeta, kind), dict(conf), **options)
        self._stack = ExitStack()

    def __enter__(self) -> Shell:
        if self.kind == "AsyncClient":
            self._loop = self._stack.enter_context(LoopThread(f"loop of {self.client_id}"))
            self.client = self._loop.call(self._make)
        else:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(8))
            self.client = self._make()
        self.call("on_error", self.errors.extend)
        if self._starts:
            self.call("start")
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            if _log.isEnabledFor(logging.DEBUG):
                self._log_state()
            self.call("close")
            self._log_failures()

    def _log_state(self) -> None:
        """Logs what the client has reported and counted."""
        for problem in {repr(each): each for each in self.errors}.values():
            _log.debug("%s reports %r", self.client_id, problem)
            if isinstance(error := getattr(problem, "error", None), BaseException):
                _log.debug("%s", described(error))
        with suppress(Error):
            _log.debug("%s has %s", self.client_id, self.call("stats"))

    def _log_failures(self) -> None:
        """Logs what each call has raised; only now, as that takes time which tests measure."""
        for call in self._calls:
            if call.done() and not call.cancelled() and (error := call.exception()) is not None:
                _log.debug("%s raises %s", self.client_id, described(error))
        self._calls.clear()

    @property
    def cache(self) -> MetadataCache:
        cache: MetadataCache = self.client.cache
        return cache

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of the client and returns its result, awaited if need be."""
        return self.begin(name, *arguments, **named).result(120)

    def begin(self, name: str, *arguments: Any, **named: Any) -> Future[Any]:
        """Calls a method of the client; returns the future of its result."""

        async def work() -> Any:
            result = getattr(self.client, name)(*arguments, **named)
            return await result if inspect.isawaitable(result) else result

        if self.kind == "Client":
            call = self._pool.submit(getattr(self.client, name), *arguments, **named)
        else:
            call = self.spawn(work())
        if _log.isEnabledFor(logging.DEBUG):
            self._calls.append(call)
        return call

    def timed(self, name: str, *arguments: Any, **named: Any) -> Future[float]:
        """Calls a method of the client; returns the future of the seconds that it takes."""
        seconds: Future[float] = Future()
        begin = time.monotonic()

        def done(call: Future[Any]) -> None:
            error = call.exception()
            if error is None:
                seconds.set_result(time.monotonic() - begin)
            else:
                seconds.set_exception(error)

        self.begin(name, *arguments, **named).add_done_callback(done)
        return seconds

    def spawn(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Runs a coroutine in the loop of an asyncio client."""
        return asyncio.run_coroutine_threadsafe(work, self._loop.loop)

    def in_loop(self, call: Callable[[], R]) -> Future[R]:
        """Calls a function in the thread of the client's loop, which it blocks."""
        loop = self._loop.loop if self.kind == "AsyncClient" else self.client._thread._loop
        result: Future[R] = Future()
        loop.call_soon_threadsafe(lambda: result.set_result(call()))
        return result

    def tasks(self) -> int:
        """Returns the number of unfinished tasks in the loop of an asyncio client."""
        if self.kind == "Client":
            return 0
        return self._loop.run(_count_others())

    # ---- what the cache has recorded ------------------------------------------------------------

    def until(self, holds: Callable[[MetadataCache], object], timeout: float = 40.0) -> float:
        """Returns the time (time.time()) at which `holds` of the cache is first seen to be true."""
        end = time.monotonic() + timeout
        while True:
            version = self.cache.version
            try:
                if holds(self.cache):
                    return time.time()
            except Error:
                pass
            left = end - time.monotonic()
            assert left > 0, f"{self.kind} {self.client_id}: not within {timeout} s"
            self.cache.wait_change(version, timeout=min(left, 0.1))

    def begin_until(
        self, holds: Callable[[MetadataCache], object], timeout: float = 40.0
    ) -> Future[float]:
        """Returns the future of until()."""
        found: Future[float] = Future()

        def run() -> None:
            try:
                found.set_result(self.until(holds, timeout))
            except BaseException as error:
                found.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return found

    def recorded(
        self, says: Callable[[Change], object], since: int = 0, timeout: float = 40.0
    ) -> float:
        """Returns the time (time.time()) of the first change after version `since` that says so."""

        def first() -> Change | None:
            return next((c for c in self.cache.changes(since).records if says(c)), None)

        self.until(lambda _: first(), timeout)
        found = first()
        assert found is not None
        return found.observed_at.timestamp()

    def knows_epoch(
        self, topic: str, partition: int, epoch: int, since: int, timeout: float = 40.0
    ) -> float:
        """Returns the time of the first change to that leader epoch, or a later one."""

        def says(change: Change) -> bool:
            place = (change.topic, change.partition)
            return place == (topic, partition) and (change.new_leader_epoch or -1) >= epoch

        return self.recorded(says, since, timeout)


def times(
    shells: Sequence[Shell], holds: Callable[[MetadataCache], object]
) -> Iterator[tuple[Shell, float]]:
    """Yields each client with the time at which `holds` of its cache is first seen to be true."""
    waiting = [(shell, shell.begin_until(holds)) for shell in shells]
    for shell, found in waiting:
        yield shell, found.result(120)


async def _count_others() -> int:
    return len(asyncio.all_tasks() - {asyncio.current_task()})


@contextmanager
def both(
    conf: Mapping[str, object], label: str, topics: Sequence[str] = (), **options: Any
) -> Iterator[list[Shell]]:
    """Yields a started client of each kind, with the id "KIND-label"; it knows `topics` already."""
    with ExitStack() as stack:
        shells = [
            stack.enter_context(Shell(kind, {"client.id": f"{kind}-{label}", **conf}, **options))
            for kind in KINDS
        ]
        if topics:
            for future in [s.begin("need", list(topics)) for s in shells]:
                future.result(30)
            for shell in shells:
                shell.until(lambda cache: all(topic in cache for topic in topics), 30)
        yield shells
