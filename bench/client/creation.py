"""Times wait_for_topic() for the first leader of a topic that was created just before.

Beside it a loop asks one broker every 10 ms from the same moment on.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import rdmeta
from bench.client import kafka
from bench.client.kafka import PATIENCE
from rdmeta.config.address import parse_bootstrap
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA

PERIOD = 0.01
VERSION = 12
PAUSE = 0.3  # seconds between two topics


class Loop:
    """Asks one broker for a topic every 10 ms, on a connection that is there before."""

    def __init__(self, address: str, topic: str) -> None:
        self.topic = topic
        self.took = 0.0
        self.body = rdmeta.encode_metadata_request(VERSION, [topic])
        server = parse_bootstrap(address)[0]
        self.connection = Connection(server, Deadline(PATIENCE), "loop", 1 << 24)
        self.thread = threading.Thread(target=self.run)

    def leader(self) -> int:
        """Returns the leader that the broker names now, or -1."""
        body = self.connection.request(METADATA, VERSION, self.body, Deadline(PATIENCE))
        cache = rdmeta.MetadataCache()
        cache.apply(body, VERSION, [self.topic])
        return cache.leader(self.topic, 0, -1)

    def run(self) -> None:
        """Asks until there is a leader; sets `took`, in ms."""
        begin = time.perf_counter()
        with self.connection:
            while self.leader() < 0:
                time.sleep(PERIOD)
        self.took = (time.perf_counter() - begin) * 1e3


def measure(rounds: int) -> dict[str, Any]:
    """Returns milliseconds from the return of the creation on: client, loop."""
    out: dict[str, Any] = {"client": [], "loop": []}
    with (
        kafka.started() as cluster,
        rdmeta.Client({"bootstrap.servers": cluster.bootstrap}) as client,
    ):
        client.refresh(timeout=PATIENCE)
        for turn in range(rounds):
            topic = f"made-{turn}"
            loop = Loop(cluster.address(1), topic)
            kafka.create(cluster, [topic], cluster.nodes)
            loop.thread.start()
            begin = time.perf_counter()
            client.wait_for_topic(topic, 0, timeout=PATIENCE)
            out["client"].append((time.perf_counter() - begin) * 1e3)
            loop.thread.join()
            out["loop"].append(loop.took)
            if client.cache.leader(topic, 0) not in cluster.nodes:
                raise SystemExit(f"{topic}: wait_for_topic() returned without a leader")
            time.sleep(PAUSE)
    return out
