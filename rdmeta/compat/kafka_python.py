"""`kafka.cluster.ClusterMetadata` of kafka-python 3, over a cache."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from concurrent.futures import Future as PlainFuture
from typing import Any, ClassVar, NamedTuple

from rdmeta._core import MetadataCache, Reading
from rdmeta.compat._bootstrap import hosts_of
from rdmeta.compat._cluster import ClusterShape, Named, complete
from rdmeta.compat._reading import CODES, answers, image_of, leader_of
from rdmeta.errors import NoBrokersError, from_code
from rdmeta.model import Partition, Topic, TopicPartition

__all__ = ["ClusterMetadata"]


class _PlainResponseBroker(NamedTuple):
    """MetadataResponseBroker, where kafka-python is not installed."""

    node_id: int | str
    host: str
    port: int
    rack: str | None


try:
    from kafka.future import Future
    from kafka.protocol.metadata import MetadataResponse
    from kafka.structs import TopicPartition as LibraryTopicPartition

    LibraryBroker = MetadataResponse.MetadataResponseBroker
except ImportError:
    Future, LibraryTopicPartition, LibraryBroker = PlainFuture, TopicPartition, _PlainResponseBroker


def _error(code: int, topic: str) -> BaseException:
    """Returns kafka-python's exception for a code, or rdmeta's if kafka-python is missing."""
    try:
        from kafka.errors import for_code
    except ImportError:
        return from_code(code, topic)
    error: BaseException = for_code(code)(topic)
    return error


class ClusterMetadata(ClusterShape):
    """The lookups of kafka-python's `client.cluster`.

    It has no attach(), refresh_metadata() and start_refresh_loop(). With those kafka-python's
    connection manager drives its own object, and it reads that object's private attributes. So a
    client cannot use this object, which is for the code around the client.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {
        **ClusterShape.DEFAULT_CONFIG,
        "allow_auto_create_topics": True,
        "client_dns_lookup": "use_all_dns_ips",
    }

    def __init__(self, cache: Any, refresh: Any = None, **configs: Any) -> None:
        super().__init__(cache, refresh, **configs)
        self.closed = False
        self._coordinators: dict[tuple[int, str], int | str] = {}
        self._coordinator_brokers: dict[int | str, Any] = {}
        # Partitions that a hint made leaderless: the hint's epoch, and the answer before it.
        self._leaderless: dict[tuple[str, int], tuple[int, Any]] = {}

    def _broker(self, id: int | str, host: str, port: int, rack: str | None) -> Any:
        return LibraryBroker(id, host, port, rack)

    def _hosts(self, servers: str | Iterable[str]) -> list[tuple[str, int]]:
        return hosts_of(servers, protocols=True)

    def _topic_partition(self, topic: str, partition: int) -> Any:
        return LibraryTopicPartition(topic, partition)

    def _new_future(self) -> Any:
        return Future()

    def _complete(self, future: Any, error: BaseException | None) -> None:
        if isinstance(future, PlainFuture):
            complete(future, self, error)
        elif not future.is_done:
            future.success(self) if error is None else future.failure(error)

    def _is_over(self, future: Any) -> bool:
        return bool(future.done() if isinstance(future, PlainFuture) else future.is_done)

    def _encode(self, metadata: Any) -> bytes:
        return bytes(metadata.encode())

    def _no_brokers_error(self, metadata: Any, error: NoBrokersError) -> BaseException:
        from kafka.errors import MetadataEmptyBrokerList

        theirs: BaseException = MetadataEmptyBrokerList(metadata)
        return theirs

    def _topic_error(self, metadata: Any = None) -> BaseException | None:
        """Returns the topic's error if a single topic was asked for, as kafka-python does."""
        if metadata is not None:
            codes = [(topic.error_code, topic.name) for topic in metadata.topics]
        elif self.need_all_topic_metadata:
            codes = []
        else:
            codes = [(CODES.get(self.cache.state(topic), 0), topic) for topic in self._topics]
        return _error(*codes[0]) if len(codes) == 1 and codes[0][0] else None

    def brokers(self) -> list[Any]:
        """Returns every broker."""
        return self._known_brokers()

    def bootstrap_brokers(self) -> list[Any]:
        """Returns the `bootstrap_servers`, with ids "bootstrap-0" ..."""
        return list(self._bootstrap_brokers.values())

    def _broker_in(self, reading: Reading, broker_id: int | str) -> Any:
        """Returns a broker or a coordinator by its id."""
        found = super()._broker_in(reading, broker_id)
        return found or self._coordinator_brokers.get(broker_id)

    def _image_and_answer(self) -> tuple[Reading, Any]:
        """Returns an image and its last answer; drops the hints older than that answer."""
        last, image = None, self.cache
        while last is None or answers(self.cache) != last:
            last, image = answers(self.cache), image_of(self.cache)
        with self._lock:
            self._leaderless = {
                of: hint for of, hint in self._leaderless.items() if hint[1] >= last
            }
        return image, last

    def _hinted(self, found: Partition, last: Any) -> Partition:
        """Returns the partition, without its leader if a hint removed it and nothing newer came."""
        epoch, since = self._leaderless.get((found.topic, found.partition), (-1, None))
        known = -1 if found.leader_epoch is None else found.leader_epoch
        if since is None or since != last or known >= epoch:
            return found
        return found._replace(leader=None, leader_epoch=epoch, leaderless=True)

    def _partition(self, of: Named) -> Partition | None:
        if not self._leaderless:
            return super()._partition(of)
        image, last = self._image_and_answer()
        found = image.partition(of.topic, of.partition, None, allow_stale=True)
        return None if found is None else self._hinted(found, last)

    def _topic(self, name: str) -> Topic | None:
        if not self._leaderless:
            return super()._topic(name)
        image, last = self._image_and_answer()
        found = image.topic(name, None, allow_stale=True)
        if found is None:
            return None
        return found._replace(partitions=tuple(self._hinted(p, last) for p in found.partitions))

    def leader_for_partition(self, partition: Named) -> int | None:
        """Returns the leader's id, -1 if leaderless, None if the partition is not known."""
        if not self._leaderless or (partition.topic, partition.partition) not in self._leaderless:
            return super().leader_for_partition(partition)
        found = self._partition(partition)
        return None if found is None else leader_of(found)

    def _partitions_led_by(self, reading: Reading, broker_id: int) -> set[tuple[str, int]]:
        if not self._leaderless:
            return super()._partitions_led_by(reading, broker_id)
        reading, last = self._image_and_answer()
        names = super()._partitions_led_by(reading, broker_id)
        for topic, partition in tuple(self._leaderless):
            found = reading.partition(topic, partition, None, allow_stale=True)
            if found is not None and self._hinted(found, last).leaderless:
                names.discard((topic, partition))
        return names

    def leader_epoch_for_partition(self, partition: Named) -> int | None:
        """Returns the leader epoch, -1 if no answer said it, None if the partition is unknown."""
        found = self._partition(partition)
        if found is None:
            return None
        return -1 if found.leader_epoch is None else found.leader_epoch

    def is_replica_node(self, partition: Named, node_id: int) -> Any:
        """Returns the broker if it is known and a replica of the partition (KIP-392), else None."""
        image = image_of(self.cache)
        found = image.partition(partition.topic, partition.partition, None, allow_stale=True)
        if found is None or node_id not in found.replicas:
            return None
        return self._broker_in(image, node_id)

    def update_partition_leader(self, partition: Named, leader_id: int, leader_epoch: int) -> bool:
        """Takes a leader from a Fetch or Produce answer (KIP-951); returns whether it was newer.

        A cache takes no leader of -1 from a hint. This object keeps such a hint itself, until the
        next answer or a hint with a newer epoch.
        """
        known = self.leader_epoch_for_partition(partition)
        if not isinstance(self.cache, MetadataCache) or known is None:
            return False
        if leader_epoch <= max(known, -1):
            return False
        if leader_id < 0:
            with self._lock:
                lost = leader_epoch, answers(self.cache)
                self._leaderless[partition.topic, partition.partition] = lost
            return True
        applied = self.cache.apply_leader_hint(
            partition.topic, partition.partition, leader_id, leader_epoch
        )
        return bool(applied.changed)

    def metadata_request(self) -> Any:
        """Returns kafka-python's MetadataRequest for the topics of set_topics(), or for all."""
        from kafka.protocol.metadata import MetadataRequest

        if self._sent is None and isinstance(self.cache, MetadataCache):
            self._sent = self.cache.request()
        topics = MetadataRequest.NO_TOPICS
        if self.need_all_topic_metadata:
            topics = MetadataRequest.ALL_TOPICS
        elif self._topics:
            topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in self._topics]
        return MetadataRequest(
            topics=topics,
            allow_auto_topic_creation=self.config["allow_auto_create_topics"],
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )

    def topic_id(self, topic_name: str) -> uuid.UUID | None:
        """Returns a topic's id, None if not known (before Metadata v10)."""
        found = self._topic(topic_name)
        if found is None or found.topic_id is None:
            return None
        import base64

        return uuid.UUID(bytes=base64.urlsafe_b64decode(found.topic_id + "=="))

    def topic_name_for_id(self, topic_id: uuid.UUID) -> str | None:
        """Returns the name of the topic with an id, None if not known."""
        found = self.cache.topic_by_id(topic_id, None, allow_stale=True)
        return None if found is None else found.name

    @property
    def need_update(self) -> bool:
        """Whether request_update() was called since the last answer, or no broker is known."""
        return self._need_update

    @property
    def metadata_refresh_in_progress(self) -> bool:
        """Whether an update was requested and no answer has arrived since."""
        return self._future is not None

    def remove_listener(self, listener: Any) -> None:
        """Removes a listener; does nothing if it was not added."""
        self._listeners.pop(listener, None)

    def add_coordinator(
        self, response: Any, key_type: Any, key: str, synthesize_node_id: bool = True
    ) -> int | str:
        """Keeps the coordinator of a group or transaction from a FindCoordinator answer.

        Returns the coordinator's node id. Raises kafka-python's error if the answer has one.
        """
        if response.error_code:
            from kafka import errors

            raise errors.for_code(response.error_code)(key)
        node_id = f"coordinator-{response.node_id}" if synthesize_node_id else response.node_id
        node = self._broker(node_id, response.host, response.port, None)
        self._coordinator_brokers[node_id] = node
        self._coordinators[_number(key_type), key] = node_id
        return node_id

    def get_coordinator(self, key: str, key_type: Any = 0) -> int | str | None:
        """Returns the id of a coordinator that add_coordinator() kept, None if there is none."""
        return self._coordinators.get((_number(key_type), key))

    def close(self) -> None:
        """Ends the notifications: removes all listeners."""
        self.closed = True
        self._listeners.clear()


def _number(key_type: Any) -> int:
    """Returns the number of a CoordinatorType, given as the type, its name or its number."""
    if isinstance(key_type, str):
        return {"GROUP": 0, "TRANSACTION": 1, "SHARE": 2}[key_type.upper()]
    return int(getattr(key_type, "value", key_type))
