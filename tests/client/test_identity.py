"""Bootstrap servers of two clusters: what the policy asks, reports and refuses."""

from __future__ import annotations

import asyncio
import time

import frames
import pytest
from policy_driver import B, Driver, topic

from rdmeta import (
    AsyncClient,
    Client,
    EmbeddedCluster,
    RequestTimedOutError,
    UnknownTopicError,
    WrongClusterError,
)
from rdmeta.client.actions import Problem, RequestKind
from rdmeta.config.address import Address

TWO = [Address("one", 9092), Address("two", 9092)]
FIRST = (B(1, "first-1"),)
SECOND = (B(1, "second-1"),)


def started() -> Driver:
    """Returns a driver that has asked the first server, and asks the second one."""
    d = Driver(bootstrap=TWO, topics=["orders"])
    d.start(topic("orders"), brokers=FIRST, cluster_id="first")
    d.wait(0.1)
    return d


def asked_of(d: Driver, host: str) -> int:
    """Connects to a server, and returns the link."""
    (link,) = [each.link for each in d.connecting() if each.node.host == host]
    return d.connect(link)


def test_each_bootstrap_server_is_asked_once_and_one_of_another_cluster_is_reported() -> None:
    d = started()
    link = asked_of(d, "two")
    (send,) = [each for each in d.open.values() if each.link == link]
    d.events()
    assert d.respond(send, frames.response(12, [], brokers=SECOND, cluster_id="second")) is None
    (problem,) = [each for each in d.events() if isinstance(each, Problem)]
    assert isinstance(problem.error, WrongClusterError)
    for word in ("two:9092", "'second'", "one:9092", "'first'"):
        assert word in str(problem.error)
    assert d.policy.stats()["wrong_clusters"] == {"two:9092": "second"}
    assert d.cache.cluster_id == "first"
    d.wait(60)
    assert sum(each.node.host == "two" for each in d.connects) == 1


def waiting() -> tuple[Driver, int]:
    """Returns a driver whose first call has its topic, and is held until the second server says."""
    d = Driver(bootstrap=TWO)
    waiter = d.policy.wait_for_topic(d.now, "orders", 0, d.now + 60)
    d.connect()
    d.answer(d.sent(RequestKind.FULL), topic("orders"), brokers=FIRST, cluster_id="first")
    assert d.cache.leader("orders", 0) == 1
    assert waiter not in d.finished
    return d, waiter


def second_says(d: Driver, cluster: str) -> None:
    """Has the second server answer with the id of its cluster."""
    link = asked_of(d, "two")
    (send,) = [each for each in d.open.values() if each.link == link]
    d.respond(send, frames.response(12, [], brokers=SECOND, cluster_id=cluster))


def check_wrong(error: Exception | None) -> None:
    """Checks that an error names both clusters and both servers."""
    assert isinstance(error, WrongClusterError)
    for word in ("two:9092", "'second'", "one:9092", "'first'"):
        assert word in str(error)


def test_the_first_call_raises_that_a_server_is_of_another_cluster_and_the_next_does_not() -> None:
    d, waiter = waiting()
    second_says(d, "second")
    check_wrong(d.finished[waiter].error)
    waiter = d.policy.wait_for_topic(d.now, "orders", 0)
    d.poll()
    assert d.finished[waiter].error is None
    assert d.policy.stats()["wrong_clusters"] == {"two:9092": "second"}


def test_a_call_that_comes_later_is_the_first_one_too() -> None:
    d = started()
    second_says(d, "second")
    d.wait(60)
    waiter = d.policy.wait_for_topic(d.now, "orders", 0)
    d.poll()
    check_wrong(d.finished[waiter].error)
    assert not d.policy.is_holding


def test_the_id_of_a_server_that_another_one_has_preceded_is_raised_too() -> None:
    d = Driver(bootstrap=TWO, topics=["orders"])
    waiter = d.policy.refresh(d.now)
    d.poll()
    slow = d.connect()
    d.wait(1.5)
    link = asked_of(d, "two")
    (send,) = [each for each in d.open.values() if each.link == link]
    d.respond(send, frames.response(12, [topic("orders")], brokers=FIRST, cluster_id="first"))
    for send in [each for each in d.open.values() if each.link == slow]:
        d.respond(send, frames.response(12, [topic("orders")], brokers=SECOND, cluster_id="second"))
    error = d.finished[waiter].error
    assert isinstance(error, WrongClusterError)
    assert "one:9092 is of cluster 'second', and the client of 'first' (two:9092)" in str(error)


def test_the_first_call_waits_until_the_other_server_answers_or_fails() -> None:
    d, waiter = waiting()
    second_says(d, "first")
    assert d.finished[waiter].error is None
    d, waiter = waiting()
    d.fail(next(each.link for each in d.connecting() if each.node.host == "two"))
    assert d.finished[waiter].error is None


def test_the_first_call_does_not_wait_for_a_server_that_was_silent_before() -> None:
    d = Driver(bootstrap=TWO)
    waiter = d.policy.wait_for_topic(d.now, "orders", 0)
    d.wait(1.1)
    d.connect(next(each.link for each in d.connecting() if each.node.host == "two"))
    for send in list(d.open.values()):
        d.answer(send, topic("orders"), brokers=FIRST, cluster_id="first")
    assert d.finished[waiter].error is None


def test_the_first_call_waits_for_a_silent_server_for_a_second_and_then_it_is_a_problem() -> None:
    d, waiter = waiting()
    d.wait(0.9)
    assert waiter not in d.finished
    d.wait(0.2)
    assert d.finished[waiter].error is None
    second_says(d, "second")
    waiter = d.policy.wait_for_topic(d.now, "orders", 0)
    d.poll()
    assert d.finished[waiter].error is None
    assert any("'second'" in text and "'first'" in text for text in d.problems())


def test_a_call_whose_time_is_over_gets_its_outcome_and_one_that_is_cancelled_none() -> None:
    d, _ = waiting()
    brief = d.policy.wait_for_topic(d.now, "orders", 0, d.now + 0.1)
    gone = d.policy.wait_for_topic(d.now, "orders", 0)
    d.policy.cancel(gone, d.now)
    d.wait(0.2)
    assert d.finished[brief].error is None
    d.wait(10)
    assert gone not in d.finished


def test_no_call_waits_if_the_servers_are_the_brokers_or_give_no_id() -> None:
    brokers = tuple(B(i, each.host) for i, each in enumerate(TWO))
    for more in ({"cluster_id": "first"}, {"cluster_id": None}):
        d = Driver(bootstrap=TWO, topics=["orders"])
        waiter = d.policy.wait_for_topic(d.now, "orders", 0)
        d.start(topic("orders", 0), brokers=brokers, **more)
        assert d.finished[waiter].error is None


def test_a_server_that_did_not_answer_is_asked_again() -> None:
    d = started()
    d.fail(next(each.link for each in d.connecting() if each.node.host == "two"))
    d.wait(5)
    d.fail(asked_of(d, "two"))
    d.wait(5)
    asked_of(d, "two")
    assert d.policy.stats()["wrong_clusters"] == {}


def rebootstrapped(d: Driver) -> None:
    """Loses every link, so that the bootstrap servers are asked anew."""
    for _ in range(20):
        if d.policy.stats()["rebootstraps"]:
            return
        for number in list(d.links):
            d.fail(number)
        d.wait(0.1)
    raise AssertionError("there was no rebootstrap")


def answer_all(d: Driver, ids: dict[str, str], seconds: float = 3.0, old: str = "") -> None:
    """Answers each request to a bootstrap server with the id of its cluster, for some time.

    The server `old` speaks Metadata v1, which has no cluster id.
    """
    end = d.now + seconds
    while d.now < end:
        for each in d.connecting():
            if each.node.host in ids:
                d.connect(each.link)
        for send in list(d.open.values()):
            host = d.links[send.link].node.host if send.link in d.links else ""
            if send.number in d.open and host in ids:
                brokers = FIRST if ids[host] == "first" else SECOND
                version = 1 if host == old else 12
                body = frames.response(
                    version, [topic("orders", 3, 9)], brokers=brokers, cluster_id=ids[host]
                )
                d.respond(send, body, version=version)
        d.wait(0.05)


def test_a_rebootstrap_moves_to_no_cluster_that_only_some_servers_are_of() -> None:
    d = started()
    rebootstrapped(d)
    answer_all(d, {"two": "second"}, 30.0)
    assert (d.cache.cluster_id, d.cache.last_leader("orders", 0)) == ("first", 1)
    assert any("'second'" in text and "'first'" in text for text in d.problems())


def test_the_cluster_has_moved_once_all_servers_say_so() -> None:
    d = started()
    rebootstrapped(d)
    answer_all(d, {"one": "second", "two": "second"}, 30.0)
    assert (d.cache.cluster_id, d.cache.leader("orders", 0)) == ("second", 3)
    assert d.policy.stats()["wrong_clusters"] == {}


@pytest.mark.slow
def test_a_server_that_cannot_say_its_cluster_does_not_hold_up_the_move() -> None:
    d = started()
    rebootstrapped(d)
    hosts = ("one", "two", "second-1")
    answer_all(d, dict.fromkeys(hosts, "second"), 300.0, old="one")
    assert (d.cache.cluster_id, d.cache.leader("orders", 0)) == ("second", 3)


def test_clients_of_two_clusters_behave_alike_and_report_the_second_one() -> None:
    with EmbeddedCluster(brokers=1) as one, EmbeddedCluster(brokers=1) as two:
        for cluster in (one, two):
            cluster.create_topic("orders")
        conf = {"bootstrap.servers": f"{one.bootstrap},{two.bootstrap}"}
        clients = [Client(conf) for _ in range(20)]
        try:
            for client in clients:
                with pytest.raises(WrongClusterError) as caught:
                    client.leader("orders", 0)
                for server in (one, two):
                    assert server.bootstrap in str(caught.value)
                client.leader("orders", 0)
            assert len({client.cache.cluster_id for client in clients}) == 1
            end = time.monotonic() + 30
            while not all(client.stats()["wrong_clusters"] for client in clients):
                assert time.monotonic() < end
                time.sleep(0.05)
            assert {tuple(client.stats()["wrong_clusters"]) for client in clients} == {
                (two.bootstrap,)
            }
        finally:
            for client in clients:
                client.close()


def test_the_first_call_of_an_async_client_raises_it_and_so_does_one_of_a_filled_cache() -> None:
    async def ask(conf: dict[str, str]) -> None:
        async with AsyncClient(conf, topics=["orders"]) as client:
            while not client.stats()["wrong_clusters"]:
                await asyncio.sleep(0.01)
            assert client.cache.leader("orders", 0) == 1
            with pytest.raises(WrongClusterError):
                await client.leader("orders", 0)
            assert await client.leader("orders", 0) == 1

    with EmbeddedCluster(brokers=1) as one, EmbeddedCluster(brokers=1) as two:
        one.create_topic("orders")
        asyncio.run(ask({"bootstrap.servers": f"{one.bootstrap},{two.bootstrap}"}))


def test_a_refresh_that_nobody_waits_for_is_not_the_first_call() -> None:
    with EmbeddedCluster(brokers=1) as one, EmbeddedCluster(brokers=1) as two:
        one.create_topic("orders")
        with Client({"bootstrap.servers": f"{one.bootstrap},{two.bootstrap}"}) as client:
            client.refresh(wait=False)
            with pytest.raises(WrongClusterError):
                client.refresh(["orders"])


def test_the_repr_of_a_client_has_servers_cluster_and_state_and_no_secret() -> None:
    conf = {"bootstrap.servers": "one:9092,two:9092", "sasl.password": "m4rked"}
    conf |= {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}
    client = Client(conf | {"sasl.username": "alice"})
    assert repr(client) == "<rdmeta.Client one:9092,two:9092 cluster_id=None new>"
    client.close()
    assert repr(client).endswith(" closed>")


def test_a_wait_for_an_unknown_topic_has_that_as_its_cause() -> None:
    with (
        EmbeddedCluster(brokers=1) as cluster,
        Client({"bootstrap.servers": cluster.bootstrap}) as client,
        pytest.raises(RequestTimedOutError) as caught,
    ):
        client.leader("nope", 0, timeout=1.0)
    assert isinstance(caught.value.__cause__, UnknownTopicError)
