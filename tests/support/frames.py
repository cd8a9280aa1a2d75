"""Encodes Metadata response bodies of any version, v0-v13, from a plain description.

    orders = T("orders", [P(0, leader=1, epoch=7), P(1, leader=2, epoch=3)])
    body = response(12, topics=[orders], brokers=[B(1), B(2)])

The encoder follows Kafka's message definition (MetadataResponse.json) and uses no code of rdmeta,
so that each checks the other. It leaves out the fields that a version does not have.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

VERSIONS = range(14)
NO_OPERATIONS = -(1 << 31)
ZERO_ID = bytes(16)


@dataclass(frozen=True)
class B:
    """A broker."""

    id: int
    host: str = "broker.example"
    port: int = 9092
    rack: str | None = None


@dataclass(frozen=True)
class P:
    """A partition; if `isr` is None, all replicas are in sync."""

    id: int
    leader: int = 1
    epoch: int = 0
    replicas: tuple[int, ...] = (1, 2, 3)
    isr: tuple[int, ...] | None = None
    offline: tuple[int, ...] = ()
    error: int = 0


@dataclass(frozen=True)
class T:
    """A topic; `id` has 16 bytes, all zero for a topic without an id."""

    name: str | bytes | None
    partitions: Sequence[P] = field(default_factory=lambda: [P(0)])
    id: bytes = ZERO_ID
    error: int = 0
    internal: bool = False
    operations: int = NO_OPERATIONS


BROKERS = (B(1), B(2), B(3))


def topic_id(seed: object) -> bytes:
    """Returns 16 bytes, the same for the same seed, and not all zero."""
    return sha256(repr(seed).encode()).digest()[:16]


class Writer:
    """Writes Kafka's types, in the plain or in the flexible encoding (KIP-482)."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.bytes = bytearray()

    def number(self, form: str, value: int) -> None:
        self.bytes += struct.pack(f">{form}", value)

    def varint(self, value: int) -> None:
        while value > 0x7F:
            self.bytes.append(value & 0x7F | 0x80)
            value >>= 7
        self.bytes.append(value)

    def string(self, value: str | bytes | None) -> None:
        raw = value.encode() if isinstance(value, str) else value
        size = -1 if raw is None else len(raw)
        if self.flexible:
            self.varint(size + 1)
        else:
            self.number("h", size)
        self.bytes += raw or b""

    def count(self, count: int) -> None:
        if self.flexible:
            self.varint(count + 1)
        else:
            self.number("i", count)

    def ids(self, values: Sequence[int]) -> None:
        self.count(len(values))
        self.bytes += struct.pack(f">{len(values)}i", *values)

    def tags(self) -> None:
        if self.flexible:
            self.varint(0)


def response(
    version: int,
    topics: Iterable[T] = (),
    brokers: Iterable[B] = BROKERS,
    *,
    cluster_id: str | None = "cluster",
    controller: int = 1,
    throttle_ms: int = 0,
    operations: int = NO_OPERATIONS,
    error: int = 0,
) -> bytes:
    """Returns a response's body, without the response header."""
    topics, brokers = list(topics), list(brokers)
    w = Writer(version >= 9)
    if version >= 3:
        w.number("i", throttle_ms)
    w.count(len(brokers))
    for broker in brokers:
        w.number("i", broker.id)
        w.string(broker.host)
        w.number("i", broker.port)
        if version >= 1:
            w.string(broker.rack)
        w.tags()
    if version >= 2:
        w.string(cluster_id)
    if version >= 1:
        w.number("i", controller)
    w.count(len(topics))
    for topic in topics:
        _topic(w, version, topic)
    if 8 <= version <= 10:
        w.number("i", operations)
    if version >= 13:
        w.number("h", error)
    w.tags()
    return bytes(w.bytes)


def _topic(w: Writer, version: int, topic: T) -> None:
    w.number("h", topic.error)
    w.string(topic.name)
    if version >= 10:
        w.bytes += topic.id
    if version >= 1:
        w.number("b", topic.internal)
    w.count(len(topic.partitions))
    for p in topic.partitions:
        w.number("h", p.error)
        w.number("i", p.id)
        w.number("i", p.leader)
        if version >= 7:
            w.number("i", p.epoch)
        w.ids(p.replicas)
        w.ids(p.replicas if p.isr is None else p.isr)
        if version >= 5:
            w.ids(p.offline)
        w.tags()
    if version >= 8:
        w.number("i", topic.operations)
    w.tags()
