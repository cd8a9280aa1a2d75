"""A blocking connection with TLS and a login: bytes both ways, errors, deadlines; and fetch()."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frames
import pytest
from certificates import Authority, over_tls
from peer import framed, listening, read_frame, read_requests
from test_stream_channel import METADATA_V1_ALL, answering, serve_handshake

from rdmeta import MetadataCache, fetch
from rdmeta.config import Config
from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import SaslSettings, TlsSettings
from rdmeta.errors import ConfigError, Error, RequestTimedOutError, TlsError
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA
from rdmeta.net.security import Security

ours, theirs = Authority(), Authority()
SERVER = ours.server("127.0.0.1")


def connected(address: Any, timeout: float = 30.0, **settings: Any) -> Connection:
    settings.setdefault("ca_pem", ours.pem)
    security = Security(Config(tls=TlsSettings(**settings)))
    return Connection(address, Deadline(timeout), "tester", 1 << 24, security=security)


def failure(serve: Callable[[Any], object], **settings: Any) -> str:
    """Returns the text of the error of a connection to that server, or of its first request."""
    with listening(serve) as address, pytest.raises(TlsError) as caught:
        connected(address, **settings).close()
    return str(caught.value)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_answers_of_all_sizes_arrive_whole(version: ssl.TLSVersion) -> None:
    bodies = [b"", b"one", os.urandom(1 << 14), os.urandom(1 << 10) * (5 << 10), b"last"]
    server = ours.server("127.0.0.1", highest=version)
    with (
        listening(over_tls(server, answering(*bodies))) as address,
        connected(address) as connection,
    ):
        for body in bodies:
            assert connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(30)) == body


def test_an_answer_in_pieces_arrives_whole() -> None:
    def serve(connection: socket.socket) -> None:
        serve_handshake(connection)
        (asked,) = read_requests(read_frame(connection))
        for byte in framed(asked.correlation_id, b"answer"):
            connection.sendall(bytes([byte]))
        connection.recv(1)

    with listening(over_tls(SERVER, serve)) as address, connected(address) as connection:
        assert connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(30)) == b"answer"


def test_wrong_certificates_fail_in_one_attempt() -> None:
    def serve(connection: socket.socket) -> None:
        told.append(connection)
        with pytest.raises(ssl.SSLError, match="ALERT_UNKNOWN_CA"):
            theirs.server("127.0.0.1").wrap_socket(connection, server_side=True)

    told: list[socket.socket] = []
    assert "set ssl.ca.location" in failure(serve)
    assert len(told) == 1
    other = over_tls(ours.server("localhost"), serve_handshake)
    assert "is not for '127.0.0.1': it is for localhost;" in failure(other)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_client_certificate_is_named(version: ssl.TLSVersion) -> None:
    server = ours.server("127.0.0.1", clients=ours, highest=version)
    assert "the broker wants a client certificate" in failure(over_tls(server, serve_handshake))


@pytest.mark.parametrize(
    ("said", "expected"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP"), (b"", "seems not to speak TLS")],
)
@pytest.mark.parametrize("resets", [False, True])
def test_a_port_without_tls_is_named(said: bytes, expected: str, resets: bool) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1 if resets else 4096)
        connection.sendall(said)

    assert expected in failure(serve)


def test_a_port_that_wants_tls_is_named_without_it() -> None:
    with (
        listening(over_tls(SERVER, serve_handshake)) as address,
        pytest.raises(Error, match="set security.protocol=ssl"),
    ):
        Connection(address, Deadline(30), "tester", 1 << 20)


def test_the_deadline_covers_the_handshake() -> None:
    gone = threading.Event()
    with listening(lambda _: gone.wait(30)) as address:
        begin = time.monotonic()
        with pytest.raises(RequestTimedOutError, match="no answer to the TLS handshake in time"):
            connected(address, timeout=0.2)
        assert time.monotonic() - begin < 5
        gone.set()


@pytest.mark.parametrize("says_goodbye", [False, True])
def test_the_end_of_the_connection_is_reported(says_goodbye: bool) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        serve_handshake(connection)
        read_frame(connection)
        if says_goodbye:
            connection.unwrap()

    with listening(over_tls(SERVER, serve)) as address, connected(address) as connection:
        with pytest.raises(Exception, match="the broker closed the connection") as caught:
            connection.request(METADATA, 1, METADATA_V1_ALL, Deadline(30))
        assert not isinstance(caught.value, TlsError)


# ---- fetch() ------------------------------------------------------------------------------------


def conf(address: Any, folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"localhost:{address.port}",
        "security.protocol": "ssl",
        "ssl.ca.location": ours.write(folder),
        "broker.address.family": "v4",
        **more,
    }


def test_a_fetch_speaks_tls_to_the_host_of_its_configuration(tmp_path: Path) -> None:
    answer = frames.response(13, [frames.T("orders", id=frames.topic_id("orders"))])
    serve = over_tls(ours.server("localhost"), answering(b"\0" + answer))
    cache = MetadataCache()
    with listening(serve) as address:
        assert fetch(cache, conf=conf(address, tmp_path)).topics == 1
    assert "orders" in cache


def test_a_fetch_names_the_server_and_the_cause(tmp_path: Path) -> None:
    with listening(over_tls(SERVER, serve_handshake)) as address:
        with pytest.raises(TlsError) as caught:
            fetch(MetadataCache(), conf=conf(address, tmp_path))
        said = str(caught.value)
        assert said.startswith(f"localhost:{address.port}: the broker's certificate is not for")
        with pytest.raises(
            ConfigError, match=r"localhost:\d+: ssl.crl.location = /nowhere: No such"
        ):
            fetch(MetadataCache(), conf=conf(address, tmp_path, **{"ssl.crl.location": "/nowhere"}))


def test_each_connection_asks_for_the_secrets_of_now() -> None:
    passwords = iter(["one", "two"])
    secret = Secret(lambda: next(passwords), "sasl.password")
    security = Security(Config(sasl=SaslSettings("PLAIN", "alice", secret)))
    with listening(serve_handshake) as address:
        for _ in range(2):
            with pytest.raises(Exception, match="SaslHandshake"):
                Connection(address, Deadline(30), "tester", 1 << 20, security=security)
    assert next(passwords, None) is None


def test_each_step_of_a_connection_is_told_when_it_ends() -> None:
    told: list[tuple[str, bool, bool]] = []

    def on_step(step: str, connection: Connection) -> None:
        assert connection.tunnel is not None
        told.append((step, connection.tunnel.is_ready, bool(connection.session.versions)))

    security = Security(Config(tls=TlsSettings(ca_pem=ours.pem)))
    with listening(over_tls(SERVER, answering())) as address:
        Connection(address, Deadline(30), "t", 1 << 20, 0, security.prepare(), on_step).close()
    assert told == [
        ("name", False, False),
        ("tcp", False, False),
        ("tls", True, False),
        ("versions", True, True),
    ]
