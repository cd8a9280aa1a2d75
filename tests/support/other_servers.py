"""Servers that are no Kafka brokers, for tests of what a client says about them."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from listener import free_ports
from real_kafka import JARS, START_S

_BANNER = b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"
_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nServer: nginx/1.22.1\r\nContent-Type: text/html\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)


@contextmanager
def nothing() -> Iterator[str]:
    """Yields an address that refuses connections, and that no other server takes meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def http_server() -> Iterator[str]:
    """Yields the address of a server that refuses what is not HTTP at its first byte, as nginx."""
    with _answering(b"", _REFUSAL) as address:
        yield address


@contextmanager
def ssh_server() -> Iterator[str]:
    """Yields the address of a server that begins as OpenSSH does, and then refuses."""
    with _answering(_BANNER, b"Invalid SSH identification string.\r\n") as address:
        yield address


@contextmanager
def _answering(greeting: bytes, answer: bytes) -> Iterator[str]:
    """Yields the address of a server that greets, answers the first bytes, and closes."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.sendall(greeting)
                connection.recv(1 << 16)
                connection.sendall(answer)

        def accept() -> None:
            with suppress(OSError):  # the test is over
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def zookeeper(directory: Path, version: str = "3.9.1") -> Iterator[str]:
    """Yields the address of a running ZooKeeper, which comes with that version of Kafka."""
    directory.mkdir()
    (port,) = free_ports(1)
    options = {
        "tickTime": 500,
        "dataDir": directory,
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok",
    }
    path = directory / "zoo.cfg"
    path.write_text("".join(f"{key}={value}\n" for key, value in options.items()))
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(
            ["java", "-Xmx128m", "-cp", f"{JARS / version}/*", main, path],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            end = time.monotonic() + START_S
            while not _is_ok(port):
                assert time.monotonic() < end, (directory / "log").read_text()
                time.sleep(0.1)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def _is_ok(port: int) -> bool:
    """Returns whether a ZooKeeper answers."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as connection:
        connection.sendall(b"ruok")
        return connection.recv(4) == b"imok"
    return False
