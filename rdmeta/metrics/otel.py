"""The metrics as observable instruments of OpenTelemetry."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rdmeta.errors import MissingExtraError

try:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
except ImportError as error:
    raise MissingExtraError.of("rdmeta.metrics.instruments()", "metrics") from error

from rdmeta.metrics import samples
from rdmeta.metrics.samples import CLUSTER, METRICS, TOPIC_METRICS, Metric, Samples

if TYPE_CHECKING:
    from rdmeta.metrics.samples import AnyClient, MinIsrOfTopics


class _Reading:
    """One reading of a client for all instruments of a collection.

    A collection asks each instrument once. So an instrument that is asked again begins a new one.
    """

    def __init__(
        self, client: AnyClient, per_topic: tuple[str, ...], min_isr: MinIsrOfTopics | None
    ) -> None:
        self._client, self._topics, self._min_isr = client, per_topic, min_isr
        self._lock = threading.Lock()
        self._cluster = ""
        self._samples: Samples = {}
        self._asked: set[str] | None = None

    def of(self, metric: Metric) -> list[Observation]:
        """Returns the values of a metric."""
        with self._lock:
            if self._asked is None or metric.name in self._asked:
                (self._cluster,) = samples.clusters_of([self._client])
                self._samples = samples.read(self._client, self._topics, self._min_isr)
                self._asked = set()
            self._asked.add(metric.name)
            cluster, found = self._cluster, self._samples.get(metric.name, [])
        names = (CLUSTER, *metric.labels)
        return [
            Observation(value, dict(zip(names, (cluster, *labels), strict=True)))
            for labels, value in found
        ]


def make(
    client: AnyClient, meter: Meter, per_topic: Iterable[str], min_isr: MinIsrOfTopics | None
) -> None:
    """Makes the instruments; raises TypeError for what is no client."""
    samples.checked([client])
    names = samples.names_of(per_topic)
    reading = _Reading(client, names, min_isr)
    for metric in METRICS + (TOPIC_METRICS if names else ()):
        create = (
            meter.create_observable_counter if metric.only_grows else meter.create_observable_gauge
        )
        create(metric.dotted, [_callback(reading, metric)], metric.unit, metric.doc)


def _callback(
    reading: _Reading, metric: Metric
) -> Callable[[CallbackOptions], Iterator[Observation]]:
    return lambda options: iter(reading.of(metric))
