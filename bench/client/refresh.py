"""Times a refresh of all topics from canned frames, beside its floor and confluent's client.

The floor is a blocking socket that receives the same bytes into one new buffer, and apply(). No
client keeps megabytes from one refresh to the next, so the floor does not either. All three have
the answer already: it brings nothing new. Times are on the wall.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from time import perf_counter, sleep
from typing import Any

import rdmeta
from bench.client import lacks
from bench.client.canned import API_VERSION, large_name, served
from bench.figure import PER_TOPIC

# Seconds of sleep before each refresh: all begin on a machine that was idle. In a round there are
# three of them. That is longer than retry.backoff.max.ms and its jitter: a refresh after an answer
# without news would wait for that.
PAUSE = 0.65
CORRELATION = 7


def request() -> bytes:
    """Returns the frame of a Metadata request for all topics; the client id is empty."""
    body = rdmeta.encode_metadata_request(API_VERSION, rdmeta.ALL)
    message = struct.pack(">hhihB", 3, API_VERSION, CORRELATION, 0, 0) + body
    return struct.pack(">i", len(message)) + message


class Floor:
    """A connection that asks, receives and applies, and does nothing else; `context` is of TLS."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(address)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=address[0])
        self.cache = rdmeta.MetadataCache()
        self.request = request()

    def received(self, size: int) -> memoryview:
        """Returns the next `size` bytes."""
        whole = rest = memoryview(bytearray(size))
        while rest:
            count = self.socket.recv_into(rest)
            if not count:
                raise SystemExit("the broker of canned frames hung up")
            rest = rest[count:]
        return whole

    def refresh(self) -> None:
        """Asks for all topics and applies the answer."""
        self.socket.sendall(self.request)
        (size,) = struct.unpack(">i", self.received(4))
        frame = self.received(size)
        self.cache.apply(frame[5:], API_VERSION, rdmeta.ALL)  # after the header and its tags


def check(cache: rdmeta.MetadataCache, topics: int, what: str) -> None:
    """Ends the program if the cache lacks a topic."""
    last = cache.leader(large_name(topics - 1), PER_TOPIC - 1, -1)
    if len(cache) != topics or last not in (1, 2, 3):
        raise SystemExit(f"{what}: {len(cache)} topics, the last leader is {last}")


def list_topics(bootstrap: str) -> Callable[[], Any]:
    """Returns confluent's way to get all topics."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    return lambda: admin.list_topics(timeout=60)


def timed(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Returns milliseconds of each way, by turns; a first turn fills the caches and is not kept."""
    out: dict[str, list[float]] = {key: [] for key in ways}
    for turn in range(rounds + 1):
        for key, refresh in ways.items():
            sleep(PAUSE)
            begin = perf_counter()
            refresh()
            took = perf_counter() - begin
            if turn:
                out[key].append(took * 1e3)
    return out


def measure(topics: int, rounds: int) -> dict[str, Any]:
    """Returns milliseconds: client, floor, and confluent if that is installed."""
    missing: dict[str, str] = {}
    with served(topics) as address:
        bootstrap = "{}:{}".format(*address)
        floor = Floor(address)
        with rdmeta.Client({"bootstrap.servers": bootstrap}, topics=rdmeta.ALL) as client:
            ways: dict[str, Callable[[], object]] = {
                "floor": floor.refresh,
                "client": lambda: client.refresh(timeout=60),
            }
            if reason := lacks("confluent_kafka"):
                missing["confluent"] = reason
            else:
                ways["confluent"] = list_topics(bootstrap)
            out = timed(ways, rounds)
            check(client.cache, topics, "client")
            check(floor.cache, topics, "floor")
        floor.socket.close()
    return {**out, "missing": missing}
