"""The results of the compat classes during writes, and for stale topics."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any

import frames
import pytest
from aiokafka.cluster import ClusterMetadata as RealAiokafka
from clocks import Clock
from confluent_kafka import KafkaError, KafkaException
from frames import B, P, T
from kafka.cluster import ClusterMetadata as RealKafka
from kafka.protocol.metadata import MetadataResponse

from rdmeta import ALL, Attached, MetadataCache, TopicPartition
from rdmeta.compat import aiokafka, kafka_python
from rdmeta.compat._cluster import complete
from rdmeta.compat.confluent import ClusterLister, list_topics

SHAPES = [aiokafka.ClusterMetadata, kafka_python.ClusterMetadata]
# Before v9 epochs do not decide, so two answers can take turns.
VERSION = 8
LONG_S = 1000.0


class Moving(MetadataCache):
    """A cache that another writer changes between any two readings."""

    moves: tuple[Callable[[], object], ...] = ()

    def move(self) -> None:
        if self.moves:
            first, *others = self.moves
            self.moves = (*others, first)
            first()


def _called(name: str) -> Any:
    original = getattr(MetadataCache, name)

    def read(self: Moving, *args: Any, **kwargs: Any) -> Any:
        self.move()
        return original(self, *args, **kwargs)

    return read


def _asked(name: str) -> Any:
    original = getattr(MetadataCache, name)

    def read(self: Moving) -> Any:
        self.move()
        return original.__get__(self)

    return property(read)


_CALLED = (
    "leader last_leader state partition topic topic_by_id names topics partitions_on broker age"
)
for _name in (*_CALLED.split(), "source", "image", "stats", "__len__", "__iter__"):
    setattr(Moving, _name, _called(_name))
for _name in ("brokers", "controller", "cluster_id"):
    setattr(Moving, _name, _asked(_name))


# ---- two states that take turns -----------------------------------------------------------------


def _answer(leaders: tuple[int, int], first: int, replica: int = 0, **denied: int) -> bytes:
    """Returns an answer with the brokers `first` and the next one.

    They have all replicas, unless `replica` and the next one have them. Topics "x" and "y" may be
    denied.
    """
    brokers = (first, first + 1)
    pair = (replica, replica + 1) if replica else brokers
    orders = [P(i, leader, 0, pair, error=5 * (leader < 0)) for i, leader in enumerate(leaders)]
    topics = [
        T("orders", orders),
        T("__own", [P(0, first, 0, pair)], internal=True),
        *(T(name, [P(0, first, 0, pair)] * (not e), error=e) for name, e in denied.items()),
    ]
    return frames.response(
        VERSION,
        topics,
        [B(id, f"b{id}.example") for id in brokers],
        controller=first,
        cluster_id=None,
    )


# The two states of each case: an answer, and the seconds without an answer after it.
TURNS: dict[str, tuple[tuple[bytes, float], tuple[bytes, float]]] = {
    "brokers are replaced": ((_answer((1, 2), 1), 0), (_answer((3, 4), 3), 0)),
    "a leader comes and goes": ((_answer((1, 2), 1), 0), (_answer((-1, 2), 1), 0)),
    "replicas move": ((_answer((2, 2), 2, 1), 0), (_answer((2, 2), 1, 2), 0)),
    "time passes": ((_answer((1, 2), 1), 0), (_answer((1, 2), 1), 100)),
    "without a leader": ((_answer((-1, 2), 1), 0), (_answer((2, 2), 1), 100)),
    "denials": ((_answer((1, 2), 1, x=29, y=0), 0), (_answer((1, 2), 1, x=0, y=29), 0)),
}


def _turn(cache: MetadataCache, clock: Clock, state: tuple[bytes, float]) -> None:
    cache.apply(state[0], VERSION, ALL)
    clock.advance(state[1])


def _plain(value: Any) -> Any:
    """Returns a value in a form that can be compared."""
    if isinstance(value, set | list | tuple) and not hasattr(value, "_fields"):
        return sorted(map(_plain, value), key=repr)
    return repr(value) if "Broker" in type(value).__name__ else value


def _tree(found: Any) -> Any:
    """Returns everything in a ClusterMetadata of confluent-kafka."""
    return (
        found.controller_id,
        found.orig_broker_id,
        found.orig_broker_name,
        sorted((b.id, b.host) for b in found.brokers.values()),
        sorted(
            (
                t.topic,
                t.error and t.error.code(),
                [
                    (p.id, p.leader, p.replicas, p.error and p.error.code())
                    for p in t.partitions.values()
                ],
            )
            for t in found.topics.values()
        ),
    )


def _questions() -> dict[str, Callable[[Any], Any]]:
    """Returns the lookups of the test: functions of a cache, by name."""
    first = TopicPartition("orders", 0)
    found: dict[str, Callable[[Any], Any]] = {
        "list_topics": lambda c: _tree(list_topics(c, timeout=0)),
        "list_topics of one": lambda c: _tree(list_topics(c, "orders", timeout=0)),
    }
    of_shape: dict[str, Callable[[Any], Any]] = {
        "brokers": lambda s: s.brokers(),
        "topics": lambda s: s.topics(),
        "unauthorized_topics": lambda s: (s.unauthorized_topics, s.topics(), s.unauthorized_topics)[
            2
        ],
        "controller": lambda s: s.controller,
        "partitions_for_topic": lambda s: s.partitions_for_topic("orders"),
        "available": lambda s: s.available_partitions_for_topic("orders"),
        "str": str,
        "leader": lambda s: s.leader_for_partition(first),
        "led by 1": lambda s: s.partitions_for_broker(1),
        "led by 3": lambda s: s.partitions_for_broker(3),
    }
    of_kafka: dict[str, Callable[[Any], Any]] = {
        "replica 1": lambda s: s.is_replica_node(first, 1),
        "replica 3": lambda s: s.is_replica_node(first, 3),
    }
    for shape in SHAPES:
        named = of_shape | (of_kafka if shape is kafka_python.ClusterMetadata else {})
        for what, ask in named.items():
            for stale in (False, True):
                found[f"{shape.__module__} {what} {stale}"] = partial(_ask, ask, shape, stale)
    return found


def _ask(ask: Callable[[Any], Any], shape: Any, stale: bool, cache: Any) -> Any:
    return _plain(ask(shape(cache, allow_stale=stale)))


@pytest.mark.parametrize("turns", TURNS)
def test_a_result_during_writes_was_true_at_one_moment(turns: str) -> None:
    times: dict[str, Any] = {"max_age": 50, "denied_ttl": LONG_S, "negative_ttl": LONG_S}
    for what, ask in _questions().items():
        possible = []
        for state in TURNS[turns]:
            clock = Clock()
            cache = MetadataCache(clock=clock, **times)
            _turn(cache, clock, state)
            possible.append(ask(cache))
        for first in (0, 1):
            clock = Clock()
            moving = Moving(clock=clock, **times)
            _turn(moving, clock, TURNS[turns][1 - first])
            states = TURNS[turns][first], TURNS[turns][1 - first]
            moving.moves = tuple(partial(_turn, moving, clock, state) for state in states)
            for _ in range(3):
                assert ask(moving) in possible, what


def test_a_topic_that_is_removed_while_ttl_reads_its_age_is_no_error() -> None:
    cache = MetadataCache()
    body = frames.response(12, [T("orders")])
    ours = kafka_python.ClusterMetadata(cache)
    ours.set_topics(["orders", "never"])
    ours.update_metadata(MetadataResponse.decode(body, version=12))
    assert 0 < ours.ttl() <= 300_000

    class Going(MetadataCache):
        def names(self, **how: Any) -> list[str]:
            found = super().names(**how)
            self.apply(frames.response(12, [T("orders", [], error=3)]), 12, ["orders"])
            return found

    ours.cache = Going()
    ours.cache.apply(body, 12, ["orders"])
    assert 0 < ours.ttl() <= 300_000


@pytest.mark.parametrize("when", range(8))
@pytest.mark.parametrize("leader", [-1, 2])
def test_a_leader_that_a_hint_removed_does_not_come_back_with_the_next_answer(
    leader: int, when: int
) -> None:
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    body = frames.response(12, [T("orders", [P(0, leader, 7), P(1, 1, 5)])])
    led = {first} if leader == 2 else None

    def hinted() -> tuple[Any, Moving]:
        cache = Moving()
        cache.apply(frames.response(12, [T("orders", [P(0, 1, 5), P(1, 1, 5)])]), 12, ALL)
        ours = kafka_python.ClusterMetadata(cache)
        assert ours.update_partition_leader(first, -1, 6)
        moves: list[Callable[[], object]] = [lambda: None] * 8
        moves[when] = lambda: cache.apply(body, 12, ALL)
        cache.moves = tuple(moves)
        return ours, cache

    questions: list[tuple[Callable[[Any], Any], list[Any]]] = [
        (lambda s: s.available_partitions_for_topic("orders"), [{1}, {0, 1} if led else {1}]),
        (lambda s: s.partitions_for_broker(1), [{second}]),
        (lambda s: s.partitions_for_broker(2), [None, led]),
        (lambda s: s.leader_for_partition(first), [-1, leader]),
        (lambda s: s.leader_epoch_for_partition(first), [6, 7]),
    ]
    for ask, before_and_after in questions:
        ours, cache = hinted()
        assert ask(ours) in before_and_after
        cache.moves = ()
        cache.apply(body, 12, ALL)
        assert ask(ours) == before_and_after[-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_broker_whose_id_is_0_leads_as_any_other(shape: Any) -> None:
    cache = MetadataCache()
    cache.apply(_answer((0, -1), 0), VERSION, ALL)
    ours = shape(cache)
    assert ours.available_partitions_for_topic("orders") == {0}
    assert ours.leader_for_partition(TopicPartition("orders", 0)) == 0
    assert ours.partitions_for_broker(0) >= {TopicPartition("orders", 0)}


# ---- past the deadline --------------------------------------------------------------------------


@pytest.mark.parametrize("error", [5, 0])
def test_a_leaderless_partition_stays_leaderless_past_its_deadline(error: int) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10)
    theirs: tuple[Any, ...] = (RealKafka(), RealAiokafka())
    for leader, epoch in ((2, 5), (-1, 6)):
        orders = [P(0, leader, epoch, error=error * (leader < 0)), P(1, 1, epoch)]
        body = frames.response(12, [T("orders", orders)])
        cache.apply(body, 12, ALL)
        theirs[0].update_metadata(MetadataResponse.decode(body, version=12))
    first = TopicPartition("orders", 0)
    assert theirs[0].leader_for_partition(first) == -1
    for _ in range(2):
        for shape in SHAPES:
            ours = shape(cache, allow_stale=True)
            assert ours.leader_for_partition(first) == -1
            assert ours.leader_for_partition(TopicPartition("orders", 1)) == 1
            assert ours.available_partitions_for_topic("orders") == {1}
            assert ours.partitions_for_broker(2) is None
            assert ours.partitions_for_broker(1) == {TopicPartition("orders", 1)}
        for found in (list_topics(cache), list_topics(cache, "orders")):
            partition = found.topics["orders"].partitions[0]
            assert (partition.leader, partition.error and partition.error.code()) == (
                -1,
                error or None,
            )
        clock.advance(100)


def test_time_ends_denials_and_leaders_of_an_attached_reader(tmp_path: Path) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=50, negative_ttl=10, denied_ttl=10)
    topics = [T("orders"), T("gone", [], error=3), T("secret", [], error=29)]
    cache.apply(frames.response(12, topics), 12, ALL)
    cache.image().save(tmp_path / "state")
    attached = Attached(tmp_path / "state", clock=clock)
    lister = ClusterLister(attached)
    found = lister.list_topics("gone", timeout=0).topics["gone"]
    assert found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert set(lister.list_topics(timeout=0).topics) == {"orders", "secret"}
    ours = kafka_python.ClusterMetadata(attached)
    assert (ours.partitions_for_broker(1), ours.ttl()) == ({TopicPartition("orders", 0)}, 300_000)
    clock.advance(100)
    for name in ("gone", "secret"):
        with pytest.raises(KafkaException, match="was not known"):
            lister.list_topics(name, timeout=0)
    assert set(lister.list_topics(timeout=0).topics) == {"orders"}
    assert lister.list_topics("orders", timeout=0).topics["orders"].partitions[0].leader == 1
    assert (ours.partitions_for_broker(1), ours.ttl()) == (None, 200_000)


def test_who_waits_for_a_future_that_was_cancelled_learns_of_it() -> None:
    future: Future[object] = Future()
    future.cancel()
    complete(future, 1, None)
    assert wait([future], 0).done == {future}
