"""HTTP by urllib with one bound of time and one of size for all that the other side sends.

urllib's own time-out is for each read, so a server that drips bytes would hold a call for ever.
"""

from __future__ import annotations

import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

if TYPE_CHECKING:
    import socket
    import ssl

    from _typeshed import WriteableBuffer


def opener(end: float, longest: int, context: ssl.SSLContext | None) -> OpenerDirector:
    """Returns an opener for one request, whose answer is over at `end` of time.monotonic().

    Status, headers and body count together, those of an error and of interim answers too. Reading
    them raises TimeoutError at `end`, and ValueError after `longest` bytes. The opener follows no
    redirection, which would send the request's secrets elsewhere. `context` is for https.
    """

    class Answer(HTTPResponse):
        def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
            super().__init__(sock, *args, **named)
            self.fp = BufferedReader(_Bounded(self.fp.detach(), sock, end, longest))

    class Plain(HTTPConnection):
        response_class = Answer

    class Secure(HTTPSConnection):
        response_class = Answer

    class PlainHandler(HTTPHandler):
        def http_open(self, req: Request) -> HTTPResponse:
            return self.do_open(Plain, req)

    class SecureHandler(HTTPSHandler):
        def https_open(self, req: Request) -> HTTPResponse:
            return self.do_open(Secure, req, context=context)

    return build_opener(_Stay, PlainHandler, SecureHandler)


class _Stay(HTTPRedirectHandler):
    """Refuses each redirection."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _Bounded(RawIOBase):
    """The bytes of a socket, until an end and up to a size."""

    def __init__(self, raw: RawIOBase, sock: socket.socket, end: float, longest: int) -> None:
        """Takes `raw`, which reads from `sock`, and closes it at its own end."""
        self._raw, self._sock, self._end, self._left = raw, sock, end, longest
        self._longest = longest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Reads once; raises TimeoutError at the end, ValueError for too many bytes."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._sock.settimeout(seconds)
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise ValueError(f"the answer has more than {self._longest} bytes")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
