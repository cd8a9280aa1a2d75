"""The values that lookups, changes and refreshes hand out: immutable, absent is None.

A topic id is Kafka's own spelling of a UUID: 22 characters of URL-safe base64, None if unknown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from enum import Enum, IntFlag
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from uuid import UUID

__all__ = [
    "ALL",
    "Advice",
    "All",
    "Applied",
    "Broker",
    "Change",
    "Changes",
    "Partition",
    "Request",
    "Topic",
    "TopicPartition",
    "Version",
    "topic_fault",
]


class Version(int):
    """A version of what is attached, which knows of which life of a cache it is: its `session`.

    An int like any other otherwise. One that is made of it by reckoning is a plain int.
    """

    session: str

    def __new__(cls, version: int, session: str = "") -> Version:
        made = super().__new__(cls, version)
        made.session = session
        return made


def topic_fault(name: str) -> str | None:
    """What Kafka has against a topic's name (org.apache.kafka.common.internals.Topic), or None."""
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "Kafka takes it for no name"
    if len(name) > 249:
        return f"it has {len(name)} characters, 249 are the most"
    if not _LEGAL(name):
        return "it has characters other than a-z, A-Z, 0-9, '.', '_' and '-'"
    return None


_LEGAL = re.compile(r"[a-zA-Z0-9._-]+").fullmatch


class All(Enum):
    """The type of `ALL`: every topic of the cluster."""

    ALL = "ALL"

    def __repr__(self) -> str:
        return "rdmeta.ALL"


ALL: Final = All.ALL


class Request(NamedTuple):
    """A Metadata request as it was sent, to be handed back with its answer.

    `topics` is ALL, names, ids (uuid.UUID or 16 bytes), or () for brokers only. `sent_version` is
    the cache's version when the request left, 0 that of a new cache; `sent_hints` is the number of
    the cache's last hint then. request() of the cache fills in both. `reason` is why it was asked
    for, in the caller's words: see reason() of the cache.
    """

    topics: All | Collection[str] | Collection[bytes | UUID] = ALL
    allow_auto_create: bool = False
    topic_authorized_operations: bool = False
    cluster_authorized_operations: bool = False
    sent_version: int | None = None
    reason: str | None = None
    sent_hints: int | None = None


class Broker(NamedTuple):
    """One broker, at the address it advertises."""

    id: int
    host: str
    port: int
    rack: str | None = None


class TopicPartition(NamedTuple):
    """A partition's name."""

    topic: str
    partition: int


class Partition(NamedTuple):
    """One partition as last answered.

    `leader` is a broker id, None for no leader now. `leader_epoch` is None where the broker did
    not say, or could not be relied on (before Metadata v9). The lists hold broker ids, `replicas`
    with the preferred leader first. `error` is Kafka's code, 0 for none. `unreachable` says that
    the leader is not among the brokers now, worked out when it is read: KRaft names a leader
    without a look at whether it is fenced, so that happens, and is a reason to refresh.
    `leaderless` says that there is no leader now, also where `allow_stale` has put the last one
    into `leader`; `error` need not say why.
    """

    topic: str
    topic_id: str | None
    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    error: int
    unreachable: bool = False
    leaderless: bool = False


class Topic(NamedTuple):
    """One topic as last answered, partitions in the order of their ids.

    `error` is Kafka's code, 0 for none. `operations` is KIP-430's bit field, None if not asked
    for. `version` is the cache's when this last changed.
    """

    name: str
    topic_id: str | None
    internal: bool
    partitions: tuple[Partition, ...]
    error: int = 0
    operations: int | None = None
    version: int = 0


class Change(NamedTuple):
    """One thing that differed, as it appears in Python, Arrow, Parquet and Spark.

    `source` is one of poll, hint, log, expiry, purge; `kind` says which of the other fields
    apply. Every version of a cache has a record of what differs in it. `observed_at` is in UTC.
    `session` names one life of a cache.
    """

    # tools/change_table.py: begin
    version: int
    cluster_id: str | None
    session: str
    observed_at: datetime
    source: str
    source_broker: int | None
    kind: str
    topic: str | None
    topic_id: str | None
    partition: int | None
    broker: int | None
    old_leader: int | None
    new_leader: int | None
    old_leader_epoch: int | None
    new_leader_epoch: int | None
    old_isr: tuple[int, ...] | None
    new_isr: tuple[int, ...] | None
    old_replicas: tuple[int, ...] | None
    new_replicas: tuple[int, ...] | None
    offset: int | None
    detail: str | None
    # tools/change_table.py: end


class Arrow(Protocol):
    """What speaks Arrow: any number of times, and without pyarrow."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Records(Arrow, Protocol):
    """Change records that are made objects of when they are wanted."""

    def __len__(self) -> int: ...
    def read(self) -> tuple[Change, ...]: ...


class Changes:
    """Changes in order, up to the version `until`.

    `resync` is True if older ones than asked for are not held any more: then there are none here,
    and the state must be read anew as of `until`. As a cache gives them they are made objects of
    when they are first looked at, and never for `to_arrow()`.
    """

    __slots__ = ("_made", "_records", "resync", "until")

    def __init__(self, records: tuple[Change, ...] | Records, until: int, resync: bool) -> None:
        self._records = records
        self._made = records if isinstance(records, tuple) else None
        self.until = until
        self.resync = resync

    @property
    def records(self) -> tuple[Change, ...]:
        if self._made is None:
            assert not isinstance(self._records, tuple)
            self._made = self._records.read()
        return self._made

    def to_arrow(self) -> Arrow:
        """The records as a table for whoever speaks Arrow; its columns are the fields of Change.

        TypeError for changes that did not come from a cache or from images.
        """
        if isinstance(self._records, tuple):
            raise TypeError("only changes that came from a cache or from images are a table")
        return self._records

    def __iter__(self) -> Iterator[Change]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<{len(self)} changes until={self.until} resync={self.resync}>"


class Advice(IntFlag):
    """What a client should do after a refresh."""

    NONE = 0
    ASK_AGAIN = 1
    ASK_OTHER = 2
    ASK_BY_NAME = 4
    REBOOTSTRAP = 8


class Applied(NamedTuple):
    """What a refresh did.

    `version` is the cache's afterwards. Topics are counted: `changed` (removals included), all in
    the answer, `unchanged`, `kept_back` (lost to what was known), `negative` (unknown, denied,
    invalid), `absent` (missing from an answer about all topics). Partitions: `leaderless`, of which
    `listener_not_found` for error 72, and `unreachable`, whose leader is not among the brokers.
    `throttle_ms` is KIP-219's; `error` is the top-level code (Metadata v13), 0 for none.
    """

    version: int
    changed: int
    topics: int
    unchanged: int
    kept_back: int
    negative: int
    absent: int
    leaderless: int
    listener_not_found: int
    unreachable: int
    brokers_changed: bool
    advice: Advice
    throttle_ms: int
    error: int
