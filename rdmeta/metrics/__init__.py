"""Metrics of clients and of their clusters, for Prometheus and OpenTelemetry: extra `metrics`.

    registry.register(rdmeta.metrics.collector(client))        # prometheus_client.REGISTRY
    rdmeta.metrics.instruments(client, meter)                  # opentelemetry.metrics.get_meter()

Both read the client's stats() and its cache's health() when they are asked. They have no thread.
docs/metrics.md lists the metrics, and an alert for each condition that matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from prometheus_client.registry import Collector

    from rdmeta.metrics.samples import AnyClient, MinIsrOfTopics

__all__ = ["collector", "instruments"]


def collector(
    *clients: AnyClient, per_topic: Iterable[str] = (), min_isr: MinIsrOfTopics | None = None
) -> Collector:
    """Returns a collector for a registry of prometheus-client.

        prometheus_client.REGISTRY.register(rdmeta.metrics.collector(client))
        prometheus_client.start_http_server(9100)

    A scrape reads each Client or AsyncClient once, in the thread that scrapes. The label `cluster`
    is the cluster's id, or the text of `bootstrap.servers` as long as the id is not known. If
    several clients have the same label, "/2" and so on follows it from the second one on.

    A client that is closed, or cannot be read, has `rdmeta_up` 0. The collector refers to the
    clients, so none of them closes itself. There are series of single topics only for the names in
    `per_topic`, as long as the cache has the topic.

    Metadata has no min.insync.replicas. `min_isr` returns what is known of a client's topics, by
    their names, such as from describe_configs(). The metrics of min ISR count the partitions of
    those topics; without any there is no series. Each scrape calls it, so it must not wait.

    Raises MissingExtraError without prometheus-client, TypeError for what is no client.
    """
    from rdmeta.metrics.prometheus import collector_of

    return collector_of(clients, per_topic, min_isr)


def instruments(
    client: AnyClient,
    meter: Meter,
    *,
    per_topic: Iterable[str] = (),
    min_isr: MinIsrOfTopics | None = None,
) -> None:
    """Makes observable instruments of OpenTelemetry for a Client or an AsyncClient.

        rdmeta.metrics.instruments(client, opentelemetry.metrics.get_meter("rdmeta"))

    They have the values and labels of collector(); a label is an attribute. Names have dots:
    rdmeta_changes_total is "rdmeta.changes". A collection reads the client once. A meter has
    one instrument of a name: give each client its own meter.

    Raises MissingExtraError without opentelemetry-api, TypeError for what is no client.
    """
    from rdmeta.metrics.otel import make

    make(client, meter, per_topic, min_isr)
