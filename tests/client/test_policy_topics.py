"""Topics of the policy: idle ones, the blacklist, forgetting, old brokers, errors, statistics."""

from __future__ import annotations

import random
import re
import time

import pytest
from answers import apply_answer
from frames import topic_id
from policy_driver import ADDRESSES, B, Driver, P, T, names_of, topic

from rdmeta import ALL, MetadataCache, UnsupportedVersionError
from rdmeta.client.actions import Problem, RequestKind, Updated
from rdmeta.client.policy import Policy
from rdmeta.client.subscriptions import literal_prefix
from rdmeta.config import Config

# ---- idle topics --------------------------------------------------------------------------------


def idle_driver(**config: object) -> Driver:
    d = Driver(max_idle=60.0, refresh_interval=None, **config)  # type: ignore[arg-type]
    d.start()
    d.policy.need(["orders"], d.now)
    d.wait(0.02)
    d.answer(d.sent(), topic("orders"))
    return d


def test_an_idle_topic_is_forgotten() -> None:
    d = idle_driver()
    d.wait(59)
    assert "orders" in d.cache
    d.wait(1.1)
    assert "orders" not in d.cache
    assert d.policy.stats()["needed"] == 0


def test_without_the_option_no_topic_is_idle() -> None:
    d = Driver(refresh_interval=None)
    d.start()
    d.policy.need(["orders"], d.now)
    d.wait(0.02)
    d.answer(d.sent(), topic("orders"))
    d.wait(800)
    assert d.policy.stats()["needed"] == 1


@pytest.mark.parametrize("use", ["need", "touch", "wait", "handle"])
def test_a_topic_in_use_is_not_idle(use: str) -> None:
    d = idle_driver()
    handle = d.cache.resolve("orders") if use == "handle" else None
    if use == "wait":
        d.policy.wait_for_topic(d.now, "orders", 7)
    for _ in range(10):
        d.wait(50)
        if use == "need":
            d.policy.need(["orders"], d.now)
        elif use == "touch":
            d.policy.touch("orders", d.now)
    assert d.policy.stats()["needed"] == 1
    del handle


@pytest.mark.parametrize("ends", ["there", "time-out"])
def test_a_topic_is_idle_from_the_end_of_its_last_wait(ends: str) -> None:
    d = idle_driver()
    d.policy.wait_for_topic(d.now, "orders", 1, deadline=d.now + 50)
    for _ in range(250 if ends == "there" else 510):
        d.wait(0.1)
        for send in list(d.open.values()):
            d.answer(send, topic("orders"))
    while ends == "there" and not d.finished:
        d.wait(0.1)
        for send in list(d.open.values()):
            d.answer(send, T("orders", [P(0), P(1)], id=topic_id("orders")))
    assert len(d.finished) == 1
    d.wait(55)
    assert "orders" in d.cache
    d.wait(10)
    assert "orders" not in d.cache


def test_a_subscribed_topic_is_not_idle() -> None:
    d = Driver(max_idle=60.0, refresh_interval=None, topics=["orders"])
    d.start(topic("orders"))
    d.policy.need(["orders"], d.now)
    d.wait(500)
    assert "orders" in d.cache


# ---- forget -------------------------------------------------------------------------------------


def test_a_forgotten_topic_leaves_the_cache_and_is_not_asked_for() -> None:
    d = Driver(topics=["orders", "lost"], refresh_interval=5.0)
    d.start(topic("orders"), topic("lost", -1))
    d.answer(d.sent(), topic("lost", -1))
    d.policy.forget(["lost"], d.now)
    assert "lost" not in d.cache
    d.wait(6.1)
    assert [names_of(send) for send in d.open.values()] == [["orders"]]


def test_an_answer_does_not_bring_back_a_topic_that_was_forgotten_meanwhile() -> None:
    d = Driver(topics=["orders", "audit"])
    d.connect()
    send = d.sent()
    d.policy.forget(["audit"], d.now)
    d.answer(send, topic("orders"), topic("audit"))
    assert "orders" in d.cache
    assert "audit" not in d.cache


def test_a_topic_that_is_waited_for_is_not_forgotten() -> None:
    d = Driver()
    d.start()
    waiter = d.policy.wait_for_topic(d.now, "orders")
    d.policy.forget(["orders"], d.now)
    d.wait(0.02)
    d.answer(d.sent(), topic("orders"))
    assert d.finished[waiter].error is None


# ---- the blacklist ------------------------------------------------------------------------------


def test_topics_of_the_blacklist_are_neither_asked_for_nor_stored() -> None:
    d = Driver(topics=ALL, blacklist=(re.compile("^secret"), re.compile("^__")))
    d.start(topic("orders"), topic("secret-1", -1), topic("__offsets"))
    assert list(d.cache) == ["orders"]
    d.policy.need(["secret-2"], d.now)
    d.wait(5)
    assert len(d.sends) == 1


def test_a_topic_of_the_blacklist_that_was_asked_for_by_its_id_is_not_stored() -> None:
    d = Driver(topics=["orders"], blacklist=(re.compile("^secret"),))
    d.start(topic("orders"))
    d.policy.refresh(d.now, [topic_id("secret-1")])
    d.wait(0.2)
    d.answer(d.sent(), topic("secret-1"))
    assert list(d.cache) == ["orders"]


def test_a_complaint_about_a_topic_of_the_blacklist_asks_nothing() -> None:
    d = Driver(topics=["orders"], blacklist=(re.compile("^secret"),))
    d.start(topic("orders"))
    d.policy.leader_unavailable("secret-1", 0, 6, d.now)
    d.wait(5)
    assert len(d.sends) == 1


# ---- creation by brokers ------------------------------------------------------------------------


def test_requests_do_not_create_topics_unless_that_is_set() -> None:
    for allowed in (False, True):
        d = Driver(topics=["orders"], allow_auto_create=allowed)
        d.connect()
        assert d.sent().request.allow_auto_create is allowed  # type: ignore[union-attr]


def test_brokers_before_v4_are_not_asked_for_names() -> None:
    d = Driver(topics=["orders"])
    waiter = d.policy.wait_for_topic(d.now, "orders")
    refresh = d.policy.refresh(d.now)
    d.connect(versions=(0, 3))
    d.wait(0.2)
    assert [names_of(send) for send in d.open.values()] == [[]]
    for each in (waiter, refresh):
        error = d.finished[each].error
        assert isinstance(error, UnsupportedVersionError)
        assert "allow.auto.create.topics" in str(error)
    d.wait(30)
    assert all(names_of(send) == [] for send in d.sends)
    assert len(d.sends) < 20


def test_names_go_to_the_newer_brokers_of_a_mixed_cluster() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES)
    for link in d.connecting():
        d.connect(link.link, versions=(0, 3))
    assert not d.open
    d.connect(d.connecting()[0].link)
    assert names_of(d.sent()) == ["orders"]


def test_brokers_before_v4_are_asked_for_names_if_creation_is_allowed() -> None:
    d = Driver(topics=["orders"], allow_auto_create=True)
    d.connect(versions=(0, 1))
    assert names_of(d.sent()) == ["orders"]


def test_brokers_of_v0_which_cannot_tell_them_alone_are_asked_for_all_topics() -> None:
    d = Driver()
    d.connect(versions=(0, 0))
    assert names_of(d.sent()) == "all"


def test_brokers_before_v4_are_asked_for_all_topics() -> None:
    d = Driver(topics=ALL)
    d.connect(versions=(0, 0))
    assert names_of(d.sent()) == "all"


# ---- events -------------------------------------------------------------------------------------


def test_each_answer_is_an_event_with_request_applied_cluster_and_node() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    send = d.sent()
    applied = d.answer(send, topic("orders"))
    (event,) = d.events()
    assert isinstance(event, Updated)
    assert event.request == send.request
    assert event.applied == applied
    assert event.cluster_id == "cluster"
    assert event.node == (1, "broker-1", 9092)


def test_an_error_of_a_topic_is_reported_once_until_the_topic_was_valid() -> None:
    d = Driver(topics=["orders"])
    d.start(T("orders", [], error=29))
    for _ in d.ticks(50, 0.1):
        for send in list(d.open.values()):
            d.answer(send, T("orders", [], error=29))
    events = [e for e in d.events() if isinstance(e, Problem)]
    assert [(e.topic, e.error.code) for e in events] == [("orders", 29)] or [
        e.topic for e in events
    ] == ["orders"]


def test_missing_listeners_are_reported_with_ten_partitions_at_most() -> None:
    d = Driver(topics=["orders"])
    partitions = [P(i, -1, 1, error=72) for i in range(50)]
    d.start(T("orders", partitions))
    (event,) = [e for e in d.events() if isinstance(e, Problem)]
    assert event.error.code == 72
    assert event.partitions == tuple(f"orders-{i}" for i in range(10))
    assert "50 partitions" in str(event.error)


# ---- patterns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        ("^orders-.*", "orders-"),
        ("^orders", "orders"),
        ("^ab?c", "a"),
        ("^ab*", "a"),
        ("^a{2}", ""),
        ("^a|^b", ""),
        ("^.*", ""),
        ("^a\\.b", "a"),
        ("^(ab|c)", ""),
        ("^a+", "a"),
    ],
)
def test_a_pattern_is_looked_up_by_its_literal_prefix(pattern: str, prefix: str) -> None:
    assert literal_prefix(pattern) == prefix
    for name in ("orders-1", "orders", "ac", "abc", "a", "aa", "b", "a.b", "c", "zz"):
        if re.match(pattern, name):
            assert name.startswith(prefix)


def test_patterns_find_the_topics_that_the_cache_knows_already() -> None:
    d = Driver(topics=ALL)
    d.start(topic("orders-1"), topic("orders-2"), topic("audit"))
    d.policy.subscribe(["^orders-.*"], d.now)
    assert d.policy.stats()["needed"] == 2


def test_a_topic_that_comes_and_goes_between_two_looks_matches_no_pattern() -> None:
    d = Driver(topics="^orders")
    d.start(topic("orders"))
    apply_answer(d.cache, topic("orders-eu"))
    d.cache.forget(["orders-eu"])
    d.poll()
    assert d.policy.stats()["needed"] == 1


def test_a_removed_topic_that_an_older_answer_brings_back_is_asked_for_by_its_pattern() -> None:
    d = Driver(topics="^orders", refresh_interval=None)
    d.start(topic("orders"), topic("orders-eu"))
    for broker in (2, 3):
        apply_answer(d.cache, topic("orders"), asked=d.cache.request(ALL), broker=broker)
    assert d.cache.state("orders-eu") == -100
    apply_answer(d.cache, topic("orders"), topic("orders-eu"), broker=1)
    d.wait(0.2)
    assert names_of(d.sent()) == ["orders-eu"]


def test_patterns_find_the_topics_of_a_cache_that_was_loaded() -> None:
    first = Driver(topics=ALL)
    first.start(topic("orders-1", -1), topic("audit", -1))
    d = Driver()
    d.policy = Policy(first.cache, Config(), ADDRESSES[:1], random.Random(1), topics="^orders-.*")
    d.start(topic("orders-1", -1), topic("audit", -1))
    d.wait(0.2)
    assert names_of(d.sent()) == ["orders-1"]


# ---- statistics ---------------------------------------------------------------------------------


def test_the_statistics_count_refreshes_by_reason_and_result() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(1.2)
    d.connect()
    d.answer(d.sends[-1], topic("orders"))
    stats = d.policy.stats()
    expected = {"sent": 1, "hedged": 0, "answered": 1, "failed": 0}
    assert stats["refreshes"]["start"] == expected
    assert stats["refreshes"]["refresh"] == {**expected, "hedged": 1}
    assert stats["last_success"] == d.now
    assert stats["nodes"][1]["state"] == "ready"
    assert stats["nodes"][1]["attempts"] == 1


# ---- cost ---------------------------------------------------------------------------------------


def test_an_idle_poll_does_not_walk_the_needed_topics() -> None:
    def seconds(n: int) -> float:
        names = [f"topic-{i}" for i in range(n)]
        d = Driver(topics=names, refresh_interval=None)
        d.start(*[topic(name) for name in names])
        best = 1.0
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(1000):
                d.policy.poll(d.now)
            best = min(best, time.perf_counter() - begin)
        return best

    assert seconds(10_000) < 5 * seconds(20)


def test_a_topic_that_becomes_needed_costs_the_same_among_many() -> None:
    def seconds(n: int) -> float:
        d = Driver()
        d.policy.need([f"topic-{i}" for i in range(n)], d.now)
        names = [[f"new-{i}"] for i in range(500)]
        begin = time.perf_counter()
        for name in names:
            d.policy.need(name, d.now)
        return time.perf_counter() - begin

    # A walk makes it some 500 times as slow.
    assert min(seconds(50_000) for _ in range(3)) < 50 * min(seconds(20) for _ in range(3))


def test_a_policy_of_a_loaded_cache_starts_at_the_bootstrap_servers() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"), brokers=[B(1, "elsewhere")])
    policy = Policy(d.cache, Config(), ADDRESSES[:1], random.Random(1), topics=["orders"])
    (connect,) = policy.poll(d.now).actions
    assert connect.node.host == "broker-1"  # type: ignore[union-attr]
    assert isinstance(d.cache, MetadataCache)
    assert RequestKind.FULL.value == "full"


def test_a_client_of_all_topics_asks_old_brokers_for_all_where_it_would_ask_for_names() -> None:
    d = Driver(topics=ALL)
    d.versions, d.brokers = (0, 3), (B(1, "broker-1"),)
    d.start(topic("orders", -1))
    waiter = d.policy.wait_for_topic(d.now, "later")
    d.wait(0.3)
    assert [names_of(send) for send in d.open.values()] == ["all"]
    d.answer(d.sent(), topic("orders"), topic("later"))
    assert d.finished[waiter].error is None
    assert d.cache.leader("orders", 0) == 1
