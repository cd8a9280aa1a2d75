"""A client under damaged frames: it reports them, stays within a bound of memory, and recovers.

RDMETA_DAMAGE_SECONDS says how long; `make nightly` takes a minute. A failure repeats, but for the
scheduling of threads, with the RDMETA_SEED that it prints.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from typing import Any

import damage
import pytest
from broker import API_VERSIONS, METADATA, Brokers, Fault
from shells import Maker
from waiting import until

from rdmeta import ALL
from rdmeta.errors import Error, MalformedError

LARGEST = 1 << 22
# Bytes of memory that this process may gain; brokers and client share it.
BOUND = 64 << 20
CONF = {
    "receive.message.max.bytes": LARGEST,
    "socket.timeout.ms": 500,
    "socket.connection.setup.timeout.ms": 1000,
    "topic.metadata.refresh.interval.ms": 200,
    "metadata.recovery.rebootstrap.trigger.ms": 2000,
    "metadata.max.age.ms": 60_000,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
}
TOPICS = 20
# Seconds within which each kind of damage must have come.
LONGEST = 120.0


def resident() -> int:
    """Returns this process's resident bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def truth_of(brokers: Brokers) -> dict[str, list[tuple[int, int]]]:
    """Returns the leaders and epochs of each topic, as the brokers know them."""
    return {
        name: [(p.leader, p.epoch) for p in topic.partitions]
        for name, topic in brokers.truth.topics.items()
    }


def known_of(client: Any, names: list[str]) -> dict[str, list[tuple[int, int | None]]]:
    """Returns the same as the client's cache knows it, without topics that it cannot look up."""
    known = {}
    for name in names:
        try:
            topic = client.cache.topic(name)
        except Error:
            continue
        known[name] = [(p.leader, p.leader_epoch) for p in topic.partitions]
    return known


def do_damage(brokers: Brokers, client: Any, rng: random.Random) -> Counter[str]:
    """Damages answers of all brokers for a while; returns how often each kind was asked for.

    On a busy machine it goes on until each kind has come.
    """
    rounds = {broker.id: damage.rounds(rng, LARGEST) for broker in brokers}
    done: Counter[str] = Counter()
    begin = time.monotonic()
    end = begin + damage.seconds(2.5)
    while time.monotonic() < end or (
        set(damage.KINDS) - set(done) and time.monotonic() < begin + LONGEST
    ):
        for broker in brokers:
            if not broker.scripted:
                kind, fault = next(rounds[broker.id])
                done[kind] += 1
                broker.next(fault)
            broker.fault = next(rounds[broker.id]).fault if rng.random() < 0.1 else Fault()
        try:
            client.refresh(ALL, timeout=0.05)
        except Error as error:
            done[type(error).__name__] += 1
    for broker in brokers:
        broker.forget_script()
        broker.fault = Fault()
    return done


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_damaged_frames_are_reported_and_the_client_recovers(make: Maker) -> None:
    rng = random.Random(damage.seed())
    with Brokers(3) as brokers:
        names = [f"topic-{number}" for number in range(TOPICS)]
        for name in names:
            brokers.truth.create(name, partitions=4)
        client = make(brokers.bootstrap, CONF, topics=ALL)
        problems: list[Any] = []
        client.on_error(problems.extend)
        client.refresh(ALL)
        assert known_of(client, names) == truth_of(brokers)
        memory, threads = resident(), threading.active_count()
        descriptors = len(os.listdir("/proc/self/fd"))

        done = do_damage(brokers, client, rng)
        print(done)
        assert resident() - memory < BOUND
        assert set(damage.KINDS) <= set(done)
        assert any(isinstance(problem.error, MalformedError) for problem in problems)
        assert {type(problem.error).__module__ for problem in problems} == {"rdmeta.errors"}

        for name in names:
            brokers.truth.lead(name, 0, rng.randint(1, 3))
        # Five answers and 5 s set back an epoch of a damaged answer that the cache believed.
        until(
            lambda: known_of(client, names) == truth_of(brokers), "the cache knows the truth again"
        )
        assert threading.active_count() <= threads
        until(
            lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 2 * 6,
            "connections that failed are closed",
        )
        assert brokers.requests(METADATA)
        assert brokers.requests(API_VERSIONS)
