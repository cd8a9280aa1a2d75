"""The instruments, as the SDK of OpenTelemetry collects them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from broker import Brokers
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, InMemoryMetricReader, Sum
from scrape import Series, scraped
from shells import Maker

import rdmeta
from rdmeta import ALL
from rdmeta.metrics.samples import METRICS, TOPIC_METRICS

# By the name of an instrument the name of Prometheus.
PROMETHEUS = {each.dotted: each.name for each in METRICS + TOPIC_METRICS}
Inner = Callable[[Any], Any]


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    made = MeterProvider([reader])
    yield made
    made.shutdown()


def metrics_of(reader: InMemoryMetricReader) -> list[Any]:
    """Returns the metrics of one collection."""
    data = reader.get_metrics_data()
    return [
        metric
        for resource in (data.resource_metrics if data else [])
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]


def collected(reader: InMemoryMetricReader) -> dict[str, Series]:
    """Returns the values of one collection, in the form of scraped()."""
    found: dict[str, Series] = {}
    for metric in metrics_of(reader):
        for point in metric.data.data_points:
            labels = dict(point.attributes)
            assert labels.pop("cluster")
            key = tuple(str(labels[name]) for name in sorted(labels))
            found.setdefault(PROMETHEUS[metric.name], {})[key] = point.value
    return found


def test_a_collection_has_the_values_of_a_scrape(
    make: Maker,
    brokers: Brokers,
    inner: Inner,
    reader: InMemoryMetricReader,
    provider: MeterProvider,
) -> None:
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    brokers.truth.lead("orders", 0, -1)
    client.refresh(ALL)
    client.close()  # nothing changes any more, but the age
    names = ["orders"]
    rdmeta.metrics.instruments(inner(client), provider.get_meter("test"), per_topic=names)
    found, theirs = collected(reader), scraped(inner(client), per_topic=names)
    (age,), (their_age,) = (
        each.pop("rdmeta_refresh_age_seconds").values() for each in (found, theirs)
    )
    assert found == theirs
    assert 0 <= age <= their_age
    assert found["rdmeta_leaderless_partitions"] == {(): 1}


def test_a_collection_reads_the_client_once_and_the_next_one_anew(
    make: Maker,
    brokers: Brokers,
    inner: Inner,
    reader: InMemoryMetricReader,
    provider: MeterProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = inner(make(brokers.bootstrap))
    read, reads = client._stats_anywhere, list[float]()

    def counted() -> Any:
        reads.append(time.monotonic())
        return read()

    monkeypatch.setattr(client, "_stats_anywhere", counted)
    rdmeta.metrics.instruments(client, provider.get_meter("test"))
    assert reads == []
    for times in (1, 2, 3):
        assert len(collected(reader)) > 10
        assert len(reads) == times


def test_values_follow_the_client(
    make: Maker,
    brokers: Brokers,
    inner: Inner,
    reader: InMemoryMetricReader,
    provider: MeterProvider,
) -> None:
    client = make(brokers.bootstrap)
    rdmeta.metrics.instruments(inner(client), provider.get_meter("test"))
    assert collected(reader)["rdmeta_up"] == {(): 0}
    client.refresh(ALL)
    found = collected(reader)
    assert found["rdmeta_up"] == {(): 1}
    assert found["rdmeta_cache_partitions"] == {(): 6}
    client.close()
    assert collected(reader)["rdmeta_up"] == {(): 0}


def test_instruments_have_types_units_and_texts(
    reader: InMemoryMetricReader, provider: MeterProvider
) -> None:
    client = rdmeta.Client({"bootstrap.servers": "localhost:1"})
    rdmeta.metrics.instruments(client, provider.get_meter("test"))
    found = {metric.name: metric for metric in metrics_of(reader)}
    changes, size = found["rdmeta.changes"], found["rdmeta.cache.size"]
    assert isinstance(changes.data, Sum)
    assert changes.data.is_monotonic
    assert isinstance(size.data, Gauge)
    assert (size.unit, changes.unit, found["rdmeta.topic.due"].unit) == (
        "By",
        "{change}",
        "{topic}",
    )
    assert found["rdmeta.partition.leaderless"].description == "There is no leader"


def test_names_have_dots_no_unit_and_are_no_namespace_of_others() -> None:
    assert len(PROMETHEUS) == len(METRICS + TOPIC_METRICS)
    for name in PROMETHEUS:
        assert re.fullmatch(r"rdmeta(\.[a-z]+(_[a-z]+)*)+", name)
        assert not name.endswith(("total", "seconds", "bytes"))
        assert not any(other.startswith(f"{name}.") for other in PROMETHEUS)


def test_what_is_no_client_is_refused(provider: MeterProvider) -> None:
    with pytest.raises(TypeError, match="expected a Client or an AsyncClient"):
        rdmeta.metrics.instruments(rdmeta.MetadataCache(), provider.get_meter("t"))  # type: ignore[arg-type]
