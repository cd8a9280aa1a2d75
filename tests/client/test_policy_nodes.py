"""The policy's choice of nodes, its attempts to connect, and its hedges."""

from __future__ import annotations

from random import Random

import pytest
from frames import response
from policy_driver import ADDRESSES, B, Driver, T, names_of, topic

from rdmeta import ALL, Error, RequestTimedOutError, TransportError
from rdmeta.client.actions import OtherRequest, RequestKind
from rdmeta.client.backoff import Backoff
from rdmeta.client.nodes import Nodes, Wish
from rdmeta.config.address import Address
from rdmeta.model import Broker

FIVE = [Address(f"broker-{i}", 9092) for i in range(1, 8)]


def on_three_links(d: Driver) -> list[int]:
    """Returns links to three brokers, with nothing in flight on them."""
    first = d.connect()
    d.answer(d.sent(), topic("orders"))
    links = [first]
    for _ in range(2):
        d.policy.refresh(d.now)
        d.wait(1.0)
        d.wait(1.0)
        links.append(d.connect(d.connecting()[-1].link))
        d.answer(d.sends[-1], topic("orders"))
    for send in list(d.open.values()):
        d.answer(send, topic("orders"))
    return links


# ---- attempts to connect ------------------------------------------------------------------------


def test_one_attempt_is_made_and_one_more_whenever_the_newest_is_silent_for_1_s() -> None:
    d = Driver(bootstrap=FIVE)
    times: list[float] = []
    for _ in d.ticks(9):
        while len(times) < len(d.connects):
            times.append(round(d.now - 1000, 1))
    assert times == [0, 1, 2, 3, 4]
    assert len({each.node for each in d.connects}) == 5


def test_an_attempt_that_hears_something_is_not_silent() -> None:
    d = Driver(bootstrap=FIVE)
    for _ in range(5):
        d.wait(0.9)
        d.policy.on_bytes(d.connects[0].link, d.now)
    assert len(d.connects) == 1


def test_a_failed_attempt_is_followed_by_another_server_at_once() -> None:
    d = Driver(bootstrap=ADDRESSES)
    d.fail()
    d.fail()
    d.fail()
    assert len({each.node for each in d.connects}) == 3
    assert d.now == 1000.0


@pytest.mark.slow
def test_bad_servers_cost_1_s_each_silent_one_and_no_more() -> None:
    for seed in range(20):
        d = Driver(bootstrap=FIVE[:5], seed=seed, topics=["orders"])
        while not d.open:
            for link in d.connecting():
                if link.node.host in ("broker-1", "broker-2", "broker-4"):
                    d.fail(link.link)
                elif link.node.host == "broker-5":
                    d.connect(link.link)
            d.wait(0.001)
        assert d.now - 1000 <= 1.1


def test_the_server_that_was_tried_longest_ago_is_connected_to() -> None:
    d = Driver(bootstrap=FIVE, reconnect_backoff=0.01, reconnect_backoff_max=0.01)
    for _ in range(21):
        d.wait(0.1)
        d.fail()
    hosts = [each.node.host for each in d.connects]
    assert all(len(set(hosts[i : i + 7])) == 7 for i in range(15))


def test_a_failed_server_is_connected_to_again_after_its_backoff() -> None:
    d = Driver(reconnect_backoff=0.1, reconnect_backoff_max=1.0)
    times: list[float] = []
    for _ in range(6):
        while not d.connecting():
            d.wait(0.001)
        times.append(d.now)
        d.fail()
    for i, mean in enumerate([0.1, 0.2, 0.4, 0.8, 1.0]):
        assert 0.8 * mean <= times[i + 1] - times[i] <= 1.2 * mean + 0.002


def test_a_link_that_is_ready_resets_the_backoff() -> None:
    d = Driver(topics=["orders"])
    for _ in range(6):
        d.fail()
        d.wait(12)
    d.connect()
    d.answer(d.sent(), topic("orders"), brokers=[B(1, "broker-1")])
    d.fail(d.sends[0].link)
    d.wait(0.13)
    assert d.connecting()


def test_an_attempt_that_the_driver_does_not_end_ends_1_s_after_its_timeout() -> None:
    d = Driver(setup_timeout=5.0)
    d.wait(5.99)
    assert not d.closes
    d.wait(0.02)
    assert d.closes[0].link == d.connects[0].link
    assert any("no connection in time" in text for text in d.problems())


def test_a_refused_login_backs_off_at_once_for_the_longest_time() -> None:
    d = Driver(reconnect_backoff_max=10.0, rebootstrap=False)
    d.fail(error=Error("refused", 58))
    d.wait(7.9)
    assert len(d.connects) == 1
    d.wait(4.2)
    assert len(d.connects) == 2


def test_a_server_that_serves_no_request_backs_off_at_once_for_the_longest_time() -> None:
    d = Driver(reconnect_backoff_max=10.0, rebootstrap=False)
    d.fail(d.connect(), TransportError("it wants SASL", retriable=False))
    d.wait(7.9)
    assert len(d.connects) == 1
    d.wait(4.2)
    assert len(d.connects) == 2


def test_a_server_at_another_address_begins_afresh() -> None:
    d = Driver(topics=["orders"], reconnect_backoff_max=100.0)
    for _ in range(8):
        while not d.connecting():
            d.wait(0.1)
        d.fail()
    while not d.connecting():
        d.wait(0.1)
    d.connect()
    d.brokers = (B(1, "elsewhere"),)
    d.answer(d.sent(), topic("orders"))
    assert d.policy.stats()["nodes"][1]["failures"] == 0


def test_a_bootstrap_server_that_is_a_broker_keeps_its_link() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(1)
    assert d.sent().link == d.sends[0].link
    assert len(d.connects) == 1
    assert d.policy.stats()["nodes"][1]["state"] == "ready"


def test_a_bootstrap_server_that_is_no_broker_gives_way_to_one() -> None:
    d = Driver(topics=["orders"], bootstrap=[Address("balancer", 9092)])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    assert d.node_of(d.sent().link) == "balancer"
    d.connect()
    d.answer(d.sent(), topic("orders"))
    assert [d.links[link].node.host for link in d.links] == [d.connects[1].node.host]
    assert d.connects[1].node.host.startswith("broker-")


def test_brokers_that_cannot_be_reached_leave_the_bootstrap_server_in_use() -> None:
    d = Driver(bootstrap=[Address("balancer", 9092)])
    d.start()
    d.policy.refresh(d.now)
    for _ in d.ticks(100, 0.1):
        for link in d.connecting():
            d.fail(link.link)
        for send in list(d.open.values()):
            assert d.node_of(send.link) == "balancer"
            d.answer(send)
    assert 3 <= len(d.sends) < 12


# ---- the choice of a node -----------------------------------------------------------------------


def test_each_client_asks_the_first_bootstrap_server_first() -> None:
    hosts = {Driver(bootstrap=ADDRESSES, seed=seed).connecting()[0].node.host for seed in range(30)}
    assert hosts == {"broker-1"}


def test_an_idle_link_is_chosen_before_a_busy_one() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES)
    on_three_links(d)
    d.policy.refresh(d.now)
    d.wait(1.3)
    d.policy.refresh(d.now, ALL)
    d.policy.refresh(d.now, ())
    d.wait(0.1)
    assert len({send.link for send in d.open.values()}) == 2


def test_the_link_with_the_fewest_requests_in_flight_is_chosen() -> None:
    for seed in range(10):
        d = Driver(topics=["orders"], bootstrap=ADDRESSES, seed=seed)
        on_three_links(d)
        for _ in range(6):
            d.policy.call(d.now, OtherRequest(55, 0, 1, lambda version: b""))
        d.poll()
        links = [send.link for send in d.open.values()]
        assert [links.count(link) for link in d.links] == [3, 3]


def test_a_link_with_5_requests_in_flight_is_sent_no_sixth() -> None:
    d = Driver(topics=["orders"])
    d.brokers = (B(1, "broker-1"),)
    d.start(topic("orders"))
    for _ in range(7):
        d.policy.call(d.now, OtherRequest(55, 0, 1, lambda version: b""))
    d.wait(0.5)
    assert len(d.open) == 5
    d.respond(next(iter(d.open.values())), b"answer", 1)
    assert len(d.open) == 5
    assert len(d.sends) == 1 + 6
    assert d.policy.stats()["rebootstraps"] == 0


def test_a_bootstrap_server_that_is_no_broker_is_chosen_last() -> None:
    d = Driver(topics=["orders"], bootstrap=[Address("bootstrap", 9092)])
    d.start(topic("orders"))
    call = OtherRequest(55, 0, 1, lambda version: b"")
    d.policy.call(d.now, call)
    d.wait(0.1)
    assert d.node_of(d.sent().link) == "bootstrap"
    d.policy.refresh(d.now)
    d.wait(0.2)
    own = d.connect()
    assert d.node_of(own) != "bootstrap"
    for _ in range(4):
        d.policy.call(d.now, call)
    d.poll()
    assert [send.link for send in d.sends[-4:]] == [own] * 4


def test_a_throttled_node_is_sent_nothing_and_another_is_used() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    d.answer(d.sent(), topic("orders"), throttle_ms=5000)
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.connect()
    send = d.sent()
    assert d.node_of(send.link) != "broker-1"
    d.answer(send, topic("orders"))
    assert d.policy.stats()["nodes"][1]["throttled"] == 5.0


@pytest.mark.parametrize(("throttle_ms", "seconds"), [(5000, 5.0), (0, 0.0), (-1, 0.0)])
def test_a_late_answer_that_is_dropped_throttles_its_node(throttle_ms: int, seconds: float) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(1.3)
    first = d.sent()
    d.connect()
    d.answer(d.sends[-1], topic("orders"))
    d.answer(first, topic("orders"), throttle_ms=throttle_ms)
    assert d.policy.stats()["nodes"][1]["throttled"] == seconds


def test_an_answer_of_a_link_that_has_ended_is_nobodys() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    send = d.sent()
    d.fail(send.link)
    d.answer(send, topic("orders"), throttle_ms=900)
    assert d.policy.stats()["late_answers"] == 0
    assert not d.policy._nodes.unanswered


def test_a_shorter_throttling_does_not_end_a_longer_one() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.wait(1)
    d.policy.refresh(d.now)
    d.poll()
    d.policy.need(["new"], d.now)
    d.wait(0.02)
    first, second = d.open.values()
    d.answer(first, topic("orders"), throttle_ms=5000)
    d.answer(second, topic("new"), throttle_ms=1000)
    assert d.policy.stats()["nodes"][1]["throttled"] == 5.0
    assert d.policy.least_loaded(d.now + 4.9) is None
    assert d.policy.least_loaded(d.now + 5.0) is not None


def test_a_node_that_was_behind_is_used_again_once_the_topic_is_up_to_date() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", epoch=5))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.answer(d.sent(), topic("orders", epoch=4))
    d.connect()
    d.answer(d.sent(), topic("orders", epoch=5))
    used = set()
    for _ in range(20):
        d.policy.refresh(d.now)
        while not d.open:
            d.wait(0.1)
        used.add(d.node_of(d.sent().link))
        d.answer(d.sent(), topic("orders", epoch=5))
    assert "broker-1" in used


def test_a_node_that_was_behind_is_the_second_choice_when_it_is_listed_again() -> None:
    first, second, third = (Broker(i, f"broker-{i}", 9092, None) for i in (1, 2, 3))
    nodes = Nodes(ADDRESSES, Random(1), Backoff(0.05, 1.0, Random(1)), 10.0, False)
    nodes.use_brokers((first, second), 0.0)
    behind, other = nodes.current
    other.tried_at = 1.0
    nodes.behind(behind, 3.0)
    nodes.use_brokers((second, third), 3.0)
    nodes.use_brokers((first, second), 5.0)
    assert nodes.to_connect(5.0, Wish()) is other


def test_a_cluster_that_throttles_is_asked_when_that_ends_and_is_not_lost() -> None:
    d = Driver(topics=["orders"])
    d.brokers = (B(1, "broker-1"),)
    d.connect()
    d.answer(d.sent(), topic("orders"), throttle_ms=5000)
    d.policy.refresh(d.now)
    d.wait(4.9)
    assert len(d.sends) == 1
    d.wait(0.2)
    assert d.node_of(d.sent().link) == "broker-1"
    assert d.policy.stats()["rebootstraps"] == 0


def test_an_answer_that_was_kept_back_is_not_asked_of_the_same_node_again() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES)
    d.start(topic("orders", epoch=5))
    stale: list[str] = []
    d.policy.refresh(d.now)
    for _ in range(60):
        d.wait(0.02)
        for link in d.connecting():
            d.connect(link.link)
        for send in list(d.open.values()):
            stale.append(d.node_of(send.link))
            d.answer(send, topic("orders", epoch=4))
        if len(stale) == 3:
            break
    assert len(set(stale)) == 3


def test_the_only_node_is_asked_again_after_an_answer_that_was_kept_back() -> None:
    d = Driver(topics=["orders"])
    d.brokers = (B(1, "broker-1"),)
    d.start(topic("orders", epoch=5))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.answer(d.sent(), topic("orders", epoch=4))
    assert d.node_of(d.sent().link) == "broker-1"


def test_two_idle_links_stay_and_others_are_closed() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES)
    on_three_links(d)
    d.poll()
    assert len(d.links) == 2


def test_the_least_loaded_node_is_that_of_the_next_request() -> None:
    d = Driver(topics=["orders"])
    assert d.policy.least_loaded(d.now) is None
    d.start(topic("orders"))
    node = d.policy.least_loaded(d.now)
    assert node is not None
    assert node == (1, "broker-1", 9092)


def test_another_request_goes_to_the_least_loaded_node() -> None:
    d = Driver()
    call = OtherRequest(55, 0, 1, lambda version: b"")
    waiter = d.policy.call(d.now, call)
    d.connect()
    send = d.sent(RequestKind.CALL)
    assert send.request is call
    d.respond(send, b"answer", 1)
    assert d.finished[waiter].value == (1, b"answer")
    waiter = d.policy.call(d.now, call)
    d.poll()
    d.fail(d.sent(RequestKind.CALL).link)
    assert isinstance(d.finished[waiter].error, TransportError)


def test_the_error_of_another_request_names_the_server_that_was_lost() -> None:
    d = Driver()
    d.connect()
    waiter = d.policy.call(d.now, OtherRequest(55, 0, 1, lambda version: b""))
    d.poll()
    link = d.sent(RequestKind.CALL).link
    address = d.policy._nodes.links[link].server.address
    d.fail(link, TransportError("the broker reset the connection", None, True))
    error = d.finished[waiter].error
    assert isinstance(error, TransportError)
    assert str(error) == f"{address}: the broker reset the connection"
    assert error.retriable


# ---- sticky -------------------------------------------------------------------------------------


def test_a_sticky_client_stays_with_one_node() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES, sticky=True)
    links = on_three_links(d)
    last = d.sends[-1].link
    assert last in links
    for _ in range(10):
        d.policy.refresh(d.now)
        while not d.open:
            d.wait(0.1)
        assert d.sent().link == last
        d.answer(d.sent(), topic("orders"))


def test_a_client_that_is_not_sticky_uses_several_nodes() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES)
    on_three_links(d)
    used = set()
    for _ in range(10):
        d.policy.refresh(d.now)
        while not d.open:
            d.wait(0.1)
        used.add(d.sent().link)
        d.answer(d.sent(), topic("orders"))
    assert len(used) == 2


@pytest.mark.parametrize("how", ["silent", "broken", "behind"])
def test_a_sticky_client_leaves_a_node_that_is_silent_unusable_or_behind(how: str) -> None:
    d = Driver(topics=["orders"], sticky=True)
    d.start(topic("orders", epoch=5))
    d.policy.refresh(d.now)
    d.wait(0.2)
    first = d.sent()
    if how == "silent":
        d.wait(1.1)
    elif how == "broken":
        d.fail(first.link)
    else:
        d.answer(first, topic("orders", epoch=4))
    other = d.connect(d.connecting()[-1].link)
    for send in list(d.open.values()):
        if send.link == other:
            d.answer(send, topic("orders", epoch=5))
    d.wait(1.3)
    d.policy.refresh(d.now)
    d.wait(0.01)
    assert d.sends[-1].link == other


# ---- hedges -------------------------------------------------------------------------------------


def test_a_silent_request_is_asked_of_another_node_after_1_s() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    first = d.sent()
    d.now = d.sent_at[first.number] + 0.99
    assert not d.connecting()
    d.now = d.sent_at[first.number] + 1.0
    other = d.connect()
    hedge = next(send for send in d.open.values() if send.link == other)
    assert hedge.hedge
    assert names_of(hedge) == ["orders"]
    assert d.node_of(other) != d.node_of(first.link)


def test_the_hedge_is_10_times_the_slowest_of_the_last_16_answers_up_to_10_s() -> None:
    for seconds, hedge in ((0.05, 1.0), (0.3, 3.0), (5.0, 10.0)):
        d = Driver(topics=["orders"], refresh_interval=None)
        d.connect()
        send = d.sent()
        d.now += seconds / 2
        d.policy.on_bytes(send.link, d.now)
        d.now += seconds / 2
        d.answer(send, topic("orders"))
        d.policy.refresh(d.now)
        d.wait(0.2)
        sent_at = d.sent_at[d.sent().number]
        d.now = sent_at + hedge - 0.01
        d.poll()
        assert not d.connecting()
        d.now = sent_at + hedge + 0.01
        assert d.connecting()


def test_the_hedge_counts_the_last_16_answers_of_the_same_kind() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.connect()
    d.now += 0.3
    d.answer(d.sent(), topic("orders"))
    hedges = []
    for _ in range(16):
        hedges.append(d.policy._flights.hedge_after(RequestKind.FULL))
        d.policy.refresh(d.now)
        while not d.open:
            d.wait(0.01)
        d.now = d.sent_at[d.sent().number] + 0.2
        d.answer(d.sent(), topic("orders"))
    assert hedges == [pytest.approx(3.0)] * 16
    assert d.policy._flights.hedge_after(RequestKind.FULL) == pytest.approx(2.0)
    assert d.policy._flights.hedge_after(RequestKind.NAMES) == 1.0


def test_bytes_on_the_link_put_a_hedge_off() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    send = d.sent()
    for _ in range(10):
        d.wait(0.9)
        d.policy.on_bytes(send.link, d.now)
    assert len(d.open) == 1


def test_hedges_follow_after_twice_the_time_each_up_to_10_s() -> None:
    d = Driver(topics=["orders"], bootstrap=FIVE, refresh_interval=None)
    d.brokers = tuple(B(i, f"broker-{i}") for i in range(1, 8))
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    times: list[float] = []
    for _ in d.ticks(27):
        for link in d.connecting():
            d.connect(link.link)
        while len(times) < len(d.sends) - 1:
            times.append(d.now)
    gaps = [round(b - a, 1) for a, b in zip(times, times[1:], strict=False)]
    assert gaps[:5] == [1.0, 2.0, 4.0, 8.0, 10.0]


def test_without_another_node_a_hedge_takes_a_new_connection() -> None:
    d = Driver(topics=["orders"])
    d.brokers = (B(1, "broker-1"),)
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(1.5)
    other = d.connect()
    assert d.node_of(other) == "broker-1"
    assert d.sends[-1].link == other
    assert d.sends[-1].hedge


def test_the_first_answer_counts_and_a_later_one_is_dropped() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.refresh(d.now)
    d.wait(0.2)
    first = d.sent()
    d.wait(1.0)
    d.connect()
    d.answer(d.sends[-1], topic("orders", 2, 7))
    assert d.finished[waiter].error is None
    version = d.cache.version
    assert d.answer(first, topic("orders", 3, 9)) is None
    assert d.cache.version == version
    assert d.policy.stats()["late_answers"] == 1


def test_a_silent_link_is_not_used_until_it_is_heard_again() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    first = d.sent()
    d.wait(1.0)
    other = d.connect()
    d.answer(d.sends[-1], topic("orders"))
    for _ in range(5):
        d.policy.refresh(d.now)
        d.wait(1.3)
        assert d.sends[-1].link == other
        d.answer(d.sends[-1], topic("orders"))
    d.answer(first, topic("orders"))
    assert d.policy.stats()["nodes"][1]["in_flight"] == 0


def test_hedges_take_from_the_budget() -> None:
    d = Driver(topics=["orders"], retry_backoff_max=50.0, retry_backoff=0.001)
    d.start(topic("orders"))
    for i in range(7):
        d.policy.refresh(d.now, [f"missing-{i}"])
        d.wait(0.2)
        d.answer(d.sent(), topic("orders"))
    d.policy.need(["new"], d.now)
    d.wait(10)
    for link in d.connecting():
        d.connect(link.link)
    d.wait(1)
    assert not [send for send in d.sends if send.hedge]


def test_a_request_that_failed_on_one_node_waits_for_its_hedge() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.refresh(d.now)
    d.wait(1.5)
    other = d.connect()
    d.fail(d.sends[0].link)
    assert waiter not in d.finished
    hedge = next(send for send in d.open.values() if send.link == other)
    d.answer(hedge, topic("orders"))
    assert d.finished[waiter].error is None


def test_a_request_without_an_answer_ends_its_link_after_the_socket_timeout() -> None:
    d = Driver(topics=["orders"], socket_timeout=30.0)
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    send = d.sent()
    d.now = d.sent_at[send.number] + 30.0
    d.poll()
    assert send.link in [close.link for close in d.closes]


def test_brokers_of_one_address_are_one_server() -> None:
    d = Driver(topics=["orders"])
    d.brokers = (B(1, "proxy"), B(2, "proxy"), B(3, "proxy"))
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.3)
    assert [link.node.host for link in d.connecting()] == ["proxy"]


def test_the_answering_broker_is_named_in_the_cache() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    assert d.cache.source("orders") == 1
    assert isinstance(RequestTimedOutError("x"), Error)
    assert T("x").name == "x"


def test_brokers_that_the_cache_learns_by_another_door_are_servers() -> None:
    d = Driver(topics=["orders"])
    d.brokers = (B(1, "broker-1"),)
    d.start(topic("orders"))
    d.cache.apply(response(12, [], [B(1, "broker-1"), B(2, "broker-2")]), 12, ())
    d.policy.refresh(d.now)
    d.wait(1.3)
    assert [link.node.host for link in d.connecting()] == ["broker-2"]


def test_an_attempt_that_fails_says_nothing_of_the_versions_of_a_ready_link() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES)
    d.brokers = (B(1, "broker-1"),)
    d.connect(versions=(0, 3))
    server = d.policy._nodes.current[0]
    assert server.versions in ((0, 3), None)
    ready = next(each for each in d.policy._nodes.current if each.versions)
    link = d.policy._nodes.open(999, ready, d.now)
    d.policy._nodes.lost(link, d.now, TransportError("refused"))
    assert ready.versions == (0, 3)


def test_a_node_that_throttles_is_left_alone_though_the_brokers_lack_it_for_a_while() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES[:1])
    d.brokers = (B(1, "broker-1"),)
    d.connect()
    d.answer(d.sent(), topic("orders"), throttle_ms=60_000)
    for brokers in ([B(2, "broker-2")], [B(1, "broker-1"), B(2, "broker-2")]):
        d.cache.apply(response(12, [], brokers), 12, ())
        d.wait(0.1)
    d.policy.refresh(d.now)
    d.wait(0.3)
    assert [link.node.host for link in d.connecting()] == ["broker-2"]


def test_the_brokers_are_asked_for_if_only_a_silent_node_that_left_speaks_the_version() -> None:
    d = Driver(topics=["orders"], socket_timeout=300.0)
    d.brokers = (B(1, "broker-1"), B(2, "broker-2"))
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(1.3)
    full = d.sent(RequestKind.FULL)
    d.connect(versions=(0, 3))
    d.policy.refresh(d.now, ())
    d.brokers = (B(2, "broker-2"),)
    d.wait(1.3)
    d.answer(d.sent(RequestKind.BROKERS))
    for _ in range(2):
        d.wait(11)
        if d.open.keys() != {full.number}:
            break
    d.brokers = (B(1, "broker-1"), B(2, "broker-2"))
    d.answer(d.sent(RequestKind.BROKERS))
    while d.connecting():
        d.connect()
    assert [each.hedge for each in d.sends if each.kind is RequestKind.FULL] == [False, False, True]
