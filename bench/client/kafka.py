"""Apache Kafka for the client's benches: a cluster of three nodes, kills, and the first word.

*The first word* is the moment at which the first live broker says that another node leads. One
thread per broker asks it every 10 ms on a connection of its own.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from real_kafka import JARS, RealKafka

import rdmeta
from bench.figure import Missing
from rdmeta.address import Address
from rdmeta.net.blocking import Connection, Deadline
from rdmeta.net.session import METADATA

VERSION = "4.3.0"
NODES = 3
PERIOD = 0.01  # seconds between two questions
PATIENCE = 60.0
VERSIONS = (12, 13)  # of Metadata


@contextmanager
def started() -> Iterator[RealKafka]:
    """Yields a running cluster; raises Missing without Java or without Kafka."""
    if shutil.which("java") is None:
        raise Missing("no Java")
    if not (JARS / VERSION).is_dir():
        raise Missing(f"Kafka {VERSION} is not here: `make kafka-jars` fetches it")
    with (
        tempfile.TemporaryDirectory() as directory,
        RealKafka(VERSION, NODES, Path(directory)) as kafka,
    ):
        yield kafka


def create(kafka: RealKafka, topics: list[str], nodes: list[int]) -> None:
    """Creates topics of one partition with these replicas."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    made = [NewTopic(topic, 1, replica_assignment=[nodes]) for topic in topics]
    for future in admin.create_topics(made, operation_timeout=PATIENCE).values():
        future.result(PATIENCE)


class Asker:
    """A connection to one broker that asks for one topic, on a cache of its own."""

    def __init__(self, port: int, topic: str) -> None:
        self.topic = topic
        self.connection = Connection(
            Address("127.0.0.1", port), Deadline(PATIENCE), "bench", 1 << 24
        )
        self.version = self.connection.session.version_for(METADATA, *VERSIONS)
        self.body = rdmeta.encode_metadata_request(self.version, [topic], allow_auto_create=False)

    def ask(self) -> rdmeta.MetadataCache:
        """Returns what the broker says now."""
        body = self.connection.request(METADATA, self.version, self.body, Deadline(PATIENCE))
        cache = rdmeta.MetadataCache()
        cache.apply(body, self.version, [self.topic])
        return cache

    def leader(self) -> int:
        """Returns the leader of partition 0 that the broker names, or -1."""
        return self.ask().leader(self.topic, 0, -1)


def settled(kafka: RealKafka, topic: str) -> int:
    """Waits until the live brokers agree on a leader and all replicas are in sync; returns it."""
    askers = [Asker(kafka.ports[node], topic) for node in kafka.running]
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = [asker.ask() for asker in askers]
        leaders = {cache.leader(topic, 0, -1) for cache in found}
        if len(leaders) == 1 and -1 not in leaders and all(synced(c, topic) for c in found):
            for asker in askers:
                asker.connection.close()
            return leaders.pop()
        time.sleep(PERIOD)
    raise SystemExit(f"the cluster did not settle within {PATIENCE} s:\n{kafka.log()}")


def synced(cache: rdmeta.MetadataCache, topic: str) -> bool:
    """Returns whether all brokers are there and all replicas of the topic are in sync."""
    partition = cache.topic(topic).partitions[0]
    return len(cache.brokers) == NODES and len(partition.isr) == len(partition.replicas)


class FirstWord:
    """Asks the live brokers in threads until one names another leader than `dead`."""

    def __init__(self, kafka: RealKafka, topic: str, dead: int) -> None:
        """Connects to all brokers but `dead`; watching begins with start()."""
        self.dead = dead
        self.askers = [Asker(p, topic) for node, p in kafka.ports.items() if node != dead]
        self.threads = [threading.Thread(target=self.watch, args=(asker,)) for asker in self.askers]
        self.lock = threading.Lock()
        self.first: tuple[int, int] | None = None  # time.monotonic_ns(), leader
        self.failure: Exception | None = None
        self.over = threading.Event()

    def watch(self, asker: Asker) -> None:
        """Asks one broker every 10 ms."""
        try:
            while not self.over.is_set():
                leader = asker.leader()
                if leader not in (-1, self.dead):
                    self.tell(time.monotonic_ns(), leader)
                self.over.wait(PERIOD)
        except Exception as error:
            self.failure = error
            self.over.set()
        finally:
            asker.connection.close()

    def tell(self, at: int, leader: int) -> None:
        """Keeps the earliest answer that names another leader."""
        with self.lock:
            if self.first is None or at < self.first[0]:
                self.first = (at, leader)
        self.over.set()

    def start(self) -> None:
        """Begins to ask."""
        for thread in self.threads:
            thread.start()

    def wait(self) -> tuple[int, int]:
        """Returns when the first word came, on the monotonic clock in ns, and the new leader."""
        self.over.wait(PATIENCE)
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.first is None:
            raise SystemExit(f"no broker named another leader: {self.failure}")
        return self.first
