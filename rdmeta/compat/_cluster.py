"""What the `ClusterMetadata` of kafka-python and of aiokafka have in common.

Other than theirs, an answer about some topics does not drop the others, and an older leader epoch
does not win. As with theirs what is past its deadline is served on, to who asks about a topic; what
a broker leads is of topics that are not.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, ClassVar, Protocol

from rdmeta._core import DENIED, NOT_CACHED, WAITING, MetadataCache, Reading, _brokers_in
from rdmeta.compat._reading import answers, hold, leader_of, stale_topics, wait
from rdmeta.errors import (
    Error,
    InvalidTopicError,
    NoBrokersError,
    NotCachedError,
    TopicAuthorizationError,
    UnknownTopicError,
)
from rdmeta.model import Partition, Request, Topic, topic_fault

__all__ = ["ClusterShape", "Named", "settle", "void"]

log = logging.getLogger(__name__)

# What a lookup raises where there is no topic.
NO_TOPIC = (NotCachedError, UnknownTopicError, TopicAuthorizationError, InvalidTopicError)


class Named(Protocol):
    """A TopicPartition, whosever."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...


class ClusterShape:
    """Lookups in a reading, and the news of its updates.

    `refresh` is called by request_update(), in its caller's thread, with the topics that are
    wanted, None for all: whoever feeds the cache can be woken there. Without one somebody else
    feeds it, and request_update() only waits for the next answer. With `allow_stale`
    partitions_for_broker() counts topics past their deadline as well.
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
        # How each is called, and the answer that was the last one when it was added.
        self._listeners: dict[Any, tuple[Callable[[], None], object]] = {}
        self._future: Any = None
        self._requested = False
        # The first request since the last answer, for its version and its hints.
        self._sent: Request | None = None
        self._asked_at: object = None  # the last answer when the update was requested
        self._told: object = None  # the last answer that was told of
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
        """The host and the port of each of the bootstrap servers."""
        raise NotImplementedError

    def _topic_partition(self, topic: str, partition: int) -> Any:
        raise NotImplementedError

    def _new_future(self) -> Any:
        raise NotImplementedError

    def _settle(self, future: Any, error: BaseException | None) -> None:
        """End a future, unless its owner has ended it."""
        raise NotImplementedError

    def _is_over(self, future: Any) -> bool:
        raise NotImplementedError

    # ---- lookups ----------------------------------------------------------------------------
    # Somebody may write meanwhile: each is one reading, or several of what it holds.

    def _topic(self, name: str) -> Topic | None:
        return self.cache.topic(name, None, allow_stale=True)

    def _partition(self, of: Named) -> Partition | None:
        return self.cache.partition(of.topic, of.partition, None, allow_stale=True)

    def _known_brokers(self) -> list[Any]:
        return [self._broker(*broker) for broker in self.cache.brokers]

    def broker_metadata(self, broker_id: int | str) -> Any:
        """A broker by its id, or a bootstrap server by "bootstrap-0" ...; None if not known."""
        return self._broker_in(self.cache, broker_id)

    def _broker_in(self, reading: Reading, broker_id: int | str) -> Any:
        if not isinstance(broker_id, int):
            return self._bootstrap_brokers.get(broker_id)
        found = reading.broker(broker_id, None)
        return None if found is None else self._broker(*found)

    def is_bootstrap(self, node_id: int | str) -> bool:
        """Whether an id is that of a bootstrap server."""
        return node_id in self._bootstrap_brokers

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The ids of a topic's partitions, None if it is not known."""
        found = self._topic(topic)
        return None if found is None else {p.partition for p in found.partitions}

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """The ids of those that have a leader, None if the topic is not known."""
        found = self._topic(topic)
        if found is None:
            return None
        return {p.partition for p in found.partitions if leader_of(p) >= 0}

    def leader_for_partition(self, partition: Named) -> int | None:
        """The leader's id, -1 if there is none now, None if the partition is not known."""
        found = self.cache.leader(partition.topic, partition.partition, None)
        if found is not None:
            return found
        known = self._partition(partition)
        return None if known is None else leader_of(known)

    def partitions_for_broker(self, broker_id: int | str) -> set[Any] | None:
        """The partitions that a broker leads, None for none or a broker that is not known.

        Those of valid topics; with `allow_stale` those too of topics past their deadline.
        """
        if not isinstance(broker_id, int):
            return None
        led = self._led(self.cache, broker_id)
        return {self._topic_partition(*name) for name in led} or None

    def _led(self, reading: Reading, broker_id: int) -> set[tuple[str, int]]:
        if not self.allow_stale:
            return {*reading.partitions_on(broker_id)}
        reading = hold(reading)
        led: set[tuple[str, int]] = {*reading.partitions_on(broker_id)}
        for topic in stale_topics(reading):
            led |= {(p.topic, p.partition) for p in topic.partitions if leader_of(p) == broker_id}
        return led

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """The names of known topics."""
        internal = False if exclude_internal_topics else None
        return set(self.cache.names(internal=internal, allow_stale=True))

    @property
    def internal_topics(self) -> set[str]:
        """Kafka's own topics."""
        return set(self.cache.names(internal=True, allow_stale=True))

    @property
    def unauthorized_topics(self) -> set[str]:
        """Topics that this client may not see, until a broker says otherwise.

        The cache forgets a denial after its `denied_ttl`; this object remembers those that it saw:
        while somebody listens or waits, and whenever it is asked.
        """
        return self._note_denied()

    def _note_denied(self) -> set[str]:
        silent, held = (DENIED, NOT_CACHED, WAITING), hold(self.cache)
        before = self._denied
        kept = {topic for topic in before if held.state(topic) in silent}
        self._denied = kept | set(held.names(state=DENIED))
        return set(self._denied)

    @property
    def controller(self) -> Any:
        """The controller's broker, None if not known; on KRaft any broker that is alive."""
        held = hold(self.cache)
        found = held.controller
        return None if found is None else self._broker_in(held, found)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, None if not known."""
        return self.cache.cluster_id

    # ---- updates ----------------------------------------------------------------------------

    def set_topics(self, topics: Iterable[str]) -> Any:
        """Name the topics that request_update() asks for; a future, done if none of them is new.

        TypeError, ValueError for what Kafka takes for no topic's name.
        """
        wanted = {topic_name(topic) for topic in topics}
        if wanted <= self._topics:
            return self._done()
        self._topics = wanted
        return self.request_update()

    def add_topic(self, topic: str) -> Any:
        """One topic more; a future, done if it was among them."""
        return self.set_topics(self._topics | {topic_name(topic)})

    def _done(self) -> Any:
        future = self._new_future()
        self._settle(future, None)
        return future

    @property
    def _need_update(self) -> bool:
        return self._requested or not self.cache.brokers

    def ttl(self) -> float:
        """Milliseconds until a refresh is due, 0 for now."""
        if self._need_update:
            return 0
        age = self.cache.age()
        if age is None:  # it was never asked for all topics: as old as its oldest topic wanted
            age = max(map(self._age, self._topics), default=0.0)
        return float(max(self.config["metadata_max_age_ms"] - 1000 * age, 0))

    def _age(self, topic: str) -> float:
        """Of a topic, 0 for one that is not known."""
        try:
            return self.cache.age(topic)
        except NO_TOPIC:
            return 0.0

    def refresh_backoff(self) -> float:
        """Milliseconds to wait after a refresh that failed."""
        return float(self.config["retry_backoff_ms"])

    def request_update(self) -> Any:
        """Ask for a refresh; a future whose value is this object after the next answer.

        An answer that was there before ends it not. kafka-python's fails with the error of the
        topic, if one was asked for and has one. From an image none comes: time stands still there.
        In the child of a fork it ends with ForkedError, as nobody writes to a cache there.
        """
        with self._lock:
            news = self._news()  # what came already is the answer to those who asked before
            self._requested = True
            self._asked_at = asked_at = answers(self.cache)
            if self._future is None or self._is_over(self._future):
                self._future = self._new_future()
            future = self._future
        self._watch(asked_at)
        self._tell(*news)
        if self._refresh is not None:
            wanted = None if self.need_all_topic_metadata or not self._topics else self._topics
            self._refresh(wanted and set(wanted))
        return future

    def update_metadata(self, metadata: Any) -> None:
        """Take an answer that the library itself decoded into the cache; listeners hear of it.

        The library does not tell which broker gave it: an answer that lists a single broker is that
        broker's.
        """
        if not isinstance(self.cache, MetadataCache):
            raise TypeError(f"{type(self.cache).__name__} cannot be written to")
        body = self._encode(metadata)
        listed = _brokers_in(body, metadata.API_VERSION)
        broker = listed[0].id if len(listed) == 1 else None
        sent, self._sent = self._sent or Request(), None
        asked = sent if self.need_all_topic_metadata else None
        try:
            with self._lock:  # so that the watching thread does not tell of it as well
                self.cache.apply(
                    body, metadata.API_VERSION, asked, broker, sent_version=sent.sent_version
                )
                news = self._news()
        except NoBrokersError as error:
            self.failed_update(self._no_brokers(metadata, error))
        except Error as error:
            self.failed_update(error)
        else:
            self._tell(*news, metadata)

    def _encode(self, metadata: Any) -> bytes:
        raise NotImplementedError

    def _no_brokers(self, metadata: Any, error: NoBrokersError) -> BaseException:
        """What an answer without brokers is to the library."""
        raise NotImplementedError

    def _refusal(self, metadata: Any = None) -> BaseException | None:
        """What ends a request's future in place of its answer, `metadata` if it is at hand."""
        return None

    def failed_update(self, exception: BaseException) -> None:
        """End the future of request_update() with an exception."""
        with self._lock:
            future, self._future = self._future, None
            self._sent = None
        if future is not None:
            self._end(future, exception)

    def _end(self, future: Any, error: BaseException | None) -> None:
        """End a future; what its callbacks raise is theirs."""
        try:
            self._settle(future, error)
        except Exception:
            log.exception("a future of request_update() could not be ended")

    def add_listener(self, listener: Callable[[Any], object]) -> None:
        """Call `listener(self)` once after each update of the cache.

        In the thread that waits for updates, or that called update_metadata(). What it raises is
        logged.
        """
        since = answers(self.cache)
        self._listeners[listener] = self._caller(listener), since
        self._watch(since)

    def _caller(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        """How a listener is called when the news arrive, in the thread that waits for them."""
        return lambda: void(listener(self))

    def _news(self) -> tuple[Any, tuple[Callable[[], None], ...]]:
        """The future that a new answer ends, and who is to be called; each once. With the lock."""
        now, future = answers(self.cache), None
        if now == self._told:
            return None, ()
        self._told = now
        if now != self._asked_at:
            future, self._future = self._future, None
            self._requested = False
        return future, tuple(call for call, since in self._listeners.values() if now != since)

    def _tell(
        self,
        future: Any,
        listeners: Iterable[Callable[[], None]],
        metadata: Any = None,
    ) -> None:
        """Tell of an answer, `metadata` if it is at hand. Not with the lock: a listener may ask."""
        self._note_denied()
        if future is not None:
            self._end(future, self._refusal(metadata))
        for call in listeners:
            try:
                call()
            except Exception:
                log.exception("a listener of ClusterMetadata failed")

    def _watch(self, since: object) -> None:
        """Have a thread wait for answers as long as somebody wants to know of them."""
        with self._lock:
            if self._watching:
                return
            self._watching, self._told = True, since
        arguments = (weakref.ref(self), self.cache)
        threading.Thread(target=_watch, args=arguments, name="rdmeta-compat", daemon=True).start()

    def _look(self) -> bool:
        """Tell of what is new; False if nobody wants to know any more, then the thread ends."""
        with self._lock:
            news = self._news()
        self._tell(*news)
        with self._lock:
            waited_for = self._future is not None and not self._is_over(self._future)
            self._watching = waited_for or bool(self._listeners)
            return self._watching

    def _broke(self, error: BaseException) -> None:
        """Nothing can be waited for: the thread ends, and the next who asks begins another."""
        with self._lock:
            self._watching = False
        self.failed_update(error)

    def _forked(self) -> None:
        """In the child of a fork: the thread is not here, and its locks are nobody's."""
        self._lock = threading.Lock()
        self._watching, self._future = False, None

    def __str__(self) -> str:
        held = hold(self.cache)
        return f"ClusterMetadata(brokers: {len(held.brokers)}, topics: {len(held)})"


def topic_name(name: str) -> str:
    """A topic's name as Kafka allows it (org.apache.kafka.common.internals.Topic)."""
    if not isinstance(name, str):
        raise TypeError(f"a topic's name must be a str, not {type(name).__name__}")
    if fault := topic_fault(name):
        raise ValueError(f"not a topic's name: {name!r}: {fault}")
    return name


def settle(future: Future[Any], value: object, error: BaseException | None) -> None:
    """End a plain future; one that was cancelled is only told so, one that is over stays."""
    if future.done() and not future.cancelled():
        return
    try:
        if future.set_running_or_notify_cancel():
            future.set_result(value) if error is None else future.set_exception(error)
    except RuntimeError:
        pass  # cancelled, and told so


def void(_result: object) -> None:
    """What a listener returns does not matter."""


def _watch(me: weakref.ref[ClusterShape], cache: Reading) -> None:
    """The thread: tells of each answer; ends with the object, or when nobody listens."""
    version = 0
    while True:
        error = None
        try:
            version = wait(cache, version, None)
        except Exception as reason:
            error = reason
        shape = me()
        if shape is None:
            return
        try:
            if error is not None:
                shape._broke(error)
                return
            if not shape._look():
                return
        except Exception as reason:
            log.exception("the updates of a cache cannot be told of")
            shape._broke(reason)
            return
        del shape


_shapes: weakref.WeakSet[ClusterShape] = weakref.WeakSet()


def _forked() -> None:
    for shape in tuple(_shapes):
        shape._forked()


os.register_at_fork(after_in_child=_forked)
