"""The values that lookups, changes and refreshes hand out: immutable, absent is None.

A topic id is Kafka's own spelling of a UUID: 22 characters of URL-safe base64, None if unknown.
"""

from __future__ import annotations

from datetime import datetime
from enum import IntFlag
from typing import NamedTuple

__all__ = ["Advice", "Applied", "Broker", "Change", "Partition", "Topic", "TopicPartition"]


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
    not say (before Metadata v7). The lists hold broker ids, `replicas` with the preferred leader
    first. `error` is Kafka's code, 0 for none.
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


class Topic(NamedTuple):
    """One topic as last answered, partitions in the order of their ids.

    `error` is Kafka's code, 0 for none. `operations` is KIP-430's bit field, None if not asked
    for.
    """

    name: str
    topic_id: str | None
    internal: bool
    partitions: tuple[Partition, ...]
    error: int = 0
    operations: int | None = None


class Change(NamedTuple):
    """One thing that differed, as it appears in Python, Arrow, Parquet and Spark.

    `source` is one of poll, hint, log, expiry, purge; `kind` says which of the other fields
    apply. `observed_at` is in UTC. `session` names one life of a cache.
    """

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
    `listener_not_found` for error 72. `throttle_ms` is KIP-219's; `error` is the top-level code
    (Metadata v13), 0 for none.
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
    brokers_changed: bool
    advice: Advice
    throttle_ms: int
    error: int
