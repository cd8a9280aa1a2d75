"""The metrics: their table, and their values, which one reading of a client gives."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rdmeta import health
from rdmeta._change_table import KINDS
from rdmeta._version import __version__
from rdmeta.errors import Error

if TYPE_CHECKING:
    from rdmeta._core import MetadataCache
    from rdmeta.client.aio import AsyncClient
    from rdmeta.client.blocking import Client

    AnyClient: TypeAlias = "Client | AsyncClient"
    MinIsrOfTopics: TypeAlias = "Callable[[Any], Mapping[str, int]]"

CLUSTER = "cluster"
"""The label that every series has first."""

Samples: TypeAlias = "dict[str, list[tuple[tuple[str, ...], float]]]"
"""By the metric's name its series: the values of its labels without CLUSTER, and the value."""


class Metric(NamedTuple):
    """A metric: a counter if it `only_grows`, otherwise a gauge. `labels` are without CLUSTER.

    `name` is that of Prometheus. `dotted` and `unit` are OpenTelemetry's: the unit is s, By, or
    what is counted in braces, and no part of the name.
    """

    name: str
    dotted: str
    unit: str
    doc: str
    labels: tuple[str, ...] = ()
    only_grows: bool = False


_PARTITIONS = "{partition}"

METRICS = (
    Metric(
        "rdmeta_build_info",
        "rdmeta.build.info",
        "1",
        "Always 1; the label has the version of rdmeta",
        ("version",),
    ),
    Metric(
        "rdmeta_up", "rdmeta.up", "1", "1 if the client runs and a connection to a broker is ready"
    ),
    Metric(
        "rdmeta_refreshes_total",
        "rdmeta.refreshes",
        "{request}",
        "Metadata requests, by the reason and by what came of them",
        ("reason", "result"),
        only_grows=True,
    ),
    Metric(
        "rdmeta_requests_total",
        "rdmeta.requests",
        "{request}",
        "Requests after the handshake, by broker id, or -1, -2 ... for bootstrap servers",
        ("node",),
        only_grows=True,
    ),
    Metric(
        "rdmeta_refresh_age_seconds",
        "rdmeta.refresh.age",
        "s",
        "Time since the last answer; none before the first",
    ),
    Metric(
        "rdmeta_due_topics",
        "rdmeta.topic.due",
        "{topic}",
        "Topics that are asked for again and again",
    ),
    Metric(
        "rdmeta_reconnects_total",
        "rdmeta.reconnects",
        "{connection}",
        "Connections to an address after the first one",
        only_grows=True,
    ),
    Metric(
        "rdmeta_changes_total",
        "rdmeta.changes",
        "{change}",
        "Changes of the cache, by their kind; resync: some could not be counted",
        ("kind",),
        only_grows=True,
    ),
    Metric(
        "rdmeta_cache_topics",
        "rdmeta.cache.topics",
        "{topic}",
        "Topics in the cache, valid or stale",
    ),
    Metric(
        "rdmeta_cache_partitions",
        "rdmeta.cache.partitions",
        _PARTITIONS,
        "Partitions of the topics in the cache",
    ),
    Metric("rdmeta_cache_bytes", "rdmeta.cache.size", "By", "Bytes that the cache has allocated"),
    Metric("rdmeta_brokers", "rdmeta.brokers", "{broker}", "Brokers in the last answer"),
    Metric(
        "rdmeta_under_replicated_partitions",
        "rdmeta.partition.under_replicated",
        _PARTITIONS,
        "A replica is not in sync",
    ),
    Metric(
        "rdmeta_leaderless_partitions",
        "rdmeta.partition.leaderless",
        _PARTITIONS,
        "There is no leader",
    ),
    Metric(
        "rdmeta_offline_partitions",
        "rdmeta.partition.offline",
        _PARTITIONS,
        "A replica is offline: its broker or its disk is down",
    ),
    Metric(
        "rdmeta_non_preferred_partitions",
        "rdmeta.partition.non_preferred",
        _PARTITIONS,
        "Another replica than the first one leads",
    ),
    Metric(
        "rdmeta_under_min_isr_partitions",
        "rdmeta.partition.under_min_isr",
        _PARTITIONS,
        "Fewer replicas are in sync than the known min.insync.replicas: acks=all is refused",
    ),
    Metric(
        "rdmeta_at_min_isr_partitions",
        "rdmeta.partition.at_min_isr",
        _PARTITIONS,
        "As many replicas are in sync as the known min.insync.replicas",
    ),
    Metric(
        "rdmeta_broker_leaders",
        "rdmeta.broker.leaders",
        _PARTITIONS,
        "Partitions that the broker leads",
        ("broker",),
    ),
    Metric(
        "rdmeta_broker_replicas",
        "rdmeta.broker.replicas",
        _PARTITIONS,
        "Partitions with a replica on it",
        ("broker",),
    ),
)

TOPIC_METRICS = (
    Metric(
        "rdmeta_topic_partitions",
        "rdmeta.topic.partition.count",
        _PARTITIONS,
        "Partitions of the topic",
        ("topic",),
    ),
    Metric(
        "rdmeta_topic_under_replicated_partitions",
        "rdmeta.topic.partition.under_replicated",
        _PARTITIONS,
        "Partitions of the topic with a replica that is not in sync",
        ("topic",),
    ),
    Metric(
        "rdmeta_topic_leaderless_partitions",
        "rdmeta.topic.partition.leaderless",
        _PARTITIONS,
        "Partitions of the topic without a leader",
        ("topic",),
    ),
    Metric(
        "rdmeta_topic_offline_partitions",
        "rdmeta.topic.partition.offline",
        _PARTITIONS,
        "Partitions of the topic with an offline replica",
        ("topic",),
    ),
    Metric(
        "rdmeta_topic_non_preferred_partitions",
        "rdmeta.topic.partition.non_preferred",
        _PARTITIONS,
        "Partitions of the topic that another replica than the first one leads",
        ("topic",),
    ),
)

# The kinds that a cache makes. They are there from the start, so that a first change is an
# increase. The driver counts "resync" itself.
_KINDS = (*(kind.name for kind in KINDS if "core" in kind.made_by), "resync")


def checked(clients: Iterable[object]) -> None:
    """Raises TypeError for what is no Client and no AsyncClient."""
    from rdmeta.client.shell import Shell

    for client in clients:
        if not isinstance(client, Shell):
            raise TypeError(f"expected a Client or an AsyncClient, not {type(client).__name__}")


def names_of(topics: Iterable[str]) -> tuple[str, ...]:
    """Returns the names, each once; raises TypeError for one str and for what is no name."""
    names = tuple(dict.fromkeys(topics))
    if isinstance(topics, str) or not all(isinstance(name, str) for name in names):
        raise TypeError("per_topic has names of topics, each a str")
    return names


def clusters_of(clients: Sequence[AnyClient]) -> list[str]:
    """Returns each client's value of CLUSTER, all different."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for client in clients:
        name = client.cache.cluster_id or client._config.bootstrap_servers or ""
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}/{seen[name]}")
    return found


def read(
    client: AnyClient, per_topic: Iterable[str] = (), min_isr: MinIsrOfTopics | None = None
) -> Samples:
    """Returns the values of all metrics now; of rdmeta_up alone if the client cannot be read.

    Partitions are counted in stale topics as well: without a connection the last known state
    stays, and does not look like a cluster without faults.
    """
    try:
        stats = client._stats_anywhere()
    except Error:  # it is of a fork's parent, or its loop is blocked
        return {"rdmeta_up": [((), 0)]}
    known = {} if min_isr is None else min_isr(client)
    return (
        _of_client(stats)
        | _of_cache(client.cache)
        | _of_min_isrs(client.cache, known)
        | _of_topics(client.cache, per_topic)
    )


def _of_client(stats: dict[str, Any]) -> Samples:
    nodes: dict[int, dict[str, Any]] = stats["nodes"]
    is_up = stats["state"] == "running" and any(n["state"] == "ready" for n in nodes.values())
    last = stats["last_success"]
    age: list[tuple[tuple[str, ...], float]] = (
        [] if last is None else [((), max(0.0, time.monotonic() - last))]
    )
    changes: dict[str, int] = dict.fromkeys(_KINDS, 0) | stats["changes"]
    return {
        "rdmeta_build_info": [((__version__,), 1)],
        "rdmeta_up": [((), int(is_up))],
        "rdmeta_refreshes_total": [
            ((reason, result), count)
            for reason, results in stats["refreshes"].items()
            for result, count in results.items()
        ],
        "rdmeta_requests_total": [((str(id),), n["requests"]) for id, n in nodes.items()],
        "rdmeta_refresh_age_seconds": age,
        "rdmeta_due_topics": [((), stats["due"])],
        "rdmeta_reconnects_total": [((), stats["reconnects"])],
        "rdmeta_changes_total": [((kind,), count) for kind, count in changes.items()],
    }


def _of_cache(cache: MetadataCache) -> Samples:
    found, size = cache.health(allow_stale=True), cache.stats()["bytes"]
    return {
        "rdmeta_cache_topics": [((), found.topics)],
        "rdmeta_cache_partitions": [((), found.partitions)],
        "rdmeta_cache_bytes": [((), size)],
        "rdmeta_brokers": [((), len(cache.brokers))],
        "rdmeta_under_replicated_partitions": [((), found.under_replicated)],
        "rdmeta_leaderless_partitions": [((), found.leaderless)],
        "rdmeta_offline_partitions": [((), found.offline)],
        "rdmeta_non_preferred_partitions": [((), found.non_preferred)],
        "rdmeta_broker_leaders": [((str(id),), n) for id, n in found.leaders.items()],
        "rdmeta_broker_replicas": [((str(id),), n) for id, n in found.replicas_on.items()],
    }


def _of_min_isrs(cache: MetadataCache, known: Mapping[str, int]) -> Samples:
    """Returns no series if no topic's min ISR is known: 0 would say that all is well."""
    under = at = 0
    for name, least in dict(known).items():
        topic = cache.topic(name, None, allow_stale=True)
        for partition in () if topic is None else topic.partitions:
            under += health.is_under_min_isr(partition, least)
            at += health.is_at_min_isr(partition, least)
    values = {"rdmeta_under_min_isr_partitions": under, "rdmeta_at_min_isr_partitions": at}
    return {name: [((), value)] if known else [] for name, value in values.items()}


def _of_topics(cache: MetadataCache, names: Iterable[str]) -> Samples:
    samples: Samples = {metric.name: [] for metric in TOPIC_METRICS}
    counts = (
        lambda _: True,
        health.is_under_replicated,
        health.is_leaderless,
        health.has_offline_replica,
        health.is_not_preferred,
    )
    for name in names:
        topic = cache.topic(name, None, allow_stale=True)
        if topic is None:
            continue
        for metric, holds in zip(TOPIC_METRICS, counts, strict=True):
            samples[metric.name].append(((name,), sum(map(holds, topic.partitions))))
    return samples
