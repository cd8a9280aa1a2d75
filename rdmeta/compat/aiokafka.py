"""`aiokafka.cluster.ClusterMetadata`, over a cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

from rdmeta.compat._bootstrap import hosts_of
from rdmeta.compat._cluster import ClusterShape, Named, complete, ignore
from rdmeta.compat._reading import image_of
from rdmeta.config.address import DEFAULT_PORT
from rdmeta.errors import NoBrokersError
from rdmeta.model import TopicPartition

__all__ = ["ClusterMetadata"]


class _PlainMetadata(NamedTuple):
    """BrokerMetadata, where aiokafka is not installed."""

    nodeId: int | str  # noqa: N815, its name there
    host: str
    port: int
    rack: str | None


try:
    from aiokafka.structs import BrokerMetadata as LibraryBroker
    from aiokafka.structs import TopicPartition as LibraryTopicPartition
except ImportError:
    LibraryTopicPartition, LibraryBroker = TopicPartition, _PlainMetadata


class ClusterMetadata(ClusterShape):
    """The lookups of aiokafka's `client.cluster`.

    A listener that was added in an event loop is called in that loop. A client of aiokafka makes
    its own object and cannot use this one, which is for the code around the client.
    """

    def __init__(self, cache: Any, refresh: Any = None, **configs: Any) -> None:
        super().__init__(cache, refresh, **configs)
        self._added: dict[str, dict[int, Any]] = {}  # by with_partitions()

    def _broker(self, id: int | str, host: str, port: int, rack: str | None) -> Any:
        return LibraryBroker(id, host, port, rack)

    def _hosts(self, servers: str | Iterable[str]) -> list[tuple[str, int]]:
        hosts = hosts_of(servers)
        return [(host, DEFAULT_PORT if port < 0 else port) for host, port in hosts]

    def _topic_partition(self, topic: str, partition: int) -> Any:
        return LibraryTopicPartition(topic, partition)

    def _new_future(self) -> Future[ClusterMetadata]:
        return Future()

    def _complete(self, future: Any, error: BaseException | None) -> None:
        complete(future, self, error)

    def _is_over(self, future: Any) -> bool:
        return bool(future.done())

    def _encode(self, metadata: Any) -> bytes:
        return bytes(metadata.encode())

    def _no_brokers_error(self, metadata: Any, error: NoBrokersError) -> BaseException:
        from aiokafka.errors import MetadataEmptyBrokerList

        theirs: BaseException = MetadataEmptyBrokerList(metadata)
        return theirs

    def _caller(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return super()._caller(listener)
        return lambda: (
            None if loop.is_closed() else ignore(loop.call_soon_threadsafe(listener, self))
        )

    def brokers(self) -> set[Any]:
        """Returns every broker; the `bootstrap_servers` while no broker is known."""
        return set(self._known_brokers()) or set(self._bootstrap_brokers.values())

    def remove_listener(self, listener: Any) -> None:
        """Removes a listener; raises KeyError if it was not added."""
        del self._listeners[listener]

    def with_partitions(self, partitions_to_add: Iterable[Any]) -> ClusterMetadata:
        """Returns a copy of the present state with more partitions, given as PartitionMetadata.

        The copy does not change later. Raises KeyError for a topic that is not known.
        """
        copy = ClusterMetadata(image_of(self.cache), allow_stale=self.allow_stale, **self.config)
        copy._denied = self.unauthorized_topics
        copy._added = {topic: dict(partitions) for topic, partitions in self._added.items()}
        for partition in partitions_to_add:
            if copy.partitions_for_topic(partition.topic) is None:
                raise KeyError(partition.topic)
            copy._added.setdefault(partition.topic, {})[partition.partition] = partition
        return copy

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Returns the ids of a topic's partitions, None if the topic is not known."""
        found = super().partitions_for_topic(topic)
        return found and found | self._added.get(topic, {}).keys()

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Returns the ids of the partitions that have a leader, None if the topic is not known."""
        found, added = super().available_partitions_for_topic(topic), self._added.get(topic)
        if found is None or not added:
            return found
        return (found - added.keys()) | {id for id, p in added.items() if p.leader != -1}

    def leader_for_partition(self, partition: Named) -> int | None:
        """Returns the leader's id, -1 if leaderless, None if the partition is not known."""
        added = self._added.get(partition.topic, {}).get(partition.partition)
        return super().leader_for_partition(partition) if added is None else added.leader

    def partitions_for_broker(self, broker_id: int | str) -> set[Any] | None:
        """Returns the partitions that a broker leads, None if there are none."""
        found = super().partitions_for_broker(broker_id) or set()
        for topic, added in self._added.items():
            for id, partition in added.items():
                name = self._topic_partition(topic, id)
                (found.add if partition.leader == broker_id else found.discard)(name)
        return found or None
