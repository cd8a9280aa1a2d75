"""The common base of the `ClusterMetadata` classes for kafka-python and for aiokafka.

It differs from theirs in two rules: an answer about some topics does not drop the others, and an
older leader epoch does not win. As in theirs, a lookup of one topic returns it also when it is
stale. The partitions of a broker are those of valid topics.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, ClassVar, Protocol

from rdmeta._core import DENIED, NOT_CACHED, WAITING, MetadataCache, Reading, _head_in
from rdmeta.compat._reading import answers, image_of, leader_of, stale_topics, wait
from rdmeta.errors import (
    Error,
    InvalidTopicError,
    NoBrokersError,
    NotCachedError,
    TopicAuthorizationError,
    UnknownTopicError,
)
from rdmeta.model import Partition, Request, Topic, topic_fault

log = logging.getLogger(__name__)

# The errors of a lookup that finds no topic.
NO_TOPIC = (NotCachedError, UnknownTopicError, TopicAuthorizationError, InvalidTopicError)


class Named(Protocol):
    """Any library's TopicPartition."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...


class ClusterShape:
    """Lookups in a reading, and notifications of its updates.

    request_update() calls `refresh` in its caller's thread with the wanted topics, None for all.
    There the user can wake the code that feeds the cache. Without `refresh` other code feeds the
    cache, and request_update() only waits for the next answer. With `allow_stale`
    partitions_for_broker() includes stale topics.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {
        "retry_backoff_ms": 100,
        "metadata_max_age_ms": 300000,
        "bootstrap_servers": [],
    }

    def __init__(
        self,
        cache: Reading,
        refresh: Callable[[set[str] | None], object] | None = None,
        *,
        allow_stale: bool = False,
        **configs: Any,
    ) -> None:
        self.cache = cache
        self.allow_stale = allow_stale
        self.config = {key: configs.get(key, value) for key, value in self.DEFAULT_CONFIG.items()}
        self.need_all_topic_metadata = False
        self._refresh = refresh
        self._topics: set[str] = set()
        # For each listener: the function that calls it, and the last answer when it was added.
        self._listeners: dict[Any, tuple[Callable[[], None], object]] = {}
        self._future: Any = None
        self._requested = False
        # The first request since the last answer; it has the version and the number of hints.
        self._sent: Request | None = None
        self._answer_at_request: object = None  # the last answer when the update was requested
        self._reported: object = None  # the last answer that listeners were notified of
        self._denied: set[str] = set()
        self._lock = threading.Lock()
        self._watching = False
        _shapes.add(self)
        self._bootstrap_brokers = {
            f"bootstrap-{i}": self._broker(f"bootstrap-{i}", host, port, None)
            for i, (host, port) in enumerate(self._hosts(self.config["bootstrap_servers"]))
        }

    # ---- the library's own types ------------------------------------------------------------

    def _broker(self, id: int | str, host: str, port: int, rack: str | None) -> Any:
        raise NotImplementedError

    def _hosts(self, servers: str | Iterable[str]) -> list[tuple[str, int]]:
        """Returns the host and the port of each bootstrap server."""
        raise NotImplementedError

    def _topic_partition(self, topic: str, partition: int) -> Any:
        raise NotImplementedError

    def _new_future(self) -> Any:
        raise NotImplementedError

    def _complete(self, future: Any, error: BaseException | None) -> None:
        """Ends a future, unless its owner has ended it."""
        raise NotImplementedError

    def _is_over(self, future: Any) -> bool:
        raise NotImplementedError

    # ---- lookups ----------------------------------------------------------------------------
    # A writer may change the cache meanwhile: each lookup reads once, or reads one image.

    def _topic(self, name: str) -> Topic | None:
        return self.cache.topic(name, None, allow_stale=True)

    def _partition(self, of: Named) -> Partition | None:
        return self.cache.partition(of.topic, of.partition, None, allow_stale=True)

    def _known_brokers(self) -> list[Any]:
        return [self._broker(*broker) for broker in self.cache.brokers]

    def broker_metadata(self, broker_id: int | str) -> Any:
        """Returns a broker by its id, or a bootstrap server by "bootstrap-0" ...; else None."""
        return self._broker_in(self.cache, broker_id)

    def _broker_in(self, reading: Reading, broker_id: int | str) -> Any:
        if not isinstance(broker_id, int):
            return self._bootstrap_brokers.get(broker_id)
        found = reading.broker(broker_id, None)
        return None if found is None else self._broker(*found)

    def is_bootstrap(self, node_id: int | str) -> bool:
        """Returns whether an id is that of a bootstrap server."""
        return node_id in self._bootstrap_brokers

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Returns the ids of a topic's partitions, None if the topic is not known."""
        found = self._topic(topic)
        return None if found is None else {p.partition for p in found.partitions}

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Returns the ids of the partitions that have a leader, None if the topic is not known."""
        found = self._topic(topic)
        if found is None:
            return None
        return {p.partition for p in found.partitions if leader_of(p) >= 0}

    def leader_for_partition(self, partition: Named) -> int | None:
        """Returns the leader's id, -1 if leaderless, None if the partition is not known."""
        found = self.cache.leader(partition.topic, partition.partition, None)
        if found is not None:
            return found
        known = self._partition(partition)
        return None if known is None else leader_of(known)

    def partitions_for_broker(self, broker_id: int | str) -> set[Any] | None:
        """Returns the partitions that a broker leads, None if there are none.

        These are partitions of valid topics, with `allow_stale` also of stale ones.
        """
        if not isinstance(broker_id, int):
            return None
        names = self._partitions_led_by(self.cache, broker_id)
        return {self._topic_partition(*name) for name in names} or None

    def _partitions_led_by(self, reading: Reading, broker_id: int) -> set[tuple[str, int]]:
        if not self.allow_stale:
            return {*reading.partitions_on(broker_id)}
        reading = image_of(reading)
        names: set[tuple[str, int]] = {*reading.partitions_on(broker_id)}
        for topic in stale_topics(reading):
            names |= {(p.topic, p.partition) for p in topic.partitions if leader_of(p) == broker_id}
        return names

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Returns the names of the known topics."""
        internal = False if exclude_internal_topics else None
        return set(self.cache.names(internal=internal, allow_stale=True))

    @property
    def internal_topics(self) -> set[str]:
        """Kafka's own topics."""
        return set(self.cache.names(internal=True, allow_stale=True))

    @property
    def unauthorized_topics(self) -> set[str]:
        """Topics that this client may not see, until an answer says otherwise.

        The cache forgets a denial after its `denied_ttl`; this object remembers the denials that it
        saw. It looks at each answer while it has a listener or a waiter, and at each call.
        """
        return self._note_denied()

    def _note_denied(self) -> set[str]:
        silent, image = (DENIED, NOT_CACHED, WAITING), image_of(self.cache)
        before = self._denied
        kept = {topic for topic in before if image.state(topic) in silent}
        self._denied = kept | set(image.names(state=DENIED))
        return set(self._denied)

    @property
    def controller(self) -> Any:
        """The controller's broker, None if not known; on KRaft any live broker."""
        image = image_of(self.cache)
        found = image.controller
        return None if found is None else self._broker_in(image, found)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, None if not known."""
        return self.cache.cluster_id

    # ---- updates ----------------------------------------------------------------------------

    def set_topics(self, topics: Iterable[str]) -> Any:
        """Sets the topics that request_update() asks for.

        Returns a future, which is done if none of the topics is new. Raises TypeError and
        ValueError for a name that Kafka does not allow.
        """
        wanted = {topic_name(topic) for topic in topics}
        if wanted <= self._topics:
            return self._finished_future()
        self._topics = wanted
        return self.request_update()

    def add_topic(self, topic: str) -> Any:
        """Adds one topic; returns a future, which is done if the topic is not new."""
        return self.set_topics(self._topics | {topic_name(topic)})

    def _finished_future(self) -> Any:
        future = self._new_future()
        self._complete(future, None)
        return future

    @property
    def _need_update(self) -> bool:
        return self._requested or not self.cache.brokers

    def ttl(self) -> float:
        """Returns the milliseconds until a refresh is due, 0 for now."""
        if self._need_update:
            return 0
        age = self.cache.age()
        if age is None:  # without an all-topics answer the oldest wanted topic counts
            age = max(map(self._age, self._topics), default=0.0)
        return float(max(self.config["metadata_max_age_ms"] - 1000 * age, 0))

    def _age(self, topic: str) -> float:
        """Returns the age of a topic, 0 if the topic is not known."""
        try:
            return self.cache.age(topic)
        except NO_TOPIC:
            return 0.0

    def refresh_backoff(self) -> float:
        """Returns the milliseconds to wait after a failed refresh."""
        return float(self.config["retry_backoff_ms"])

    def request_update(self) -> Any:
        """Asks for a refresh; returns a future whose value is this object after the next answer.

        An earlier answer does not end the future. kafka-python's future fails with the topic's
        error, if one topic was asked for and has an error. A future over an image never ends, as
        an image gets no answers. In the child of a fork it fails with ForkedError, as the cache
        gets no answers there.
        """
        with self._lock:
            news = self._news()  # earlier answers end the futures of earlier requests
            self._requested = True
            self._answer_at_request = answer_at_request = answers(self.cache)
            if self._future is None or self._is_over(self._future):
                self._future = self._new_future()
            future = self._future
        self._watch(answer_at_request)
        self._notify(*news)
        if self._refresh is not None:
            wanted = None if self.need_all_topic_metadata or not self._topics else self._topics
            self._refresh(wanted and set(wanted))
        return future

    def update_metadata(self, metadata: Any) -> None:
        """Applies an answer that the library has decoded to the cache and notifies the listeners.

        The library does not say which broker gave the answer. If the answer lists a single broker,
        that broker gave it.
        """
        if not isinstance(self.cache, MetadataCache):
            raise TypeError(
                f"{type(self.cache).__name__} cannot be written to: pass a MetadataCache"
            )
        body = self._encode(metadata)
        _, listed, _ = _head_in(body, metadata.API_VERSION)
        broker = listed[0].id if len(listed) == 1 else None
        sent, self._sent = self._sent or Request(), None
        asked = sent if self.need_all_topic_metadata else None
        try:
            with self._lock:  # so that the watching thread does not report the answer as well
                self.cache.apply(
                    body,
                    metadata.API_VERSION,
                    asked,
                    broker,
                    sent_version=sent.sent_version,
                    sent_hints=sent.sent_hints,
                )
                news = self._news()
        except NoBrokersError as error:
            self.failed_update(self._no_brokers_error(metadata, error))
        except Error as error:
            self.failed_update(error)
        else:
            self._notify(*news, metadata)

    def _encode(self, metadata: Any) -> bytes:
        raise NotImplementedError

    def _no_brokers_error(self, metadata: Any, error: NoBrokersError) -> BaseException:
        """Returns the library's error for an answer without brokers."""
        raise NotImplementedError

    def _topic_error(self, metadata: Any = None) -> BaseException | None:
        """Returns the error that ends a request's future after an answer, None for success.

        `metadata` is the answer as the library decoded it, None if it is not available.
        """
        return None

    def failed_update(self, exception: BaseException) -> None:
        """Ends the future of request_update() with an exception."""
        with self._lock:
            future, self._future = self._future, None
            self._sent = None
        if future is not None:
            self._end(future, exception)

    def _end(self, future: Any, error: BaseException | None) -> None:
        """Ends a future; an exception of its callbacks is logged."""
        try:
            self._complete(future, error)
        except Exception:
            log.exception("a callback of request_update()'s future failed")

    def add_listener(self, listener: Callable[[Any], object]) -> None:
        """Makes each update of the cache call `listener(self)` once.

        The call is in the thread that waits for updates, or that called update_metadata(). An
        exception of the listener is logged.
        """
        since = answers(self.cache)
        self._listeners[listener] = self._caller(listener), since
        self._watch(since)

    def _caller(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        """Returns the function that calls a listener; the thread that waits for answers runs it."""
        return lambda: ignore(listener(self))

    def _news(self) -> tuple[Any, tuple[Callable[[], None], ...]]:
        """Returns the future that a new answer ends and the listeners to call, each once.

        The caller holds the lock.
        """
        now, future = answers(self.cache), None
        if now == self._reported:
            return None, ()
        self._reported = now
        if now != self._answer_at_request:
            future, self._future = self._future, None
            self._requested = False
        return future, tuple(call for call, since in self._listeners.values() if now != since)

    def _notify(
        self,
        future: Any,
        listeners: Iterable[Callable[[], None]],
        metadata: Any = None,
    ) -> None:
        """Ends the future and calls the listeners; `metadata` is the decoded answer, if available.

        The caller does not hold the lock, as a listener may call this object.
        """
        self._note_denied()
        if future is not None:
            self._end(future, self._topic_error(metadata))
        for call in listeners:
            try:
                call()
            except Exception:
                log.exception("a listener of ClusterMetadata failed")

    def _watch(self, since: object) -> None:
        """Starts the thread that waits for answers while there is a listener or a future."""
        with self._lock:
            if self._watching:
                return
            self._watching, self._reported = True, since
        arguments = (weakref.ref(self), self.cache)
        threading.Thread(target=_watch, args=arguments, name="rdmeta-compat", daemon=True).start()

    def _notify_news(self) -> bool:
        """Reports a new answer; returns False if there is neither a listener nor a future.

        Then the thread ends.
        """
        with self._lock:
            news = self._news()
        self._notify(*news)
        with self._lock:
            has_waiter = self._future is not None and not self._is_over(self._future)
            self._watching = has_waiter or bool(self._listeners)
            return self._watching

    def _watch_failed(self, error: BaseException) -> None:
        """Fails the future: waiting is impossible. The thread ends; a later request starts one."""
        with self._lock:
            self._watching = False
        self.failed_update(error)

    def _forked(self) -> None:
        """Resets the state in the child of a fork, which has no thread and needs a new lock."""
        self._lock = threading.Lock()
        self._watching, self._future = False, None

    def __str__(self) -> str:
        image = image_of(self.cache)
        return f"ClusterMetadata(brokers: {len(image.brokers)}, topics: {len(image)})"


def topic_name(name: str) -> str:
    """Returns a topic's name if Kafka allows it (org.apache.kafka.common.internals.Topic).

    Raises TypeError and ValueError.
    """
    if not isinstance(name, str):
        raise TypeError(f"a topic's name must be a str, not {type(name).__name__}")
    if fault := topic_fault(name):
        raise ValueError(f"not a legal topic name: {name!r}: {fault}")
    return name


def complete(future: Future[Any], value: object, error: BaseException | None) -> None:
    """Ends a plain future; confirms a cancellation, and leaves a finished future alone."""
    if future.done() and not future.cancelled():
        return
    try:
        if future.set_running_or_notify_cancel():
            future.set_result(value) if error is None else future.set_exception(error)
    except RuntimeError:
        pass  # the cancellation was confirmed before


def ignore(_result: object) -> None:
    """Drops a listener's result, so that a lambda can return None."""


def _watch(reference: weakref.ref[ClusterShape], cache: Reading) -> None:
    """Runs the thread: reports each answer until the object is freed or has no listeners."""
    version = 0
    while True:
        error = None
        try:
            version = wait(cache, version, None)
        except Exception as reason:
            error = reason
        shape = reference()
        if shape is None:
            return
        try:
            if error is not None:
                shape._watch_failed(error)
                return
            if not shape._notify_news():
                return
        except Exception as reason:
            log.exception("the updates of a cache could not be reported")
            shape._watch_failed(reason)
            return
        del shape


_shapes: weakref.WeakSet[ClusterShape] = weakref.WeakSet()


def _forked() -> None:
    for shape in tuple(_shapes):
        shape._forked()


os.register_at_fork(after_in_child=_forked)
