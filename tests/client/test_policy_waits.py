"""Waiting on the policy: refreshes, topics, deadlines, fatal errors, close()."""

from __future__ import annotations

import pytest
from frames import topic_id
from policy_driver import ADDRESSES, Driver, P, T, names_of, topic

from rdmeta import (
    ALL,
    ArgumentError,
    AuthenticationError,
    ConfigError,
    Error,
    InvalidTopicError,
    MissingExtraError,
    RequestTimedOutError,
    TlsError,
    TopicAuthorizationError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from rdmeta.client.actions import OtherRequest, RequestKind


def outcome(d: Driver, waiter: int) -> Error | None:
    d.poll()
    return d.finished[waiter].error


# ---- refresh ------------------------------------------------------------------------------------


def test_a_refresh_ends_after_the_answer_to_a_request_that_was_sent_after_it() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    early = d.sent()
    waiter = d.policy.refresh(d.now)
    d.answer(early, topic("orders"))
    assert waiter not in d.finished
    d.wait(0.2)
    d.answer(d.sent(), topic("orders", 2, 2))
    assert d.finished[waiter].error is None
    assert d.finished[waiter].version == d.cache.version == 2


def test_a_request_by_name_covers_a_refresh_of_the_brokers() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    d.wait(1)
    waiter = d.policy.refresh(d.now, ())
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.answer(d.sent(), topic("orders"))
    assert d.finished[waiter].error is None
    assert len(d.sends) == 2


def test_refreshes_that_wait_together_share_a_request() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiters = [d.policy.refresh(d.now) for _ in range(100)]
    d.wait(0.2)
    d.answer(d.sent(), topic("orders"))
    assert all(waiter in d.finished for waiter in waiters)
    assert len(d.sends) == 2


@pytest.mark.parametrize(
    ("topics", "kind", "asked"),
    [
        (None, RequestKind.FULL, ["orders"]),
        (ALL, RequestKind.FULL, "all"),
        ((), RequestKind.BROKERS, []),
        (["a", "b"], RequestKind.NAMES, ["a", "b"]),
        ([topic_id("x")], RequestKind.NAMES, [str(topic_id("x"))]),
    ],
)
def test_a_refresh_asks_for_what_it_names(topics: object, kind: RequestKind, asked: object) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.refresh(d.now, topics)  # type: ignore[arg-type]
    d.wait(0.2)
    send = d.sent()
    assert (send.kind, send.reason, names_of(send)) == (kind, "refresh", asked)
    d.answer(send, topic("orders"))
    assert d.finished[waiter].error is None


def test_a_refresh_by_name_asks_for_valid_topics_only_by_force() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.wait(1)
    waiter = d.policy.refresh(d.now, ["orders"])
    assert outcome(d, waiter) is None
    assert not d.open
    d.policy.refresh(d.now, ["orders"], force=True)
    assert names_of(d.sent()) == ["orders"]


def test_a_refresh_by_id_asks_for_a_known_topic_only_by_force() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.wait(1)
    assert outcome(d, d.policy.refresh(d.now, [topic_id("orders")])) is None
    assert not d.open
    d.policy.refresh(d.now, [topic_id("orders")], force=True)
    assert names_of(d.sent()) == [str(topic_id("orders"))]


def test_a_refresh_by_name_asks_for_a_denied_topic_only_by_force() -> None:
    d = Driver(topics=["orders"])
    d.start(T("orders", [], error=29))
    d.wait(1)
    assert outcome(d, d.policy.refresh(d.now, ["orders"])) is None
    d.policy.refresh(d.now, ["orders"], force=True)
    assert names_of(d.sent()) == ["orders"]


def test_a_refresh_of_a_name_in_flight_asks_again_after_that_answer() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    waiter = d.policy.refresh(d.now, ["orders"])
    d.poll()
    assert len(d.sends) == 1
    d.answer(d.sent(), topic("orders"))
    assert waiter not in d.finished
    d.wait(0.2)
    d.answer(d.sent(), topic("orders"))
    assert d.finished[waiter].error is None


def test_a_refresh_of_the_needed_topics_covers_those_that_were_in_flight() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.wait(1)
    d.policy.need(["new"], d.now)
    d.wait(0.02)
    new = d.sent()
    waiter = d.policy.refresh(d.now)
    d.poll()
    full = d.sent(RequestKind.FULL)
    assert names_of(full) == ["orders"]
    d.answer(full, topic("orders"))
    d.answer(new, topic("new"))
    assert waiter not in d.finished
    d.wait(0.5)
    assert names_of(d.sent()) == ["new"]
    d.answer(d.sent(), topic("new"))
    assert waiter in d.finished


def test_a_refresh_of_nothing_needed_returns_with_the_first_answer_to_a_later_request() -> None:
    d = Driver()
    d.start()
    d.wait(1)
    first = d.policy.refresh(d.now)
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.poll()
    by_names = d.sent(RequestKind.NAMES)
    d.wait(0.5)
    second = d.policy.refresh(d.now)
    d.poll()
    d.answer(d.sent(RequestKind.BROKERS))
    assert by_names.number in d.open
    assert {first, second} <= d.finished.keys()


def test_a_refresh_whose_request_fails_is_sent_again() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    for topics in (None, ALL, (), ["a"], [topic_id("x")]):
        waiter = d.policy.refresh(d.now, topics)
        while not d.open:
            d.wait(0.01)
        number = next(iter(d.open))
        d.open.clear()
        d.policy.on_failure(number, d.now, TransportError("not sent"))
        while not d.open:
            d.wait(0.01)
        for send in list(d.open.values()):
            d.answer(send, topic("orders"), *[topic("a")] * (topics == ["a"]))
        d.wait(1.3)
        for send in list(d.open.values()):
            d.answer(send, topic("orders"))
        assert waiter in d.finished


@pytest.mark.parametrize("topics", [None, ALL, ["a"], [topic_id("x")]])
def test_a_refresh_whose_request_fails_waits_for_an_answer_to_the_same(topics: object) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.wait(1)
    waiter = d.policy.refresh(d.now, topics)  # type: ignore[arg-type]
    failed = d.sent()
    del d.open[failed.number]
    d.policy.on_failure(failed.number, d.now, TransportError("not sent"))
    d.policy.need(["new"], d.now)
    d.wait(0.02)
    d.answer(d.sent(RequestKind.NEW), topic("new"))
    assert waiter not in d.finished
    while not d.open:
        d.wait(0.01)
    for send in list(d.open.values()):
        assert set(names_of(failed)) <= set(names_of(send))
        d.answer(send, *[topic(name) for name in ("orders", "new", "a")])
    assert waiter in d.finished


def test_a_refresh_that_is_cancelled_is_sent_all_the_same() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.refresh(d.now)
    d.policy.cancel(waiter, d.now)
    d.wait(0.2)
    d.answer(d.sent(), topic("orders"))
    assert waiter not in d.finished


def test_wrong_topics_of_a_refresh_are_refused() -> None:
    d = Driver()
    with pytest.raises(TypeError, match="not one str"):
        d.policy.refresh(d.now, "orders")
    with pytest.raises(TypeError, match="names or ids"):
        d.policy.refresh(d.now, ["orders", b"x" * 16])  # type: ignore[arg-type]
    with pytest.raises(InvalidTopicError, match="'a b'"):
        d.policy.refresh(d.now, ["a b"])


# ---- a topic ------------------------------------------------------------------------------------


def test_a_wait_for_a_topic_needs_it_and_ends_when_it_is_there() -> None:
    d = Driver()
    d.start()
    waiter = d.policy.wait_for_topic(d.now, "orders")
    d.wait(0.02)
    send = d.sent()
    assert (send.kind, names_of(send)) == (RequestKind.NEW, ["orders"])
    d.answer(send, topic("orders", -1))
    assert d.finished[waiter].error is None
    assert d.policy.stats()["needed"] == 1


def test_a_wait_for_a_known_topic_ends_at_once() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.wait_for_topic(d.now, "orders", 0)
    assert outcome(d, waiter) is None
    d.wait(5)
    assert len(d.sends) == 1


def test_a_wait_for_a_partition_asks_fast_until_the_topic_has_it_with_a_leader() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.wait_for_topic(d.now, "orders", 1)
    send = d.sent()
    assert (send.reason, names_of(send)) == ("waited for", ["orders"])
    d.answer(send, T("orders", [P(0, 1, 1), P(1, -1)], id=topic_id("orders")))
    d.wait(0.3)
    d.answer(d.sent(), T("orders", [P(0, 1, 1), P(1, 2, 1)], id=topic_id("orders")))
    assert d.finished[waiter].error is None
    d.wait(10)
    assert len(d.sends) == 3


def test_an_unknown_topic_is_asked_for_fast_while_it_propagates_then_every_10_s() -> None:
    d = Driver(propagation_max=5.0)
    d.start()
    d.policy.wait_for_topic(d.now, "orders")
    start = d.now
    for _ in d.ticks(40):
        for send in list(d.open.values()):
            d.answer(send, T("orders", [], error=3))
    times = [d.sent_at[send.number] - start for send in d.sends[1:]]
    assert len([time for time in times if time < 6]) >= 7
    assert 3 <= len([time for time in times if time > 6.3]) <= 5


def test_a_topic_that_nothing_waits_for_any_more_is_not_asked_for() -> None:
    d = Driver(propagation_max=0.0)
    d.start()
    waiter = d.policy.wait_for_topic(d.now, "orders")
    d.wait(0.02)
    d.answer(d.sent(), T("orders", [], error=3))
    d.policy.cancel(waiter, d.now)
    d.wait(60)
    assert len(d.sends) == 2


def test_a_denial_ends_each_wait_for_that_topic_once() -> None:
    d = Driver()
    d.start()
    waiters = [d.policy.wait_for_topic(d.now, "orders") for _ in range(3)]
    other = d.policy.wait_for_topic(d.now, "audit")
    d.wait(0.02)
    d.answer(d.sent(), T("orders", [], error=29), T("audit", [], error=3))
    assert all(isinstance(outcome(d, each), TopicAuthorizationError) for each in waiters)
    assert other not in d.finished


def test_a_wait_for_a_topic_that_was_denied_before_asks_again() -> None:
    d = Driver(topics=["orders"])
    d.start(T("orders", [], error=29))
    d.wait(2)
    waiter = d.policy.wait_for_topic(d.now, "orders")
    assert names_of(d.sent()) == ["orders"]
    d.answer(d.sent(), T("orders", [], error=29))
    assert isinstance(outcome(d, waiter), TopicAuthorizationError)


def test_an_invalid_topic_ends_each_wait_once_and_is_not_polled() -> None:
    d = Driver()
    d.start()
    waiter = d.policy.wait_for_topic(d.now, "orders")
    d.wait(0.02)
    d.answer(d.sent(), T("orders", [], error=17))
    assert isinstance(outcome(d, waiter), InvalidTopicError)
    d.wait(200)
    assert len(d.sends) == 2


def test_a_name_that_kafka_refuses_ends_the_wait_without_a_request() -> None:
    d = Driver()
    d.start()
    for name in ("", "a b", "x" * 250):
        assert isinstance(outcome(d, d.policy.wait_for_topic(d.now, name)), InvalidTopicError)
    d.wait(5)
    assert len(d.sends) == 1


# ---- deadlines ----------------------------------------------------------------------------------


def test_a_time_out_names_the_last_cause_of_each_server() -> None:
    d = Driver(bootstrap=ADDRESSES)
    waiter = d.policy.refresh(d.now, deadline=d.now + 2)
    for cause in ("no such host", "refused", "closed by the peer"):
        d.fail(error=TransportError(cause))
    d.wait(2)
    error = d.finished[waiter].error
    assert isinstance(error, RequestTimedOutError)
    for text in ("broker-1:9092: ", "broker-2:9092: ", "no such host", "refused", "closed by"):
        assert text in str(error)


def test_a_time_out_before_the_first_answer_says_which_option_to_check() -> None:
    d = Driver(bootstrap=ADDRESSES[:1])
    first = d.policy.refresh(d.now, deadline=d.now + 2)
    d.fail(error=TransportError("cannot connect: Connection refused"))
    d.wait(2)
    causes = "(broker-1:9092: cannot connect: Connection refused)"
    text = f"there was no answer in time {causes}; check bootstrap.servers"
    assert str(d.finished[first].error) == text


@pytest.mark.parametrize("seen", ["an answer", "TLS", "nothing yet"])
def test_a_time_out_names_bootstrap_servers_only_if_they_may_be_wrong(seen: str) -> None:
    d = Driver(bootstrap=ADDRESSES[:1])
    if seen == "an answer":
        d.start()
    elif seen == "TLS":
        d.fail(error=TlsError("the TLS handshake broke off", retriable=True))
    waiter = d.policy.refresh(d.now, deadline=d.now + 2)
    d.wait(2)
    text = str(d.finished[waiter].error)
    assert "in time (broker-1:9092: " in text
    assert "bootstrap.servers" not in text


def test_a_time_out_says_what_the_topic_was() -> None:
    d = Driver(topics=["lost"])
    d.start(topic("lost", -1))
    unknown = d.policy.wait_for_topic(d.now, "orders", deadline=d.now + 3)
    lost = d.policy.wait_for_topic(d.now, "lost", 0, deadline=d.now + 3)
    while not d.finished:
        d.wait(0.001)
        for send in list(d.open.values()):
            d.answer(send, T("orders", [], error=3), topic("lost", -1))
    # The cache has forgotten that word by now: it keeps it for 100 ms.
    assert "topic 'orders' was not available (UNKNOWN_TOPIC)" in str(d.finished[unknown].error)
    assert "no answer" not in str(d.finished[unknown].error)
    assert "LEADER_NOT_AVAILABLE" in str(d.finished[lost].error)


def test_a_time_out_of_a_topic_without_an_answer_does_not_call_it_unknown() -> None:
    d = Driver()
    d.start()
    waiter = d.policy.wait_for_topic(d.now, "orders", deadline=d.now + 3)
    d.wait(3)
    assert "topic 'orders' was not available (WAITING)" in str(d.finished[waiter].error)


def test_a_call_ends_at_its_deadline() -> None:
    d = Driver()
    waiter = d.policy.call(d.now, OtherRequest(55, 0, 1, lambda version: b""), deadline=d.now + 1)
    d.wait(1.01)
    assert isinstance(d.finished[waiter].error, RequestTimedOutError)


def test_a_call_that_the_broker_does_not_speak_is_the_error_of_its_caller_alone() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.problems()
    waiter = d.policy.call(d.now, OtherRequest(55, 0, 1, lambda version: b""))
    d.poll()
    send = d.sent(RequestKind.CALL)
    del d.open[send.number]
    d.policy.on_failure(send.number, d.now, UnsupportedVersionError("not spoken"))
    assert isinstance(outcome(d, waiter), UnsupportedVersionError)
    assert d.problems() == []
    link = d.policy._nodes.links[send.link]
    assert link.server.refused_at < 0


# ---- fatal errors -------------------------------------------------------------------------------


def test_a_refused_login_ends_each_wait_once_and_the_client_goes_on() -> None:
    d = Driver(reconnect_backoff_max=1.0)
    waiters = [d.policy.refresh(d.now), d.policy.wait_for_topic(d.now, "orders")]
    refusal = Error("wrong password", 58)
    d.fail(error=refusal)
    for waiter in waiters:
        error = outcome(d, waiter)
        assert error is not None
        assert (str(error), error.code) == ("broker-1:9092: wrong password", 58)
        assert error.__cause__ is refusal
    later = d.policy.refresh(d.now)
    d.wait(1.3)
    d.connect()
    for send in list(d.open.values()):
        d.answer(send, topic("orders"))
    d.wait(0.5)
    for send in list(d.open.values()):
        d.answer(send, topic("orders"))
    assert d.finished[later].error is None


def test_a_refused_login_that_no_wait_was_told_of_ends_the_next_one_at_once() -> None:
    d = Driver(topics=["orders"], reconnect_backoff_max=10.0)
    d.fail(error=Error("wrong password", 58))
    d.wait(5)
    error = outcome(d, d.policy.refresh(d.now))
    assert error is not None
    assert (str(error), error.code) == ("broker-1:9092: wrong password", 58)
    later = d.policy.refresh(d.now)
    d.poll()
    assert later not in d.finished


def test_a_failure_before_another_attempt_ends_no_later_wait() -> None:
    d = Driver(topics=["orders"], reconnect_backoff=1.0, reconnect_backoff_max=1.0)
    d.fail(error=Error("wrong password", 58))
    d.wait(1.3)
    during = d.policy.refresh(d.now)
    d.poll()
    assert during not in d.finished
    d.fail(error=TransportError("reset"))
    d.poll()
    assert during not in d.finished


def test_a_topic_whose_waits_a_refused_login_ended_is_not_asked_for_any_more() -> None:
    d = Driver(reconnect_backoff_max=1.0, refresh_interval=None, propagation_max=1.0)
    d.policy.wait_for_topic(d.now, "orders")
    d.fail(error=Error("wrong password", 58))
    d.wait(1.3)
    d.connect()
    for _ in d.ticks(40, 0.1):
        for send in list(d.open.values()):
            d.answer(send, T("orders", [], error=3))
    assert max(d.sent_at.values()) < 1004


def test_no_common_version_ends_each_wait_once_and_closes_the_link() -> None:
    d = Driver()
    waiter = d.policy.refresh(d.now)
    d.connect(versions=None)
    assert isinstance(outcome(d, waiter), UnsupportedVersionError)
    assert len(d.closes) == 1


def test_a_refused_login_of_one_node_ends_no_wait_while_another_works() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.refresh(d.now)
    d.wait(1.5)
    d.fail(d.connecting()[-1].link, Error("wrong password", 58))
    assert waiter not in d.finished


def test_a_broken_connection_ends_no_wait() -> None:
    d = Driver()
    waiter = d.policy.refresh(d.now)
    d.fail(error=TransportError("reset"))
    d.wait(5)
    assert waiter not in d.finished


WRONG = TlsError("not TLS")


def test_a_wrong_setting_ends_each_wait_in_one_attempt() -> None:
    d = Driver()
    waiter = d.policy.refresh(d.now)
    d.fail(error=WRONG)
    error = outcome(d, waiter)
    assert (type(error), str(error)) == (TlsError, "broker-1:9092: not TLS")


def test_a_wrong_setting_ends_no_wait_while_a_server_is_left_to_try() -> None:
    d = Driver(bootstrap=ADDRESSES[:2])
    waiter = d.policy.refresh(d.now)
    first = d.connecting()[-1]
    d.fail(first.link, WRONG)
    assert waiter not in d.finished
    d.wait(0.01)
    second = d.connecting()[-1]
    assert second.node != first.node
    d.fail(second.link, WRONG)
    assert sorted(str(outcome(d, waiter)).split("; ")) == [
        "broker-1:9092: not TLS",
        "broker-2:9092: not TLS",
    ]


def test_what_seems_a_wrong_setting_ends_no_wait_once_it_has_worked() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    waiter = d.policy.refresh(d.now)
    for link in list(d.policy._nodes.links):
        d.fail(link, WRONG)
    d.wait(1)
    assert waiter not in d.finished


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("no such file"),
        ConfigError("a callable raised", retriable=True),
        AuthenticationError("the token endpoint is down", retriable=True),
        MissingExtraError("scramp"),
    ],
)
def test_an_error_of_the_clients_own_ends_each_wait_also_once_it_has_worked(error: Error) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    for link in list(d.policy._nodes.links):
        d.fail(link, TransportError("reset"))
    waiter = d.policy.refresh(d.now)
    d.wait(0.3)
    d.fail(d.connecting()[-1].link, error)
    found = outcome(d, waiter)
    assert found is not None
    assert type(found) is type(error)
    assert str(error) in str(found)
    assert found.retriable == error.retriable


def test_the_error_of_a_server_that_has_connected_since_is_not_shown_at_the_time_out() -> None:
    d = Driver(bootstrap=ADDRESSES[:2])
    waiter = d.policy.refresh(d.now, deadline=d.now + 5)
    d.fail(d.connecting()[-1].link, TransportError("refused"))
    d.wait(0.01)
    d.fail(d.connecting()[-1].link, TransportError("no route"))
    d.wait(1)
    again = d.connecting()[-1]
    d.connect(again.link)
    d.wait(5)
    error = outcome(d, waiter)
    old, other = (
        ("refused", "no route") if again.node == d.connects[0].node else ("no route", "refused")
    )
    assert isinstance(error, RequestTimedOutError)
    assert f"{again.node.host}:9092: no answer yet" in str(error)
    assert old not in str(error)
    assert other in str(error)


def test_the_error_of_a_server_is_gone_from_the_statistics_once_it_has_connected() -> None:
    d = Driver()
    d.policy.refresh(d.now)
    d.fail(error=TransportError("refused"))
    assert d.policy.stats()["nodes"][-1]["last_error"] == "refused"
    d.wait(1)
    d.connect()
    assert d.policy.stats()["nodes"][-1]["last_error"] is None


def test_a_connected_server_that_breaks_again_has_its_new_error_at_the_time_out() -> None:
    d = Driver()
    waiter = d.policy.refresh(d.now, deadline=d.now + 5)
    d.fail(error=TransportError("refused"))
    d.wait(0.5)
    d.fail(d.connect(), TransportError("reset"))
    d.now += 5
    assert str(outcome(d, waiter)) == "there was no answer in time (broker-1:9092: reset)"


# ---- close --------------------------------------------------------------------------------------


def test_close_ends_every_wait_with_an_error() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    waiters = [
        d.policy.refresh(d.now),
        d.policy.refresh(d.now, ["a"]),
        d.policy.wait_for_topic(d.now, "b"),
        d.policy.call(d.now, OtherRequest(55, 0, 1, lambda version: b"")),
    ]
    d.poll()
    d.policy.close(d.now)
    assert all("closed" in str(outcome(d, waiter)) for waiter in waiters)


def test_a_wait_that_begins_after_close_ends_at_once() -> None:
    d = Driver(topics=["orders"])
    d.policy.close(d.now)
    waiters = [
        d.policy.refresh(d.now),
        d.policy.wait_for_topic(d.now, "b"),
        d.policy.call(d.now, OtherRequest(55, 0, 1, lambda version: b"")),
    ]
    assert all("closed" in str(outcome(d, waiter)) for waiter in waiters)


def test_close_ends_the_hints_of_the_names_in_flight() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    d.policy.close(d.now)
    assert d.cache.hint(["orders"]) == ["orders"]


# ---- input --------------------------------------------------------------------------------------


def test_more_topics_than_allowed_are_refused_and_none_is_added() -> None:
    d = Driver(max_topics=3, topics=["a"])
    d.policy.need(["b"], d.now)
    with pytest.raises(ArgumentError, match="metadata.max.topics"):
        d.policy.need(["c", "d"], d.now)
    assert d.policy.stats()["needed"] == 2
    d.policy.need(["a", "b", "c"], d.now)
    with pytest.raises(ArgumentError, match="metadata.max.topics"):
        d.policy.subscribe(["x", "y"], d.now)


def test_a_topic_that_is_needed_twice_leaves_no_room_for_another_subscription() -> None:
    d = Driver(max_topics=1, topics=["a"])
    d.policy.need(["a"], d.now)
    with pytest.raises(ArgumentError, match="2 topics would be needed"):
        d.policy.subscribe(["b"], d.now)
    assert d.policy.stats()["needed"] == 1


def test_a_wrong_pattern_is_refused_and_nothing_changes() -> None:
    d = Driver(topics=["a"])
    with pytest.raises(ArgumentError, match="regular expression"):
        d.policy.subscribe("^[", d.now)
    assert d.policy.stats()["needed"] == 1


def test_a_name_that_is_no_str_is_refused() -> None:
    d = Driver()
    with pytest.raises(TypeError, match="must be str"):
        d.policy.need([b"orders"], d.now)  # type: ignore[list-item]
    with pytest.raises(InvalidTopicError):
        d.policy.need(["good", "not good"], d.now)
    assert d.policy.stats()["needed"] == 0


@pytest.mark.parametrize("name", ["", "a b", "x" * 250])
def test_a_complaint_about_a_name_that_kafka_refuses_is_refused(name: str) -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    with pytest.raises(InvalidTopicError):
        d.policy.leader_unavailable(name, 0, 6, d.now)
    d.wait(5)
    assert len(d.sends) == 1


def test_a_topic_of_the_blacklist_is_unknown_to_a_wait() -> None:
    import re

    d = Driver(blacklist=(re.compile("^secret"),))
    d.start()
    waiter = d.policy.wait_for_topic(d.now, "secret-1")
    assert isinstance(outcome(d, waiter), UnknownTopicError)


def test_a_refresh_of_needed_topics_does_not_ask_for_one_that_was_forgotten_meanwhile() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.need(["audit"], d.now)
    d.wait(0.02)
    waiter = d.policy.refresh(d.now)
    d.wait(0.2)
    d.answer(d.sent(RequestKind.FULL), topic("orders"))
    assert waiter not in d.finished
    d.policy.forget(["audit"], d.now)
    d.poll()
    assert d.finished[waiter].error is None
    d.fail(d.sent(RequestKind.NEW).link)
    d.wait(2)
    assert all("audit" not in names_of(send) for send in d.sends[3:])


@pytest.mark.parametrize("how", ["times out", "is cancelled"])
def test_a_wait_in_vain_takes_its_own_need_with_it(how: str) -> None:
    d = Driver(topics=["mine"])
    d.start(topic("mine"))
    d.policy.need(["kept"], d.now)
    waiters = [d.policy.wait_for_topic(d.now, n, 7, d.now + 1) for n in ("lost", "kept", "mine")]
    d.wait(0.5)
    if how == "is cancelled":
        for waiter in waiters:
            d.policy.cancel(waiter, d.now)
    d.wait(1)
    assert d.policy._subscriptions.names() == ["mine", "kept"]
    d.policy.wait_for_topic(d.now, "lost", deadline=d.now + 1)
    assert "lost" in d.policy._subscriptions
