"""What a scrape of Prometheus reads."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import rdmeta

# The labels of a series without `cluster`, in the order of their names, and its value.
Series = dict[tuple[str, ...], float]


def scraped_text(*clients: Any, **more: Any) -> str:
    """Returns the text that a registry with a collector of these clients gives."""
    registry = CollectorRegistry()
    registry.register(rdmeta.metrics.collector(*clients, **more))
    return generate_latest(registry).decode()


def by_cluster(text: str) -> dict[str, dict[str, Series]]:
    """Returns the values of a scrape: by cluster, by metric, by the values of the other labels."""
    found: dict[str, dict[str, Series]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            series = found.setdefault(labels.pop("cluster"), {}).setdefault(sample.name, {})
            key = tuple(labels[name] for name in sorted(labels))
            assert key not in series, f"{sample} comes twice"
            series[key] = sample.value
    return found


def scraped(client: Any, **more: Any) -> dict[str, Series]:
    """Returns the values of a scrape of one client, by metric."""
    (found,) = by_cluster(scraped_text(client, **more)).values()
    return found


def single(found: dict[str, Series], name: str) -> float:
    """Returns the value of a metric that has one series, without labels."""
    (value,) = found[name].values()
    return value
