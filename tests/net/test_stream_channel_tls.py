"""What TLS adds to one socket in an event loop: records, the handshake, how it ends, closing."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest
from certificates import Authority, over_tls
from loops import LOOPS, run
from peer import framed, listening, read_frame, read_requests
from test_stream_channel import (
    METADATA_V1_ALL,
    OURS,
    SERVER,
    TRUSTING,
    Heard,
    answering,
    channel_to,
    exactly,
    ready,
    serve_handshake,
)

from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import Error, RequestTimedOutError, TlsError
from rdmeta.net.handshake import METADATA

theirs = Authority()


def failure(loop: str, serve: Callable[[Any], object], settings: TlsSettings = TRUSTING) -> Error:
    """Returns the error of a connection to that server."""
    found: list[Error] = []

    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard, settings)
        await heard.wait("failed")
        assert heard.error is not None
        assert heard.error.__traceback__ is None
        assert channel.was_connected
        assert not channel.is_open
        found.append(heard.error)

    with listening(serve) as address:
        run(loop, main())
    return found[0]


@pytest.mark.parametrize("loop", LOOPS)
def test_answers_in_one_record_are_all_handed_on_without_more_bytes(loop: str) -> None:
    """The rest of a record is decrypted, so the socket does not become readable for it."""

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard, SERVER)
        for _ in range(100):
            channel.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response", 100)
        channel.close()

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        asked = read_requests(exactly(connection, 100 * (14 + len("tester") + 4)))
        connection.sendall(b"".join(framed(each.correlation_id, bytes(150)) for each in asked))
        connection.recv(1)

    with listening(over_tls(SERVER, serve)) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_refused_certificate_fails_in_one_attempt_and_the_server_is_told_why(loop: str) -> None:
    told: list[str] = []

    def serve(connection: socket.socket) -> None:
        with pytest.raises(ssl.SSLError) as caught:
            theirs.server("localhost").wrap_socket(connection, server_side=True)
        told.append(caught.value.reason)

    error = failure(loop, serve)
    assert isinstance(error, TlsError)
    assert "is not trusted" in str(error)
    assert told == ["TLSV1_ALERT_UNKNOWN_CA"]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_client_certificate_is_named_also_at_the_first_read(
    loop: str, version: ssl.TLSVersion
) -> None:
    server = OURS.server("localhost", clients=OURS, highest=version)
    for _ in range(5):
        error = failure(loop, over_tls(server, serve_handshake))
        assert "the broker wants a client certificate" in str(error)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the port speaks HTTP, not TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the port speaks SSH, not TLS"),
        (b"", "it seems not to speak TLS; set security.protocol to plaintext"),
    ],
)
@pytest.mark.parametrize("resets", [False, True])
def test_a_port_without_tls_is_named_in_one_attempt(
    loop: str, said: bytes, expected: str, resets: bool
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1 if resets else 4096)
        connection.sendall(said)

    error = failure(loop, serve)
    assert isinstance(error, TlsError)
    assert expected in str(error)
    assert not error.retriable


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("says_goodbye", [False, True])
def test_the_end_of_the_connection_is_reported_with_and_without_the_end_of_tls(
    loop: str, says_goodbye: bool
) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        serve_handshake(connection)
        if says_goodbye:
            connection.unwrap()

    async def main() -> None:
        heard = Heard()
        await ready(address, heard, SERVER)
        await heard.wait("failed")
        assert str(heard.error) == "the broker closed the connection"

    with listening(over_tls(SERVER, serve)) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_before_the_end_is_handed_on(loop: str) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        connection.sendall(framed(asked.correlation_id, b"answer"))
        connection.sendall(bytes(4))  # no frame has that length

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard, SERVER)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("failed")
        assert [answer.body for answer in heard.answers] == [b"answer"]

    with listening(over_tls(SERVER, serve)) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_the_time_out_of_a_silent_port_names_the_handshake(loop: str) -> None:
    gone = threading.Event()

    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard, TRUSTING)
        while not channel.was_connected:
            await asyncio.sleep(0.001)
        with pytest.raises(RequestTimedOutError, match="the TLS handshake"):
            channel.timed_out()
        channel.close()
        gone.set()

    with listening(lambda _: gone.wait(30)) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_reading_what_has_arrived_goes_on_with_the_handshake(loop: str) -> None:
    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard, TRUSTING)
        while not channel.was_connected:
            await asyncio.sleep(0.001)
        for _ in range(30_000):  # the loop is blocked
            channel.read()
            if channel.session.ready:
                break
            threading.Event().wait(0.001)
        assert channel.session.ready
        channel.close()

    with listening(over_tls(SERVER, answering())) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_closing_does_not_wait_for_the_other_side(loop: str) -> None:
    seen: list[bytes] = []

    def serve(connection: ssl.SSLSocket) -> None:
        serve_handshake(connection)
        seen.append(connection.recv(1))

    async def main() -> None:
        channel = await ready(address, Heard(), SERVER)
        channel.close()
        assert not channel.is_open

    with listening(over_tls(SERVER, serve)) as address:
        run(loop, main())
    assert seen == [b""]
