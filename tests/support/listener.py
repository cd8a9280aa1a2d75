"""Accepts connections in an asyncio loop, and may stop at any moment without losing one.

asyncio's own server has a race: a connection that it accepts while it is closed leaks.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


# Linux gives no port of these to a client's socket. So a server that has stopped for a while finds
# its port free.
_PORTS = range(15_000, 32_000)


def free_ports(n: int, among: range = _PORTS) -> list[int]:
    """Returns ports that no process listens on, and that no client's socket will take."""
    found: list[int] = []
    for port in random.SystemRandom().sample(among, n + 1000):
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == n:
            return found
    raise OSError(f"there are no {n} free ports")


class Listener:
    """Runs `serve` for each connection to 127.0.0.1; its methods are called in the loop."""

    def __init__(self, serve: Serve) -> None:
        self.port = 0
        self._serve = serve
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Listens on the port that it had before, or on a free one."""
        if self._socket is None:
            self.port = self.port or free_ports(1)[0]
            self._socket = socket.create_server(("127.0.0.1", self.port), backlog=100)
            self._socket.setblocking(False)
            asyncio.get_running_loop().add_reader(self._socket, self._accept)

    def stop(self) -> None:
        """Refuses connections from now on; those that are served stay."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):
            assert self._socket is not None
            accepted, _ = self._socket.accept()
            task = asyncio.get_running_loop().create_task(self._begin(accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _begin(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=accepted)
        if self._socket is None:  # it has stopped meanwhile
            reset(writer)
        else:
            await self._serve(reader, writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection by RST."""
    found = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
