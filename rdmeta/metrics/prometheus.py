"""The metrics as families of prometheus-client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from rdmeta.errors import MissingExtraError

try:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtraError.of("rdmeta.metrics.collector()", "metrics") from error

from rdmeta.metrics import samples
from rdmeta.metrics.samples import CLUSTER, METRICS, TOPIC_METRICS, Metric

if TYPE_CHECKING:
    from rdmeta.metrics.samples import AnyClient, MinIsrOfTopics

Family: TypeAlias = "CounterMetricFamily | GaugeMetricFamily"


class ClientCollector(Collector):
    """Collects the metrics of clients; threads may share it."""

    def __init__(
        self,
        clients: tuple[AnyClient, ...],
        per_topic: tuple[str, ...],
        min_isr: MinIsrOfTopics | None,
    ) -> None:
        self._clients = clients
        self._min_isr = min_isr
        self._topics = per_topic
        self._metrics = METRICS + (TOPIC_METRICS if per_topic else ())

    def describe(self) -> Iterator[Family]:
        """Yields the families without series, so that a registration reads no client."""
        return map(_family, self._metrics)

    def collect(self) -> Iterator[Family]:
        """Yields the families with their values now."""
        found = [
            (cluster, samples.read(client, self._topics, self._min_isr))
            for cluster, client in zip(
                samples.clusters_of(self._clients), self._clients, strict=True
            )
        ]
        for metric in self._metrics:
            family = _family(metric)
            for cluster, values in found:
                for labels, value in values.get(metric.name, ()):
                    family.add_metric([cluster, *labels], value)
            yield family


def _family(metric: Metric) -> Family:
    make = CounterMetricFamily if metric.only_grows else GaugeMetricFamily
    return make(metric.name, metric.doc, labels=(CLUSTER, *metric.labels))


def collector_of(
    clients: tuple[AnyClient, ...], per_topic: Iterable[str], min_isr: MinIsrOfTopics | None
) -> Collector:
    """Returns the collector; raises TypeError for what is no client."""
    samples.checked(clients)
    return ClientCollector(clients, samples.names_of(per_topic), min_isr)
