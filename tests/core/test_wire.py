"""An answer that is decoded and encoded again is the same, and what no answer can be is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import rdmeta
from rdmeta import decode_metadata_response, encode_metadata_response
from rdmeta.errors import ArgumentError

ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def random_answer(random: Random) -> dict[str, Any]:
    """Returns a dict as decode_metadata_response() gives it for version 12."""

    def ids() -> list[int]:
        return [random.choice((0, 1, 2**31 - 1, -5)) for _ in range(random.randrange(4))]

    def maybe(value: Any) -> Any:
        return random.choice((None, value))

    def text() -> str:
        return random.choice(("", "a", "größe", "x" * 300, "\udcff"))

    def partition(number: int) -> dict[str, Any]:
        return {
            "error": random.choice((0, 5, -1)),
            "partition": number,
            "leader": maybe(3),
            "leader_epoch": maybe(7),
            "replicas": ids(),
            "isr": ids(),
            "offline_replicas": ids(),
        }

    def topic() -> dict[str, Any]:
        return {
            "error": random.choice((0, 3)),
            "name": maybe(text()),
            "topic_id": maybe(ID),
            "internal": random.random() < 0.5,
            "partitions": [partition(number) for number in range(random.randrange(200))],
            "operations": maybe(6),
        }

    return {
        "throttle_ms": 0,
        "brokers": [
            {"id": number, "host": text(), "port": 9092, "rack": maybe(text())}
            for number in range(random.randrange(4))
        ],
        "cluster_id": maybe(text()),
        "controller": maybe(1),
        "topics": [topic() for _ in range(random.randrange(4))],
        "operations": None,
        "error": 0,
    }


@pytest.mark.parametrize("seed", range(30))
def test_an_answer_that_is_encoded_is_decoded_to_the_same(seed: int) -> None:
    answer = random_answer(Random(seed))
    body = encode_metadata_response(answer)
    assert decode_metadata_response(body, 12) == answer
    assert encode_metadata_response(decode_metadata_response(body, 12)) == body


def simple(**values: Any) -> dict[str, Any]:
    """Returns an answer with one broker and one topic, which has these values."""
    topic = {"error": 0, "name": "t", "topic_id": ID, "internal": False, "operations": None}
    broker = {"id": 1, "host": "h", "port": 9092, "rack": None}
    rest = {"cluster_id": "c", "controller": 1}
    return {"brokers": [broker], **rest, "topics": [{**topic, "partitions": [], **values}]}


def test_a_cache_takes_an_encoded_answer() -> None:
    part: Any = {"error": 5, "partition": 0, "leader": None, "leader_epoch": 4}
    part |= {"replicas": (1, 2), "isr": (2,), "offline_replicas": [2]}
    cache = rdmeta.MetadataCache()
    cache.apply(encode_metadata_response(simple(partitions=[part])), 12, rdmeta.ALL)
    found = cache.partition("t", 0)
    assert (found.leader, found.leader_epoch, found.replicas) == (None, 4, (1, 2))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (simple(name="x" * 40_000), ArgumentError),
        (simple(name=b"t"), TypeError),
        (simple(topic_id="no id"), ValueError),
        (simple(error=2**15), ValueError),
        (simple(operations=2**31), ValueError),
        (simple(partitions=[{}]), KeyError),
        (simple(partitions=5), TypeError),
        (
            {**simple(), "brokers": [{"id": 1, "host": None, "port": 1, "rack": None}]},
            ArgumentError,
        ),
        ({"brokers": []}, KeyError),
        ([], TypeError),
    ],
)
def test_what_no_answer_can_be_is_refused(answer: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        encode_metadata_response(answer)
