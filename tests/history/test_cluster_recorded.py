"""A recording of real brokers, played back, gives the state that the cache had."""

from __future__ import annotations

import random
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import frames
import pytest
from frames import B, P, T

from rdmeta import ALL, EmbeddedCluster, Image, MetadataCache, fetch
from rdmeta.cache import Reading
from rdmeta.history import Recorder, changes, recordings
from rdmeta.model import Change

State = dict[tuple[str, int], tuple[object, ...]]


def known(reading: Reading) -> State:
    """Returns the state of every partition in a cache or an image."""
    return {
        (p.topic, p.partition): (
            p.topic_id,
            p.leader,
            p.leader_epoch,
            sorted(p.isr),
            p.replicas,
            sorted(p.offline_replicas),
        )
        for topic in reading.topics()
        for p in topic.partitions
    }


def played_back(directory: Path, session: str) -> State:
    """Returns the state of every partition at the end of a recording, from its rows alone."""
    state: State = {}
    for row in changes(directory, session=session):
        if row.topic is not None and row.partition is None:
            state = {key: at for key, at in state.items() if key[0] != row.topic}
        elif row.topic is not None and row.partition is not None:
            key = (row.topic, row.partition)
            state[key] = after(state.get(key), row)
    return state


def after(was: tuple[object, ...] | None, row: Change) -> tuple[object, ...]:
    """Returns a partition's state after a row about it."""
    if row.kind in ("topic_added", "topic_recreated", "partitions_added"):
        assert row.new_isr is not None
        assert row.new_offline is not None
        isr, offline = sorted(row.new_isr), sorted(row.new_offline)
        leaders = (row.new_leader, row.new_leader_epoch)
        return (row.topic_id, *leaders, isr, row.new_replicas, offline)
    assert was is not None, row
    topic_id, leader, epoch, isr_, replicas_, offline_ = was
    if row.kind == "leader_changed":
        assert (leader, epoch) == (row.old_leader, row.old_leader_epoch)
        leader, epoch = row.new_leader, row.new_leader_epoch
    elif row.kind == "isr_changed":
        assert row.new_isr is not None
        isr_ = sorted(row.new_isr)
    elif row.kind == "replicas_changed":
        assert row.new_replicas is not None
        replicas_ = row.new_replicas
    elif row.kind == "offline_changed":
        assert row.new_offline is not None
        assert (offline_, row.old_offline) != (None, None)
        offline_ = sorted(row.new_offline)
    return (topic_id, leader, epoch, isr_, replicas_, offline_)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_playing_back_any_recording_gives_the_state_of_the_cache(
    cluster: EmbeddedCluster, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    there: set[str] = {"always"}
    cluster.create_topic("always", 3, replication_factor=3)
    # In one case of three the changelog holds few changes, so that recordings end early.
    cache = MetadataCache(ring_bytes=500 if seed == 2 else None)

    def change() -> None:
        what, name = chance.choice(("create", "delete", "lead", "lead")), chance.choice("abcd")
        if what == "create" and name not in there:
            cluster.create_topic(name, chance.randint(1, 4), replication_factor=2)
            there.add(name)
        elif what == "delete" and name in there:
            cluster.delete_topic(name)
            there.discard(name)
        elif what == "lead":
            cluster.set_leader("always", chance.randrange(3), chance.choice((1, 2, 3, None)))

    recorder = Recorder(cache, tmp_path)
    for _ in range(40):
        for _ in range(chance.randint(0, 3)):
            change()
        for _ in range(chance.randint(1, 3)):
            fetch(cache, cluster.bootstrap)
        if chance.random() < 0.5:
            recorder.observe()
            recorder.flush()
            assert recorder.session is not None
            assert played_back(tmp_path, recorder.session) == known(cache)
    recorder.close()
    kinds = {row.kind for row in changes(tmp_path)}
    assert {"topic_absent", "leader_changed", "observed_to"} <= kinds
    assert (len(recordings(tmp_path)) > 1) == (seed == 2)
    assert ("resync" in kinds) == (seed == 2)


def random_answer(chance: random.Random, epoch: int) -> bytes:
    """Returns an answer about some of the topics a to f, of which each partition may differ."""
    topics = []
    for name in "abcdef":
        if chance.random() < 0.3:
            continue
        partitions = []
        for number in range(3):
            replicas = tuple(chance.sample((1, 2, 3, 4), 3))
            offline = tuple(each for each in replicas if chance.random() < 0.2)
            isr = tuple(each for each in replicas if each not in offline)
            leader = chance.choice(isr) if isr else -1
            partitions.append(P(number, leader, epoch, replicas, isr, offline))
        topics.append(T(name, partitions, id=name.encode() * 16))
    return frames.response(12, topics, [B(id, f"h{id}", 9092) for id in (1, 2, 3, 4)])


def test_a_recording_is_true_at_each_version_while_another_thread_writes(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    cache, now = MetadataCache(), [datetime(2026, 1, 1, tzinfo=timezone.utc)]
    writes, ends = threading.Event(), threading.Event()

    def write() -> None:
        chance, epoch = random.Random(seed), 0
        while not ends.is_set():
            writes.wait()
            epoch += 1
            cache.apply(random_answer(chance, epoch), 12, ALL)
            ends.wait(0.001)

    cache.apply(random_answer(random.Random(seed + 1), 0), 12, ALL)
    writer = threading.Thread(target=write)
    writer.start()
    looks = 0
    try:
        with Recorder(cache, tmp_path, clock=lambda: now[0], max_gap=1e9) as recorder:
            for _ in range(10):
                writes.set()
                recorder.observe()
                writes.clear()
                recorder.flush()
                assert recorder.session is not None
                image = recorder._image
                assert isinstance(image, Image)
                looks += image.version != cache.version
                assert played_back(tmp_path, recorder.session) == known(image)
                now[0] += timedelta(hours=32)
    finally:
        ends.set()
        writes.set()
        writer.join()
    assert looks > 0
    assert len(recordings(tmp_path)) >= 12


def test_a_partition_without_a_leader_is_recorded_as_having_none(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.create_topic("orders", 1, replication_factor=3)
    cluster.set_leader("orders", 0, 2)
    cache = MetadataCache()
    with Recorder(cache, tmp_path) as recorder:
        fetch(cache, cluster.bootstrap)
        recorder.observe()
        cluster.set_leader("orders", 0, None)
        fetch(cache, cluster.bootstrap)
        recorder.observe()
    (change,) = [row for row in changes(tmp_path) if row.kind == "leader_changed"]
    assert (change.old_leader, change.new_leader, change.source) == (2, None, "poll")


def test_brokers_that_go_and_come_are_recorded_with_their_addresses(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.create_topic("orders", 1, replication_factor=3)
    cache = MetadataCache()
    with Recorder(cache, tmp_path) as recorder:
        fetch(cache, cluster.bootstrap)
        recorder.observe()
        cluster.broker(3).down()
        fetch(cache, cluster.bootstrap)
        recorder.observe()
        cluster.broker(3).up()
        fetch(cache, cluster.bootstrap)
        recorder.observe()
    rows = [row for row in changes(tmp_path) if row.broker is not None]
    assert [(row.kind, row.broker) for row in rows] == [
        ("broker_added", 1),
        ("broker_added", 2),
        ("broker_added", 3),
        ("broker_removed", 3),
        ("broker_added", 3),
    ]
    assert rows[2].detail == rows[3].detail == rows[4].detail
