"""What the `ClusterMetadata` of kafka-python and of aiokafka have in common.

Other than theirs, an answer about some topics does not drop the others, and an older leader epoch
does not win. As with theirs what is past its deadline is served on.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

from rdmeta._core import DENIED, NO_LEADER, STALE, MetadataCache, Reading
from rdmeta.errors import Error
from rdmeta.model import ALL, Partition, Topic
from rdmeta.net.address import parse_bootstrap

__all__ = ["ClusterShape", "Named"]

# An answer that changed nothing wakes nobody: how often to look for one, in seconds.
_LOOK_S = 0.05


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
    feeds it, and request_update() only waits for the next answer.
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
        **configs: Any,
    ) -> None:
        self.cache = cache
        self.config = {key: configs.get(key, value) for key, value in self.DEFAULT_CONFIG.items()}
        self.need_all_topic_metadata = False
        self._refresh = refresh
        self._topics: set[str] = set()
        self._listeners: dict[Any, Callable[[], None]] = {}
        self._future: Any = None
        self._need_update = not cache.brokers
        self._lock = threading.Lock()
        self._watching = False
        servers = self.config["bootstrap_servers"]
        text = servers if isinstance(servers, str) else ",".join(servers)
        self._bootstrap_brokers = {
            f"bootstrap-{i}": self._broker(f"bootstrap-{i}", host, port, None)
            for i, (host, port) in enumerate(parse_bootstrap(text) if text else ())
        }

    # ---- the library's own types ------------------------------------------------------------

    def _broker(self, id: int | str, host: str, port: int, rack: str | None) -> Any:
        raise NotImplementedError

    def _topic_partition(self, topic: str, partition: int) -> Any:
        raise NotImplementedError

    def _new_future(self) -> Any:
        raise NotImplementedError

    def _settle(self, future: Any, error: BaseException | None) -> None:
        raise NotImplementedError

    # ---- lookups ----------------------------------------------------------------------------

    def _topic(self, name: str) -> Topic | None:
        found = self.cache.topic(name, None)
        return self.cache.topic(name, None, allow_stale=True) if found is None else found

    def _partition(self, of: Named) -> Partition | None:
        found = self.cache.partition(of.topic, of.partition, None)
        if found is None:
            found = self.cache.partition(of.topic, of.partition, None, allow_stale=True)
        return found

    def _known_brokers(self) -> list[Any]:
        return [self._broker(*broker) for broker in self.cache.brokers]

    def broker_metadata(self, broker_id: int | str) -> Any:
        """A broker by its id, or a bootstrap server by "bootstrap-0" ...; None if not known."""
        if not isinstance(broker_id, int):
            return self._bootstrap_brokers.get(broker_id)
        found = self.cache.broker(broker_id, None)
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
        return {p.partition for p in found.partitions if p.leader is not None}

    def leader_for_partition(self, partition: Named) -> int | None:
        """The leader's id, -1 if there is none now, None if the partition is not known."""
        found = self.cache.leader(partition.topic, partition.partition, None)
        if found is not None:
            return found
        state = self.cache.state(partition.topic, partition.partition)
        if state == STALE:
            return self.cache.last_leader(partition.topic, partition.partition, None)
        return -1 if state == NO_LEADER else None

    def partitions_for_broker(self, broker_id: int | str) -> set[Any] | None:
        """The partitions that a broker leads, None for none or a broker that is not known."""
        if not isinstance(broker_id, int):
            return None
        led = self.cache.partitions_on(broker_id)
        return {self._topic_partition(*partition) for partition in led} or None

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
        """Topics that this client may not see."""
        return set(self.cache.names(state=DENIED))

    @property
    def controller(self) -> Any:
        """The controller's broker, None if not known; on KRaft any broker that is alive."""
        found = self.cache.controller
        return None if found is None else self.broker_metadata(found)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, None if not known."""
        return self.cache.cluster_id

    # ---- updates ----------------------------------------------------------------------------

    def set_topics(self, topics: Iterable[str]) -> Any:
        """Name the topics that request_update() asks for; a future, done if none of them is new."""
        before, self._topics = self._topics, set(topics)
        return self.request_update() if self._topics - before else self._done()

    def add_topic(self, topic: str) -> Any:
        """One topic more; a future, done if it was among them."""
        return self.set_topics(self._topics | {topic})

    def _done(self) -> Any:
        future = self._new_future()
        self._settle(future, None)
        return future

    def ttl(self) -> float:
        """Milliseconds until a refresh is due, 0 for now."""
        if self._need_update:
            return 0
        stats = self.cache.stats() if isinstance(self.cache, MetadataCache) else {}
        age = stats.get("all_topics_age")
        if age is None:  # it was never asked for all topics: as old as its oldest topic wanted
            ages = [self.cache.age(topic) for topic in self._topics & self.topics(False)]
            age = max(ages, default=0.0)
        return float(max(self.config["metadata_max_age_ms"] - 1000 * age, 0))

    def refresh_backoff(self) -> float:
        """Milliseconds to wait after a refresh that failed."""
        return float(self.config["retry_backoff_ms"])

    def request_update(self) -> Any:
        """Ask for a refresh; a future whose value is this object after the next answer.

        From an image it never comes: time stands still there.
        """
        with self._lock:
            self._need_update = True
            if self._future is None:
                self._future = self._new_future()
            future = self._future
        self._watch()
        if self._refresh is not None:
            wanted = None if self.need_all_topic_metadata or not self._topics else self._topics
            self._refresh(wanted and set(wanted))
        return future

    def update_metadata(self, metadata: Any) -> None:
        """Take an answer that the library itself decoded into the cache."""
        asked = ALL if self.need_all_topic_metadata else None
        if not isinstance(self.cache, MetadataCache):
            raise TypeError(f"{type(self.cache).__name__} cannot be written to")
        try:
            self.cache.apply(self._encode(metadata), metadata.API_VERSION, asked)
        except Error as error:
            self.failed_update(error)
        else:
            self._updated()

    def _encode(self, metadata: Any) -> bytes:
        raise NotImplementedError

    def failed_update(self, exception: BaseException) -> None:
        """End the future of request_update() with an exception."""
        with self._lock:
            future, self._future = self._future, None
        if future is not None:
            self._settle(future, exception)

    def add_listener(self, listener: Callable[[Any], object]) -> None:
        """Call `listener(self)` after each update of the cache."""
        self._listeners[listener] = self._caller(listener)
        self._watch()

    def _caller(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        """How a listener is called when the news arrive, in the thread that waits for them."""
        return lambda: void(listener(self))

    def _updated(self) -> None:
        """An answer was applied."""
        with self._lock:
            future, self._future = self._future, None
            self._need_update = False
        if future is not None:
            self._settle(future, None)
        for call in tuple(self._listeners.values()):
            call()

    def _watch(self) -> None:
        """Have a thread wait for answers as long as somebody wants to know of them."""
        with self._lock:
            if self._watching or not isinstance(self.cache, MetadataCache):
                return
            self._watching = True
        me, seen = weakref.ref(self), self.cache.stats()["applies"]
        arguments = (me, self.cache, self.cache.version, seen)
        threading.Thread(target=_watch, args=arguments, name="rdmeta-compat", daemon=True).start()

    def _unwatched(self) -> bool:
        """Whether nobody wants to know any more; then the thread ends."""
        with self._lock:
            self._watching = self._future is not None or bool(self._listeners)
            return not self._watching

    def __str__(self) -> str:
        return f"ClusterMetadata(brokers: {len(self.cache.brokers)}, topics: {len(self.cache)})"


def void(_result: object) -> None:
    """What a listener returns does not matter."""


def _watch(me: weakref.ref[ClusterShape], cache: MetadataCache, version: int, applied: int) -> None:
    """The thread: tells of each answer; ends with the object, or when nobody listens."""
    while True:
        version = cache.wait_change(version, _LOOK_S) or version
        shape, before, applied = me(), applied, cache.stats()["applies"]
        if shape is None:
            return
        if applied != before:
            shape._updated()
        if shape._unwatched():
            return
        del shape
