"""TLS on one connection without the connection: encrypted bytes on one side, plain on the other.

A tunnel owns no socket, clock or thread, as a session owns none. So both drivers share it, and the
child of a fork sends no word through it. The first bytes of a port are at hand for an error.
"""

from __future__ import annotations

import ssl
from datetime import datetime
from typing import Any

from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import Error, RequestTimedOutError, TlsError
from rdmeta.net import tls_errors

__all__ = ["Tunnel"]

# Bytes: the longest record of TLS, and so what one read returns.
_RECORD = 1 << 14
# Bytes that OpenSSL gets at a time: its memory for them never shrinks.
_PIECE = 1 << 16
# The first bytes of the other side that are kept, to say what it seems to be.
_KEPT = 64


class Tunnel:
    """The client's side of TLS, from its first byte.

    The driver sends the bytes of `data_to_send()` and passes the bytes that arrive to `receive()`.
    Once `is_ready`, it passes plain bytes to `write()`, and reads others by `read()` and
    `read_into()`. One thread at a time may use the tunnel. Its errors are TlsErrors.
    """

    def __init__(self, context: ssl.SSLContext, settings: TlsSettings, host: str) -> None:
        """Starts the handshake with `host`, whose name or address the certificate must have.

        `settings` are those of the context. They let an error say what to change. Raises TlsError
        if the name cannot be in a certificate.
        """
        self.is_ready = False
        # Whether the other side has ended its side of TLS.
        self.is_over = False
        self._settings = settings
        # A certificate has no final dot, and no zone of an IPv6 address.
        self._host = host.partition("%")[0].rstrip(".")
        self._first = b""
        # The encrypted bytes that OpenSSL is yet to get.
        self._arrived = memoryview(b"")
        self._failure: Error | None = None
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(self._in, self._out, server_hostname=self._host)
        except (ValueError, ssl.SSLError) as error:  # OpenSSL takes 255 characters at most
            why = error.reason if isinstance(error, ssl.SSLError) else error
            raise TlsError(f"no certificate can have the name {self._host!r}: {why}") from None
        self._shake()

    @property
    def version(self) -> str | None:
        """The version of TLS, such as TLSv1.3; None before the handshake is over."""
        return self._tls.version() if self.is_ready else None

    @property
    def expires(self) -> datetime | None:
        """When the first of the other side's certificates expires; None if it is not known.

        It is also known after a handshake that failed at a certificate.
        """
        return tls_errors.first_end(tls_errors.chain_of(self._tls))

    def data_to_send(self) -> bytes:
        """Returns the encrypted bytes to send that no earlier call returned."""
        return self._out.read()

    def receive(self, data: bytes) -> None:
        """Takes the encrypted bytes that arrived, and goes on with the handshake."""
        if len(self._first) < _KEPT:
            self._first += data[: _KEPT - len(self._first)]
        self._arrived = memoryview(bytes(self._arrived) + data if self._arrived else data)
        while not self.is_ready and self._feed():
            self._shake()

    def write(self, data: bytes) -> None:
        """Encrypts plain bytes, once the tunnel is ready."""
        if data:
            self._check(has_read=False)
            try:
                self._tls.write(data)
            except ssl.SSLError as error:
                self._note(error)
                self._check(has_read=False)

    def read(self, most: int) -> bytes:
        """Returns plain bytes that have arrived, about `most`; empty if there are none."""
        parts: list[bytes] = []
        while most > 0 and (part := self._read(_RECORD, None)):
            parts.append(part)
            most -= len(part)
        self._check(bool(parts))
        return b"".join(parts)

    def read_into(self, space: memoryview) -> int:
        """Reads plain bytes that have arrived into `space`; returns how many, 0 if none."""
        filled = 0
        while filled < len(space):
            count = self._read(len(space) - filled, space[filled:])
            if not count:
                break
            filled += count
        self._check(filled > 0)
        return filled

    def closed(self, how: str = "closed the connection") -> None:
        """Raises the error of a connection that ended during the handshake; `how` says how."""
        self._check(has_read=False)
        if not self.is_ready:
            raise tls_errors.no_handshake(self._first, how)

    def timed_out(self) -> None:
        """Raises RequestTimedOutError if the handshake is not over."""
        if self.is_ready:
            return
        if self._first:
            raise RequestTimedOutError("the TLS handshake was not over in time")
        raise RequestTimedOutError(
            "no answer to the TLS handshake in time; the port may not be a Kafka broker's, or not"
            " speak TLS (security.protocol)"
        )

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            self._note(error)
            self._check(has_read=False)
        self.is_ready = True

    def _read(self, most: int, space: memoryview | None) -> Any:
        """Returns the plain bytes of one record, or their number in `space`; falsy if none came."""
        if self._failure is not None or self.is_over or not self.is_ready:
            return None
        if not self._in.pending:
            self._feed()
        try:
            found = self._tls.read(most) if space is None else self._tls.read(most, space)
        except ssl.SSLWantReadError:
            return self._read(most, space) if self._feed() else None
        except ssl.SSLError as error:
            self._note(error)
            return None
        self.is_over = not found
        return found

    def _feed(self) -> bool:
        """Gives OpenSSL some of the bytes that arrived; returns whether there were any."""
        if not self._arrived:
            return False
        self._in.write(self._arrived[:_PIECE])
        # An empty part of the bytes would keep them all.
        self._arrived = self._arrived[_PIECE:] or memoryview(b"")
        return True

    def _check(self, has_read: bool) -> None:
        """Raises the failure, once all bytes before it were read."""
        if self._failure is not None and not has_read:
            raise self._failure.with_traceback(None)

    def _note(self, error: ssl.SSLError) -> None:
        """Keeps OpenSSL's error in words."""
        chain = tls_errors.chain_of(self._tls)
        self._failure = tls_errors.explain(error, self._settings, self._host, chain, self._first)
        self._failure.__cause__ = error.with_traceback(None)
