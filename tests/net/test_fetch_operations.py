"""fetch(operations=True): what the principal may do with topics and with the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from broker import DESCRIBE_CLUSTER, METADATA, Brokers

from rdmeta import MetadataCache, UnsupportedVersionError, fetch
from rdmeta.model import operation_names

READ_DESCRIBE, CREATE_ALTER = 1 << 3 | 1 << 8, 1 << 5 | 1 << 7


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers(1) as made:
        orders = made.truth.create("orders")
        made.truth.topics["orders"] = replace(orders, operations=READ_DESCRIBE)
        made.truth.operations = CREATE_ALTER
        yield made


@pytest.mark.parametrize("version", range(8, 14))
def test_operations_come_with_every_version_that_has_them(brokers: Brokers, version: int) -> None:
    brokers[1].ranges[METADATA] = (0, version)
    if version <= 10:
        del brokers[1].ranges[DESCRIBE_CLUSTER]
    cache = MetadataCache()
    applied = fetch(cache, brokers.bootstrap, operations=True)
    assert applied.cluster_operations == CREATE_ALTER
    assert cache.topic("orders").operations == READ_DESCRIBE
    assert brokers[1].count(DESCRIBE_CLUSTER) == (version > 10)
    assert len(brokers[1].accepted) == 1


def test_without_the_argument_nothing_is_asked(brokers: Brokers) -> None:
    cache = MetadataCache()
    assert fetch(cache, brokers.bootstrap).cluster_operations is None
    assert cache.topic("orders").operations is None
    assert brokers[1].count(DESCRIBE_CLUSTER) == 0


def test_no_right_at_all_is_an_empty_field_and_not_none(brokers: Brokers) -> None:
    brokers.truth.operations = 0
    brokers.truth.topics["orders"] = replace(brokers.truth.topics["orders"], operations=0)
    cache = MetadataCache()
    assert fetch(cache, brokers.bootstrap, ["orders"], operations=True).cluster_operations == 0
    assert cache.topic("orders").operations == 0
    assert operation_names(0) == ()


def test_a_broker_before_2_3_cannot_say_them(brokers: Brokers) -> None:
    brokers[1].ranges[METADATA] = (0, 7)
    with pytest.raises(UnsupportedVersionError):
        fetch(MetadataCache(), brokers.bootstrap, operations=True)


def test_a_broker_without_describe_cluster_says_only_those_of_topics(brokers: Brokers) -> None:
    del brokers[1].ranges[DESCRIBE_CLUSTER]
    cache = MetadataCache()
    assert fetch(cache, brokers.bootstrap, operations=True).cluster_operations is None
    assert cache.topic("orders").operations == READ_DESCRIBE
