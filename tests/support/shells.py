"""Both clients behind one blocking face, so that one suite of tests runs over them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from loop_thread import LoopThread

import rdmeta

# A client that answers at once in tests; each test may replace these.
QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "max.block.ms": 20_000}


class Maker(Protocol):
    """Makes a client of one kind, which is closed at the end of the test."""

    def __call__(self, servers: str, conf: Mapping[str, Any] | None = None, **more: Any) -> Any: ...


class Awaited:
    """An AsyncClient with Client's methods: each runs in the client's loop, in another thread."""

    def __init__(self, loop: LoopThread, conf: Mapping[str, Any], **more: Any) -> None:
        self.client = rdmeta.AsyncClient(conf, **more)
        self.cache = self.client.cache
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if inspect.iscoroutinefunction(method):
            return lambda *args, **named: self._loop.run(method(*args, **named))
        return lambda *args, **named: self._loop.call(lambda: method(*args, **named))

    def __enter__(self) -> Awaited:
        self._loop.run(self.client.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        self._loop.run(self.client.__aexit__(*error))


@contextmanager
def blocking() -> Iterator[Maker]:
    """Yields a maker of Clients."""
    with _closing(rdmeta.Client) as maker:
        yield maker


@contextmanager
def awaited() -> Iterator[Maker]:
    """Yields a maker of AsyncClients, which share a loop."""
    with LoopThread("awaited") as loop:

        def make(conf: Mapping[str, Any], **more: Any) -> Awaited:
            return Awaited(loop, conf, **more)

        with _closing(make) as maker:
            yield maker


@contextmanager
def _closing(make: Callable[..., Any]) -> Iterator[Maker]:
    made = []

    def maker(servers: str, conf: Mapping[str, Any] | None = None, **more: Any) -> Any:
        made.append(make({"bootstrap.servers": servers, **QUICK, **(conf or {})}, **more))
        return made[-1]

    try:
        yield maker
    finally:
        for client in made:
            client.close()
