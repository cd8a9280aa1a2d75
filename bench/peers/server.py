"""A broker of canned frames: ApiVersions, and Metadata from a workload's files.

`python -m bench.peers.server DIR [CERTIFICATE KEY]` prints its port and serves until its input
ends, through TLS if it has the files of a certificate and its key. It answers a
request for all topics with `all-V`, and a request for one with `one-V`, byte for byte. Only in v12
the address of every broker is its own. Newer clients of librdkafka leave the bootstrap server
as soon as they know other brokers, and those of the workload do not exist.
"""

from __future__ import annotations

import socketserver
import ssl
import struct
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

METADATA, API_VERSIONS = 3, 18
UNSUPPORTED = 35
OFFERED = ((METADATA, 0, 12), (API_VERSIONS, 0, 3))


def api_versions(version: int) -> bytes:
    """Returns the list of versions, as v0-v2 or, flexible (KIP-482), as v3."""
    error = 0 if version <= 3 else UNSUPPORTED
    if version != 3:
        rows = b"".join(struct.pack(">hhh", *row) for row in OFFERED)
        throttle = bytes(4) if version in (1, 2) else b""
        return struct.pack(">hi", error, len(OFFERED)) + rows + throttle
    rows = b"".join(struct.pack(">hhhB", *row, 0) for row in OFFERED)
    return struct.pack(">hB", error, len(OFFERED) + 1) + rows + bytes(5)


def asks_for_all(version: int, body: bytes) -> bool:
    """Returns whether a Metadata request has null for its topics, or none in v0."""
    if version >= 9:
        return body[0] == 0
    count: int = struct.unpack_from(">i", body)[0]
    return count == (0 if version == 0 else -1)


def at_home(body: bytes, port: int) -> bytes:
    """Returns a v12 body with each of its brokers (fewer than 127) at 127.0.0.1:`port`."""
    out, at = bytearray(body[:5]), 5  # throttle, count
    for _ in range(body[4] - 1):
        out += body[at : at + 4]  # id
        out += bytes([10]) + b"127.0.0.1" + struct.pack(">i", port)
        at += 4 + body[at + 4] + 4
        rack = max(body[at], 1) + 1  # with its length, and no tagged fields
        out += body[at : at + rack]
        at += rack
    return bytes(out) + body[at:]


class PeerBroker(socketserver.StreamRequestHandler):
    """One connection: it answers frames in their order."""

    disable_nagle_algorithm = True
    directory: Path
    context: ssl.SSLContext | None = None

    def setup(self) -> None:
        """Shakes hands if the server speaks TLS."""
        if self.context is not None:
            self.request = self.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        """Closes the connection; the server would close what TLS has wrapped."""
        super().finish()
        self.request.close()

    def handle(self) -> None:
        """Serves until the peer hangs up, perhaps inside an answer."""
        with suppress(ConnectionError):
            self.serve()

    def serve(self) -> None:
        """Answers each request."""
        while len(size := self.rfile.read(4)) == 4:
            frame = self.rfile.read(struct.unpack(">i", size)[0])
            key, version, correlation, client = struct.unpack_from(">hhih", frame)
            at = 10 + max(client, 0)
            if key == API_VERSIONS:
                self.answer(correlation, b"", api_versions(version))
                continue
            if key != METADATA:
                raise SystemExit(f"this server does not know API {key}")
            flexible = version >= 9  # the header then has tagged fields: none
            which = "all" if asks_for_all(version, frame[at + flexible :]) else "one"
            port = self.request.getsockname()[1]
            self.answer(correlation, bytes(flexible), self.body(f"{which}-{version}", port))

    def answer(self, correlation: int, tags: bytes, body: bytes) -> None:
        """Sends one frame in two writes, as the body may be big."""
        size = 4 + len(tags) + len(body)
        self.wfile.write(struct.pack(">ii", size, correlation) + tags)
        self.wfile.write(body)

    @classmethod
    @cache
    def body(cls, name: str, port: int) -> bytes:
        """Returns a file of the workload."""
        plain = (cls.directory / name).read_bytes()
        return at_home(plain, port) if name.endswith("-12") else plain


class PeerServer(socketserver.ThreadingTCPServer):
    """A server with one thread per connection."""

    daemon_threads = True
    allow_reuse_address = True


def main() -> int:
    """Serves until the input ends, as it does when the parent process ends."""
    PeerBroker.directory = Path(sys.argv[1])
    if len(sys.argv) > 2:
        PeerBroker.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        PeerBroker.context.load_cert_chain(*sys.argv[2:4])
    with PeerServer(("127.0.0.1", 0), PeerBroker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)
        sys.stdin.read()
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
