"""Which partitions need care, and how evenly brokers are loaded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rdmeta import Broker, Partition, health


def partition(
    leader: int | None = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] = (1, 2, 3),
    offline: tuple[int, ...] = (),
    leaderless: bool = False,
) -> Partition:
    return Partition(
        "t", None, 0, leader, 5, replicas, isr, offline, 0, leaderless=leaderless or leader is None
    )


@pytest.mark.parametrize(
    ("holds", "yes", "no"),
    [
        (health.is_leaderless, partition(leader=None), partition()),
        (health.is_leaderless, partition(leader=1, leaderless=True), partition(leader=9)),
        (health.is_under_replicated, partition(isr=(1, 2)), partition(isr=(3, 1, 2))),
        (health.is_under_replicated, partition(isr=()), partition(isr=(), replicas=())),
        (health.has_offline_replica, partition(offline=(3,)), partition(isr=(1,))),
        (health.is_not_preferred, partition(leader=2), partition(leader=1)),
        (health.is_not_preferred, partition(leader=3), partition(leader=None)),
        (health.is_not_preferred, partition(leader=3), partition(leader=2, leaderless=True)),
        (health.is_not_preferred, partition(leader=3), partition(replicas=())),
    ],
)
def test_a_condition_of_a_partition(
    holds: Callable[[Partition], bool], yes: Partition, no: Partition
) -> None:
    assert holds(yes)
    assert not holds(no)


def test_min_isr_is_compared_with_the_replicas_in_sync() -> None:
    two = partition(isr=(1, 2))
    under = [health.is_under_min_isr(two, least) for least in (1, 2, 3)]
    at = [health.is_at_min_isr(two, least) for least in (1, 2, 3)]
    assert (under, at) == ([False, False, True], [False, True, False])


def test_a_partition_is_lost_without_all_of_its_isr() -> None:
    assert health.is_lost_without(partition(isr=(2,)), {2})
    assert health.is_lost_without(partition(isr=(2, 3)), {1, 2, 3})
    assert not health.is_lost_without(partition(isr=(2, 3)), {2})
    assert not health.is_lost_without(partition(isr=()), {1, 2, 3})  # it is lost already


def test_counts_have_leaders_and_replicas_of_each_broker() -> None:
    partitions = [
        partition(leader=1),
        partition(leader=1, replicas=(1, 4)),
        partition(leader=2, leaderless=True),
        partition(leader=None),
    ]
    assert health.counts(partitions) == ({1: 2}, {1: 4, 2: 3, 3: 3, 4: 1})


BROKERS = [Broker(1, "a", 1, "east"), Broker(2, "b", 1, "west"), Broker(3, "c", 1, "west")]


def test_skew_is_the_share_above_the_mean() -> None:
    found = health.skew(BROKERS, {1: 4, 2: 2}, {1: 6, 2: 6, 3: 6})
    assert found.brokers == (
        (1, "east", 4, 1.0, 6, 0.0),
        (2, "west", 2, 0.0, 6, 0.0),
        (3, "west", 0, -1.0, 6, 0.0),
    )
    assert found.racks == (
        ("east", 1, 4, 4 / 3 - 1, 6, 6 / 9 - 1),
        ("west", 2, 2, 2 / 3 - 1, 12, 12 / 9 - 1),
    )


def test_a_broker_that_is_away_counts_in_the_mean_and_has_no_rack() -> None:
    found = health.skew(BROKERS[:1], {1: 2}, {1: 1, 9: 3})
    assert found.brokers == ((1, "east", 2, 1.0, 1, -0.5), (9, None, 0, -1.0, 3, 0.5))
    assert [rack.rack for rack in found.racks] == ["east", None]


def test_skew_of_nothing_has_no_means() -> None:
    assert health.skew([], {}, {}) == ((), ())
    without_racks = [each._replace(rack=None) for each in BROKERS]
    assert health.skew(without_racks, {}, {}) == (
        tuple((broker, None, 0, None, 0, None) for broker in (1, 2, 3)),
        (),
    )
