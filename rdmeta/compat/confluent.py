"""`list_topics()` of confluent-kafka's clients, over a cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rdmeta._core import DENIED, INVALID, NOT_CACHED, STALE, WAITING, Attached, Image, Reading
from rdmeta.compat._reading import CODES, answers, hold, leader_of, wait
from rdmeta.errors import RequestTimedOutError, error_name
from rdmeta.model import Topic

__all__ = ["ClusterLister", "list_topics"]

_TIMED_OUT = -185
_LEADER_NOT_AVAILABLE = 5
# What state() says of a topic that somebody has told of.
_KNOWN = (0, STALE, *CODES)
# Until a topic that is still not known is asked for again: at first, and at most, in seconds.
_BACKOFF_S = 0.1, 1.0
# So many answers without a word of it after it was asked for: they say it with an error.
_SILENT_ANSWERS = 2


class _PlainError:
    """KafkaError, where confluent-kafka is not installed."""

    def __init__(self, code: int, reason: str = "") -> None:
        self._code = code
        self._reason = reason or error_name(code)

    def code(self) -> int:
        return self._code

    def name(self) -> str:
        return error_name(self._code)

    def __str__(self) -> str:
        return self._reason


class _Plain:
    """ClusterMetadata and what is in it, where confluent-kafka is not installed."""


_error_type: Any
_exception_type: Any
_types: Any
try:
    from confluent_kafka import KafkaError as _error_type
    from confluent_kafka import KafkaException as _exception_type
    from confluent_kafka import admin as _types
except ImportError:
    _error_type, _exception_type = _PlainError, Exception
    _types = SimpleNamespace(
        BrokerMetadata=_Plain,
        ClusterMetadata=_Plain,
        PartitionMetadata=_Plain,
        TopicMetadata=_Plain,
    )


class TimedOutError(RequestTimedOutError, _exception_type):  # type: ignore[misc]
    """A KafkaException of a KafkaError, _TIMED_OUT, and rdmeta's own error as well."""


class ClusterLister:
    """Has `list_topics` and `cluster_id` as Producer, Consumer and AdminClient have them.

    `refresh` is called with a topic's name, or None for all, when the cache does not know it, and
    again as long as it does not: whoever feeds the cache can be woken there.
    """

    def __init__(
        self, cache: Reading, refresh: Callable[[str | None], object] | None = None
    ) -> None:
        self.cache = cache
        self._refresh = refresh
        self._in_the_making: set[str] = set()  # what a cache keeps nothing of

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """A ClusterMetadata of one topic, or of all.

        `timeout` seconds are waited for a topic that no broker has told of yet, or, without one,
        for any broker; -1 is no limit. After them KafkaException with _TIMED_OUT, which is a
        RequestTimedOutError as well; at once where nothing can come, as in an image.

        A topic that does not exist, or may not be seen, is there with its `error`. One that an
        answer about all topics left out is UNKNOWN_TOPIC_OR_PART at once, as long as that answer is
        valid and newer than the last call of `refresh`; it may as well be denied. One about which
        brokers answer with an error that a cache does not keep, as they do while it is created, has
        LEADER_NOT_AVAILABLE; that takes `refresh`. Among all topics are those that are denied or
        invalid, with their errors, those that this object found in the making as long as no broker
        says more of them, and not those that do not exist.
        """
        held, answered = self._wait(topic, timeout)
        found = _types.ClusterMetadata()
        found.cluster_id = held.cluster_id
        found.controller_id = _id(held.controller)
        found.brokers = {b.id: _broker(b.id, b.host, b.port) for b in held.brokers}
        if topic is None:
            found.topics = self._all(held)
        else:
            found.topics = {topic: _one(held, topic) if answered else self._unsaid(topic)}
        _set_origin(found, held)
        return found

    def cluster_id(self, timeout: float = -1) -> str | None:
        """The cluster's id; `timeout` as of list_topics()."""
        return self._wait(None, timeout)[0].cluster_id

    def _state(self, held: Reading, topic: str) -> int:
        state = held.state(topic)
        if state in CODES and isinstance(self.cache, Attached):
            state = self.cache.state(topic)  # no time passes in its image: that denies for ever
        return state

    def _known(self, held: Reading, topic: str | None) -> bool:
        if topic is None:
            return bool(held.brokers)
        return self._state(held, topic) in _KNOWN

    def _wait(self, topic: str | None, timeout: float) -> tuple[Reading, bool]:
        """What is held for the answer, and whether it is known there. TimedOutError.

        It is not where brokers answer, and do not say.
        """
        end = time.monotonic() + timeout
        again, pause, most = 0.0, *_BACKOFF_S
        asked_at, silent, version = None, 0, 0
        asks = self._refresh is not None and not isinstance(self.cache, Image)
        # The last answer about all topics before `refresh` was called.
        before = self.cache._full_answer() if asks else None
        while True:
            full = self.cache._full_answer()  # read first: what is held is as new at least
            held = hold(self.cache)
            if self._known(held, topic) or (
                topic is not None
                and full not in (None, before)
                and self._state(held, topic) == NOT_CACHED
                and self.cache.state(topic) == NOT_CACHED  # what is held tells no hints
            ):
                return held, True
            now = time.monotonic()
            if self._refresh is not None and now >= again:
                if asked_at is not None and answers(self.cache) != asked_at:
                    silent += topic is not None and self.cache.state(topic) != WAITING
                if silent == _SILENT_ANSWERS:
                    held = hold(self.cache)  # the last of them may have said it just now
                    return held, self._known(held, topic)
                asked_at, before = answers(self.cache), full
                self._refresh(topic)
                again, pause = now + pause, min(2 * pause, most)
                continue
            if isinstance(self.cache, Image) or timeout >= 0 and now >= end:
                raise self._timed_out(topic)
            version = wait(self.cache, version, None if timeout < 0 else max(end - now, 0))

    def _timed_out(self, topic: str | None) -> TimedOutError:
        what = "a broker" if topic is None else f"topic {topic!r}"
        never = isinstance(self.cache, Image)
        why = "is not there, and nothing can come" if never else "did not come in time"
        return TimedOutError(_error_type(_TIMED_OUT, f"{what} {why}"))

    def _all(self, held: Reading) -> dict[str, Any]:
        """Every topic, as last told."""
        found = {t.name: _topic(t) for t in held.topics(allow_stale=True)}
        for state in (DENIED, INVALID):
            for name in held.names(state=state):
                if self._known(held, name):
                    found.setdefault(name, _missing(name, CODES[state]))
        for name in tuple(self._in_the_making):
            if self._known(held, name):
                self._in_the_making.discard(name)
            else:
                found.setdefault(name, _missing(name, _LEADER_NOT_AVAILABLE))
        return found

    def _unsaid(self, topic: str) -> Any:
        self._in_the_making.add(topic)
        return _missing(topic, _LEADER_NOT_AVAILABLE)


def list_topics(cache: Reading, topic: str | None = None, timeout: float = -1) -> Any:
    """`ClusterLister(cache).list_topics(topic, timeout)`."""
    return ClusterLister(cache).list_topics(topic, timeout)


def _one(held: Reading, topic: str) -> Any:
    """A topic that is known."""
    code = CODES.get(held.state(topic))
    found = None if code else held.topic(topic, None, allow_stale=True)
    return _missing(topic, code or 3) if found is None else _topic(found)


def _set_origin(found: Any, held: Reading) -> None:
    """Which broker said it; of all topics, the one that told of the first."""
    known = next((t.topic for t in found.topics.values() if t.error is None), None)
    origin = None if known is None else held.source(known)
    found.orig_broker_id = _id(origin)
    broker = found.brokers.get(origin)
    found.orig_broker_name = broker and f"{broker.host}:{broker.port}/{broker.id}"


def _id(value: int | None) -> int:
    return -1 if value is None else value


def _error(code: int) -> Any:
    return _error_type(code) if code else None


def _broker(id: int, host: str, port: int) -> Any:
    broker = _types.BrokerMetadata()
    broker.id, broker.host, broker.port = id, host, port
    return broker


def _missing(topic: str, code: int) -> Any:
    """A topic of which nothing is known but an error."""
    missing = _types.TopicMetadata()
    missing.topic, missing.partitions, missing.error = topic, {}, _error_type(code)
    return missing


def _topic(topic: Topic) -> Any:
    found = _types.TopicMetadata()
    found.topic, found.error, found.partitions = topic.name, _error(topic.error), {}
    for p in topic.partitions:
        partition = found.partitions[p.partition] = _types.PartitionMetadata()
        partition.id, partition.leader = p.partition, leader_of(p)
        partition.replicas, partition.isrs = list(p.replicas), list(p.isr)
        partition.error = _error(p.error)
    return found
