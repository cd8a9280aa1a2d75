"""The blocking connection: its deadline, its failures, and its cleanup."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import ssl
import struct
import threading
import time

import pytest
from broker import black_hole
from kafka.protocol.metadata import MetadataResponse
from peer import answer_handshake, framed, listening, read_frame, read_requests
from waiting import PROMPT

from rdmeta.config.address import Address, parse_bootstrap
from rdmeta.embedded import EmbeddedCluster
from rdmeta.errors import Error, MalformedError, RequestTimedOutError, TransportError
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA

RANGES = {METADATA: (0, 13), 18: (0, 3)}
METADATA_V1_ALL = struct.pack(">i", -1)


def connect(address: Address, seconds: float = 20.0) -> Connection:
    return Connection(address, Deadline(seconds), "tester", 1 << 20)


def serve_handshake(connection: socket.socket) -> None:
    connection.sendall(answer_handshake(read_frame(connection), RANGES)[0])


def test_a_brokers_answer_arrives_whole(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=200, replication_factor=3)
    with connect(parse_bootstrap(cluster.bootstrap)[0]) as connection:
        body = connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(20))
    answer = MetadataResponse.decode(io.BytesIO(body), version=1)
    (topic,) = answer.topics
    assert (topic.name, len(topic.partitions)) == ("orders", 200)
    assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]


def test_one_connection_carries_many_requests(cluster: EmbeddedCluster) -> None:
    with connect(parse_bootstrap(cluster.bootstrap)[0]) as connection:
        for count in range(5):
            cluster.create_topic(f"topic-{count}")
            body = connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(20))
            answer = MetadataResponse.decode(io.BytesIO(body), version=1)
            assert len(answer.topics) == count + 1


def test_an_answer_in_single_bytes_is_put_together() -> None:
    def serve(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        for byte in framed(asked.correlation_id, b"answer"):
            connection.sendall(bytes([byte]))
        read_frame(connection)

    with listening(serve) as address, connect(address) as connection:
        assert connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(20)) == b"answer"


def test_a_listener_that_never_answers_ends_the_connection_at_the_deadline() -> None:
    gone = threading.Event()

    def serve(connection: socket.socket) -> None:
        while read_frame(connection):
            pass
        gone.set()

    with listening(serve) as address:
        with pytest.raises(RequestTimedOutError, match="may not be a Kafka broker"):
            connect(address, 0.5)
        assert gone.wait(20), "the socket was left open"


def test_a_request_keeps_to_its_own_deadline() -> None:
    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        read_frame(connection)
        read_frame(connection)

    with (
        listening(serve) as address,
        connect(address) as connection,
        pytest.raises(RequestTimedOutError),
    ):
        connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(0.1))


def test_no_time_left_is_a_time_out_before_anything_is_sent() -> None:
    with pytest.raises(RequestTimedOutError):
        connect(Address("127.0.0.1", 9), 0.0)


def test_a_listener_that_hangs_up_at_once_seems_to_want_tls() -> None:
    with (
        listening(read_frame) as address,
        pytest.raises(TransportError, match="closed the connection .*seems to want TLS") as caught,
    ):
        connect(address)
    assert not caught.value.retriable


def test_a_tls_port_is_recognised_whether_it_resets_or_sends_an_alert() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def tls(connection: socket.socket) -> None:
        with contextlib.suppress(ssl.SSLError):
            context.wrap_socket(connection, server_side=True)

    def alert(connection: socket.socket) -> None:
        read_frame(connection)
        connection.sendall(bytes.fromhex("15030300020250"))

    def reset(connection: socket.socket) -> None:
        read_frame(connection)  # else the client may hear of it before it is connected
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    for serve in (tls, alert, reset):
        with listening(serve) as address, pytest.raises(Error, match="wants? TLS") as caught:
            connect(address)
        assert not caught.value.retriable


def test_a_hang_up_in_the_middle_of_an_answer_is_a_transport_error() -> None:
    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        connection.sendall(framed(asked.correlation_id, b"answer")[:-1])

    with (
        listening(serve) as address,
        connect(address) as connection,
        pytest.raises(TransportError, match="closed the connection"),
    ):
        connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(20))


def test_a_port_without_a_listener_says_so() -> None:
    with listening(read_frame) as address:
        pass
    with pytest.raises(TransportError, match="refused"):
        connect(address)


def test_a_host_that_does_not_exist_says_so() -> None:
    with pytest.raises(TransportError, match="no such host"):
        connect(Address("no-such-host.invalid", 9092))


def test_a_listener_of_another_protocol_is_refused() -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        read_frame(connection)

    with (
        listening(serve) as address,
        pytest.raises(MalformedError, match="an SSH server: its first bytes are b'SSH-2.0"),
    ):
        connect(address)


def test_an_ipv6_listener_is_reached() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"this machine has no IPv6 loopback: {error}")

    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        read_frame(connection)

    with listening(serve, "::1") as address:
        (parsed,) = parse_bootstrap(str(address))
        with connect(parsed) as connection:
            assert connection.session.versions == RANGES


def test_ctrl_c_ends_the_wait_for_an_answer_and_closes_the_socket() -> None:
    gone = threading.Event()

    def serve(connection: socket.socket) -> None:
        read_frame(connection)
        os.kill(os.getpid(), signal.SIGINT)
        read_frame(connection)
        gone.set()

    with listening(serve) as address:
        with pytest.raises(KeyboardInterrupt):
            connect(address)
        assert gone.wait(20), "the socket was left open"


def test_black_holes_among_the_addresses_of_a_name_cost_a_quarter_of_a_second_each(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = cluster.bootstrap.split(",")[0]
    with black_hole() as one, black_hole() as two:
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", tuple(parse_bootstrap(each)[0]))
            for each in (one, two, good)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: found)
        begin = time.monotonic()
        connect(Address("kafka", 9092), 10.0).close()
        assert 0.4 < time.monotonic() - begin < PROMPT
