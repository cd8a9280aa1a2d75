"""health(): the counts of a source, beside a walk over its Topic objects."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import frames
import pytest
from clocks import Clock
from frames import B, P, T

from rdmeta import ALL, Health, Image, MalformedError, MetadataCache, Reading, attach
from rdmeta.ffi import ffi, lib, reader


def walked(reading: Reading, *, allow_stale: bool = False) -> Health:
    """Returns what health() should return, by a walk over Topic and Partition objects."""
    topics = reading.topics(allow_stale=allow_stale)
    rows = [row for topic in topics for row in topic.partitions]
    ids = {broker.id for broker in reading.brokers}
    led = [row for row in rows if row.leader is not None and not row.leaderless]
    ids |= {row.leader for row in led if row.leader is not None}
    ids |= {replica for row in rows for replica in row.replicas}
    return Health(
        topics=len(topics),
        partitions=len(rows),
        replicas=sum(len(row.replicas) for row in rows),
        leaderless=len(rows) - len(led),
        under_replicated=sum(len(row.isr) < len(row.replicas) for row in rows),
        offline=sum(row.offline_replicas != () for row in rows),
        non_preferred=sum(row.leader != row.replicas[0] for row in led if row.replicas),
        leaders={id: sum(row.leader == id for row in led) for id in sorted(ids)},
        replicas_on={id: sum(row.replicas.count(id) for row in rows) for id in sorted(ids)},
    )


def random_topic(draw: random.Random, name: str, epoch: int, brokers: int) -> T:
    """Returns a topic whose partitions have any leader, replicas, ISR and offline replicas."""
    if draw.random() < 0.05:
        return T(name, [], error=draw.choice([3, 29]))
    rows = []
    for number in range(draw.randrange(1, 12)):
        replicas = draw.sample(range(brokers), draw.randrange(1, 5))
        isr = [id for id in replicas if draw.random() < 0.9]
        leader = draw.choice(isr) if isr and draw.random() < 0.9 else -1
        offline = tuple(set(replicas) - set(isr))
        rows.append(P(number, leader, epoch, tuple(replicas), tuple(isr), offline))
    return T(name, rows)


@pytest.mark.slow
def test_random_states_have_the_counts_of_a_walk_over_their_objects(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    draw = random.Random(seed)
    path = tmp_path / "image"
    for _ in range(15):
        clock = Clock()
        cache = MetadataCache(clock=clock, max_age=10)
        brokers = draw.choice([6, 40, 400])
        for epoch in range(1, 5):
            names = [f"t{i}" for i in range(60) if draw.random() < 0.7]
            topics = [random_topic(draw, name, epoch, brokers) for name in names]
            known = [B(id) for id in range(brokers) if draw.random() < 0.8] or [B(1)]
            cache.apply(frames.response(12, topics, known), 12, draw.choice((ALL, None)))
            clock.advance(draw.choice([0.1, 6]))
            image = cache.image()
            image.save(path)
            for reading in (cache, image, Image.open(path), attach(path)):
                for stale in (False, True):
                    expected = walked(reading, allow_stale=stale)
                    assert reading.health(allow_stale=stale) == expected


def test_an_empty_cache_has_no_partition_and_no_broker() -> None:
    health = MetadataCache().health()
    assert health == Health(0, 0, 0, 0, 0, 0, 0, {}, {})


def test_more_brokers_than_there_was_room_for_are_all_counted() -> None:
    cache = MetadataCache()
    rows = [P(i, 1000 * i, 1, (1000 * i, 1000 * i + 1)) for i in range(400)]
    cache.apply(frames.response(12, [T("wide", rows)], [B(1)]), 12)
    health = cache.health()
    assert health == walked(cache)
    assert len(health.leaders) == len(health.replicas_on) == 800
    assert list(health.leaders) == sorted(health.leaders)


def test_a_known_broker_without_partitions_has_zeros() -> None:
    cache = MetadataCache()
    cache.apply(frames.response(12, [T("orders", [P(0, 1, 1, (1,))])], [B(1), B(7)]), 12)
    assert cache.health().leaders == {1: 1, 7: 0}
    assert cache.health().replicas_on == {1: 1, 7: 0}


def test_threads_count_while_a_writer_writes() -> None:
    cache = MetadataCache()
    bodies = [
        frames.response(12, [T(f"t{i}", [P(p, -1 if p < n else 1, n) for p in range(4)])
                             for i in range(50)])
        for n in (1, 2, 3)
    ]  # fmt: skip
    cache.apply(bodies[0], 12, ALL)
    seen: list[Health] = []
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            seen.append(cache.health())

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(60):
        cache.apply(bodies[n % 3], 12, ALL)
    done.set()
    for thread in threads:
        thread.join()
    assert seen
    for health in seen:
        assert health.partitions == 200
        assert health.leaderless + sum(health.leaders.values()) == 200


def test_a_damaged_image_raises(tmp_path: Path) -> None:
    cache = MetadataCache()
    cache.apply(frames.response(12, [T(f"t{i}", [P(0, 1, 1)]) for i in range(50)]), 12, ALL)
    path = tmp_path / "image"
    cache.image().save(path)
    good = path.read_bytes()
    place = good.rindex(b"t49") - 8  # the number of partitions, in the topic's hot part
    path.write_bytes(good[:place] + b"\xff\xff\xff\x1f" + good[place + 4 :])
    with pytest.raises(MalformedError):
        Image.open(path).health()


def test_the_counts_are_the_same_through_cffi() -> None:
    cache = MetadataCache()
    rows = [P(0, 1, 1, (1, 2)), P(1, 2, 1, (1, 2), (2,), (1,)), P(2, -1, 1, (3,))]
    cache.apply(frames.response(12, [T("orders", rows)]), 12)
    brokers = ffi.new("rdmeta_broker_health_t[3]")
    out = ffi.new("rdmeta_health_t *", {"brokers": brokers, "capacity": 3})
    source = reader(cache)
    now = 1
    assert lib.rdmeta_reader_health(source, lib.RDMETA_WALK_VALID, now, out) == 0
    expected = cache.health()
    for name in Health._fields[:7]:
        assert getattr(out, name) == getattr(expected, name)
    assert {b.broker: b.leaders for b in brokers} == expected.leaders
    assert {b.broker: b.replicas for b in brokers} == expected.replicas_on
