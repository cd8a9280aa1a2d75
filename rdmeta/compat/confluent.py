"""`list_topics()` of confluent-kafka's clients, over a cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rdmeta._core import DENIED, INVALID, NOT_CACHED, STALE, WAITING, Attached, Image, Reading
from rdmeta.compat._reading import CODES, answers, image_of, leader_of, wait
from rdmeta.errors import RequestTimedOutError, error_name
from rdmeta.model import Topic

__all__ = ["ClusterLister", "list_topics"]

_TIMED_OUT = -185
_LEADER_NOT_AVAILABLE = 5
# The states of a topic that some answer has described.
_KNOWN = (0, STALE, *CODES)
# Seconds before an unknown topic is asked for again: the first time, and at most.
_BACKOFF_S = 0.1, 1.0
# After so many answers without the topic that was asked for, brokers answer it with an error.
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
    """ClusterMetadata and the objects in it, where confluent-kafka is not installed."""


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
    """A KafkaException with the KafkaError _TIMED_OUT, and rdmeta's own error as well."""


class ClusterLister:
    """Has the `list_topics` and `cluster_id` of Producer, Consumer and AdminClient.

    While the cache does not know a topic, the lister calls `refresh` with its name, or with None
    for all topics, again and again. There the user can wake the code that feeds the cache.
    """

    def __init__(
        self, cache: Reading, refresh: Callable[[str | None], object] | None = None
    ) -> None:
        self.cache = cache
        self._refresh = refresh
        self._in_creation: set[str] = set()  # the cache keeps nothing about these

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Returns a ClusterMetadata of one topic, or of all.

        The call waits up to `timeout` seconds for an answer about the topic. Without a topic it
        waits for any broker. -1 is no limit. Then it raises KafkaException with _TIMED_OUT, which
        is a RequestTimedOutError as well. It raises at once if no answer can arrive, as in an
        image.

        A topic that does not exist, or that this client may not see, is in the result with its
        `error`. A topic that an all-topics answer omits has UNKNOWN_TOPIC_OR_PART at once, if that
        answer is valid and newer than the last call of `refresh`. Such a topic may also be denied.
        While a topic is created, brokers answer with an error that the cache does not keep. Such a
        topic has LEADER_NOT_AVAILABLE; that needs `refresh`. The result for all topics includes
        denied and invalid ones, with their errors. It also includes the topics that this object
        found in creation, until an answer says more. It does not include topics that do not exist.
        """
        image, known = self._wait(topic, timeout)
        found = _types.ClusterMetadata()
        found.cluster_id = image.cluster_id
        found.controller_id = _id(image.controller)
        found.brokers = {b.id: _broker(b.id, b.host, b.port) for b in image.brokers}
        if topic is None:
            found.topics = self._all(image)
        else:
            found.topics = {topic: _one(image, topic) if known else self._in_creation_topic(topic)}
        _set_origin(found, image)
        return found

    def cluster_id(self, timeout: float = -1) -> str | None:
        """Returns the cluster's id; `timeout` is that of list_topics()."""
        return self._wait(None, timeout)[0].cluster_id

    def _state(self, image: Reading, topic: str) -> int:
        state = image.state(topic)
        if state in CODES and isinstance(self.cache, Attached):
            state = self.cache.state(topic)  # no time passes in its image, so denials never end
        return state

    def _known(self, image: Reading, topic: str | None) -> bool:
        if topic is None:
            return bool(image.brokers)
        return self._state(image, topic) in _KNOWN

    def _wait(self, topic: str | None, timeout: float) -> tuple[Reading, bool]:
        """Returns an image for the result, and whether the topic is known in it.

        The topic is not known if brokers answer without describing it. Raises TimedOutError.
        """
        end = time.monotonic() + timeout
        again, pause, most = 0.0, *_BACKOFF_S
        answer_at_request, silent, version = None, 0, 0
        asks = self._refresh is not None and not isinstance(self.cache, Image)
        # The last answer about all topics before `refresh` was called.
        before = self.cache._full_answer() if asks else None
        while True:
            full = self.cache._full_answer()  # read first, so that the image is at least as new
            image = image_of(self.cache)
            if self._known(image, topic) or (
                topic is not None
                and full not in (None, before)
                and self._state(image, topic) == NOT_CACHED
                and self.cache.state(topic) == NOT_CACHED  # an image does not show hints
            ):
                return image, True
            now = time.monotonic()
            if self._refresh is not None and now >= again:
                if answer_at_request is not None and answers(self.cache) != answer_at_request:
                    silent += topic is not None and self.cache.state(topic) != WAITING
                if silent == _SILENT_ANSWERS:
                    image = image_of(self.cache)  # the last answer may have described it just now
                    return image, self._known(image, topic)
                answer_at_request, before = answers(self.cache), full
                self._refresh(topic)
                again, pause = now + pause, min(2 * pause, most)
                continue
            if isinstance(self.cache, Image) or timeout >= 0 and now >= end:
                raise self._timed_out(topic)
            version = wait(self.cache, version, None if timeout < 0 else max(end - now, 0))

    def _timed_out(self, topic: str | None) -> TimedOutError:
        what = "a broker" if topic is None else f"topic {topic!r}"
        never = isinstance(self.cache, Image)
        why = "is not in the image, which gets no answers" if never else "was not known in time"
        return TimedOutError(_error_type(_TIMED_OUT, f"{what} {why}"))

    def _all(self, image: Reading) -> dict[str, Any]:
        """Returns every topic, as the last answers described it."""
        found = {t.name: _topic(t) for t in image.topics(allow_stale=True)}
        for state in (DENIED, INVALID):
            for name in image.names(state=state):
                if self._known(image, name):
                    found.setdefault(name, _missing(name, CODES[state]))
        for name in tuple(self._in_creation):
            if self._known(image, name):
                self._in_creation.discard(name)
            else:
                found.setdefault(name, _missing(name, _LEADER_NOT_AVAILABLE))
        return found

    def _in_creation_topic(self, topic: str) -> Any:
        self._in_creation.add(topic)
        return _missing(topic, _LEADER_NOT_AVAILABLE)


def list_topics(cache: Reading, topic: str | None = None, timeout: float = -1) -> Any:
    """Returns `ClusterLister(cache).list_topics(topic, timeout)`."""
    return ClusterLister(cache).list_topics(topic, timeout)


def _one(image: Reading, topic: str) -> Any:
    """Returns a topic that is known."""
    code = CODES.get(image.state(topic))
    found = None if code else image.topic(topic, None, allow_stale=True)
    return _missing(topic, code or 3) if found is None else _topic(found)


def _set_origin(found: Any, image: Reading) -> None:
    """Sets the broker whose answer described the topic; for all topics, the first one's broker."""
    known = next((t.topic for t in found.topics.values() if t.error is None), None)
    origin = None if known is None else image.source(known)
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
    """Returns a topic with nothing but an error."""
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
