"""`rdmeta log` beside live controllers: each word, and a list that equals the brokers' answer."""

from __future__ import annotations

from typing import Any

import commands
import pytest
from commanded import Commanded
from kafka_security import KafkaSecurity

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

WORDS = (
    ["info"], ["dump", "--json"], ["dump", "--batches"], ["ls"], ["find"], ["tree"], ["cat"],
    ["changes"], ["explain", "--topic", "orders"], ["explain", "--broker", "1"],
)  # fmt: skip


@pytest.fixture(scope="module")
def written(commanded: Commanded) -> Commanded:
    """Returns the cluster with a topic, of which a broker was killed for a while."""
    kafka = commanded.kafka
    kafka.create("orders", [[1, 2, 3], [3, 1, 2]], {"min.insync.replicas": "2"})
    kafka.kill(3)
    kafka.until(lambda: _isr(commanded) == 2, "the ISR shrinks")
    return commanded


def _isr(commanded: Commanded) -> int:
    return len(commanded.kafka.asked(1, ["orders"]).topic("orders").partitions[1].isr)


def both(written: Commanded, *words: str) -> tuple[Any, Any]:
    """Returns the JSON of a list of the brokers, and of one of their log."""
    asked = commands.run("list", "-b", written.kafka.bootstrap, *words, "--json")
    read = commands.run("list", "--log", str(written.kafka.directory), *words, "--json")
    assert (asked.code, asked.err, read.code) == (0, "", 0)
    return commands.checked_json(asked.out), commands.checked_json(read.out)


@pytest.mark.parametrize("words", [[], ["--urp"], ["--offline"], ["--nonpreferred"]])
def test_a_list_of_the_log_is_the_brokers_answer(written: Commanded, words: list[str]) -> None:
    def is_equal() -> bool:
        asked, read = both(written, *words)
        ids = [[each["id"] for each in answer["brokers"]] for answer in (asked, read)]
        names = [answer["clusters"][0]["cluster_id"] for answer in (asked, read)]
        equal = (ids[0], names[0], asked["topics"]) == (ids[1], names[1], read["topics"])
        return bool(equal)

    written.kafka.until(is_equal, "the log's list is the brokers'")


def test_each_word_answers_beside_live_nodes(written: Commanded, security: KafkaSecurity) -> None:
    path = str(written.kafka.directory)
    for word, *rest in WORDS:
        done = commands.run("log", word, path, *rest)
        assert done.code == 0, done.err
        assert done.out
        security.secrets.check(done.out + done.err)
    checked = commands.run("log", "check", path)
    assert checked.code == 0, checked.out
    turns = commands.checked_json(commands.run("log", "explain", path, "orders/1", "--json").out)
    fenced = [turn for turn in turns["turns"] if "broker 3 was fenced" in str(turn["cause"])]
    assert {turn["what"] for turn in fenced} >= {"leader", "isr"}
