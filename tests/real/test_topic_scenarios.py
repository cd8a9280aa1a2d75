"""Scenarios on Apache Kafka: the life of a topic under a hundred waiters."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from both_shells import Shell, both
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from first_word import FirstWord, Word
from real_kafka import RealKafka
from scenario_run import Seen

from rdmeta import Change, MetadataCache

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WAITERS = 100
# Changes of a topic that gets two more partitions and is created again. That it was deleted is a
# `topic_error` before the last one.
LIFE = ["topic_added", "partitions_added", "partitions_added", "topic_recreated"]


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
        if any(change.kind == "topic_recreated" for change in self.changes):
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


def is_gone(topic: str, cache: MetadataCache) -> bool:
    """Returns whether a cache knows no such topic."""
    return topic not in cache


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
                shell.until(partial(is_gone, topic))
            admin.create_topics([NewTopic(topic, 2, copies)])[topic].result(30)
            for shell in shells:
                for waiter in waiters[shell.kind]:
                    assert waiter.ended.wait(60)
                    saw = [(change.kind, change.version) for change in waiter.changes]
                    assert saw == recorded(shell, waiter)[: len(saw)]
                kinds = [kind for kind, _ in saw]
                assert [kind for kind in kinds if kind in LIFE] == LIFE
                widened = len(kinds) - kinds[::-1].index("partitions_added")
                deleted = kinds[widened : kinds.index("topic_recreated")]
                assert "topic_error" in deleted, "UNKNOWN_TOPIC_OR_PARTITION"
        admin.delete_topics([topic])[topic].result(30)
    seen.check("topics")
