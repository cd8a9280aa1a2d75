"""One socket with TLS in an event loop: bytes both ways, how it ends, and a fork's child."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest
from certificates import Authority, over_tls
from loops import LOOPS, run
from peer import framed, listening, read_frame, read_requests
from test_channel import METADATA_V1_ALL, Heard, answering, exactly, serve_handshake

from rdmeta._security_settings import TlsSettings
from rdmeta.address import Address
from rdmeta.errors import Error, RequestTimedOutError, TlsError
from rdmeta.net.channel import Channel
from rdmeta.net.resolve import literal
from rdmeta.net.session import METADATA, Session
from rdmeta.net.tls import Tls
from rdmeta.net.tunnel import Tunnel

ours, theirs = Authority(), Authority()
TRUSTING = TlsSettings(ca_pem=ours.pem)
SERVER = ours.server("localhost")


def channel_to(address: Address, heard: Heard, settings: TlsSettings = TRUSTING) -> Channel:
    endpoint = literal(address)
    assert endpoint is not None
    tunnel = Tunnel(Tls(settings).context(), settings, "localhost")
    session = Session("tester", 1 << 24, tls=True)
    return Channel(asyncio.get_running_loop(), endpoint, session, heard, tunnel=tunnel)


async def ready(address: Address, heard: Heard) -> Channel:
    channel = channel_to(address, heard)
    await heard.wait("ready")
    return channel


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
def test_answers_arrive_in_order_and_the_bytes_on_the_wire_are_counted(loop: str) -> None:
    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        sent, received = channel.bytes_sent, channel.bytes_received
        ids = [channel.request(METADATA, 1, METADATA_V1_ALL) for _ in range(2)]
        await heard.wait("response", 2)
        assert [answer.correlation_id for answer in heard.answers] == ids
        assert [answer.body for answer in heard.answers] == [b"one", b"two"]
        plain = 14 + len("tester") + 4
        assert 2 * plain < channel.bytes_sent - sent < 2 * (plain + 40)
        assert 2 * (8 + 3) < channel.bytes_received - received < 2 * (8 + 3 + 40)
        channel.close()

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        for body in (b"one", b"two"):
            (asked,) = read_requests(exactly(connection, 14 + len("tester") + 4))
            connection.sendall(framed(asked.correlation_id, body))
        connection.recv(1)

    with listening(over_tls(SERVER, serve)) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_answer_of_many_reads_arrives_whole(loop: str, version: ssl.TLSVersion) -> None:
    body = os.urandom(1 << 10) * (10 << 10)

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response")
        assert heard.answers[0].body == body
        channel.close()

    server = ours.server("localhost", highest=version)
    with listening(over_tls(server, answering(body))) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_answers_in_one_record_are_all_handed_on_without_more_bytes(loop: str) -> None:
    """The rest of a record is decrypted, so the socket does not become readable for it."""

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
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
def test_requests_that_the_socket_does_not_take_are_sent_later(loop: str) -> None:
    body = os.urandom(1 << 20)
    go_on = threading.Event()

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        ids = [channel.request(METADATA, 1, body) for _ in range(16)]
        assert channel.bytes_sent < 16 << 20, "the socket took everything: raise the size"
        go_on.set()
        await heard.wait("response", 16)
        assert [answer.correlation_id for answer in heard.answers] == ids
        channel.close()

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        go_on.wait(30)
        for _ in range(16):
            length = exactly(connection, 4)
            frame = exactly(connection, struct.unpack(">i", length)[0])
            assert frame.endswith(body)
            connection.sendall(framed(struct.unpack_from(">i", frame, 4)[0], b""))
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
    server = ours.server("localhost", clients=ours, highest=version)
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
        await ready(address, heard)
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
        channel = await ready(address, heard)
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
        channel = channel_to(address, heard)
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
        channel = channel_to(address, heard)
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
        channel = await ready(address, Heard())
        channel.close()
        assert not channel.is_open

    with listening(over_tls(SERVER, serve)) as address:
        run(loop, main())
    assert seen == [b""]


def test_the_child_of_a_fork_closes_its_socket_and_the_parents_tls_goes_on() -> None:
    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        sock = channel._socket
        assert sock is not None
        child = os.fork()
        if not child:
            try:
                descriptor = sock.fileno()
                channel.abandon()
                del channel
                os.fstat(descriptor)
            except OSError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for _ in range(3):
            channel.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response", 3)
        channel.close()

    with listening(over_tls(SERVER, answering(b"1", b"2", b"3"))) as address:
        asyncio.run(main())
