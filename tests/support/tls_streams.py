"""The server's side of TLS over asyncio streams, with what asyncio's own leaves out.

A handshake that fails sends its alert, as a broker's does. asyncio's transport drops it.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TypeAlias

_CHUNK = 1 << 16


class TlsReader:
    """The plain bytes of a connection; it has the methods of a StreamReader that servers use."""

    def __init__(
        self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, raw: asyncio.StreamReader
    ) -> None:
        self._tls = tls
        self._incoming = incoming
        self._raw = raw

    async def read(self, most: int) -> bytes:
        """Returns at least one byte, or none at the end; raises SSLError."""
        while True:
            try:
                return self._tls.read(most)
            except ssl.SSLWantReadError:
                data = await self._raw.read(_CHUNK)
                if not data:
                    return b""
                self._incoming.write(data)
            except ssl.SSLZeroReturnError:
                return b""

    async def readexactly(self, count: int) -> bytes:
        """Returns so many bytes; raises IncompleteReadError at the end."""
        parts = b""
        while len(parts) < count:
            data = await self.read(count - len(parts))
            if not data:
                raise asyncio.IncompleteReadError(parts, count)
            parts += data
        return parts


class TlsWriter:
    """Encrypts for a connection; it has the methods of a StreamWriter that servers use."""

    def __init__(
        self, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO, raw: asyncio.StreamWriter
    ) -> None:
        self._tls = tls
        self._outgoing = outgoing
        self._raw = raw

    def write(self, data: bytes) -> None:
        if data:
            self._tls.write(data)
            self._raw.write(self._outgoing.read())

    async def drain(self) -> None:
        await self._raw.drain()

    def close(self) -> None:
        """Says that there is no more (close_notify), as a broker does, and closes."""
        with suppress(ssl.SSLError):  # the other side has not said so
            self._tls.unwrap()
        if not self._raw.is_closing():
            self._raw.write(self._outgoing.read())
        self._raw.close()

    async def wait_closed(self) -> None:
        await self._raw.wait_closed()


# The streams of a connection, with TLS or without.
Reader: TypeAlias = "asyncio.StreamReader | TlsReader"
Writer: TypeAlias = "asyncio.StreamWriter | TlsWriter"


async def over_tls(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext
) -> tuple[TlsReader, TlsWriter]:
    """Shakes hands; raises SSLError, or ConnectionError if the client ends the connection.

    Either leaves the connection open.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            data = await reader.read(_CHUNK)
            if not data:
                raise ConnectionResetError("the client ended the handshake") from None
            incoming.write(data)
        finally:
            writer.write(outgoing.read())
    return TlsReader(tls, incoming, reader), TlsWriter(tls, outgoing, writer)


async def part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends what is left, and waits a moment for the client to have read it.

    A close at once would reset the connection if the client has sent more. It could lose an alert.
    """
    with suppress(OSError, asyncio.TimeoutError):
        await writer.drain()
        writer.write_eof()
        await asyncio.wait_for(reader.read(), 0.5)
