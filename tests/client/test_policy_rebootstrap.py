"""When the policy goes back to the bootstrap servers."""

from __future__ import annotations

import frames
from policy_driver import ADDRESSES, B, Driver, names_of, topic

from rdmeta import AuthenticationError, TransportError, WrongClusterError
from rdmeta.client.actions import Problem, RequestKind
from rdmeta.config.address import Address

BOOTSTRAP = [Address("bootstrap", 9092)]


def lost(**config: object) -> Driver:
    """Returns a driver that knew three brokers and has lost them all."""
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP, **config)  # type: ignore[arg-type]
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.connect()
    for send in list(d.open.values()):
        d.answer(send, topic("orders"))
    lose_all(d)
    return d


def lose_all(d: Driver, spare: str = "bootstrap") -> None:
    """Breaks every link, and fails every attempt but those to the bootstrap server."""
    while True:
        links = [number for number, each in d.links.items() if each.node.host != spare]
        if not links:
            return
        d.fail(links[0])


def test_without_a_usable_node_the_bootstrap_servers_are_asked_anew() -> None:
    d = lost()
    assert [each.node.host for each in d.connecting()] == ["bootstrap"]
    assert d.policy.stats()["rebootstraps"] == 1
    d.connect()
    assert names_of(d.sent()) == ["orders"]
    assert any("no node can be used" in text for text in d.problems())


def test_a_rebootstrap_adds_no_word_to_the_errors_of_a_wrong_setting() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP)
    d.fail(error=AuthenticationError("wrong password", 58))
    d.wait(1)
    assert d.policy.stats()["rebootstraps"] == 1
    assert d.problems() == ["the connection could not be made: wrong password"]


def test_a_rebootstrap_adds_no_word_while_no_broker_is_known() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP)
    d.fail(error=TransportError("cannot connect"))
    d.wait(1)
    assert d.policy.stats()["rebootstraps"] == 1
    assert d.problems() == ["the connection could not be made: cannot connect"]


def test_the_reason_of_the_refresh_is_the_rebootstrap() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP)
    d.start(topic("orders"), error=0)
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.versions = (0, 13)
    d.answer(d.sent(), topic("orders"), error=129)
    d.connect()
    assert "rebootstrap" in [send.reason for send in d.sends[-1:]]


def test_the_cache_stays_as_it_is() -> None:
    d = lost()
    assert d.cache.leader("orders", 0) == 1
    assert len(d.cache.brokers) == 3


def test_error_129_closes_every_connection() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP)
    d.versions = (0, 13)
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.connect()
    before = set(d.links)
    d.answer(d.sent(), topic("orders"), error=129)
    assert before <= {close.link for close in d.closes}
    assert [each.node.host for each in d.connecting()] == ["bootstrap"]


def test_a_strategy_of_none_never_goes_back() -> None:
    d = lost(rebootstrap=False)
    for _ in range(100):
        d.wait(10)
        lose_all(d, spare="")
    assert d.policy.stats()["rebootstraps"] == 0
    assert {each.node.host for each in d.connects[1:]} <= {"broker-1", "broker-2", "broker-3"}


def test_busy_or_throttled_is_not_lost() -> None:
    d = Driver(topics=["orders"])
    d.brokers = (B(1, "broker-1"),)
    d.connect()
    d.answer(d.sent(), topic("orders"), throttle_ms=200_000)
    d.policy.refresh(d.now)
    d.wait(100)
    assert d.policy.stats()["rebootstraps"] == 0


def test_a_node_that_is_being_connected_is_not_lost() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP)
    d.start(topic("orders"))
    d.fail(d.sends[0].link)
    d.wait(20)
    assert d.policy.stats()["rebootstraps"] == 0


def test_after_no_success_for_the_trigger_the_client_goes_back() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP, rebootstrap_trigger=20.0, socket_timeout=9.0)
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    start = d.now
    while not d.policy.stats()["rebootstraps"]:
        d.wait(0.1)
        for link in d.connecting():
            if link.node.host != "bootstrap":
                d.connect(link.link)
    assert 20 <= d.now - start < 21.5


def test_an_idle_client_is_not_without_success() -> None:
    d = Driver(topics=["orders"], rebootstrap_trigger=20.0, refresh_interval=None)
    d.start(topic("orders"))
    d.wait(1000)
    assert d.policy.stats()["rebootstraps"] == 0


def test_the_client_goes_back_once_within_the_longest_reconnect_backoff() -> None:
    d = lost(reconnect_backoff_max=10.0)
    times = [d.now]
    count = 1
    start = d.now
    for _ in range(1000):
        d.wait(0.05)
        lose_all(d, spare="")
        now = d.policy.stats()["rebootstraps"]
        if now > count:
            count = now
            times.append(d.now)
    assert count >= 4
    assert all(b - a >= 9.9 for a, b in zip(times, times[1:], strict=False))
    assert d.now - start > 49


def test_backoffs_stay_as_they_are() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES[:1], reconnect_backoff_max=100.0)
    d.brokers = (B(1, "broker-1"),)
    d.start(topic("orders"))
    for _ in range(8):
        while not (d.connecting() or d.sends[-1].link in d.links):
            d.wait(0.1)
        lose_all(d, spare="")
    failures = d.policy.stats()["nodes"][-1]["failures"]
    assert failures >= 8
    before = len(d.connects)
    d.wait(9)
    assert len(d.connects) == before


def test_another_cluster_is_taken_only_after_a_rebootstrap() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP)
    d.start(topic("orders"), cluster_id="first")
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.connect()
    d.answer(d.sent(), topic("orders", 2, 9), cluster_id="second")
    assert (d.cache.cluster_id, d.cache.leader("orders", 0)) == ("first", 1)
    errors = [e.error for e in d.events() if isinstance(e, Problem)]
    assert any(isinstance(error, WrongClusterError) for error in errors)
    lose_all(d)
    for link in list(d.links):
        if d.node_of(link) == "bootstrap" and link not in [c.link for c in d.connecting()]:
            d.fail(link)
    lose_all(d)
    d.connect(d.connecting()[-1].link)
    for send in list(d.open.values()):
        d.answer(send, topic("orders", 3, 1), cluster_id="second")
    assert (d.cache.cluster_id, d.cache.leader("orders", 0)) == ("second", 3)
    assert d.policy.stats()["rebootstraps"] == 1


def test_one_answer_after_a_rebootstrap_may_be_of_another_cluster() -> None:
    d = lost()
    d.connect()
    d.answer(d.sent(), topic("orders", 2, 1), cluster_id="second")
    assert d.cache.cluster_id == "second"
    d.policy.refresh(d.now)
    d.wait(0.3)
    d.answer(d.sent(), topic("orders", 3, 9), cluster_id="third")
    assert (d.cache.cluster_id, d.cache.leader("orders", 0)) == ("second", 2)


def test_an_answer_that_names_no_cluster_leaves_the_choice_to_the_next_one() -> None:
    d = lost()
    d.connect()
    d.respond(d.sent(), frames.response(1, [topic("orders", 2, 1)], d.brokers), 1)
    d.policy.refresh(d.now)
    d.wait(0.3)
    d.answer(d.sent(), topic("orders", 3, 9), cluster_id="second")
    assert (d.cache.cluster_id, d.cache.leader("orders", 0)) == ("second", 3)


def test_all_topics_are_asked_for_if_an_answer_about_some_changes_the_cluster() -> None:
    d = lost()
    d.policy.need(["audit"], d.now)
    d.wait(0.02)
    d.connect()
    full = d.sent(RequestKind.FULL)
    d.respond(full, frames.response(1, [topic("orders", 2, 1)], d.brokers), 1)
    d.wait(0.02)
    d.answer(d.sent(), topic("audit"), cluster_id="second")
    assert (d.sent(RequestKind.FULL).reason, "orders" in d.cache) == ("rebootstrap", False)


def test_a_wait_goes_on_over_a_rebootstrap() -> None:
    d = lost()
    waiter = d.policy.refresh(d.now)
    d.connect()
    for _ in range(100):
        for send in list(d.open.values()):
            d.answer(send, topic("orders"))
        d.wait(0.02)
    assert d.finished[waiter].error is None


def test_a_connection_that_nothing_is_asked_on_does_not_lead_to_a_rebootstrap() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP, refresh_interval=None)
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.answer(d.sent(), topic("orders"))
    d.connect()
    d.wait(1000)
    assert d.policy.stats()["rebootstraps"] == 0


def test_nodes_of_too_old_versions_cannot_be_used_for_names() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP)
    d.brokers = (B(1, "broker-1"), B(2, "broker-2"))
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.answer(d.sent(), topic("orders"))
    old = d.connect(versions=(0, 3))
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.poll()
    lose_all(d)
    assert old not in d.links
    assert [each.node.host for each in d.connecting()] == ["bootstrap"]


def test_a_connection_that_is_too_old_for_the_question_does_not_hold_up_a_rebootstrap() -> None:
    d = Driver(topics=["orders"], bootstrap=BOOTSTRAP, reconnect_backoff_max=1.0)
    d.start(topic("orders"))
    d.wait(0.2)
    for link in list(d.links):
        d.fail(link)
    for _ in range(100):
        for attempt in d.connecting():
            if attempt.node.host == "broker-1":
                d.connect(attempt.link, versions=(0, 1))
            else:
                d.fail(attempt.link)
        d.wait(0.02)
    assert d.policy.stats()["rebootstraps"] >= 1
