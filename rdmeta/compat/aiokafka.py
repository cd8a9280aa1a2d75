"""`aiokafka.cluster.ClusterMetadata`, over a cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from rdmeta.compat._cluster import ClusterShape, settle, void
from rdmeta.model import TopicPartition

__all__ = ["ClusterMetadata"]


class _Broker(NamedTuple):
    """BrokerMetadata, where aiokafka is not installed."""

    nodeId: int | str  # noqa: N815, its name there
    host: str
    port: int
    rack: str | None


try:
    from aiokafka.structs import BrokerMetadata as LibraryBroker
    from aiokafka.structs import TopicPartition as LibraryTopicPartition
except ImportError:
    LibraryTopicPartition, LibraryBroker = TopicPartition, _Broker


class ClusterMetadata(ClusterShape):
    """What aiokafka's users ask of `client.cluster`.

    A listener that is added in an event loop is called in that loop.
    """

    def _broker(self, id: int | str, host: str, port: int, rack: str | None) -> Any:
        return LibraryBroker(id, host, port, rack)

    def _topic_partition(self, topic: str, partition: int) -> Any:
        return LibraryTopicPartition(topic, partition)

    def _new_future(self) -> Future[ClusterMetadata]:
        return Future()

    def _settle(self, future: Any, error: BaseException | None) -> None:
        settle(future, self, error)

    def _is_over(self, future: Any) -> bool:
        return bool(future.done())

    def _encode(self, metadata: Any) -> bytes:
        return bytes(metadata.encode())

    def _caller(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return super()._caller(listener)
        return lambda: None if loop.is_closed() else void(loop.call_soon_threadsafe(listener, self))

    def brokers(self) -> set[Any]:
        """Every broker; what `bootstrap_servers` names while none is known."""
        return set(self._known_brokers()) or set(self._bootstrap_brokers.values())

    def remove_listener(self, listener: Any) -> None:
        """Take back add_listener(); KeyError if it was not there."""
        del self._listeners[listener]
