"""A recorded cluster is asked for min.insync.replicas again and again, without delay for others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from broker import DESCRIBE_CONFIGS, Brokers, Fault
from waiting import until

from rdmeta import MetadataCache
from rdmeta.cli.min_isr_asker import Asker
from rdmeta.health import MIN_ISR
from rdmeta.net.fetch import fetch


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers() as one:
        one.truth.create("orders")
        one.truth.configs["orders"] = {MIN_ISR: "2"}
        yield one


class Asked:
    """An asker of a cache that has just been fetched, and what it told."""

    def __init__(self, brokers: Brokers, every: float) -> None:
        self.cache = MetadataCache()
        self.brokers = brokers
        self.told: list[tuple[Mapping[str, int | None], str]] = []
        self.notes: list[str] = []
        conf = {"bootstrap.servers": brokers.bootstrap}
        self.asker = Asker(conf, self.cache, self._tell, self.notes.append, every)
        self.look()

    def _tell(self, values: Mapping[str, int | None], answer: str) -> None:
        self.told.append((values, answer))

    def look(self) -> None:
        fetch(self.cache, self.brokers.bootstrap)
        self.asker.wake(self.cache.version)


def test_all_topics_are_asked_for_again_after_a_while(brokers: Brokers) -> None:
    made = Asked(brokers, every=0.1)
    until(lambda: made.told, "an answer is told")
    brokers.truth.configs["orders"] = {MIN_ISR: "1"}
    until(lambda: made.told[-1] == ({"orders": 1}, "known"), "the new value is told")
    made.asker.close()
    assert made.told[0] == ({"orders": 2}, "known")


def test_a_look_that_saw_no_new_topic_asks_nothing(brokers: Brokers) -> None:
    made = Asked(brokers, every=60)
    until(lambda: made.told, "an answer is told")
    brokers.truth.lead("orders", 0, -1)
    made.look()
    brokers.truth.create("clicks")
    made.look()
    until(lambda: len(made.told) == 2, "the new topic is told")
    made.asker.close()
    assert made.told[1] == ({"clicks": 1}, "known")


@pytest.mark.slow
def test_a_new_topic_that_a_broker_does_not_know_yet_is_asked_for_soon_again(
    brokers: Brokers,
) -> None:
    made = Asked(brokers, every=60)
    until(lambda: made.told, "an answer is told")
    brokers.truth.create("late")
    fetch(made.cache, brokers.bootstrap)
    brokers.truth.delete("late")
    made.asker.wake(made.cache.version)
    until(lambda: len(made.told) == 2, "it is asked for")
    brokers.truth.create("late")
    until(lambda: made.told[-1] == ({"late": 1}, "known"), "its value is told")
    made.asker.close()
    assert all(values == {} for values, _ in made.told[1:-1])


def test_a_question_that_fails_tells_nothing_and_is_asked_again(brokers: Brokers) -> None:
    for broker in brokers:
        broker.answers[DESCRIBE_CONFIGS] = lambda _: b""
    made = Asked(brokers, every=0.1)
    until(lambda: len(brokers.requests(DESCRIBE_CONFIGS)) > 1, "it is asked again")
    assert made.told == []
    for broker in brokers:
        del broker.answers[DESCRIBE_CONFIGS]
    until(lambda: made.told, "an answer is told")
    made.asker.close()
    assert made.notes == []


def test_closing_ends_a_question_that_is_not_answered(brokers: Brokers) -> None:
    made = Asked(brokers, every=60)
    until(lambda: made.told, "an answer is told")
    for broker in brokers:
        broker.fault = Fault(delay=20)
    before, made.asker._due_at = made.asker._client, 0.0
    made.asker.wake(made.cache.version + 1)
    until(lambda: made.asker._client is not before, "it asks")
    begin = time.monotonic()
    made.asker.close()
    assert time.monotonic() - begin < 5
    assert made.told == [({"orders": 2}, "known")]


def test_an_asker_that_was_never_woken_is_closed() -> None:
    asker: Any = Asker({}, MetadataCache(), print, print)
    asker.close()
