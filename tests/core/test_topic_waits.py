"""Waiting for a topic of a cache, blocking and on event loops."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from answers import apply_answer
from clocks import Clock
from frames import P, T
from waiting import LONG, MOMENT, Wait, soon, two_topics

from rdmeta import InvalidTopicError, MetadataCache, RequestTimedOutError, TopicAuthorizationError
from rdmeta.core import waits


@pytest.fixture
def cache() -> MetadataCache:
    return two_topics()


def waits_of(cache: MetadataCache, blocking: bool) -> Wait:
    """Returns a cache's wait_for_topic(), blocking or on an event loop, as a blocking call."""
    if blocking:
        return cache.wait_for_topic
    return lambda *args, **more: asyncio.run(cache.wait_for_topic_async(*args, **more))


@pytest.fixture(params=["blocking", "asyncio"])
def blocking(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "blocking")


@pytest.fixture
def wait_for_topic(blocking: bool, cache: MetadataCache) -> Wait:
    """The cache's wait_for_topic(), blocking or on an event loop, as a blocking call."""
    return waits_of(cache, blocking)


def test_a_valid_topic_is_returned_at_once(wait_for_topic: Wait, cache: MetadataCache) -> None:
    assert wait_for_topic("orders", timeout=0) == cache.topic("orders")
    assert wait_for_topic("orders", 0, timeout=0) == cache.partition("orders", 0)


def test_a_topic_is_waited_for_while_it_is_unknown(
    wait_for_topic: Wait, cache: MetadataCache
) -> None:
    def create() -> None:
        apply_answer(cache, T("new", [], error=3))
        time.sleep(MOMENT)
        apply_answer(cache, T("new", [], error=5))
        apply_answer(cache, T("new", [P(0, 2)]))

    with soon(cache, create):
        assert wait_for_topic("new", timeout=LONG).partitions[0].leader == 2


def test_a_partition_is_waited_for_until_it_has_a_leader(
    wait_for_topic: Wait, cache: MetadataCache
) -> None:
    def grow() -> None:
        apply_answer(cache, T("orders", [P(0), P(1, -1)]))
        time.sleep(MOMENT)
        apply_answer(cache, T("orders", [P(0), P(1, 3, 1)]))

    with soon(cache, grow):
        assert wait_for_topic("orders", 1, timeout=LONG).leader == 3


@pytest.mark.parametrize(
    ("code", "error"), [(29, TopicAuthorizationError), (17, InvalidTopicError)]
)
def test_a_denied_or_invalid_topic_ends_the_wait(
    code: int, error: type[Exception], wait_for_topic: Wait, cache: MetadataCache
) -> None:
    with soon(cache, lambda: apply_answer(cache, T("new", [], error=code))), pytest.raises(error):
        wait_for_topic("new", timeout=LONG)


def test_a_denial_from_before_the_wait_does_not_end_it_but_the_next_one_does(
    wait_for_topic: Wait, cache: MetadataCache
) -> None:
    apply_answer(cache, T("secret", [], error=29))
    assert cache.hint(["secret"], force=True) == ["secret"]
    with pytest.raises(RequestTimedOutError, match="DENIED"):
        wait_for_topic("secret", timeout=MOMENT)
    with soon(cache, lambda: apply_answer(cache, T("secret", [P(0, 2)]))):
        assert wait_for_topic("secret", timeout=LONG).partitions[0].leader == 2
    apply_answer(cache, T("secret", [], error=29))
    version = cache.version
    with (
        soon(cache, lambda: apply_answer(cache, T("secret", [], error=29))),
        pytest.raises(TopicAuthorizationError),
    ):
        wait_for_topic("secret", timeout=LONG)
    assert cache.version == version


def test_a_denial_after_one_that_was_forgotten_ends_the_wait(blocking: bool) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, denied_ttl=10)
    apply_answer(cache, T("secret", [], error=29))
    clock.advance(100)
    version = cache.version
    with (
        soon(cache, lambda: apply_answer(cache, T("secret", [], error=29))),
        pytest.raises(TopicAuthorizationError),
    ):
        waits_of(cache, blocking)("secret", timeout=LONG)
    assert cache.version == version


def test_a_wait_while_a_denial_stands_sleeps(
    wait_for_topic: Wait, cache: MetadataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    look = waits.look

    def count(*args: Any) -> Any:
        looks.append(args)
        return look(*args)

    monkeypatch.setattr(waits, "look", count)
    apply_answer(cache, T("secret", [], error=29))
    with pytest.raises(RequestTimedOutError, match="DENIED"):
        wait_for_topic("secret", timeout=0.6)
    assert len(looks) == 2  # at the wait's begin and at its end


@pytest.mark.parametrize("topic", ["", ".", "..", "a" * 250, "a b", "a/b", "caf\u00e9", "a\n"])
@pytest.mark.parametrize("known", [False, True])
def test_an_illegal_name_is_not_waited_for(
    topic: str, known: bool, wait_for_topic: Wait, cache: MetadataCache
) -> None:
    if known and topic:
        apply_answer(cache, T(topic, [], error=3))
    with pytest.raises(InvalidTopicError) as raised:
        wait_for_topic(topic, timeout=LONG)
    assert (raised.value.code, raised.value.retriable) == (17, False)


def test_a_negative_partition_is_not_waited_for(wait_for_topic: Wait) -> None:
    with pytest.raises(ValueError, match="partition must be >= 0, not -1"):
        wait_for_topic("other", -1, timeout=LONG)


@pytest.mark.parametrize("topic", ["a" * 249, "A.b-c_9", "..."])
def test_a_legal_name_is_waited_for(topic: str, wait_for_topic: Wait) -> None:
    with pytest.raises(RequestTimedOutError):
        wait_for_topic(topic, timeout=0.01)


def test_a_topic_is_there_whatever_its_name(wait_for_topic: Wait, cache: MetadataCache) -> None:
    apply_answer(cache, T("caf\u00e9"))
    assert wait_for_topic("caf\u00e9", timeout=LONG).name == "caf\u00e9"


@pytest.mark.parametrize(
    ("topic", "partition", "why"),
    [
        ("new", None, "topic 'new' .* NOT_CACHED"),
        ("orders", 9, "partition 9 of 'orders' .* NO_PARTITION"),
        ("leaderless", 0, "LEADER_NOT_AVAILABLE"),
    ],
)
def test_a_topic_that_stays_unknown_is_a_time_out_that_says_why(
    topic: str, partition: int | None, why: str, wait_for_topic: Wait, cache: MetadataCache
) -> None:
    apply_answer(cache, T("leaderless", [P(0, -1)]))
    with pytest.raises(RequestTimedOutError, match=why):
        wait_for_topic(topic, partition, timeout=MOMENT)


def test_a_stale_topic_that_is_confirmed_ends_the_wait_though_nothing_changed(
    blocking: bool,
) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock)
    apply_answer(cache, T("orders"))
    clock.advance(1000.0)
    version = cache.version
    with soon(cache, lambda: apply_answer(cache, T("orders"))):
        topic = waits_of(cache, blocking)("orders", timeout=LONG)
    assert topic.name == "orders"
    assert cache.version == version
