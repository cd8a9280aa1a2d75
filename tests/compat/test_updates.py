"""The notifications of updates, which are the same for both `ClusterMetadata`."""

from __future__ import annotations

import asyncio
import io
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import frames
import pytest
from aiokafka.errors import KafkaError as AiokafkaError
from aiokafka.protocol.metadata import MetadataResponse_v1
from clocks import Clock
from cluster_answers import feed
from frames import P, T
from kafka.cluster import ClusterMetadata as RealCluster
from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataResponse
from waiting import until

import rdmeta
from rdmeta import ForkedError, MetadataCache, TopicPartition
from rdmeta.compat import aiokafka, kafka_python

SHAPES = [aiokafka.ClusterMetadata, kafka_python.ClusterMetadata]
MANY_S = 20.0
# Longer than the time between two checks of the watching thread.
AFTERWARDS_S = 0.2


def apply_answer(cache: MetadataCache, *names: str) -> None:
    """Applies an all-topics answer."""
    feed(cache, frames.response(12, topics=[T(name) for name in names or ("orders",)]), 12)


def is_done(future: Any) -> bool:
    return bool(future.is_done if hasattr(future, "is_done") else future.done())


def error_of(future: Any) -> Any:
    return future.exception if hasattr(future, "is_done") else future.exception(0)


@pytest.fixture(autouse=True)
def no_thread_dies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    died: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    yield
    assert died == []


def test_a_wait_that_timed_out_leaves_later_futures_and_listeners_alive() -> None:
    async def main() -> None:
        cache = MetadataCache()
        heard: list[Any] = []
        ours = aiokafka.ClusterMetadata(cache)
        ours.add_listener(heard.append)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(ours.request_update()), 0.05)
        apply_answer(cache)
        while not heard:
            await asyncio.sleep(0.005)
        future = ours.request_update()
        apply_answer(cache)
        assert await asyncio.wait_for(asyncio.wrap_future(future), MANY_S) is ours

    asyncio.run(main())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_future_that_its_owner_ended_does_not_hinder_the_next(shape: Any) -> None:
    cache = MetadataCache()
    ours = shape(cache)
    mine = ours.request_update()
    (mine.success if hasattr(mine, "success") else mine.set_result)("mine")
    assert ours.request_update() is not mine
    other = ours.request_update()
    apply_answer(cache)
    until(lambda: is_done(other))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_listener_that_raises_does_not_keep_the_others_from_hearing(
    shape: Any, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    cache = MetadataCache()
    ours = shape(cache)

    def broken(_cluster: Any) -> None:
        raise ValueError("broken")

    ours.add_listener(broken)
    ours.add_listener(heard.append)
    apply_answer(cache)
    until(lambda: heard)
    apply_answer(cache)
    until(lambda: len(heard) == 2)
    assert "broken" in caplog.text
    future = ours.request_update()
    apply_answer(cache)
    until(lambda: is_done(future))


def test_an_update_names_its_broker_where_the_answer_lists_just_one() -> None:
    cache = MetadataCache()
    ours = kafka_python.ClusterMetadata(cache)
    for brokers, source in (((frames.B(3),), 3), (frames.BROKERS, None)):
        body = frames.response(12, topics=[T("orders")], brokers=brokers)
        ours.update_metadata(MetadataResponse.decode(body, version=12))
        assert cache.source("orders") == source


def test_listeners_hear_of_an_update_once_whichever_thread_applies_it() -> None:
    heard: list[threading.Thread] = []
    cache = MetadataCache()
    ours = kafka_python.ClusterMetadata(cache)
    ours.add_listener(lambda _cluster: heard.append(threading.current_thread()))
    for n in range(1, 4):
        body = frames.response(12, topics=[T("orders", [P(0, n)])])
        ours.update_metadata(MetadataResponse.decode(body, version=12))
        assert heard == [threading.current_thread()] * n
    time.sleep(AFTERWARDS_S)
    assert len(heard) == 3


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_only_a_newer_answer_ends_a_request(shape: Any) -> None:
    cache = MetadataCache()
    ours = shape(cache)
    ours.add_listener(lambda _cluster: None)
    for _ in range(5):
        apply_answer(cache)
        future = ours.request_update()
        assert ours.ttl() == 0
        time.sleep(AFTERWARDS_S / 2)
        assert not is_done(future)
        apply_answer(cache)
        until(partial(is_done, future))
        assert ours.ttl() > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_refused_answer_ends_no_future(shape: Any) -> None:
    cache = MetadataCache()
    ours = shape(cache)
    future = ours.request_update()
    with pytest.raises(rdmeta.MalformedError):
        cache.apply(b"nonsense", 12)
    time.sleep(AFTERWARDS_S)
    assert not is_done(future)
    apply_answer(cache)
    until(lambda: is_done(future))


@pytest.mark.parametrize("shape", SHAPES)
def test_in_the_child_of_a_fork_a_request_ends_with_forked_error(shape: Any) -> None:
    ours = shape(MetadataCache())
    before = ours.request_update()  # the child does not have its thread
    child = os.fork()
    if child == 0:
        status = 1
        try:
            future = ours.request_update()
            assert future is not before
            until(lambda: is_done(future))
            status = 0 if isinstance(error_of(future), ForkedError) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert not is_done(before)


@pytest.mark.parametrize("shape", SHAPES)
def test_listeners_hear_of_updates_of_an_attached_reader(shape: Any, tmp_path: Path) -> None:
    heard: list[Any] = []
    cache = MetadataCache()
    apply_answer(cache)
    with cache.publish(tmp_path / "state"):
        ours = shape(rdmeta.attach(tmp_path / "state"))
        ours.add_listener(heard.append)
        future = ours.request_update()
        assert ours.ttl() == 0
        time.sleep(AFTERWARDS_S)
        assert not is_done(future)
        apply_answer(cache, "orders", "payments")
        until(lambda: heard and is_done(future))
        assert "payments" in ours.topics()
        assert 0 < ours.ttl() <= 300_000


@pytest.mark.parametrize("shape", SHAPES)
def test_partitions_for_broker_has_stale_topics_only_with_allow_stale(shape: Any) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10)
    apply_answer(cache)
    ours = shape(cache)
    before = ours.partitions_for_broker(1)
    assert before == {TopicPartition("orders", 0)}
    clock.advance(100)
    assert ours.partitions_for_broker(1) is None
    assert shape(cache, allow_stale=True).partitions_for_broker(1) == before
    assert ours.leader_for_partition(TopicPartition("orders", 0)) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_a_denial_lasts_until_an_answer_says_otherwise(shape: Any) -> None:
    clock = Clock()
    cache = MetadataCache(clock=clock, denied_ttl=10)
    ours = shape(cache)
    denied = frames.response(12, topics=[T("secret", [], error=29)])
    cache.apply(denied, 12, ["secret"])
    assert ours.unauthorized_topics == {"secret"}
    clock.advance(1000)
    assert ours.unauthorized_topics == {"secret"}
    cache.apply(frames.response(12, topics=[T("secret")]), 12, ["secret"])
    assert ours.unauthorized_topics == set()


@pytest.mark.parametrize("code", [3, 5, 17, 29])
def test_one_topic_s_error_ends_the_future_as_in_kafka_python(code: int) -> None:
    body = frames.response(9, topics=[T("orders", [], error=code)])
    errors = []
    for each in (RealCluster(), kafka_python.ClusterMetadata(MetadataCache())):
        future = each.set_topics(["orders"])
        each.update_metadata(MetadataResponse.decode(body, version=9))
        errors.append(future.exception)
    assert errors[0] is not None
    assert repr(errors[1]) == repr(errors[0])


@pytest.mark.parametrize("code", [3, 17, 29])
def test_one_topic_s_error_ends_the_future_also_if_the_cache_got_the_answer(code: int) -> None:
    cache = MetadataCache(negative_ttl=MANY_S)
    ours = kafka_python.ClusterMetadata(cache)
    one = ours.add_topic("orders")
    cache.apply(frames.response(12, topics=[T("orders", [], error=code)]), 12, ["orders"])
    until(lambda: one.is_done)
    assert one.exception.errno == code
    two = ours.add_topic("payments")
    cache.apply(frames.response(12, topics=[T("payments")]), 12, ["payments"])
    until(lambda: two.is_done)
    assert two.exception is None  # with two topics an error of one does not count


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_without_brokers_fails_with_the_library_s_own_error(shape: Any) -> None:
    ours = shape(MetadataCache())
    future = ours.request_update()
    body = frames.response(1, brokers=[], controller=-1)
    if shape is kafka_python.ClusterMetadata:
        ours.update_metadata(MetadataResponse.decode(body, version=1))
    else:
        ours.update_metadata(MetadataResponse_v1.decode(io.BytesIO(body)))
    error = error_of(future)
    assert type(error).__name__ == "MetadataEmptyBrokerList"
    assert isinstance(error, KafkaError | AiokafkaError)
