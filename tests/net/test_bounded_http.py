"""An HTTP answer is bounded as a whole, however the server sends it."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain, repeat
from urllib.error import HTTPError

import pytest
from certificates import Authority
from waiting import PROMPT

from rdmeta.net.bounded_http import _Bounded, opener

# Seconds of an answer.
BOUND = 0.4
OK, ERROR = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 500 Oops\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@contextmanager
def server(
    parts: Iterable[bytes], pause: float = 0.0, context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Yields the URL of a server that sends `parts` to its one client, with pauses."""

    def serve() -> None:
        try:
            connection, _ = listener.accept()
            with closing(connection if context is None else _wrapped(connection)) as client:
                client.recv(65536)
                for part in parts:
                    client.sendall(part)
                    if stopping.wait(pause):
                        return
        except OSError:  # the client has gone
            return

    def _wrapped(connection: socket.socket) -> socket.socket:
        assert context is not None
        return context.wrap_socket(connection, server_side=True)

    stopping = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        scheme = "http" if context is None else "https"
        try:
            yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            stopping.set()
            thread.join(10)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def get(url: str, longest: int = 1 << 16, context: ssl.SSLContext | None = None) -> bytes:
    """Returns the body of an answer, also of an error."""
    try:
        with opener(time.monotonic() + BOUND, longest, context).open(url, timeout=BOUND) as answer:
            return bytes(answer.read())
    except HTTPError as error:
        with error:
            return error.read()


DRIPS = {
    "status": repeat(b"H"),
    "header": chain([OK, b"X: "], repeat(b"y")),
    "headers": chain([OK], repeat(b"X: y\r\n")),
    "interim answers": repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": chain([OK, b"\r\n"], repeat(b"z")),
    "body of an error": chain([ERROR, b"\r\n"], repeat(b"z")),
    "chunk": chain([CHUNKED], repeat(b"1\r\nz\r\n")),
    "trailer": chain([CHUNKED, b"0\r\n"], repeat(b"X: y\r\n")),
}


@pytest.mark.parametrize("what", DRIPS)
def test_a_server_that_drips_costs_the_bound_of_time(what: str) -> None:
    begin = time.monotonic()
    with server(DRIPS[what], pause=0.05) as url, pytest.raises(TimeoutError):
        get(url)
    assert BOUND * 0.9 < time.monotonic() - begin < PROMPT


def test_a_server_that_drips_by_tls_costs_the_bound_of_time() -> None:
    ours = Authority()
    context = ssl.create_default_context(cadata=ours.pem)
    drip = chain([OK, b"X: "], repeat(b"y"))
    begin = time.monotonic()
    with server(drip, 0.05, ours.server("127.0.0.1")) as url, pytest.raises(TimeoutError):
        get(url, context=context)
    assert BOUND * 0.9 < time.monotonic() - begin < PROMPT


FLOODS = {
    "interim answers": repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers": chain([OK], repeat(b"X: " + b"y" * 8000 + b"\r\n", 50)),
    "body": chain([OK, b"\r\n"], repeat(b"z" * 1000)),
    "body of an error": chain([ERROR, b"\r\n"], repeat(b"z" * 1000)),
    "trailer": chain([CHUNKED, b"0\r\n"], repeat(b"X: y\r\n")),
}


@pytest.mark.parametrize("what", FLOODS)
def test_an_answer_of_too_many_bytes_ends_early(what: str) -> None:
    with (
        server(FLOODS[what]) as url,
        pytest.raises(ValueError, match="the answer has more than 65536 bytes"),
    ):
        get(url)


def test_an_answer_of_just_the_bound_of_size_is_whole() -> None:
    head = OK + b"Content-Length: 100\r\n\r\n"
    for longest, is_good in ((len(head) + 100, True), (len(head) + 99, False)):
        with server([head + b"z" * 100]) as url:
            if is_good:
                assert get(url, longest) == b"z" * 100
            else:
                with pytest.raises(ValueError, match=f"more than {longest} bytes"):
                    get(url, longest)


def test_closing_an_answer_closes_its_socket_at_once() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        raw = ours.makefile("rb", 0)
        ours.close()  # as urllib does; `raw` keeps the connection
        theirs.settimeout(0.1)
        with pytest.raises(TimeoutError):
            theirs.recv(1)
        _Bounded(raw, ours, time.monotonic() + 10, 10).close()
        assert theirs.recv(1) == b""
