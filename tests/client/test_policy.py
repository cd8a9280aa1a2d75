"""The policy: when a refresh is due, what it asks for, and how soon."""

from __future__ import annotations

from itertools import pairwise

import pytest
from frames import topic_id
from policy_driver import ADDRESSES, B, Driver, P, T, names_of, topic

from rdmeta import ALL, TransportError
from rdmeta.client.actions import RequestKind


def times_of(driver: Driver, reason: str, since: float) -> list[float]:
    """Returns when requests with a reason left, in seconds after `since`."""
    return [driver.sent_at[send.number] - since for send in driver.sends if send.reason == reason]


# ---- the start ----------------------------------------------------------------------------------


def test_a_new_client_connects_at_once_and_asks_for_the_needed_topics() -> None:
    d = Driver(topics=["orders", "audit"])
    assert [link.node.host for link in d.connecting()] == ["broker-1"]
    d.connect()
    send = d.sent()
    assert (send.kind, send.reason, names_of(send)) == (
        RequestKind.FULL,
        "start",
        ["audit", "orders"],
    )


def test_a_client_of_all_topics_asks_for_all_of_them() -> None:
    d = Driver(topics=ALL)
    d.connect()
    assert names_of(d.sent()) == "all"


def test_a_client_without_topics_asks_for_the_brokers() -> None:
    d = Driver()
    d.connect()
    assert (d.sent().kind, names_of(d.sent())) == (RequestKind.BROKERS, [])


@pytest.mark.parametrize("topics", [["orders"], ALL, None])
def test_a_first_request_that_could_not_be_sent_is_sent_again(topics: object) -> None:
    d = Driver(topics=topics, refresh_interval=None)
    d.connect()
    first = d.sent()
    d.open.clear()
    d.policy.on_failure(first.number, d.now, TransportError("not sent"))
    d.wait(0.13)
    assert names_of(d.sent()) == names_of(first)


def test_the_first_request_does_not_wait_for_failed_attempts() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES)
    d.fail()
    d.fail()
    d.connect()
    assert d.sent().reason == "start"


# ---- the interval -------------------------------------------------------------------------------


def test_the_periodic_refresh_asks_for_the_same_after_the_interval_with_jitter() -> None:
    times = set()
    for seed in range(20):
        d = Driver(topics=["orders"], seed=seed)
        d.start(topic("orders"))
        d.wait(360.1)
        send = d.sends[1]
        assert (send.reason, names_of(send)) == ("interval", ["orders"])
        times.add(d.sent_at[send.number] - 1000.0)
    assert 240 <= min(times) < 270
    assert 330 < max(times) <= 360


def test_an_interval_of_never_has_no_periodic_refresh() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.start(topic("orders"))
    d.wait(100_000)
    assert len(d.sends) == 1


def test_brokers_alone_are_asked_for_every_10_s_at_most() -> None:
    d = Driver(refresh_interval=1.0)
    d.start()
    d.wait(7.9)
    assert len(d.sends) == 1
    d.wait(4.2)
    assert [names_of(send) for send in d.sends] == [[], []]


def test_topics_are_asked_for_more_often_than_every_10_s_if_the_interval_says_so() -> None:
    d = Driver(topics=["orders"], refresh_interval=1.0)
    d.start(topic("orders"))
    d.wait(1.21)
    assert d.sent().reason == "interval"


def test_a_topic_needed_after_the_start_does_not_wait_as_long_as_brokers_alone() -> None:
    d = Driver(refresh_interval=1.0)
    d.start()
    d.policy.need(["orders"], d.now)
    d.wait(0.02)
    d.answer(d.sent(), topic("orders"))
    d.wait(1.2)
    assert (d.sent().reason, names_of(d.sent())) == ("interval", ["orders"])


# ---- new names ----------------------------------------------------------------------------------


def test_new_names_are_asked_for_alone_and_together() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.need(["a"], d.now)
    d.wait(0.005)
    assert not d.open
    d.policy.need(["b"], d.now)
    d.wait(0.006)
    send = d.sent()
    assert (send.kind, send.reason, names_of(send)) == (RequestKind.NEW, "need", ["a", "b"])


def test_new_names_go_before_a_full_refresh() -> None:
    d = Driver(topics=["orders"])
    d.policy.need(["new"], d.now)
    d.poll()
    d.now += 0.02
    d.connect()
    assert [names_of(send) for send in d.sends] == [["new"], ["orders"]]


def test_a_known_topic_that_becomes_needed_is_not_asked_for() -> None:
    d = Driver(topics=ALL)
    d.start(topic("orders"))
    d.policy.need(["orders"], d.now)
    d.wait(1)
    assert len(d.sends) == 1


def test_a_topic_of_the_cache_that_nothing_kept_true_is_asked_for_when_it_becomes_needed() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"), topic("other"))
    d.policy.need(["other"], d.now)
    d.wait(0.02)
    assert names_of(d.sent()) == ["other"]


def test_a_need_without_a_usable_node_is_kept() -> None:
    d = Driver()
    d.fail()
    d.policy.need(["orders"], d.now)
    d.wait(5)
    d.connect(d.connecting()[-1].link)
    assert ["orders"] in [names_of(send) for send in d.open.values()]


def test_a_topic_that_is_needed_while_a_request_is_out_stays_needed_after_its_answer() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    full = d.sent()
    d.policy.need(["new"], d.now)
    d.answer(full, topic("orders"))
    d.wait(0.02)
    assert names_of(d.sent()) == ["new"]


def test_new_names_whose_request_failed_are_asked_for_again() -> None:
    d = Driver()
    d.start()
    d.policy.need(["new"], d.now)
    d.wait(0.02)
    d.policy.on_failure(d.open.popitem()[0], d.now, TransportError("not sent"))
    d.wait(0.2)
    assert names_of(d.sent()) == ["new"]


def test_a_known_topic_whose_first_request_failed_is_asked_for_again() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"), topic("other"))
    d.policy.need(["other"], d.now)
    d.wait(0.02)
    d.policy.on_failure(d.open.popitem()[0], d.now, TransportError("not sent"))
    d.wait(0.2)
    assert names_of(d.sent()) == ["other"]
    d.answer(d.sent(), topic("other"))
    d.wait(5)
    assert not d.open


# ---- what is due --------------------------------------------------------------------------------


def test_a_topic_without_a_leader_is_asked_for_fast() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders", leader=-1), topic("audit"))
    send = d.sent()
    assert (send.kind, send.reason, names_of(send)) == (RequestKind.NAMES, "no leader", ["orders"])
    d.answer(send, topic("orders", 2, 2))
    d.wait(20)
    assert not d.open


def test_a_leader_that_is_not_among_the_brokers_is_asked_about_fast() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", leader=7))
    assert d.sent().reason == "unreachable leader"


def test_an_older_answer_is_asked_about_fast_of_another_node() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", epoch=5))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.answer(d.sent(), topic("orders", epoch=4))
    d.connect()
    send = d.sent()
    assert send.reason == "older answer"
    assert d.node_of(send.link) != "broker-1"
    d.answer(send, topic("orders", epoch=5))
    assert not d.open


def test_a_topic_that_nothing_needs_is_not_asked_for() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now, ALL)
    d.wait(0.2)
    d.answer(d.sent(), topic("orders"), topic("other", leader=-1))
    d.wait(10)
    assert len(d.sends) == 2


def test_a_thousand_topics_at_most_are_in_a_request_and_all_have_their_turn() -> None:
    names = [f"t{i}" for i in range(2500)]
    d = Driver(topics=names)
    d.connect()
    d.answer(d.sent(), *[topic(name, leader=77) for name in names])
    asked: list[str] = []
    while len(set(asked)) < 2500:
        d.wait(0.01)
        for send in list(d.open.values()):
            assert len(names_of(send)) <= 1000
            asked += names_of(send)
            d.answer(send, *[topic(name, leader=77) for name in names_of(send)])
    assert len(asked) == 2500


def test_a_needed_topic_that_no_answer_brings_is_asked_for_until_it_has_propagated() -> None:
    d = Driver(topics=["orders"])
    d.start(T("orders", [], error=3))
    last = 0.0
    for _ in d.ticks(45):
        for send in list(d.open.values()):
            last = d.now - 1000
            d.answer(send, T("orders", [], error=3))
    assert 28 < last < 30.1


def test_a_topic_of_unknown_error_is_asked_for_again() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    d.answer(d.sent(), T("orders", [], error=-1))
    d.wait(0.2)
    assert names_of(d.sent()) == ["orders"]


@pytest.mark.parametrize("code", [5, -1])
def test_a_new_topic_that_is_being_created_is_asked_for_fast(code: int) -> None:
    d = Driver()
    d.start()
    d.policy.need(["orders", "audit"], d.now)
    d.wait(0.02)
    d.answer(d.sent(), topic("audit"), T("orders", [], error=code))
    d.wait(0.15)
    assert names_of(d.sent()) == ["orders"]
    d.answer(d.sent(), topic("orders"))
    d.wait(10)
    assert not d.open


def test_a_denied_topic_is_asked_for_again_after_its_ttl() -> None:
    d = Driver(topics=["orders"])
    d.start(T("orders", [], error=29))
    d.wait(9.5)
    assert len(d.sends) == 1
    d.wait(2)
    assert (d.sent().reason, names_of(d.sent())) == ("denied", ["orders"])


def test_an_invalid_topic_is_not_polled() -> None:
    d = Driver(topics=["orders"])
    d.start(T("orders", [], error=17))
    d.wait(200)
    assert len(d.sends) == 1


# ---- connections --------------------------------------------------------------------------------


def test_a_broken_connection_refreshes_the_needed_topics_with_backoff() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", leader=3))
    d.wait(1)
    d.policy.need(["new"], d.now)
    d.wait(1.2)
    hedged = d.connect()
    d.answer(d.sends[-1], topic("new"))
    start = d.now
    d.fail(d.sends[0].link)
    d.wait(0.5)
    send = d.sent()
    assert (send.reason, names_of(send), send.link) == ("connection", ["new", "orders"], hedged)
    assert d.sent_at[send.number] >= start


def test_a_malformed_answer_ends_the_link_and_is_asked_for_again() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    d.respond(d.sent(), b"\x00\x01")
    assert len(d.closes) == 1
    assert any("connection" in text for text in d.problems())
    d.wait(0.5)
    d.connect(d.connecting()[-1].link)
    assert names_of(d.sent()) == ["orders"]


def test_a_link_that_works_again_after_none_did_refreshes_at_once() -> None:
    d = Driver(topics=["orders"], retry_backoff=10.0, retry_backoff_max=10.0, rebootstrap=False)
    d.start(topic("orders", leader=3))  # the next refresh with backoff leaves in 8 s
    d.fail(d.sends[0].link)
    for _ in range(4):
        d.wait(0.3)
        d.fail(d.connecting()[-1].link)
    assert not d.open
    d.wait(0.5)
    d.connect(d.connecting()[-1].link)
    full = d.sent(RequestKind.FULL)
    assert (full.reason, d.sent_at[full.number]) == ("reconnected", d.now)


# ---- complaints ---------------------------------------------------------------------------------


def test_a_leader_that_the_application_misses_is_asked_about_at_once() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    send = d.sent()
    assert (send.kind, send.reason, names_of(send)) == (RequestKind.NAMES, "complaint", ["orders"])


@pytest.mark.parametrize("code", [3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103])
def test_each_code_of_invalid_metadata_is_a_complaint(code: int) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.leader_unavailable("orders", 0, code, d.now)
    assert d.sent().reason == "complaint"


@pytest.mark.parametrize("code", [0, 1, 2, 7, 10, 19, 29])
def test_another_code_is_no_complaint(code: int) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.leader_unavailable("orders", 0, code, d.now)
    d.wait(10)
    assert not d.open


def test_a_newer_epoch_is_asked_for_until_it_is_there() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", epoch=3))
    d.policy.epoch_seen("orders", 0, 5, d.now)
    d.answer(d.sent(), topic("orders", epoch=4))
    d.wait(0.3)
    d.answer(d.sent(), topic("orders", epoch=5))
    d.wait(10)
    assert not d.open


@pytest.mark.parametrize(("partition", "epoch"), [(0, 3), (0, 2), (1, 9)])
def test_an_epoch_that_is_not_newer_or_of_no_known_partition_is_ignored(
    partition: int, epoch: int
) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", epoch=3))
    d.policy.epoch_seen("orders", partition, epoch, d.now)
    d.wait(10)
    assert not d.open


def test_a_complaint_is_over_when_the_epoch_moves() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", epoch=3))
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.answer(d.sent(), topic("orders", 2, 4))
    d.wait(20)
    assert len(d.sends) == 2


@pytest.mark.parametrize("complaint", ["leader", "epoch"])
def test_a_false_complaint_is_over_after_30_s(complaint: str) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", epoch=3))
    start = d.now
    if complaint == "leader":
        d.policy.leader_unavailable("orders", 0, 6, d.now)
    else:
        d.policy.epoch_seen("orders", 0, 99, d.now)
    for _ in d.ticks(60):
        for send in list(d.open.values()):
            d.answer(send, topic("orders", epoch=3))
    times = times_of(d, "complaint", start)
    assert 25 < max(times) <= 30
    assert len([time for time in times if time > 15]) < 20


@pytest.mark.parametrize("complaint", ["leader", "epoch"])
def test_a_complaint_about_an_unknown_epoch_is_over_when_the_leader_moves(complaint: str) -> None:
    d = Driver(topics=["orders"])
    d.versions = (0, 8)  # epochs count from v9 on
    d.start(topic("orders", 1))
    if complaint == "leader":
        d.policy.leader_unavailable("orders", 0, 6, d.now)
    else:
        d.policy.epoch_seen("orders", 0, 9, d.now)
    d.answer(d.sent(), topic("orders", 1))
    d.wait(0.3)
    wider = T("orders", [P(0, 1, 1), P(1, 1, 1)], id=topic_id("orders"))
    d.answer(d.sent(), wider)  # another change of the topic ends no complaint
    d.wait(0.5)
    moved = [P(0, 2, 1), P(1, 1, 1)]
    d.answer(d.sent(), T("orders", moved, id=topic_id("orders")))
    before = len(d.sends)
    d.wait(20)
    assert len(d.sends) == before


def test_an_epoch_that_was_seen_of_an_unknown_one_complains_once() -> None:
    d = Driver(topics=["orders"])
    d.versions = (0, 8)
    d.start(topic("orders", 1))
    for seen, complains in ((9, True), (9, False), (8, False), (10, True)):
        before = len(d.sends)
        d.policy.epoch_seen("orders", 0, seen, d.now)
        d.wait(0.3)
        for send in list(d.open.values()):
            d.answer(send, topic("orders", 3 - d.cache.leader("orders", 0)))
        assert (len(d.sends) > before) == complains
        d.wait(2)


def test_a_complaint_outlives_a_subscription_without_its_topic() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.policy.subscribe(["audit"], d.now)
    for _ in range(50):
        d.wait(0.01)
        for send in list(d.open.values()):
            d.answer(send, topic("orders"), topic("audit"))
    assert [send.reason for send in d.sends].count("complaint") >= 2


def test_a_complaint_that_is_open_does_not_begin_anew() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    for _ in range(160):  # the time of an election
        d.wait(0.1)
        for send in list(d.open.values()):
            d.answer(send, topic("orders"))
    d.sends.clear()
    for _ in range(300):
        d.policy.leader_unavailable("orders", 0, 6, d.now)
        d.wait(0.01)
        for send in list(d.open.values()):
            d.answer(send, topic("orders"))
    assert len(d.sends) < 9


def test_a_complaint_that_is_made_again_has_its_30_s_again() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.epoch_seen("orders", 0, 2, d.now)
    for seconds in (29, 3):
        for _ in range(10 * seconds):
            d.wait(0.1)
            for send in list(d.open.values()):
                d.answer(send, topic("orders"))
        d.policy.leader_unavailable("orders", 0, 6, d.now)
    before = len(d.sends)
    for _ in range(50):
        d.wait(0.1)
        for send in list(d.open.values()):
            d.answer(send, topic("orders"))
    assert len(d.sends) >= before + 4


# ---- leader hints, other ids --------------------------------------------------------------------


def test_a_leader_hint_that_was_applied_is_confirmed_with_backoff() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", 1, 3))
    applied = d.policy.leader_hint("orders", 0, 2, 4, None, d.now)
    assert applied.changed == 1
    d.wait(0.079)
    assert not d.open
    d.wait(0.05)
    assert (d.sent().reason, names_of(d.sent())) == ("confirmation", ["orders"])
    d.answer(d.sent(), topic("orders", 2, 4))
    d.wait(10)
    assert not d.open


def test_a_leader_hint_by_id_is_confirmed_by_name() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", 1, 3))
    d.policy.leader_hint(topic_id("orders"), 0, 2, 4, None, d.now)
    d.wait(0.2)
    assert names_of(d.sent()) == ["orders"]


def test_a_leader_hint_that_was_ignored_asks_nothing() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", 1, 3))
    d.policy.leader_hint("orders", 0, 2, 3, None, d.now)
    d.wait(10)
    assert not d.open


def test_another_topic_id_is_confirmed_by_name_of_another_node() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    d.policy.refresh(d.now)
    d.wait(0.2)
    first = d.sent()
    d.answer(first, topic("orders", id=b"another topic id"), topic("audit"))
    d.wait(0.2)
    d.connect()
    send = d.sent()
    assert (send.reason, names_of(send)) == ("confirmation", ["orders"])
    assert d.node_of(send.link) != d.node_of(first.link)


@pytest.mark.parametrize("topics", [ALL, ["orders", "audit"]])
@pytest.mark.parametrize("sticky", [False, True])
def test_an_absent_topic_is_asked_for_by_name_of_another_node_each_time(
    topics: object, sticky: bool
) -> None:
    d = Driver(topics=topics, sticky=sticky, refresh_interval=0.15)
    d.start(topic("orders"), topic("audit"))
    gone = [] if topics is ALL else [T("orders", [], error=3)]
    d.wait(0.2)
    first = d.sent()
    assert first.kind is RequestKind.FULL
    d.answer(first, topic("audit"), *gone)
    asked = [d.node_of(first.link)]
    since = d.now
    while "topic_removed" not in [each.kind for each in d.cache.changes(0)]:
        d.wait(0.01)
        assert d.now < since + 3
        for attempt in d.connecting():
            d.connect(attempt.link)
        for send in list(d.open.values()):
            if send.kind is not RequestKind.NAMES:
                d.answer(send, topic("audit"), *gone)
                continue
            asked.append(d.node_of(send.link))
            is_second = len(asked) == 2  # it lags
            d.answer(send, topic("orders") if is_second else T("orders", [], error=3))
    assert len(asked) > 2
    assert all(one != next for one, next in pairwise(asked))


# ---- patterns -----------------------------------------------------------------------------------


def test_a_pattern_asks_for_all_topics() -> None:
    d = Driver(topics=["^orders-.*", "audit"])
    d.connect()
    assert names_of(d.sent()) == "all"


def test_other_patterns_ask_for_all_topics_at_once() -> None:
    d = Driver(topics=["audit"])
    d.start(topic("audit"))
    for pattern in ("^orders-.*", "^bills-.*", "^more-.*", "^most-.*"):
        d.policy.subscribe(pattern, d.now)
        send = d.sent()
        assert (send.reason, names_of(send)) == ("subscribe", "all")
        d.answer(send, topic("audit"))


def test_the_same_subscription_again_asks_nothing() -> None:
    d = Driver(topics=["^orders-.*", "audit"])
    d.start(topic("audit"))
    d.policy.subscribe(["audit", "^orders-.*"], d.now)
    d.wait(1)
    assert len(d.sends) == 1


def test_only_topics_that_a_pattern_matches_are_needed() -> None:
    d = Driver(topics="^orders-.*")
    d.connect()
    d.answer(d.sent(), topic("orders-1", leader=-1), topic("audit", leader=-1))
    assert names_of(d.sent()) == ["orders-1"]
    assert d.policy.stats()["needed"] == 1


def test_a_topic_that_comes_later_matches_too() -> None:
    d = Driver(topics="^orders-.*")
    d.connect()
    d.answer(d.sent(), topic("orders-1"))
    d.policy.refresh(d.now)
    d.wait(0.3)
    d.answer(d.sent(), topic("orders-1"), topic("orders-2", leader=-1))
    assert names_of(d.sent()) == ["orders-2"]


# ---- the clock of a client that stood still ----------------------------------------------------


def test_after_a_standstill_what_is_due_is_asked_for_once() -> None:
    d = Driver(topics=["orders"], refresh_interval=5.0)
    d.start(topic("orders"))
    d.now += 60
    d.poll()
    assert len(d.open) == 1
    d.answer(d.sent(), topic("orders"))
    d.wait(1)
    assert len(d.sends) == 2


def test_a_close_ends_links_and_a_late_answer_changes_nothing() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    send = d.sent()
    d.policy.close(d.now)
    d.policy.close(d.now)
    d.poll()
    assert len(d.closes) == 1
    version = d.cache.version
    d.answer(send, T("orders", [P(0)]), brokers=[B(1)])
    d.policy.need(["more"], d.now)
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.policy.subscribe(ALL, d.now)
    d.wait(1000)
    assert (d.cache.version, len(d.sends), len(d.connects)) == (version, 1, 1)
    assert "orders" not in d.cache
