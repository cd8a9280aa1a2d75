"""One socket in an event loop: bytes both ways, with and without TLS, how it ends, and a fork."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from certificates import Authority, over_tls
from loops import LOOPS, run
from peer import answer_handshake, framed, listening, read_frame, read_requests

from rdmeta.config.address import Address
from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import Error, MalformedError, TlsError, TransportError
from rdmeta.net.handshake import METADATA
from rdmeta.net.resolve import literal
from rdmeta.net.session import Response, Session
from rdmeta.net.stream import Channel
from rdmeta.net.tls import Tls, Tunnel

RANGES = {METADATA: (0, 13), 18: (0, 3)}
METADATA_V1_ALL = struct.pack(">i", -1)

OURS = Authority()
TRUSTING = TlsSettings(ca_pem=OURS.pem)
SERVER = OURS.server("localhost")
OLD_SERVER = OURS.server("localhost", highest=ssl.TLSVersion.TLSv1_2)
# The server's TLS, None for plaintext.
WAYS = [pytest.param(None, id="plaintext"), pytest.param(SERVER, id="TLS")]

Main = Callable[[], Coroutine[Any, Any, None]]


class Heard:
    """Records what a channel reports, and waits for it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.answers: list[Response] = []
        self.error: Error | None = None
        self.hook: Callable[[str], object] = lambda _: None
        self._news = asyncio.Event()

    def channel_ready(self, channel: Channel) -> None:
        self._note("ready")

    def channel_logged_in(self, channel: Channel) -> None:
        self._note("logged in")

    def channel_bytes(self, channel: Channel) -> None:
        self._note("bytes")

    def channel_response(self, channel: Channel, response: Response) -> None:
        self.answers.append(response)
        self._note("response")

    def channel_failed(self, channel: Channel, error: Error) -> None:
        self.error = error
        self._note("failed")

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._news.set()
        self.hook(event)

    async def wait(self, event: str, times: int = 1) -> None:
        """Returns once `event` was reported so often."""
        while self.events.count(event) < times:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)


def channel_to(
    address: Address, heard: Heard, settings: TlsSettings | None = None, **options: Any
) -> Channel:
    """Returns a channel, which speaks TLS if there are settings for it."""
    endpoint = literal(address)
    assert endpoint is not None
    if settings is not None:
        options["tunnel"] = Tunnel(Tls(settings).context(), settings, "localhost")
    session = Session("tester", 1 << 24, tls=settings is not None)
    return Channel(asyncio.get_running_loop(), endpoint, session, heard, **options)


async def ready(address: Address, heard: Heard, way: ssl.SSLContext | None = None) -> Channel:
    """Returns a channel to a server of that way, after the handshakes."""
    channel = channel_to(address, heard, None if way is None else TRUSTING)
    await heard.wait("ready")
    return channel


def by(way: ssl.SSLContext | None, serve: Callable[[Any], object]) -> Callable[[Any], object]:
    """Returns what `listening()` takes for a server of that way."""
    return serve if way is None else over_tls(way, serve)


def serve_handshake(connection: socket.socket) -> None:
    connection.sendall(answer_handshake(read_frame(connection), RANGES)[0])


def exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += connection.recv(size - len(data))
    return bytes(data)


def answering(*answers: bytes) -> Callable[[socket.socket], None]:
    """Returns a broker that gives these answers, one a request, and waits for the end."""

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        for body in answers:
            (asked,) = read_requests(read_frame(connection))
            connection.sendall(framed(asked.correlation_id, body))
        while connection.recv(1 << 16):
            pass

    return serve


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("way", WAYS)
def test_answers_arrive_in_order_and_bytes_are_counted(
    loop: str, way: ssl.SSLContext | None
) -> None:
    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard, way)
        sent, received = channel.bytes_sent, channel.bytes_received
        ids = [channel.request(METADATA, 1, METADATA_V1_ALL) for _ in range(2)]
        await heard.wait("response", 2)
        assert [answer.correlation_id for answer in heard.answers] == ids
        assert [answer.body for answer in heard.answers] == [b"one", b"two"]
        sent_more = channel.bytes_sent - sent - 2 * (14 + len("tester") + 4)
        received_more = channel.bytes_received - received - 2 * (8 + 3)
        if way is None:
            assert (sent_more, received_more) == (0, 0)
        else:
            assert 0 < sent_more < 2 * 40
            assert 0 < received_more < 2 * 40
        assert heard.events.index("bytes") < heard.events.index("ready")
        channel.close()
        assert not channel.is_open
        channel.close()

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        for body in (b"one", b"two"):
            (asked,) = read_requests(exactly(connection, 14 + len("tester") + 4))
            connection.sendall(framed(asked.correlation_id, body))
        connection.recv(1)

    with listening(by(way, serve)) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("way", [*WAYS, pytest.param(OLD_SERVER, id="TLS 1.2")])
def test_an_answer_of_many_reads_arrives_whole(loop: str, way: ssl.SSLContext | None) -> None:
    body = os.urandom(1 << 10) * (10 << 10)

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard, way)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response")
        assert heard.answers[0].body == body
        channel.close()

    with listening(by(way, answering(body))) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("way", WAYS)
def test_requests_that_the_socket_does_not_take_are_sent_later(
    loop: str, way: ssl.SSLContext | None
) -> None:
    body = os.urandom(1 << 20)
    go_on = threading.Event()

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard, way)
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

    with listening(by(way, serve)) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_port_without_a_listener_is_reported_later_and_not_by_the_constructor(loop: str) -> None:
    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard)
        assert heard.events == []
        await heard.wait("failed")
        assert isinstance(heard.error, TransportError)
        assert str(heard.error) == "cannot connect: Connection refused"
        assert (channel.is_open, channel.was_connected) == (False, False)

    with listening(read_frame) as address:
        pass
    run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_reading_early_does_not_take_a_refusal_for_a_reset(loop: str) -> None:
    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard)
        time.sleep(0.05)  # the refusal has arrived, and the loop has not seen it
        channel.read()
        await heard.wait("failed")
        assert str(heard.error) == "cannot connect: Connection refused"

    with listening(read_frame) as address:
        pass
    run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("host", "port"), [("255.255.255.255", 9092), ("127.0.0.1", 1 << 20)])
def test_an_address_that_the_system_refuses_is_reported_later(
    loop: str, host: str, port: int
) -> None:
    async def main() -> None:
        heard = Heard()
        channel_to(Address(host, port), heard)
        assert heard.events == []
        await heard.wait("failed")
        assert str(heard.error).startswith("cannot connect: ")

    run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_close_by_the_other_side_is_reported_once_and_the_socket_is_closed(loop: str) -> None:
    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        await heard.wait("failed")
        assert str(heard.error) == "the broker closed the connection"
        assert not channel.is_open
        await asyncio.sleep(0.01)
        assert heard.events.count("failed") == 1

    with listening(serve_handshake) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_reset_says_so(loop: str) -> None:
    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        read_frame(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("failed")
        assert "reset the connection at the first request" in str(heard.error)

    with listening(serve) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("said", "kind"), [(bytes.fromhex("15030300020250"), TlsError), (b"", TransportError)]
)
def test_a_port_that_closes_at_once_seems_to_want_tls_whatever_it_says(
    loop: str, said: bytes, kind: type[Error]
) -> None:
    reset = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(said)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        reset.set()

    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard)
        reset.wait(30)  # the loop is blocked until the reset has arrived
        await heard.wait("failed")
        assert isinstance(heard.error, kind)
        assert "want" in str(heard.error)
        assert "TLS" in str(heard.error)
        assert channel.was_connected

    with listening(serve) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_that_has_arrived_is_read_although_sending_fails(loop: str) -> None:
    reset = threading.Event()

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        connection.sendall(framed(asked.correlation_id, b"answer"))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        reset.set()

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        reset.wait(30)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        assert heard.events[-1] == "ready", "nothing is reported before request() returns"
        await heard.wait("failed")
        assert [answer.body for answer in heard.answers] == [b"answer"]
        assert str(heard.error) == "the broker reset the connection"

    with listening(serve) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_failure_to_send_is_reported_although_nothing_arrives(loop: str) -> None:
    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        assert channel._socket is not None
        channel._socket.shutdown(socket.SHUT_WR)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        assert heard.events[-1] == "ready"
        await heard.wait("failed")
        assert "reset the connection" in str(heard.error)

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        gone.wait(30)

    gone = threading.Event()
    with listening(serve) as address:
        run(loop, main())
        gone.set()


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_before_a_bad_frame_is_reported_before_the_failure(loop: str) -> None:
    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        connection.sendall(framed(asked.correlation_id, b"good") + bytes(4))
        read_frame(connection)

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("failed")
        assert heard.events[-2:] == ["response", "failed"]
        assert isinstance(heard.error, MalformedError)
        with pytest.raises(MalformedError):
            channel.request(METADATA, 1, METADATA_V1_ALL)

    with listening(serve) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("ends", ["close", "bad frame", "end"])
def test_a_channel_that_is_over_keeps_nothing_that_arrived(loop: str, ends: str) -> None:
    """Errors are kept by applications, and cycles until a collection: both held the bytes."""

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        frame = framed(asked.correlation_id, bytes(1 << 20))
        if ends == "bad frame":
            connection.sendall(framed(asked.correlation_id + 1, bytes(1 << 20)))
            connection.recv(1)
            return
        connection.sendall(frame[: 1 << 19])
        if ends == "close":
            connection.recv(1)

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        if ends == "close":
            while channel.bytes_received < 1 << 19:
                await asyncio.sleep(0.001)
            assert channel.session._long is not None
            channel.close()
        else:
            await heard.wait("failed")
            assert heard.error is not None
            assert heard.error.__traceback__ is None
        assert channel.session._long is None
        assert not channel.session._incoming

    with listening(serve) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("event", ["bytes", "ready", "response"])
def test_a_channel_that_its_owner_closes_reports_nothing_more(loop: str, event: str) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(answer_handshake(read_frame(connection), RANGES)[0])
        for asked in read_requests(read_frame(connection)):
            connection.sendall(framed(asked.correlation_id, b"") + bytes(4))
            read_frame(connection)

    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard)

        def react(what: str) -> None:
            if what == event:
                channel.close()
            elif what == "ready":
                channel.request(METADATA, 1, METADATA_V1_ALL)

        heard.hook = react
        await heard.wait(event)
        await asyncio.sleep(0.01)
        assert heard.events[-1] == event
        assert heard.error is None

    with listening(serve) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_what_arrived_while_the_loop_was_blocked_can_be_read_at_once(loop: str) -> None:
    sent = threading.Event()

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        connection.sendall(framed(asked.correlation_id, b"answer"))
        sent.set()
        read_frame(connection)

    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        channel.request(METADATA, 1, METADATA_V1_ALL)
        assert sent.wait(30)
        channel.read()
        assert heard.events[-2:] == ["bytes", "response"]
        channel.read()
        assert heard.events[-1] == "response", "nothing more had arrived"
        channel.close()
        channel.read()

    with listening(serve) as address:
        run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_one_long_answer_leaves_turns_of_the_loop_to_others(loop: str) -> None:
    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard)
        # A process that waits for its turn has megabytes for one read otherwise.
        assert channel._socket is not None
        channel._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        turns: list[int] = []
        turn = 0
        heard.hook = lambda what: turns.append(turn) if what == "bytes" else None
        channel.request(METADATA, 1, METADATA_V1_ALL)
        while not (heard.answers or heard.error):
            turn += 1
            await asyncio.sleep(0)
        assert len(set(turns)) > 3
        assert max(turns.count(each) for each in set(turns)) <= 8
        channel.close()

    with listening(answering(bytes(15 << 20))) as address:
        run(loop, main())


@pytest.mark.parametrize("keepalive", [False, True])
def test_the_socket_sends_at_once_and_keeps_alive_as_asked(
    monkeypatch: pytest.MonkeyPatch, keepalive: bool
) -> None:
    made: list[socket.socket] = []

    class Socket(socket.socket):
        def connect_ex(self, address: Any) -> int:
            made.append(self)
            return super().connect_ex(address)

    async def main() -> None:
        heard = Heard()
        channel = channel_to(address, heard, keepalive=keepalive)
        await heard.wait("ready")
        assert made[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert bool(made[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) is keepalive
        channel.close()

    with listening(answering()) as address:
        monkeypatch.setattr(socket, "socket", Socket)
        asyncio.run(main())
        monkeypatch.undo()


def test_a_channel_can_be_closed_after_its_loop() -> None:
    kept: list[Channel] = []

    async def main() -> None:
        kept.append(await ready(address, Heard()))

    with listening(answering()) as address:
        asyncio.run(main())
        kept[0].close()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("way", WAYS)
def test_a_forks_child_closes_the_socket_and_the_parents_connection_goes_on(
    loop: str, way: ssl.SSLContext | None
) -> None:
    async def main() -> None:
        heard = Heard()
        channel = await ready(address, heard, way)
        inherited = channel._socket
        assert inherited is not None
        number = inherited.fileno()
        child = os.fork()
        if not child:
            code = 1
            with suppress(BaseException):
                channel.abandon()
                channel.abandon()
                channel.close()
                channel.read()
                del channel
                with suppress(OSError):
                    os.fstat(number)
                    os._exit(2)
                code = 3 if heard.events[-1] != "ready" else 0
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        for times in (1, 2):
            channel.request(METADATA, 1, METADATA_V1_ALL)
            await heard.wait("response", times)
        assert [answer.body for answer in heard.answers] == [b"one", b"two"]
        channel.close()

    with listening(by(way, answering(b"one", b"two"))) as address:
        run(loop, main())
