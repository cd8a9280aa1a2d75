"""`list_topics()` of confluent-kafka's clients, over a cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rdmeta._core import DENIED, INVALID, UNKNOWN_TOPIC, MetadataCache, Reading
from rdmeta.errors import RequestTimedOutError, error_name
from rdmeta.model import Topic

__all__ = ["ClusterLister", "list_topics"]

# Kafka's codes for what state() says.
_CODES = {UNKNOWN_TOPIC: 3, DENIED: 29, INVALID: 17}


class _PlainError:
    """KafkaError, where confluent-kafka is not installed."""

    def __init__(self, code: int) -> None:
        self._code = code

    def code(self) -> int:
        return self._code

    def name(self) -> str:
        return error_name(self._code)

    __str__ = name


class _Plain:
    """ClusterMetadata and what is in it, where confluent-kafka is not installed."""


_error_type: Any
_types: Any
try:
    from confluent_kafka import KafkaError as _error_type
    from confluent_kafka import admin as _types
except ImportError:
    _error_type = _PlainError
    _types = SimpleNamespace(
        BrokerMetadata=_Plain,
        ClusterMetadata=_Plain,
        PartitionMetadata=_Plain,
        TopicMetadata=_Plain,
    )


class ClusterLister:
    """Has `list_topics` and `cluster_id` as Producer, Consumer and AdminClient have them.

    `refresh` is called with a topic's name, or None for all, when the cache does not know it:
    whoever feeds the cache can be woken there.
    """

    def __init__(
        self, cache: Reading, refresh: Callable[[str | None], object] | None = None
    ) -> None:
        self.cache = cache
        self._refresh = refresh

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """A ClusterMetadata of one topic, or of all.

        `timeout` seconds are waited for a topic that no broker has told of yet, or, without one,
        for any broker; -1 is no limit. RequestTimedOutError after them; at once where nothing can
        come, as in an image. A topic that does not exist is there with its `error`.
        """
        self._wait(topic, timeout)
        found = _types.ClusterMetadata()
        found.cluster_id = self.cache.cluster_id
        found.controller_id = _id(self.cache.controller)
        found.brokers = {b.id: _broker(b.id, b.host, b.port) for b in self.cache.brokers}
        if topic is None:
            found.topics = {t.name: _topic(t) for t in self._all()}
        else:
            found.topics = {topic: self._one(topic)}
        self._origin(found)
        return found

    def cluster_id(self, timeout: float = -1) -> str | None:
        """The cluster's id; `timeout` as of list_topics()."""
        self._wait(None, timeout)
        return self.cache.cluster_id

    def _known(self, topic: str | None) -> bool:
        if topic is None:
            return bool(self.cache.brokers)
        return (
            self.cache.state(topic) in _CODES
            or self.cache.topic(topic, None, allow_stale=True) is not None
        )

    def _wait(self, topic: str | None, timeout: float) -> None:
        """Return when it is known. RequestTimedOutError."""
        if not self._known(topic) and self._refresh is not None:
            self._refresh(topic)
        end = time.monotonic() + timeout
        while True:
            live = isinstance(self.cache, MetadataCache)
            version = self.cache.version
            if self._known(topic):
                return
            left = None if timeout < 0 else max(end - time.monotonic(), 0)
            if not isinstance(self.cache, MetadataCache) or left == 0:
                what = "a broker" if topic is None else f"topic {topic!r}"
                why = "did not come in time" if live else "is not there, and nothing can come"
                raise RequestTimedOutError(f"{what} {why}")
            self.cache.wait_change(version, left)

    def _all(self) -> list[Topic]:
        """Every topic, as last told."""
        found = self.cache.topics()
        valid = {topic.name for topic in found}
        stale = [name for name in self.cache.names(allow_stale=True) if name not in valid]
        old = [self.cache.topic(name, None, allow_stale=True) for name in stale]
        return found + [topic for topic in old if topic is not None]

    def _one(self, topic: str) -> Any:
        code = _CODES.get(self.cache.state(topic))
        found = None if code else self.cache.topic(topic, None)
        if found is None and not code:
            found = self.cache.topic(topic, None, allow_stale=True)
        if found is not None:
            return _topic(found)
        missing = _types.TopicMetadata()
        missing.topic, missing.partitions = topic, {}
        missing.error = _error_type(code or 3)
        return missing

    def _origin(self, found: Any) -> None:
        """Which broker said it; of all topics, the one that told of the first."""
        known = next((t.topic for t in found.topics.values() if t.error is None), None)
        origin = None if known is None else self.cache.source(known)
        found.orig_broker_id = _id(origin)
        broker = found.brokers.get(origin)
        found.orig_broker_name = broker and f"{broker.host}:{broker.port}/{broker.id}"


def list_topics(cache: Reading, topic: str | None = None, timeout: float = -1) -> Any:
    """`ClusterLister(cache).list_topics(topic, timeout)`."""
    return ClusterLister(cache).list_topics(topic, timeout)


def _id(value: int | None) -> int:
    return -1 if value is None else value


def _error(code: int) -> Any:
    return _error_type(code) if code else None


def _broker(id: int, host: str, port: int) -> Any:
    broker = _types.BrokerMetadata()
    broker.id, broker.host, broker.port = id, host, port
    return broker


def _topic(topic: Topic) -> Any:
    found = _types.TopicMetadata()
    found.topic, found.error, found.partitions = topic.name, _error(topic.error), {}
    for p in topic.partitions:
        partition = found.partitions[p.partition] = _types.PartitionMetadata()
        partition.id, partition.leader = p.partition, _id(p.leader)
        partition.replicas, partition.isrs = list(p.replicas), list(p.isr)
        partition.error = _error(p.error)
    return found
