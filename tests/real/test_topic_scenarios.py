"""Scenarios on Apache Kafka: the life of a topic under a hundred waiters; changes told once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import commands
import pytest
from both_shells import Shell, both
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from first_word import FirstWord, Word
from real_kafka import RealKafka
from scenario_run import Seen

from rdmeta import ALL, METADATA_MAX_VERSION, Change, Client, MetadataCache
from rdmeta.client import driver

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WAITERS = 100
# Changes of a topic that gets two more partitions, is deleted and created again.
LIFE = ["topic_added", "partitions_added", "partitions_added", "topic_removed", "topic_added"]
# Metadata has ids of topics from v10 on.
WITHOUT_IDS = 9


class Waiter:
    """Waits for a topic, then collects its changes until the topic has been created again."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.since = 0
        self.there: Future[float] = Future()
        self.changes: list[Change] = []
        self.ended = threading.Event()

    def take(self, changes: Any) -> None:
        """Takes the next changes."""
        assert not changes.resync
        self.changes += [change for change in changes if change.topic == self.topic]
        if sum(change.kind == "topic_added" for change in self.changes) == 2:
            self.ended.set()

    async def run_in_loop(self, client: Any) -> None:
        """Runs in an asyncio client's loop."""
        changes = client.changes(topics=[self.topic])
        self.since = client.cache.version
        begun = asyncio.ensure_future(client.wait_for_topic(self.topic, timeout=60))
        async for some in changes:
            self.take(some)
            if begun.done() and not self.there.done():
                self.there.set_result(time.time())
            if self.ended.is_set():
                break
        await changes.aclose()

    def run(self, client: Any) -> None:
        """Runs in a thread."""
        self.since = since = client.cache.version
        client.wait_for_topic(self.topic, timeout=60)
        self.there.set_result(time.time())
        while not self.ended.is_set():
            changes = client.cache.changes(since)
            since = changes.until
            self.take(changes)
            client.cache.wait_change(since, timeout=0.5, topics=[self.topic])


def start(shell: Shell, topic: str) -> list[Waiter]:
    """Starts the waiters of a client."""
    waiters = [Waiter(topic) for _ in range(WAITERS)]
    for waiter in waiters:
        if shell.kind == "AsyncClient":
            shell.spawn(waiter.run_in_loop(shell.client))
        else:
            threading.Thread(target=waiter.run, args=(shell.client,), daemon=True).start()
    return waiters


def recorded(shell: Shell, waiter: Waiter) -> list[tuple[str, int]]:
    """Returns the kinds and versions of a topic's changes, as the cache has recorded them."""
    records = shell.cache.changes(waiter.since).records
    return [(change.kind, change.version) for change in records if change.topic == waiter.topic]


def says(topic: str, word: Word) -> bool:
    """Returns whether a broker says that the topic exists."""
    return topic in word.topics


def has_three_partitions(topic: str, cache: MetadataCache) -> bool:
    """Returns whether a cache knows three partitions of the topic."""
    return len(cache.topic(topic).partitions) == 3


def is_removed(topic: str, cache: MetadataCache) -> bool:
    """Returns whether a cache has recorded the topic's removal."""
    kinds = [change.kind for change in cache.changes(0).records if change.topic == topic]
    return "topic_removed" in kinds


@pytest.mark.parametrize("kafka", ["4.3.0", "3.9.1"], indirect=True)
def test_a_topic_is_created_widened_deleted_and_created_again(
    kafka: RealKafka, admin: AdminClient, brokers_name: str, rounds: range, seen: Seen
) -> None:
    conf = {"bootstrap.servers": kafka.bootstrap, "topic.metadata.refresh.interval.ms": 500}
    copies = len(kafka.nodes)
    for number in rounds:
        topic = f"life-{number}"
        addresses = {node: kafka.address(node) for node in kafka.nodes}
        with FirstWord(addresses, [topic]) as words, both(conf, "life") as shells:
            words.wait(lambda _: True)
            waiters = {shell.kind: start(shell, topic) for shell in shells}
            time.sleep(1)
            admin.create_topics([NewTopic(topic, 1, copies)])[topic].result(30)
            word = words.wait(partial(says, topic))
            for shell in shells:
                there = [waiter.there.result(60) for waiter in waiters[shell.kind]]
                seen.add("topics", brokers_name, shell.kind, max(there) - word.at)
            admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
            for shell in shells:
                shell.until(partial(has_three_partitions, topic))
            admin.delete_topics([topic])[topic].result(30)
            for shell in shells:
                shell.until(partial(is_removed, topic))
            admin.create_topics([NewTopic(topic, 2, copies)])[topic].result(30)
            for shell in shells:
                for waiter in waiters[shell.kind]:
                    assert waiter.ended.wait(60)
                    saw = [(change.kind, change.version) for change in waiter.changes]
                    assert saw == recorded(shell, waiter)[: len(saw)]
                kinds = [kind for kind, _ in saw]
                assert [kind for kind in kinds if kind in LIFE] == LIFE
        admin.delete_topics([topic])[topic].result(30)
    seen.check("topics")


class Watcher:
    """A client that collects what it is told of some topics."""

    def __init__(self, kafka: RealKafka, names: Sequence[str], is_named: bool, ms: int) -> None:
        self.told: Counter[tuple[str, str | None]] = Counter()
        conf = {
            "bootstrap.servers": kafka.bootstrap,
            "client.id": f"{'named' if is_named else 'all'}-{ms}",
            "topic.metadata.refresh.interval.ms": ms,
        }
        self.client = Client(conf, topics=names if is_named else ALL)

        def take(changes: Any) -> None:
            assert not changes.resync
            self.told.update((c.kind, c.topic) for c in changes if c.topic in names)

        self.client.on_change(take)


@contextmanager
def watched(kafka: RealKafka, names: Sequence[str], highest: int) -> Iterator[list[Any]]:
    """Yields `rdmeta watch` of all topics, and of these by name; both have had an answer."""
    program = f"from rdmeta.client import driver\ndriver.METADATA_MAX_VERSION = {highest}\n"
    often = ("-X", "topic.metadata.refresh.interval.ms=200")
    with ExitStack() as stack:
        processes = []
        for words in ((), tuple(word for name in names for word in ("-t", name))):
            given = ("watch", "--csv", "-b", kafka.bootstrap, *often, *words)
            process = commands.started(*given, program=program + commands.PROGRAM)
            processes.append(stack.enter_context(process))
            output = processes[-1].stdout
            assert output is not None
            assert output.readline().startswith("time,")
        yield processes


@pytest.mark.parametrize("highest", [METADATA_MAX_VERSION, WITHOUT_IDS])
def test_fifty_topics_are_made_and_deleted_and_each_is_told_once(
    kafka: RealKafka, admin: AdminClient, monkeypatch: pytest.MonkeyPatch, highest: int
) -> None:
    monkeypatch.setattr(driver, "METADATA_MAX_VERSION", highest)
    names = [f"once-{highest}-{i}" for i in range(50)]
    with ExitStack() as stack:
        processes = stack.enter_context(watched(kafka, names, highest))
        watchers = [
            Watcher(kafka, names, is_named, ms)
            for is_named in (False, True)
            for ms in (200, 2000, 10_000)
        ]
        for watcher in watchers:
            stack.enter_context(watcher.client)
            watcher.client.refresh(timeout=30)

        def until_told(kind: str) -> None:
            wanted = {(kind, name) for name in names}
            for each in watchers:
                kafka.until(partial(wanted.issubset, each.told), f"each {kind}")

        for name in names:  # one by one: a refresh now and then meets brokers that disagree
            admin.create_topics([NewTopic(name, 1, 3)])[name].result(30)
        until_told("topic_added")
        for name in names:
            admin.delete_topics([name])[name].result(30)
        until_told("topic_removed")
        for watcher in watchers:
            for _ in range(10):
                watcher.client.refresh(timeout=30)
            kinds = Counter(kind for kind, _ in watcher.told.elements())
            assert (kinds["topic_added"], kinds["topic_removed"]) == (50, 50), kinds
            assert max(watcher.told.values()) == 1, watcher.told
        for process in processes:
            process.terminate()
            printed, _ = process.communicate(timeout=30)
            kinds = Counter(line.split(",")[3] for line in printed.splitlines())
            assert (kinds["topic_added"], kinds["topic_removed"]) == (50, 50), kinds
