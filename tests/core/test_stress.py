"""Threads that look up, walk, wait and take images while other threads write.

Each reader can check what it reads. The leader, replicas and ISR of a partition follow from its
topic, id and epoch. All partitions of a topic have one epoch. STRESS_SECONDS sets the duration.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from frames import B, P, T, response, topic_id

from rdmeta import ALL, MetadataCache
from rdmeta.errors import NotCachedError, RequestTimedOutError

SECONDS = float(os.environ.get("STRESS_SECONDS", "4"))
TOPICS, BROKERS = 60, 9
NAMES = [f"{'a-rather-long-name-of-a-' * (i % 3)}topic-{i:03d}" for i in range(TOPICS)]
SHAPES = [(3 * i) % 17 + 1 for i in range(TOPICS)]
ABSENT = (None, -100, -101, -103)


def partition_at(topic: int, partition: int, epoch: int) -> P:
    """Returns the only state that a partition can have at an epoch."""
    mixed = hash((topic, partition, epoch))
    replicas = tuple((mixed + i) % BROKERS + 1 for i in range(3))
    isr = replicas[: 2 + mixed % 2]
    return P(partition, isr[mixed % 2], epoch, replicas, isr)


class StressFixture:
    """A cache, the epoch of each topic, and the steps of writers and readers."""

    def __init__(self, seed: int) -> None:
        self.cache = MetadataCache(ring_bytes=1 << 16)
        self.seed = seed
        self.epochs = [0] * TOPICS
        self.lock = threading.Lock()
        self.end = time.monotonic() + SECONDS

    # ---- writers

    def answer(self, topics: list[int]) -> bytes:
        return response(
            12,
            [
                T(
                    NAMES[i],
                    [partition_at(i, p, self.epochs[i]) for p in range(SHAPES[i])],
                    topic_id((i, 0)),
                )
                for i in topics
            ],
            [B(i + 1, port=9092 + self.epochs[0] % 2) for i in range(BROKERS)],
        )

    def write(self, rng: random.Random) -> None:
        cache, some = self.cache, rng.sample(range(TOPICS), rng.randint(1, 8))
        names = [NAMES[i] for i in some]
        kind = rng.randrange(20)
        if kind == 0:
            cache.purge()
        elif kind == 1:
            cache.hint(names, force=True)
            cache.apply_failure(names)
        elif kind == 2:
            cache.sweep()
            cache.forget(names)
            assert {topic for topic, _ in cache.due()} <= set(NAMES)
        with self.lock:
            for i in some:
                self.epochs[i] += 1
            if kind == 3:
                cache.apply(self.answer(list(range(TOPICS))), 12, ALL, 1)
            elif kind == 4:
                cache.apply(self.answer(some), 12, None, 2)
            else:
                cache.apply(self.answer(some), 12, names, rng.randint(1, 3))

    # ---- readers

    def look_up(self, rng: random.Random) -> None:
        for _ in range(50):
            i = rng.randrange(TOPICS)
            p = rng.randrange(SHAPES[i])
            found = self.cache.partition(NAMES[i], p, None)
            if found is not None:
                self.check_partition(i, found)
            leader = self.cache.leader(NAMES[i], p, None)
            assert leader is None or 1 <= leader <= BROKERS
            assert self.cache.state(NAMES[i]) in (0, -100, -101)

    def check_partition(self, i: int, found: Any) -> None:
        want = partition_at(i, found.partition, found.leader_epoch)
        assert (found.topic, found.leader) == (NAMES[i], want.leader)
        assert (found.replicas, found.isr) == (want.replicas, want.isr)

    def check_topic(self, found: Any) -> int:
        i = int(found.name[-3:])
        assert found.name == NAMES[i]
        assert len(found.partitions) == SHAPES[i]
        assert len({p.leader_epoch for p in found.partitions}) == 1
        for p in found.partitions:
            self.check_partition(i, p)
        return i

    def look_at_topics(self, rng: random.Random) -> None:
        found = self.cache.topic(rng.choice(NAMES), None)
        if found is not None:
            self.check_topic(found)
        numbers = [self.check_topic(topic) for topic in self.cache.topics()]
        assert sorted(numbers, key=lambda i: NAMES[i].encode()) == numbers
        assert set(self.cache) <= set(NAMES)

    def look_up_many(self, rng: random.Random) -> None:
        some = [rng.randrange(TOPICS) for _ in range(200)]
        out = array("i", bytes(800))
        self.cache.leaders([NAMES[i] for i in some], [0] * 200, out)
        assert all(1 <= leader <= BROKERS or leader in ABSENT for leader in out)
        assert len({broker.port for broker in self.cache.brokers}) <= 1

    def follow(self, rng: random.Random) -> None:
        since = max(self.cache.version - rng.randrange(20), 0)
        for change in self.cache.changes(since).records:
            assert change.version > since
            if change.kind == "leader_changed":
                assert change.topic is not None
                assert change.partition is not None
                i, epoch = NAMES.index(change.topic), change.new_leader_epoch
                assert epoch is not None
                assert partition_at(i, change.partition, epoch).leader == change.new_leader
        assert self.cache.stats()["topics"] <= TOPICS

    def wait(self, rng: random.Random) -> None:
        since, name = self.cache.version, rng.choice(NAMES)
        version = self.cache.wait_change(since, 0.01, rng.choice([None, [name]]))
        assert version is None or version > since
        with suppress(RequestTimedOutError, NotCachedError):
            self.check_topic(self.cache.wait_for_topic(name, timeout=0.01))

    def wait_on_a_loop(self, rng: random.Random) -> None:
        async def several() -> None:
            since = self.cache.version
            waits = [
                self.cache.wait_change_async(since, 0.01, rng.choice([None, [rng.choice(NAMES)]]))
                for _ in range(20)
            ]
            for version in await asyncio.gather(*waits):
                assert version is None or version > since

        asyncio.run(several())

    def take_image(self, rng: random.Random) -> None:
        """Checks that an image returns the same after a while, whatever the writers do."""
        image = self.cache.image()
        names = rng.sample(NAMES, 10)
        first = [image.topic(name, None) for name in names]
        brokers = image.brokers
        for found in filter(None, first):
            self.check_topic(found)
        time.sleep(rng.random() * 0.05)
        assert [image.topic(name, None) for name in names] == first
        assert image.brokers == brokers
        assert [topic.name for topic in image.topics()] == list(image)

    def run(self, step: Callable[[random.Random], None], number: int) -> int:
        rng, done = random.Random(self.seed + number), 0
        while not done or time.monotonic() < self.end:
            step(rng)
            done += 1
        return done


@pytest.mark.proof
@pytest.mark.timeout(SECONDS + 60)
def test_readers_see_whole_states_whatever_the_writers_do() -> None:
    fixture = StressFixture(random.SystemRandom().getrandbits(32))
    print(f"seed {fixture.seed}")
    steps = [
        fixture.write,
        fixture.write,
        fixture.look_up,
        fixture.look_up,
        fixture.look_at_topics,
        fixture.look_up_many,
        fixture.follow,
        fixture.wait,
        fixture.wait_on_a_loop,
        fixture.take_image,
    ]
    with ThreadPoolExecutor(len(steps)) as pool:
        runs = [pool.submit(fixture.run, step, i) for i, step in enumerate(steps)]
        done = {step.__name__: run.result() for step, run in zip(steps, runs, strict=True)}
    print(done)
    assert all(done.values())
    stats = fixture.cache.stats()
    assert (stats["watches"], stats["waiters"]) == (0, 0)
