"""The values that lookups, changes and refreshes return.

They are immutable, and None stands for an absent value. A topic id is Kafka's own spelling of a
UUID: 22 characters of URL-safe base64, None if unknown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from enum import Enum, IntFlag
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from rdmeta._html import arrow_html, html_table

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
    "Due",
    "DueReason",
    "Health",
    "Partition",
    "Request",
    "Topic",
    "TopicPartition",
    "Version",
    "operation_names",
    "topic_fault",
]


class Version(int):
    """A version of an attached state; its `session` names the life of the cache that made it.

    Otherwise it is an ordinary int. Arithmetic on it gives a plain int without a session.
    """

    session: str

    def __new__(cls, version: int, session: str = "") -> Version:
        made = super().__new__(cls, version)
        made.session = session
        return made


def topic_fault(name: str) -> str | None:
    """Returns why Kafka refuses a topic's name, or None if it is legal.

    The rules are those of org.apache.kafka.common.internals.Topic.
    """
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "Kafka does not allow it as a name"
    if len(name) > 249:
        return f"it has {len(name)} characters, the maximum is 249"
    if not _LEGAL(name):
        return "it has characters other than a-z, A-Z, 0-9, '.', '_' and '-'"
    return None


_LEGAL = re.compile(r"[a-zA-Z0-9._-]+").fullmatch


# org.apache.kafka.common.acl.AclOperation of Kafka 4.3: an operation's code is its place.
_OPERATIONS = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)


def operation_names(bits: int) -> tuple[str, ...]:
    """Returns the names of the operations in a bit field of KIP-430, by Kafka's codes.

        operation_names(cache.topic("orders").operations)   # ("READ", "DESCRIBE")

    The names are those of Kafka's AclOperation. A code that this version does not know is
    "OPERATION_" and the code.
    """
    codes = [code for code in range(32) if bits >> code & 1]
    return tuple(
        _OPERATIONS[code] if code < len(_OPERATIONS) else f"OPERATION_{code}" for code in codes
    )


class All(Enum):
    """The type of `ALL`: every topic of the cluster."""

    ALL = "ALL"

    def __repr__(self) -> str:
        return "rdmeta.ALL"


ALL: Final = All.ALL


class Request(NamedTuple):
    """A Metadata request as it was sent; the caller gives it to the cache with its answer.

    `topics` is ALL, names, ids (uuid.UUID or 16 bytes), or () for brokers only. `sent_version` is
    the cache's version when the request left; 0 is the version of a new cache. `sent_hints` is the
    number of the cache's last hint at that time. request() of the cache fills in both; None means
    that the cache treats the request as if it had left just now. `reason` is the caller's own text
    that says why it asks: see reason() of the cache.
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
    """One partition, as the last answer described it.

    `leader` is a broker id, None if the partition is leaderless. `leader_epoch` is None if the
    answer did not say it, or was not reliable (before Metadata v9). The lists hold broker ids;
    `replicas` begins with the preferred leader. `error` is Kafka's code, 0 for none. `unreachable`
    says that the leader is not among the brokers now; each lookup computes it. That happens, as
    KRaft names a leader without checking whether it is fenced, and is a reason to refresh.
    `leaderless` says that there is no leader now, even if `allow_stale` put the last one into
    `leader`. `error` need not give the reason.
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
    """One topic, as the last answer described it, with its partitions in the order of their ids.

    `error` is Kafka's code, 0 for none. `operations` is KIP-430's bit field, None if the request
    did not ask for it. `version` is the cache's version at which the topic last changed.
    """

    name: str
    topic_id: str | None
    internal: bool
    partitions: tuple[Partition, ...]
    error: int = 0
    operations: int | None = None
    version: int = 0


class Health(NamedTuple):
    """How many partitions are in which state, and what each broker has: see health() of the cache.

    `topics` counts topics, and `replicas` the replicas of all partitions. These count partitions:
    `leaderless` has no leader now, `under_replicated` an ISR that is shorter than its replicas,
    `offline` a replica that is offline. `non_preferred` has another leader than its first replica.

    `leaders` and `replicas_on` have the same keys: the id of each known broker, and of each one
    that a partition names. The values count the partitions that the broker leads, and those that
    have a replica on it.
    """

    topics: int
    partitions: int
    replicas: int
    leaderless: int
    under_replicated: int
    offline: int
    non_preferred: int
    leaders: dict[int, int]
    replicas_on: dict[int, int]


class Change(NamedTuple):
    """One difference between two versions, as Python, Arrow, Parquet and Spark show it.

    `source` is one of poll, hint, log, expiry, purge; `kind` says which of the other fields apply.
    Every version of a cache has at least one record. `observed_at` is in UTC. `session` names one
    life of a cache.
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
    old_offline: tuple[int, ...] | None
    new_offline: tuple[int, ...] | None
    partition_epoch: int | None
    broker_epoch: int | None
    new_adding: tuple[int, ...] | None
    new_removing: tuple[int, ...] | None
    new_elr: tuple[int, ...] | None
    unseen_us: int | None
    # tools/change_table.py: end


class Arrow(Protocol):
    """A table that can be exported to Arrow any number of times, without pyarrow.

    The other methods are those of a cache's tables: they need the packages of their names.
    """

    @property
    def schema(self) -> Any: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ChangeRecords(Arrow, Protocol):
    """Change records that read() turns into Python objects."""

    def __len__(self) -> int: ...
    def read(self) -> tuple[Change, ...]: ...


class Changes:
    """Changes in order, up to the version `until`.

    `resync` is True if the cache no longer holds all changes asked for. Then there are none here,
    and the caller must read the whole state anew, as of `until`. A cache's records become Python
    objects when they are first read; `to_arrow()` never makes any.
    """

    __slots__ = ("_made", "_records", "resync", "until")

    def __init__(
        self, records: tuple[Change, ...] | ChangeRecords, until: int, resync: bool
    ) -> None:
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
        """Returns the records as a table for Arrow; its columns are the fields of Change.

        Raises TypeError for changes that did not come from a cache or from images.
        """
        if isinstance(self._records, tuple):
            raise TypeError(
                "these changes are no table for Arrow: take them from a cache or from images"
            )
        return self._records

    def __iter__(self) -> Iterator[Change]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<{len(self)} changes until={self.until} resync={self.resync}>"

    def _repr_html_(self) -> str | None:
        """Returns the first changes as HTML, for notebooks; None without pyarrow."""
        if isinstance(self._records, tuple):
            return html_table(Change._fields, self._records, len(self))
        return arrow_html(self._records)


class Advice(IntFlag):
    """The actions that a client should take after a refresh."""

    NONE = 0
    ASK_AGAIN = 1
    ASK_OTHER = 2
    ASK_BY_NAME = 4
    REBOOTSTRAP = 8


class DueReason(IntFlag):
    """Why a topic needs another answer. A reason holds until a later answer clears it."""

    NO_LEADER = 1
    """A partition has no leader now."""
    UNREACHABLE = 2
    """The leader of a partition is not among the brokers."""
    KEPT_BACK = 4
    """An answer was kept back. The last one about the topic was older, wholly or in part: an epoch,
    an id, a shorter list. Or it had an error that says nothing of the topic."""
    ASK_BY_NAME = 8
    """A broker does not know the topic's id: ask by name."""
    ABSENT = 16
    """A broker does not have the topic any more, within its grace time."""
    DENIED = 32
    """The topic was denied, and that answer is past its TTL."""


class Due(NamedTuple):
    """A topic that needs another answer, with all its reasons: see due() of the cache."""

    topic: str
    reasons: DueReason


class Applied(NamedTuple):
    """The effects of a refresh.

    `version` is the cache's version afterwards. These count topics: `changed` (removals included),
    `topics` (all in the answer), `unchanged` and `kept_back` (the cached state won). These too:
    `negative` (unknown, denied, invalid) and `absent` (missing from an all-topics answer). These
    count partitions: `leaderless`, its part `listener_not_found` (error 72), and `unreachable` (the
    leader is not among the brokers). `throttle_ms` is KIP-219's throttle time. `error` is the
    top-level code (Metadata v13), 0 for none. `cluster_operations` is the bit field of what the
    principal may do with the cluster (KIP-430), None unless fetch() asked for it.
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
    cluster_operations: int | None = None
