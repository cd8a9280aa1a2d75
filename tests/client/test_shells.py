"""The behaviour of both clients: each test runs over Client and over AsyncClient."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest
from answers import apply_answer
from broker import DESCRIBE_CONFIGS, METADATA, Brokers, Fault
from frames import P, T
from shells import Maker
from waiting import PROMPT, until

import rdmeta
from rdmeta import ALL, MetadataCache
from rdmeta.errors import (
    ConfigError,
    Error,
    InvalidTopicError,
    MalformedError,
    NoSuchPartitionError,
    NotCachedError,
    RequestTimedOutError,
    TopicAuthorizationError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from rdmeta.net.stream import StreamConnection


def asked(brokers: Brokers) -> list[Any]:
    """Returns the topics of each Metadata request: None for all, or the names."""
    return [
        None if (topics := each.asked.body.topics) is None else [t.name for t in topics]
        for each in brokers.requests(METADATA)
    ]


# ---- life ---------------------------------------------------------------------------------------


def test_making_a_client_touches_no_network(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    time.sleep(0.05)
    assert [len(each.accepted) for each in brokers] == [0, 0, 0]
    client.start()
    client.start()
    until(lambda: asked(brokers) == [[]], "a started client asks for the brokers")


def test_a_lookup_in_a_loaded_cache_starts_a_client(make: Maker, brokers: Brokers) -> None:
    cache = MetadataCache()
    apply_answer(cache, T("orders", [P(0, 7, 3)]))
    client = make(brokers.bootstrap, cache=cache)
    assert client.leader("orders", 0) in (7, 1)  # 1: the first answer was faster
    assert client.stats()["state"] == "running"
    until(lambda: client.leader("orders", 0) == 1, "the client refreshes")


def test_making_a_client_checks_its_configuration(make: Maker) -> None:
    with pytest.raises(ConfigError, match=r"retry\.backof\.ms"):
        make("localhost:9092", {"retry.backof.ms": 5})
    with pytest.raises(TypeError, match="cache must be a MetadataCache"):
        make("localhost:9092", cache={})


def test_the_first_call_starts_a_client(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    assert client.leader("orders", 3) == 1
    assert client.cache.leader("orders", 4) == 2


def test_with_closes_a_client(make: Maker, brokers: Brokers) -> None:
    with make(brokers.bootstrap) as client:
        client.refresh()
    with pytest.raises(Error, match="closed"):
        client.refresh()
    until(lambda: sum(each.open for each in brokers) == 0, "the connections are closed")


def test_a_second_close_does_nothing_and_later_calls_are_refused(
    make: Maker, brokers: Brokers
) -> None:
    client = make(brokers.bootstrap)
    client.refresh(ALL)
    client.close()
    client.close()
    for call in (
        lambda: client.need("orders"),
        lambda: client.refresh(wait=False),
        lambda: client.wait_for_topic("orders"),
        lambda: client.leader("nope", 0),
        lambda: client.leader("orders", 0),
        lambda: client.on_change(print),
        lambda: client.leader_unavailable("orders", 0, 6),
        client.least_loaded,
        client.start,
    ):
        with pytest.raises(Error, match="the client is closed"):
            call()
    assert client.stats()["state"] == "closed"


def test_a_client_that_was_never_started_can_be_closed(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.close()
    with pytest.raises(Error, match="the client is closed"):
        client.start()
    assert [len(each.accepted) for each in brokers] == [0, 0, 0]


def test_close_ends_every_wait_with_an_error(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh(())
    for broker in brokers:
        broker.fault = Fault(silent=True)
    n = len(brokers.requests(METADATA))
    errors: list[Error] = []

    def wait(call: Any) -> None:
        try:
            call()
        except Error as error:
            errors.append(error)

    waits = [client.refresh, lambda: client.wait_for_topic("orders"), lambda: client.quorum()]
    threads = [threading.Thread(target=wait, args=(each,)) for each in waits]
    for thread in threads:
        thread.start()
    until(lambda: len(brokers.requests(METADATA)) > n, "a request is out")
    time.sleep(0.05)
    begun = time.monotonic()
    client.close()
    for thread in threads:
        thread.join(20)
    assert time.monotonic() - begun < PROMPT
    assert ["closed" in str(error) for error in errors] == [True] * 3


# ---- topics -------------------------------------------------------------------------------------


def test_a_refresh_returns_the_version_after_its_answer(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    version = client.refresh()
    assert version == client.cache.version > 0
    brokers.truth.lead("orders", 0, 2)
    assert client.refresh() > version
    assert client.cache.leader("orders", 0) == 2


def test_a_refresh_asks_for_what_it_is_told(make: Maker, brokers: Brokers) -> None:
    brokers.truth.create("audit")
    client = make(brokers.bootstrap)
    client.refresh(())
    assert "orders" not in client.cache
    client.refresh(["audit"])
    assert list(client.cache) == ["audit"]
    client.refresh(ALL)
    assert sorted(client.cache) == ["audit", "orders"]
    assert None in asked(brokers)


def test_a_refresh_that_is_not_waited_for_returns_at_once(make: Maker, brokers: Brokers) -> None:
    for broker in brokers:
        broker.freeze()
    client = make(brokers.bootstrap, topics=["orders"])
    assert client.refresh(wait=False) is None
    for broker in brokers:
        broker.thaw()
    until(lambda: "orders" in client.cache)


def test_a_refresh_without_an_answer_times_out_and_says_why(make: Maker) -> None:
    with Brokers(1) as gone:
        servers = gone.bootstrap
    client = make(servers)
    begun = time.monotonic()
    with pytest.raises(RequestTimedOutError, match=rf"{servers}.*[Cc]onnection refused"):
        client.refresh(timeout=0.3)
    assert 0.25 < time.monotonic() - begun < PROMPT


@pytest.mark.parametrize("wrong", [5, [5], [b"orders"]])
def test_wrong_topics_are_refused_in_the_call(make: Maker, brokers: Brokers, wrong: Any) -> None:
    client = make(brokers.bootstrap)
    with pytest.raises(TypeError):
        client.need(wrong)
    with pytest.raises((TypeError, ValueError)):  # bytes are ids
        client.refresh(wrong)
    with pytest.raises((TypeError, ValueError)):
        client.refresh(wrong, wait=False)


def test_a_name_that_no_topic_can_have_is_refused(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    for call in (client.need, client.wait_for_topic, client.topic):
        with pytest.raises(InvalidTopicError, match="there can be no topic"):
            call("or/ders")


def test_a_needed_topic_is_asked_for_at_once(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh(())
    client.need("orders")
    until(lambda: "orders" in client.cache)
    n = len(brokers.requests(METADATA))
    client.need(["orders"])
    time.sleep(0.1)
    assert len(brokers.requests(METADATA)) == n


def test_more_topics_than_allowed_are_refused_in_the_call(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, {"metadata.max.topics": 2}, topics=["orders"])
    client.refresh()
    for _ in range(2):
        with pytest.raises(ValueError, match="metadata.max.topics"):
            client.need(["a", "b"])
    client.need("orders")


@pytest.mark.parametrize("wrong", [(1, 0, 6), ("orders", "0", 6), ("orders", 0, "6")])
def test_a_complaint_of_a_wrong_type_is_refused_in_the_call(
    make: Maker, brokers: Brokers, wrong: Any
) -> None:
    client = make(brokers.bootstrap)
    for complain in (client.leader_unavailable, client.epoch_seen):
        with pytest.raises(TypeError):
            complain(*wrong)


def test_topics_that_are_forgotten_by_time_leave_no_name(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, {"metadata.max.idle.ms": 60_000})
    client.need(["orders"])
    client.wait_for_topic("orders", timeout=20)
    assert not getattr(client, "client", client)._needed


def test_a_topic_is_waited_for_until_a_broker_knows_it(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.start()
    timer = threading.Timer(0.3, brokers.truth.create, ["late", 2])
    timer.start()
    topic = client.wait_for_topic("late")
    assert [p.leader for p in topic.partitions] == [1, 2]
    timer.join()


def test_a_partition_is_waited_for_until_it_has_a_leader(make: Maker, brokers: Brokers) -> None:
    brokers.truth.lead("orders", 2, -1)
    client = make(brokers.bootstrap)
    timer = threading.Timer(0.3, brokers.truth.lead, ["orders", 2, 1])
    timer.start()
    assert client.wait_for_topic("orders", 2).leader == 1
    timer.join()


def test_a_wait_for_a_topic_times_out(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    with pytest.raises(RequestTimedOutError):
        client.wait_for_topic("nope", timeout=0.3)
    assert client.topic("orders").name == "orders"


def test_a_denied_topic_is_raised_to_each_waiter(make: Maker, brokers: Brokers) -> None:
    for broker in brokers:
        broker.fault = Fault(topic_errors={"orders": 29})
    client = make(brokers.bootstrap)
    for _ in range(2):
        with pytest.raises(TopicAuthorizationError):
            client.wait_for_topic("orders")


def test_a_leader_in_the_cache_needs_no_request(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    assert client.leader("orders", 1) == 2
    n = len(brokers.requests(METADATA))
    assert [client.leader("orders", p) for p in range(6)] == [1, 2, 3, 1, 2, 3]
    assert len(brokers.requests(METADATA)) == n


def test_a_leader_is_not_waited_for_with_a_timeout_of_0(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh(())
    for broker in brokers:  # an answer could come before the call ends
        broker.fault = Fault(silent=True)
    n = len(brokers.requests(METADATA))
    with pytest.raises(NotCachedError):
        client.leader("orders", 1, timeout=0)
    until(lambda: len(brokers.requests(METADATA)) > n, "the topic is asked for")
    apply_answer(client.cache, T("orders", [P(1, 2, 1)]))
    assert client.leader("orders", 1, timeout=0) == 2
    with pytest.raises(NoSuchPartitionError):
        client.leader("orders", 9, timeout=0)
    with pytest.raises(NoSuchPartitionError):
        client.leader("orders", -1)
    with pytest.raises(RequestTimedOutError):
        client.leader("orders", 9, timeout=0.2)


def test_a_client_of_all_topics_learns_new_ones(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, topics=ALL)
    client.refresh()
    brokers.truth.create("audit")
    client.refresh()
    assert sorted(client.cache) == ["audit", "orders"]


def test_the_subscription_can_be_replaced(make: Maker, brokers: Brokers) -> None:
    brokers.truth.create("audit")
    client = make(brokers.bootstrap, topics=["orders"])
    client.refresh()
    assert list(client.cache) == ["orders"]
    client.subscribe("^au")
    until(lambda: "audit" in client.cache)


# ---- what the application has seen --------------------------------------------------------------


def test_a_complaint_about_a_leader_has_the_topic_asked_for(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    assert client.leader("orders", 0) == 1
    brokers.truth.lead("orders", 0, 3)
    client.leader_unavailable("orders", 0, 6)
    until(lambda: client.leader("orders", 0) == 3)


def test_a_newer_epoch_has_the_topic_asked_for(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    assert client.leader("orders", 0) == 1
    brokers.truth.lead("orders", 0, 3)
    client.epoch_seen("orders", 0, 1)
    until(lambda: client.leader("orders", 0) == 3)


def test_a_leader_hint_is_in_the_cache_at_once(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    assert client.leader("orders", 0) == 1
    applied = client.leader_hint("orders", 0, 2, 7)
    assert applied.changed == 1
    assert client.leader("orders", 0) == 2
    ignored = client.leader_hint(b"no such id......", 0, 2, 9)
    assert ignored.changed == 0


# ---- the cluster --------------------------------------------------------------------------------


def test_the_least_loaded_node_is_one_of_the_cluster(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh(())
    node = client.least_loaded()
    assert (node.host, node.port) in {("127.0.0.1", each.port) for each in brokers}


def test_the_quorum_and_the_cluster_are_asked_for(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    assert client.quorum().leader == 1
    assert {each.id for each in client.describe_cluster().brokers} == {1, 2, 3}
    assert {each.id for each in client.describe_cluster(fenced=True).brokers} == {1, 2, 3}


def test_an_api_that_no_broker_has_is_an_error(make: Maker, brokers: Brokers) -> None:
    for broker in brokers:
        del broker.ranges[55]
    client = make(brokers.bootstrap)
    with pytest.raises(UnsupportedVersionError, match=r"seems to run with ZooKeeper.*before 3\.3"):
        client.quorum(timeout=10)


def test_configurations_are_read_by_topic(make: Maker, brokers: Brokers) -> None:
    brokers.truth.configs["orders"] = {"min.insync.replicas": "2", "secret": None}
    client = make(brokers.bootstrap)
    found = client.describe_configs(["orders", "orders", "nope", "bad name"])
    values = {"min.insync.replicas": "2", "retention.ms": "604800000", "secret": None}
    assert found["orders"] == (None, values)
    assert isinstance(found["nope"].error, UnknownTopicError)
    assert isinstance(found["bad name"].error, InvalidTopicError)
    assert sorted(found) == ["bad name", "nope", "orders"]
    one = client.describe_configs("orders", "min.insync.replicas")
    assert one == {"orders": (None, {"min.insync.replicas": "2"})}
    assert client.describe_configs([]) == {}


def test_a_denied_configuration_is_in_the_result(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh(())
    for broker in brokers:
        broker.fault = Fault(topic_errors={"orders": 29})
    brokers.truth.create("payments")
    found = client.describe_configs(["orders", "payments"], ["min.insync.replicas"])
    assert isinstance(found["orders"].error, TopicAuthorizationError)
    assert found["orders"].values == {}
    assert found["payments"] == (None, {"min.insync.replicas": "1"})


def test_configurations_of_many_topics_take_several_requests(make: Maker, brokers: Brokers) -> None:
    names = [f"topic-{i}" for i in range(2500)]
    for name in names:
        brokers.truth.create(name)
    client = make(brokers.bootstrap)
    found = client.describe_configs(names, ["min.insync.replicas"])
    assert [found[name].values for name in names] == [{"min.insync.replicas": "1"}] * 2500
    asked = [len(seen.asked.body.resources) for seen in brokers.requests(DESCRIBE_CONFIGS)]
    assert asked == [1000, 1000, 500]


def test_a_topic_that_the_answer_does_not_have_has_an_error(make: Maker, brokers: Brokers) -> None:
    for broker in brokers:
        broker.answers[DESCRIBE_CONFIGS] = lambda asked: b"\0\0\0\0\1\0"
    found = make(brokers.bootstrap).describe_configs("orders")
    assert isinstance(found["orders"].error, MalformedError)


def test_wrong_arguments_of_describe_configs_ask_nothing(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    with pytest.raises(ValueError, match="keys is empty"):
        client.describe_configs("orders", [])
    with pytest.raises(TypeError, match="a topic's name is a str, not int"):
        client.describe_configs([7])
    with pytest.raises(TypeError, match="a configuration key is a str, not int"):
        client.describe_configs("orders", [7])
    assert brokers.requests(None) == []


@pytest.mark.parametrize("ranges", [None, (0, 0), (5, 6)])
def test_a_broker_without_describe_configs_is_an_error(
    make: Maker, brokers: Brokers, ranges: tuple[int, int] | None
) -> None:
    for broker in brokers:
        del broker.ranges[DESCRIBE_CONFIGS]
        if ranges is not None:
            broker.ranges[DESCRIBE_CONFIGS] = ranges
    with pytest.raises(UnsupportedVersionError, match="of DescribeConfigs, this client speaks 1-4"):
        make(brokers.bootstrap).describe_configs("orders", timeout=10)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_version_of_describe_configs_is_spoken(
    make: Maker, brokers: Brokers, version: int
) -> None:
    for broker in brokers:
        broker.ranges[DESCRIBE_CONFIGS] = (0, version)
    client = make(brokers.bootstrap)
    found = client.describe_configs("orders", "retention.ms")
    assert found["orders"].values == {"retention.ms": "604800000"}
    assert [seen.asked.version for seen in brokers.requests(DESCRIBE_CONFIGS)] == [version]


def test_the_statistics_tell_of_nodes_and_changes(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    assert client.stats()["state"] == "new"
    client.refresh()
    client.refresh()
    stats = client.stats()
    assert stats["state"] == "running"
    assert stats["changes"]["broker_added"] == 3
    assert stats["changes"]["topic_added"] == 1
    nodes = stats["nodes"].values()
    assert sum(node["answers"] for node in nodes) == len(brokers.requests(METADATA))
    assert sum(node["bytes_received"] for node in nodes) > 500
    assert all(0 < n["last_round_trip"] <= n["longest_round_trip"] for n in nodes if n["answers"])


def test_the_documentation_names_every_statistic(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh()
    stats = client.stats()
    node = next(iter(stats["nodes"].values()))
    said = rdmeta.Client.stats.__doc__ or ""
    assert [key for key in (*stats, *node) if f"`{key}`" not in said] == []


# ---- the cache has other writers ----------------------------------------------------------------


def test_a_cache_may_be_given_and_loaded(make: Maker, brokers: Brokers) -> None:
    cache = MetadataCache()
    apply_answer(cache, T("known", [P(0, 7, 3)]))
    for broker in brokers:  # an answer would say that the topic is unknown
        broker.fault = Fault(silent=True)
    client = make(brokers.bootstrap, cache=cache)
    assert client.cache is cache
    assert client.leader("known", 0) == 7


def test_a_cache_that_is_given_gets_the_answers(make: Maker, brokers: Brokers) -> None:
    cache = MetadataCache()
    make(brokers.bootstrap, cache=cache).refresh(["orders"])
    assert "orders" in cache


def test_another_writer_of_the_cache_ends_a_wait(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    client.refresh(())
    timer = threading.Timer(0.1, apply_answer, [client.cache, T("secret", [P(0, 2, 1)])])
    for broker in brokers:
        broker.fault = Fault(silent=True)
    timer.start()
    assert client.wait_for_topic("secret", 0, timeout=10).leader == 2
    timer.join()


def test_what_is_past_its_deadline_leaves_the_cache(make: Maker, brokers: Brokers) -> None:
    cache = MetadataCache(negative_ttl=0.2)
    client = make(brokers.bootstrap, cache=cache)
    client.refresh(["nope"])
    assert cache.stats()["negatives"] == 1
    until(lambda: cache.stats()["negatives"] == 0, "the client sweeps")


# ---- listeners ----------------------------------------------------------------------------------


def test_a_listener_gets_every_change_once(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    seen: list[rdmeta.Change] = []
    client.on_change(seen.extend)
    client.refresh()
    brokers.truth.lead("orders", 0, 3)
    client.refresh()
    until(lambda: seen and seen[-1].kind == "leader_changed")
    assert seen == list(client.cache.changes(0))


def test_a_slow_listener_gets_fewer_and_larger_calls(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    client.refresh()
    going_on = threading.Event()
    calls: list[rdmeta.Changes] = []

    def slow(changes: rdmeta.Changes) -> None:
        calls.append(changes)
        if not going_on.is_set() and isinstance(client, rdmeta.Client):
            going_on.wait(20)

    client.on_change(slow)
    for leader in (2, 3, 1, 2):
        brokers.truth.lead("orders", 0, leader)
        client.refresh(force=True)
    going_on.set()
    until(lambda: calls and calls[-1].until == client.cache.version)
    if isinstance(client, rdmeta.Client):
        assert [len(each) for each in calls] == [1, 3]
    assert sum(len(each) for each in calls) == 4


def test_an_exception_in_a_listener_stops_nothing(
    make: Maker, brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    seen: list[rdmeta.Change] = []

    def wrong(changes: rdmeta.Changes) -> None:
        raise ValueError("the listener's own fault")

    client.on_change(wrong)
    client.on_change(seen.extend)
    client.refresh()
    until(lambda: seen)
    until(lambda: "the listener's own fault" in caplog.text)
    brokers.truth.lead("orders", 0, 3)
    client.refresh()
    until(lambda: seen[-1].kind == "leader_changed")


def test_a_listener_may_name_the_types_of_what_it_gets(make: Maker, brokers: Brokers) -> None:
    seen: list[object] = []

    def updated(updates: tuple[rdmeta.Updated, ...]) -> None:
        seen.extend(updates)

    def failed(problems: tuple[rdmeta.Problem, ...]) -> None:
        seen.extend(problems)

    def changed(changes: rdmeta.Changes) -> None:
        seen.append(changes)

    client = make(brokers.bootstrap)
    client.on_update(updated)
    client.on_error(failed)
    client.on_change(changed)
    client.refresh(["never"])
    for kind in (rdmeta.Updated, rdmeta.Changes):
        until(lambda: any(isinstance(each, kind) for each in seen))  # noqa: B023
    assert isinstance(client.least_loaded(), rdmeta.Node)


def test_a_listener_can_be_removed(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    seen: list[rdmeta.Changes] = []
    remove = client.on_change(seen.append)
    client.refresh()
    until(lambda: seen)
    remove()
    remove()
    n = len(seen)
    brokers.truth.lead("orders", 0, 3)
    client.refresh()
    time.sleep(0.05)
    assert len(seen) == n


def test_updates_tell_a_full_answer_from_a_partial_one(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap)
    seen: list[Any] = []
    client.on_update(seen.extend)
    client.refresh(ALL)
    client.refresh(["orders"], force=True)
    until(lambda: seen and seen[-1].request.topics != ALL and seen[-1].applied.topics == 1)
    assert list(seen[-1].request.topics) == ["orders"]
    assert any(each.request.topics is ALL for each in seen)
    assert {each.cluster_id for each in seen} == {"cluster"}


def test_failures_reach_listeners_and_the_log(
    make: Maker, brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    brokers[1].refuse()
    client = make(f"127.0.0.1:{brokers[1].port}")
    seen: list[Any] = []
    client.on_error(seen.extend)
    client.refresh(wait=False)
    until(lambda: seen)
    assert "refused" in str(seen[0].error)
    assert seen[0].node.port == brokers[1].port
    until(lambda: f"127.0.0.1:{brokers[1].port}" in caplog.text)


def test_each_request_is_in_the_log_with_its_reason(
    make: Maker, brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "rdmeta.client")
    client = make(f"127.0.0.1:{brokers[1].port}", topics=["orders"])
    client.refresh()
    client.refresh(ALL)
    client.refresh(())
    asked = [line.rpartition(" is asked for ")[2] for line in caplog.messages]
    assert asked[0] == "1 topic: start"
    assert {"all topics: refresh", "its brokers: refresh"} <= set(asked)


def test_a_listener_may_close_its_client(make: Maker, brokers: Brokers) -> None:
    client = make(brokers.bootstrap, topics=["orders"])
    closing = client.client.close if hasattr(client, "client") else client.close
    client.on_change(lambda changes: closing())
    client.start()
    until(lambda: client.stats()["state"] == "closed")


# ---- addresses ----------------------------------------------------------------------------------


def test_addresses_are_those_of_the_configured_family(make: Maker, brokers: Brokers) -> None:
    server = f"localhost:{brokers[1].port}"
    make(server, {"broker.address.family": "v4"}).refresh([])
    with pytest.raises(RequestTimedOutError):
        make(server, {"broker.address.family": "v6"}).refresh([], timeout=0.3)


@pytest.mark.parametrize("wanted", [False, True])
def test_connections_are_kept_alive_as_configured(
    make: Maker, brokers: Brokers, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    seen = []

    class Connection(StreamConnection):
        def __init__(self, *args: Any, **options: Any) -> None:
            seen.append(options["keepalive"])
            super().__init__(*args, **options)

    monkeypatch.setattr("rdmeta.client.driver.StreamConnection", Connection)
    make(brokers.bootstrap, {"socket.keepalive.enable": wanted}).refresh([])
    assert set(seen) == {wanted}


def test_close_delivers_what_the_cache_already_has(make: Maker, brokers: Brokers) -> None:
    for turn in range(20):
        client = make(brokers.bootstrap, topics=["orders"])
        client.start()
        until(lambda: client.cache.leader("orders", 0, None) is not None, "the first answer")  # noqa: B023
        seen: list[Any] = []
        client.on_change(seen.extend)
        apply_answer(client.cache, T(f"new-{turn}", [P(0, 1, 0)]))
        client.close()
        assert [each.topic for each in seen if each.kind == "topic_added"] == [f"new-{turn}"]


def test_a_listener_that_closes_the_client_is_not_called_again(
    make: Maker, brokers: Brokers
) -> None:
    client = make(brokers.bootstrap)
    calls: list[Any] = []
    closed = threading.Event()

    def listen(changes: Any) -> None:
        calls.append(changes)
        apply_answer(client.cache, T("later", [P(0, 1, 0)]))
        client.close()
        closed.set()

    if isinstance(client, rdmeta.Client):
        client.start()
        client.on_change(listen)
        apply_answer(client.cache, T("first", [P(0, 1, 0)]))
        assert closed.wait(20)
        client.close()
        assert len(calls) == 1
