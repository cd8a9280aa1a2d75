"""A TCP proxy between clients and one broker, for tests: it cuts, freezes, drips and counts.

    with LoopThread("proxies") as loop, Proxy(loop, "127.0.0.1:9092") as proxy:
        ... a client connects to proxy.address ...
        proxy.cut()                       # connections are reset, new ones refused
        proxy.heal()
        proxy.freeze()                    # connections are accepted and stay silent
        proxy.cut_inside_next_answer()
        proxy.count(METADATA, client_id="mine")

Every method may be called from any thread but the loop's.
"""

from __future__ import annotations

import asyncio
import struct
import time
from contextlib import suppress
from typing import NamedTuple

from listener import Listener, reset
from loop_thread import LoopThread

_HEADER = struct.Struct(">ihhih")
_CHUNK = 1 << 16


class Passed(NamedTuple):
    """A request that a client sent: when (time.monotonic()), its API, its frame's bytes."""

    at: float
    connection: int
    api_key: int
    version: int
    client_id: str
    size: int


class Proxy:
    """A context manager that listens, and passes bytes to and from `target`, "host:port"."""

    def __init__(self, loop: LoopThread, target: str, port: int = 0) -> None:
        self._listener = Listener(self._serve)
        self._listener.port = port
        # Times (time.monotonic()) of accepted connections; the requests that arrived on them.
        self.accepted: list[float] = []
        self.requests: list[Passed] = []
        self._target = target
        self._loop = loop
        self._open: dict[int, list[asyncio.StreamWriter]] = {}
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._drip: tuple[int, float] | None = None
        self._cut_answer: int | None = None

    # -- what tests call ------------------------------------------------------------------------

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def cut(self) -> None:
        """Resets all connections and refuses new ones until heal()."""
        self._loop.call(self._listener.stop)
        self.drop()

    def freeze(self) -> None:
        """Accepts connections and bytes, and passes none on until heal(), as a lost network."""
        self._loop.call(self._flowing.clear)

    def heal(self, *, lose: bool = False) -> None:
        """Ends cut(), freeze() and drip(); with `lose`, connections of that time are reset.

        Without it the bytes that a frozen connection took arrive now.
        """
        self._drip = None
        if lose:
            self.drop()
        self._loop.call(self._flowing.set)
        self._loop.call(self._listener.start)

    def drop(self) -> None:
        """Resets all open connections."""
        self._loop.call(self._drop)

    def drip(self, size: int, seconds: float) -> None:
        """Passes answers in pieces of `size` bytes with `seconds` between them."""
        self._drip = (size, seconds)

    def cut_inside_next_answer(self, after: int | None = 9) -> None:
        """Resets the connection of the next bytes from the broker after `after` of them.

        None ends an earlier call that no bytes have met.
        """
        self._cut_answer = after

    def retarget(self, target: str) -> None:
        """Connects new connections to another address; open ones stay."""
        self._target = target

    def count(self, api_key: int | None = None, client_id: str = "", since: float = 0.0) -> int:
        """Returns the number of requests: of one API, of one client, from a time on."""
        return len(self.passed(api_key, client_id, since))

    def passed(
        self, api_key: int | None = None, client_id: str = "", since: float = 0.0
    ) -> list[Passed]:
        """Returns those requests, in the order of their arrival."""
        return [
            p
            for p in list(self.requests)
            if api_key in (None, p.api_key) and client_id in ("", p.client_id) and p.at >= since
        ]

    def __enter__(self) -> Proxy:
        self._loop.call(self._listener.start)
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    # -- the loop's side ------------------------------------------------------------------------

    def _drop(self) -> None:
        for writers in list(self._open.values()):
            for writer in writers:
                reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.append(time.monotonic())
        number = len(self.accepted)
        self._open[number] = [writer]
        with suppress(ConnectionError, OSError, asyncio.CancelledError):
            await self._flowing.wait()
            host, _, port = self._target.rpartition(":")
            their_reader, their_writer = await asyncio.open_connection(host, int(port))
            self._open[number].append(their_writer)
            requests = Requests(self.requests, number)
            pumps = [
                asyncio.ensure_future(self._pump_requests(reader, their_writer, requests)),
                asyncio.ensure_future(self._pump_answers(their_reader, writer)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        for each in self._open.pop(number):
            each.close()
            with suppress(ConnectionError, OSError):
                await each.wait_closed()

    async def _pump_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: Requests
    ) -> None:
        while data := await reader.read(_CHUNK):
            requests.arrived(data)
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()

    async def _pump_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_CHUNK):
            await self._flowing.wait()
            after, self._cut_answer = self._cut_answer, None
            if after is not None:
                writer.write(data[:after])
                await writer.drain()
                await asyncio.sleep(0.01)  # so that the bytes leave before the reset
                reset(writer)
                return
            size, seconds = self._drip or (len(data), 0.0)
            for start in range(0, len(data), size):
                writer.write(data[start : start + size])
                await writer.drain()
                if seconds:
                    await asyncio.sleep(seconds)


class Requests:
    """Reads the requests of one connection as their bytes arrive."""

    def __init__(self, into: list[Passed], connection: int) -> None:
        self._into = into
        self._connection = connection
        self._held = bytearray()

    def arrived(self, data: bytes) -> None:
        """Takes the next bytes and records the frames that they complete."""
        self._held += data
        while len(self._held) >= _HEADER.size:
            size, key, version, _, client = _HEADER.unpack_from(self._held)
            if len(self._held) < 4 + size:
                return
            name = bytes(self._held[_HEADER.size : _HEADER.size + max(client, 0)])
            self._into.append(
                Passed(
                    time.monotonic(),
                    self._connection,
                    key,
                    version,
                    name.decode(errors="replace"),
                    4 + size,
                )
            )
            del self._held[: 4 + size]
