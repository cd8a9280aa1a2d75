"""`kafka.cluster.ClusterMetadata` of kafka-python 3, over a cache."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from concurrent.futures import Future as PlainFuture
from typing import Any, ClassVar, NamedTuple

from rdmeta._core import MetadataCache, Reading
from rdmeta.compat._bootstrap import hosts_of
from rdmeta.compat._cluster import ClusterShape, Named, settle
from rdmeta.compat._reading import CODES, answers, hold, leader_of
from rdmeta.errors import NoBrokersError, from_code
from rdmeta.model import Partition, Topic, TopicPartition

__all__ = ["ClusterMetadata"]


class _Broker(NamedTuple):
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
    Future, LibraryTopicPartition, LibraryBroker = PlainFuture, TopicPartition, _Broker


def _error(code: int, topic: str) -> BaseException:
    """kafka-python's exception for a code, rdmeta's where it is not installed."""
    try:
        from kafka.errors import for_code
    except ImportError:
        return from_code(code, topic)
    error: BaseException = for_code(code)(topic)
    return error


class ClusterMetadata(ClusterShape):
    """What kafka-python's users ask of `client.cluster`.

    It has no attach(), refresh_metadata() and start_refresh_loop(): those are how kafka-python's
    connection manager drives its own object, and it reads attributes of it that are not public. So
    a client cannot be given this one: it keeps its own, and this is for the code around it.
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
        # Partitions that lost their leader by a hint: the hint's epoch, and the answer before it.
        self._left: dict[tuple[str, int], tuple[int, Any]] = {}

    def _broker(self, id: int | str, host: str, port: int, rack: str | None) -> Any:
        return LibraryBroker(id, host, port, rack)

    def _hosts(self, servers: str | Iterable[str]) -> list[tuple[str, int]]:
        return hosts_of(servers, protocols=True)

    def _topic_partition(self, topic: str, partition: int) -> Any:
        return LibraryTopicPartition(topic, partition)

    def _new_future(self) -> Any:
        return Future()

    def _settle(self, future: Any, error: BaseException | None) -> None:
        if isinstance(future, PlainFuture):
            settle(future, self, error)
        elif not future.is_done:
            future.success(self) if error is None else future.failure(error)

    def _is_over(self, future: Any) -> bool:
        return bool(future.done() if isinstance(future, PlainFuture) else future.is_done)

    def _encode(self, metadata: Any) -> bytes:
        return bytes(metadata.encode())

    def _no_brokers(self, metadata: Any, error: NoBrokersError) -> BaseException:
        from kafka.errors import MetadataEmptyBrokerList

        theirs: BaseException = MetadataEmptyBrokerList(metadata)
        return theirs

    def _refusal(self, metadata: Any = None) -> BaseException | None:
        """The error of the topic, if one was asked for and has one: so does kafka-python."""
        if metadata is not None:
            said = [(topic.error_code, topic.name) for topic in metadata.topics]
        elif self.need_all_topic_metadata:
            said = []
        else:
            said = [(CODES.get(self.cache.state(topic), 0), topic) for topic in self._topics]
        return _error(*said[0]) if len(said) == 1 and said[0][0] else None

    def brokers(self) -> list[Any]:
        """Every broker."""
        return self._known_brokers()

    def bootstrap_brokers(self) -> list[Any]:
        """What `bootstrap_servers` names, with ids "bootstrap-0" ..."""
        return list(self._bootstrap_brokers.values())

    def _broker_in(self, reading: Reading, broker_id: int | str) -> Any:
        """A coordinator, too."""
        found = super()._broker_in(reading, broker_id)
        return found or self._coordinator_brokers.get(broker_id)

    def _hold(self) -> tuple[Reading, Any]:
        """The cache as it is, and which its last answer was; forgets the hints before that."""
        last, held = None, self.cache
        while last is None or answers(self.cache) != last:
            last, held = answers(self.cache), hold(self.cache)
        with self._lock:
            self._left = {of: hint for of, hint in self._left.items() if hint[1] >= last}
        return held, last

    def _hinted(self, found: Partition, last: Any) -> Partition:
        """Without its leader, if a hint took that away and nothing newer came."""
        epoch, since = self._left.get((found.topic, found.partition), (-1, None))
        known = -1 if found.leader_epoch is None else found.leader_epoch
        if since is None or since != last or known >= epoch:
            return found
        return found._replace(leader=None, leader_epoch=epoch, leaderless=True)

    def _partition(self, of: Named) -> Partition | None:
        if not self._left:
            return super()._partition(of)
        held, last = self._hold()
        found = held.partition(of.topic, of.partition, None, allow_stale=True)
        return None if found is None else self._hinted(found, last)

    def _topic(self, name: str) -> Topic | None:
        if not self._left:
            return super()._topic(name)
        held, last = self._hold()
        found = held.topic(name, None, allow_stale=True)
        if found is None:
            return None
        return found._replace(partitions=tuple(self._hinted(p, last) for p in found.partitions))

    def leader_for_partition(self, partition: Named) -> int | None:
        """The leader's id, -1 if there is none now, None if the partition is not known."""
        if not self._left or (partition.topic, partition.partition) not in self._left:
            return super().leader_for_partition(partition)
        found = self._partition(partition)
        return None if found is None else leader_of(found)

    def _led(self, reading: Reading, broker_id: int) -> set[tuple[str, int]]:
        if not self._left:
            return super()._led(reading, broker_id)
        reading, last = self._hold()
        led = super()._led(reading, broker_id)
        for topic, partition in tuple(self._left):
            found = reading.partition(topic, partition, None, allow_stale=True)
            if found is not None and self._hinted(found, last).leaderless:
                led.discard((topic, partition))
        return led

    def leader_epoch_for_partition(self, partition: Named) -> int | None:
        """The leader's epoch, -1 if no broker said it, None if the partition is not known."""
        found = self._partition(partition)
        if found is None:
            return None
        return -1 if found.leader_epoch is None else found.leader_epoch

    def is_replica_node(self, partition: Named, node_id: int) -> Any:
        """The broker, if it is known and a replica of the partition (KIP-392); otherwise None."""
        held = hold(self.cache)
        found = held.partition(partition.topic, partition.partition, None, allow_stale=True)
        if found is None or node_id not in found.replicas:
            return None
        return self._broker_in(held, node_id)

    def update_partition_leader(self, partition: Named, leader_id: int, leader_epoch: int) -> bool:
        """Take a leader from a Fetch or Produce answer (KIP-951); whether it was newer.

        A leader of -1, which a cache does not take from a hint, is this object's until the next
        answer, or hint of a newer epoch.
        """
        known = self.leader_epoch_for_partition(partition)
        if not isinstance(self.cache, MetadataCache) or known is None:
            return False
        if leader_epoch <= max(known, -1):
            return False
        if leader_id < 0:
            with self._lock:
                lost = leader_epoch, answers(self.cache)
                self._left[partition.topic, partition.partition] = lost
            return True
        applied = self.cache.apply_leader_hint(
            partition.topic, partition.partition, leader_id, leader_epoch
        )
        return bool(applied.changed)

    def metadata_request(self) -> Any:
        """kafka-python's MetadataRequest about the topics of set_topics(), or about all."""
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
        """A topic's id, None if not known (before Metadata v10)."""
        found = self._topic(topic_name)
        if found is None or found.topic_id is None:
            return None
        import base64

        return uuid.UUID(bytes=base64.urlsafe_b64decode(found.topic_id + "=="))

    def topic_name_for_id(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic with an id, None if not known."""
        found = self.cache.topic_by_id(topic_id, None, allow_stale=True)
        return None if found is None else found.name

    @property
    def need_update(self) -> bool:
        """Whether request_update() was called since the last answer, or no broker is known."""
        return self._need_update

    @property
    def metadata_refresh_in_progress(self) -> bool:
        """Whether an update was requested and has not come."""
        return self._future is not None

    def remove_listener(self, listener: Any) -> None:
        """Take back add_listener(); fine if it was not there."""
        self._listeners.pop(listener, None)

    def add_coordinator(
        self, response: Any, key_type: Any, key: str, synthesize_node_id: bool = True
    ) -> int | str:
        """Note the coordinator of a group or transaction, as FindCoordinator told it."""
        if response.error_code:
            from kafka import errors

            raise errors.for_code(response.error_code)(key)
        node_id = f"coordinator-{response.node_id}" if synthesize_node_id else response.node_id
        node = self._broker(node_id, response.host, response.port, None)
        self._coordinator_brokers[node_id] = node
        self._coordinators[_number(key_type), key] = node_id
        return node_id

    def get_coordinator(self, key: str, key_type: Any = 0) -> int | str | None:
        """The id of a coordinator that add_coordinator() noted, None for none."""
        return self._coordinators.get((_number(key_type), key))

    def close(self) -> None:
        """Nobody is told of updates any more."""
        self.closed = True
        self._listeners.clear()


def _number(key_type: Any) -> int:
    """A CoordinatorType, its name, or its number."""
    if isinstance(key_type, str):
        return {"GROUP": 0, "TRANSACTION": 1, "SHARE": 2}[key_type.upper()]
    return int(getattr(key_type, "value", key_type))
