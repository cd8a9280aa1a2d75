"""The usual uses of `list_topics()` give the same in confluent-kafka and in rdmeta."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frames
import pytest
from cluster_answers import feed
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from frames import P, T

import rdmeta
from rdmeta import EmbeddedCluster, MetadataCache, RequestTimedOutError, fetch
from rdmeta.compat import confluent
from rdmeta.compat.confluent import ClusterLister, list_topics


def tree(found: Any) -> Any:
    """Returns everything in a ClusterMetadata, with the types."""
    return (
        type(found),
        found.cluster_id,
        {i: (type(b), b.id, b.host, b.port, str(b), repr(b)) for i, b in found.brokers.items()},
        {
            name: (
                type(t),
                t.topic,
                t.error and (type(t.error), t.error.code()),
                {
                    i: (type(p), p.id, p.leader, p.replicas, p.isrs, p.error and p.error.code())
                    for i, p in t.partitions.items()
                },
                str(t),
                repr(t),
            )
            for name, t in found.topics.items()
        },
    )


IDIOMS: dict[str, Callable[[Any], Any]] = {
    "all of it": lambda admin: tree(admin.list_topics(timeout=10)),
    "one topic": lambda admin: tree(admin.list_topics("orders", timeout=10)),
    "by keyword": lambda admin: tree(admin.list_topics(topic="orders", timeout=10)),
    "exists": lambda admin: "orders" in admin.list_topics(timeout=10).topics,
    "partitions": lambda admin: len(admin.list_topics("orders").topics["orders"].partitions),
    "by leader": lambda admin: [
        (t.topic, p.id)
        for t in admin.list_topics().topics.values()
        for p in t.partitions.values()
        if p.leader == 1
    ],
    "controller": lambda admin: admin.list_topics(timeout=10).controller_id,
    "cluster id": lambda admin: admin.cluster_id(timeout=10),
    "str": lambda admin: (str(admin.list_topics()), repr(admin.list_topics())),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_gives_what_confluent_kafka_gives(cluster: EmbeddedCluster, idiom: str) -> None:
    cluster.create_topic("orders", partitions=4, replication_factor=3)
    cluster.create_topic("payments", partitions=2, replication_factor=1)
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    theirs = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert IDIOMS[idiom](ClusterLister(cache)) == IDIOMS[idiom](theirs)


def test_the_answering_broker_is_named_as_in_confluent_kafka(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=1, replication_factor=1)
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    fetch(cache, cluster.bootstrap)  # the second fetch knows the server's id
    found = list_topics(cache)
    broker = found.brokers[found.orig_broker_id]
    assert found.orig_broker_name == f"{broker.host}:{broker.port}/{broker.id}"


def test_a_topic_that_does_not_exist_is_there_with_its_error() -> None:
    cache = MetadataCache(negative_ttl=60)
    body = frames.response(12, topics=[T("gone", [], error=3), T("secret", [], error=29)])
    cache.apply(body, 12, ["gone", "secret"])
    for name, code in (
        ("gone", KafkaError.UNKNOWN_TOPIC_OR_PART),
        ("secret", KafkaError.TOPIC_AUTHORIZATION_FAILED),
    ):
        found = list_topics(cache, name, 0).topics[name]
        assert (found.error.code(), found.partitions) == (code, {})


def test_a_leaderless_partition_has_leader_minus_one_and_its_error() -> None:
    cache = MetadataCache()
    feed(cache, frames.response(12, topics=[T("orders", [P(0, 2, 1)])]), 12)
    feed(cache, frames.response(12, topics=[T("orders", [P(0, -1, 2, error=5)])]), 12)
    for found in (list_topics(cache), list_topics(cache, "orders")):
        partition = found.topics["orders"].partitions[0]
        assert (partition.leader, partition.error.code()) == (-1, KafkaError.LEADER_NOT_AVAILABLE)


def test_a_topic_that_is_not_cached_is_waited_for_and_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confluent, "_BACKOFF_S", (30.0, 30.0))  # it is not asked for again
    cache, asked = MetadataCache(), []

    def refresh(topic: str | None) -> None:
        asked.append(topic)
        body = frames.response(12, topics=[T("orders")])
        threading.Timer(0.05, feed, (cache, body, 12)).start()

    found = ClusterLister(cache, refresh).list_topics("orders", timeout=30)
    assert list(found.topics) == asked == ["orders"]


def test_a_wait_ends_at_its_deadline_with_confluent_kafka_s_exception() -> None:
    for kind in (KafkaException, RequestTimedOutError):
        with pytest.raises(kind, match="orders") as raised:
            list_topics(MetadataCache(), "orders", 0.05)
        assert raised.value.args[0].code() == KafkaError._TIMED_OUT
    with pytest.raises(RequestTimedOutError, match="broker"):
        list_topics(MetadataCache(), timeout=0)


def test_an_image_is_not_waited_for() -> None:
    start = time.monotonic()
    with pytest.raises(KafkaException, match="gets no answers"):
        list_topics(MetadataCache().image(), "orders", 30)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("code", [5, 7])
def test_a_topic_that_is_being_created_is_there_with_a_retriable_error(code: int) -> None:
    cache, asked = MetadataCache(), []

    def refresh(topic: str | None) -> None:
        asked.append(topic)
        body = frames.response(12, topics=[T("new", [], error=code)])
        cache.apply(body, 12, ["new"])

    found = ClusterLister(cache, refresh).list_topics("new").topics["new"]
    assert (found.error.code(), found.partitions) == (KafkaError.LEADER_NOT_AVAILABLE, {})
    assert asked == ["new", "new"]


def test_a_topic_in_creation_is_among_all_topics_until_an_answer_says_more() -> None:
    cache = MetadataCache(negative_ttl=60)
    feed(cache, frames.response(12, topics=[T("orders")]), 12)
    answers = {name: T(name, [], error=5) for name in ("one", "two", "three")}

    def refresh(topic: str | None) -> None:
        cache.apply(frames.response(12, topics=[answers[topic or ""]]), 12, [topic or ""])

    def errors() -> dict[str, int | None]:
        topics = lister.list_topics(timeout=0).topics.values()
        return {topic.topic: topic.error and topic.error.code() for topic in topics}

    lister, making = ClusterLister(cache, refresh), KafkaError.LEADER_NOT_AVAILABLE
    for name in answers:
        assert lister.list_topics(name).topics[name].error.code() == making
    assert errors() == {"orders": None, "one": making, "two": making, "three": making}
    cache.apply(frames.response(12, [T("one"), T("two", [], error=3)]), 12, ["one", "two"])
    assert errors() == {"orders": None, "one": None, "three": making}
    cache.purge_hints()
    assert errors() == {"orders": None, "one": None, "three": making}


def test_answers_while_a_topic_is_in_flight_are_not_about_it() -> None:
    cache, asked = MetadataCache(), []

    def refresh(topic: str | None) -> None:
        asked.append(topic)
        cache.hint(["new"])
        feed(cache, frames.response(12, topics=[T("orders")]), 12)
        cache.hint(["new"])
        if len(asked) == 4:
            cache.apply(frames.response(12, topics=[T("new")]), 12, ["new"])

    assert ClusterLister(cache, refresh).list_topics("new").topics["new"].error is None


def test_a_topic_is_asked_for_again_until_it_is_known() -> None:
    cache, asked = MetadataCache(), []

    def refresh(topic: str | None) -> None:
        asked.append(topic)
        if len(asked) == 3:  # the first two were lost
            feed(cache, frames.response(12, topics=[T("orders")]), 12)

    assert ClusterLister(cache, refresh).list_topics("orders").topics["orders"].error is None
    assert len(asked) == 3


def test_a_denial_that_was_forgotten_is_asked_for_again() -> None:
    from clocks import Clock

    clock = Clock()
    cache = MetadataCache(clock=clock, denied_ttl=10)
    body = frames.response(12, topics=[T("secret", [], error=29)])
    cache.apply(body, 12, ["secret"])
    clock.advance(100)
    lister = ClusterLister(cache, lambda _topic: cache.apply(body, 12, ["secret"]))
    found = lister.list_topics("secret", timeout=30).topics["secret"]
    assert found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_all_topics_include_those_with_errors() -> None:
    cache = MetadataCache(denied_ttl=60)
    topics = [T("orders"), T("secret", [], error=29), T("bad!", [], error=17)]
    feed(cache, frames.response(12, topics=topics), 12)
    found = list_topics(cache).topics
    assert {name: topic.error and topic.error.code() for name, topic in found.items()} == {
        "orders": None,
        "secret": KafkaError.TOPIC_AUTHORIZATION_FAILED,
        "bad!": KafkaError.TOPIC_EXCEPTION,
    }


def test_all_topics_exclude_a_missing_one_as_in_confluent_kafka(cluster: EmbeddedCluster) -> None:
    cache = MetadataCache(negative_ttl=60)
    fetch(cache, cluster.bootstrap, ["gone"])
    conf: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "allow.auto.create.topics": False,
    }
    for each in (AdminClient(conf), ClusterLister(cache)):
        error = each.list_topics("gone", timeout=10).topics["gone"].error
        assert error is not None
        assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert "gone" not in each.list_topics(timeout=10).topics


def unknown(found: Any, topic: str) -> bool:
    """Returns whether a topic is there with UNKNOWN_TOPIC_OR_PART."""
    error = found.topics[topic].error
    return error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_missing_from_an_all_topics_answer_is_unknown_at_once(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.create_topic("orders")
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "allow.auto.create.topics": False})
    with cache.publish(tmp_path / "state"):
        attached = rdmeta.attach(tmp_path / "state")
        listers = [ClusterLister(each) for each in (cache, cache.image(), attached)]
        everyone: list[Any] = [admin, *listers]
        for each in everyone:
            assert unknown(each.list_topics("nope", timeout=10), "nope")
        for lister in listers:
            assert unknown(lister.list_topics("nope"), "nope")  # without a time limit


def test_an_all_topics_answer_past_its_age_says_nothing_about_other_topics() -> None:
    from clocks import Clock

    clock = Clock()
    cache = MetadataCache(clock=clock, max_age=10)
    feed(cache, frames.response(12, topics=[T("orders")]), 12)
    clock.advance(9)
    assert unknown(list_topics(cache, "nope", 0), "nope")
    clock.advance(2)
    with pytest.raises(RequestTimedOutError):
        list_topics(cache, "nope", 0)


def test_an_all_topics_answer_before_a_purge_says_nothing_about_other_topics() -> None:
    cache = MetadataCache()
    feed(cache, frames.response(12, topics=[T("orders")]), 12)
    cache.purge()
    for reading in (cache, cache.image()):
        with pytest.raises(RequestTimedOutError):
            list_topics(reading, "nope", 0)


def test_a_topic_in_flight_is_waited_for_although_an_all_topics_answer_lacks_it() -> None:
    cache = MetadataCache()
    feed(cache, frames.response(12, topics=[T("orders")]), 12)
    cache.hint(["new"])
    with pytest.raises(RequestTimedOutError):
        list_topics(cache, "new", 0.05)


def test_only_an_all_topics_answer_after_the_last_refresh_makes_a_topic_unknown() -> None:
    cache, asked = MetadataCache(), []
    body = frames.response(12, topics=[T("orders")])
    feed(cache, body, 12)

    def refresh(topic: str | None) -> None:
        asked.append(topic)
        if len(asked) == 3:
            feed(cache, body, 12)

    lister = ClusterLister(cache, refresh)
    assert unknown(lister.list_topics("nope"), "nope")
    assert len(asked) == 3
    asked.clear()
    assert unknown(lister.list_topics("nope"), "nope")  # asks again, as confluent-kafka does
    assert len(asked) == 3


def test_over_a_published_cache_a_topic_is_waited_for(tmp_path: Path) -> None:
    cache = MetadataCache()
    with cache.publish(tmp_path / "state"):
        attached = rdmeta.attach(tmp_path / "state")
        with pytest.raises(KafkaException, match="was not known in time"):
            list_topics(attached, "later", timeout=0.05)
        body = frames.response(12, topics=[T("later")])
        threading.Timer(0.2, feed, (cache, body, 12)).start()
        assert list(list_topics(attached, "later", timeout=30).topics) == ["later"]
