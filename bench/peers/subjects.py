"""The Python caches, each behind the same few calls; the suites and the runner use them.

A *subject* takes the body of a Metadata response and is asked for leaders. A way to ask is a
function of two lists, topics and partitions, one query after the other. It returns the sum of the
leaders. It contains the loop, so that none of our code stands between the loop and the call. The
time excludes what `prepare` does before: it makes TopicPartitions, or resolves names.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar

Topics = Sequence[str]
Partitions = Sequence[int]
Prepared = Any
Ask = Callable[[Any, Prepared], int]


def pairs(_cache: Any, topics: Topics, partitions: Partitions) -> Prepared:
    """Prepares nothing: the two lists are walked together."""
    return list(zip(topics, partitions, strict=True))


def ask_nothing(_cache: Any, queries: Prepared) -> int:
    """Runs the loop alone, which every way to ask has."""
    total = 0
    for _topic, partition in queries:
        total += partition
    return total


@dataclass(frozen=True)
class Way:
    """A way to ask: how queries are prepared, and how they are asked."""

    prepare: Callable[[Any, Topics, Partitions], Prepared]
    ask: Ask
    loop: Ask = ask_nothing


class Subject:
    """A cache of one library."""

    name: ClassVar[str]
    package: ClassVar[str | None] = None
    file: ClassVar[str] = "all-12"
    again: ClassVar[bool] = True  # whether a cache can take the same answer again

    @classmethod
    def version(cls) -> str | None:
        """Returns the version of the package; raises PackageNotFoundError."""
        return None if cls.package is None else version(cls.package)

    def new(self) -> Any:
        """Returns an empty cache."""
        raise NotImplementedError

    def fill(self, cache: Any, body: bytes) -> Any:
        """Applies a response; returns the cache to ask: `cache` or its replacement."""
        raise NotImplementedError

    def ways(self) -> dict[str, Way]:
        """Returns the ways to ask, by name."""
        raise NotImplementedError


class Rdmeta(Subject):
    """rdmeta."""

    name = "rdmeta"
    package = "rdmeta"

    def new(self) -> Any:
        import rdmeta

        return rdmeta.MetadataCache()

    def fill(self, cache: Any, body: bytes) -> Any:
        import rdmeta

        cache.apply(body, 12, asked=rdmeta.ALL)
        return cache

    def ways(self) -> dict[str, Way]:
        return {
            "leader": Way(pairs, self._ask),
            "handle": Way(self._resolve, self._ask_handle),
        }

    @staticmethod
    def _ask(cache: Any, queries: Prepared) -> int:
        total = 0
        for topic, partition in queries:
            total += cache.leader(topic, partition)
        return total

    @staticmethod
    def _resolve(cache: Any, topics: Topics, partitions: Partitions) -> Prepared:
        handles = {topic: cache.resolve(topic) for topic in set(topics)}
        return [(handles[topic], p) for topic, p in zip(topics, partitions, strict=True)]

    @staticmethod
    def _ask_handle(_cache: Any, queries: Prepared) -> int:
        total = 0
        for handle, partition in queries:
            total += handle.leader(partition)
        return total


class PlainDict(Subject):
    """A dict of lists of leaders, from what rdmeta decoded: no rules, no other facts."""

    name = "dict"
    again = False

    def new(self) -> Any:
        return {}

    def fill(self, cache: Any, body: bytes) -> Any:
        import rdmeta

        for topic in rdmeta.decode_metadata_response(body, 12)["topics"]:
            cache[topic["name"]] = [partition["leader"] for partition in topic["partitions"]]
        return cache

    def ways(self) -> dict[str, Way]:
        return {"index": Way(pairs, self._ask)}

    @staticmethod
    def _ask(cache: Any, queries: Prepared) -> int:
        total = 0
        for topic, partition in queries:
            total += cache[topic][partition]
        return total


class _LeaderForPartition(Subject):
    """The base of kafka-python and aiokafka, which grew out of it."""

    def _topic_partition(self) -> Any:
        raise NotImplementedError

    def ways(self) -> dict[str, Way]:
        make = self._topic_partition()

        def prepare(_cache: Any, topics: Topics, partitions: Partitions) -> Prepared:
            return [make(topic, p) for topic, p in zip(topics, partitions, strict=True)]

        def ask_new(cache: Any, queries: Prepared) -> int:
            total = 0
            for topic, partition in queries:
                total += cache.leader_for_partition(make(topic, partition))
            return total

        return {"prepared": Way(prepare, self._ask, self._loop), "new": Way(pairs, ask_new)}

    @staticmethod
    def _ask(cache: Any, queries: Prepared) -> int:
        total = 0
        for partition in queries:
            total += cache.leader_for_partition(partition)
        return total

    @staticmethod
    def _loop(_cache: Any, queries: Prepared) -> int:
        total = 0
        for _partition in queries:
            total += 1
        return total


class KafkaPython(_LeaderForPartition):
    """kafka-python: its decoder, its ClusterMetadata."""

    name = "kafka-python"
    package = "kafka-python"

    def new(self) -> Any:
        from kafka.cluster import ClusterMetadata

        return ClusterMetadata()

    def fill(self, cache: Any, body: bytes) -> Any:
        from kafka.protocol.metadata import MetadataResponse

        cache.update_metadata(MetadataResponse.decode(body, version=12))
        return cache

    def _topic_partition(self) -> Any:
        from kafka.structs import TopicPartition

        return TopicPartition


class AioKafka(_LeaderForPartition):
    """aiokafka: its decoder, which ends at Metadata v5, and its ClusterMetadata."""

    name = "aiokafka"
    package = "aiokafka"
    file = "all-5"

    def new(self) -> Any:
        from aiokafka.cluster import ClusterMetadata

        return ClusterMetadata()

    def fill(self, cache: Any, body: bytes) -> Any:
        from aiokafka.protocol.metadata import MetadataResponse_v5

        cache.update_metadata(MetadataResponse_v5.decode(io.BytesIO(body)))
        return cache

    def _topic_partition(self) -> Any:
        from aiokafka.structs import TopicPartition

        return TopicPartition


SUBJECTS: tuple[Subject, ...] = (Rdmeta(), PlainDict(), KafkaPython(), AioKafka())
