"""The policy's fast schedule, the budget, and the backoff of two counters."""

from __future__ import annotations

import frames
import pytest
from policy_driver import ADDRESSES, Driver, T, names_of, topic

from rdmeta import ALL, TransportError
from rdmeta.client import retry_schedule
from rdmeta.client.actions import RequestKind

NO_LEADER = -1


def play(d: Driver, seconds: float, *topics: T, step: float = 0.01) -> list[float]:
    """Answers each request with these topics; returns when requests left, from the start on.

    Requests are answered at the next multiple of `step`.
    """
    start = d.now
    first = len(d.sends)
    for _ in d.ticks(seconds, step):
        for send in list(d.open.values()):
            d.answer(send, *topics)
    return [d.sent_at[send.number] - start for send in d.sends[first:]]


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in zip(times, times[1:], strict=False)]


# ---- the fast schedule --------------------------------------------------------------------------


def test_fast_is_at_once_then_the_fast_interval_doubled_up_to_the_longest_backoff() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", 77))
    assert d.sent_at[d.sent().number] == d.now
    times = [0.0, *play(d, 9.0, topic("orders", 77))]
    for gap, mean in zip(gaps(times), [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0], strict=False):
        assert 0.8 * mean - 1e-6 <= gap <= 1.2 * mean + 0.011


@pytest.mark.slow
@pytest.mark.parametrize("how", ["needed", "waited for"])
def test_the_request_of_a_new_name_is_the_first_of_its_fast_schedule(how: str) -> None:
    second = set()
    for seed in range(10):
        d = Driver(seed=seed)
        d.start()
        if how == "needed":
            d.policy.need(["orders"], d.now)
        else:
            d.policy.wait_for_topic(d.now, "orders")
        times = play(d, 3.0, T("orders", [], error=3), step=0.001)
        for gap, mean in zip(gaps(times), [0.1, 0.2, 0.4, 0.8], strict=False):
            assert 0.8 * mean - 1e-6 <= gap <= 1.2 * mean + 0.002
        second.add(round(times[1], 6))
    assert len(second) > 5


def test_fast_intervals_have_a_jitter() -> None:
    first = set()
    for seed in range(10):
        d = Driver(topics=["orders"], seed=seed)
        d.start(topic("orders", NO_LEADER))
        first.add(play(d, 0.5, topic("orders", NO_LEADER), step=0.001)[0])
    assert len(first) == 10


def test_after_30_s_without_progress_a_topic_is_asked_for_every_10_s() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.start(topic("orders", NO_LEADER))
    times = play(d, 100, topic("orders", NO_LEADER), step=0.05)
    late = gaps([time for time in times if time > 30])
    assert len(late) >= 5
    assert all(7.99 < gap < 12.1 for gap in late)


def test_30_s_without_progress_are_counted_from_the_last_progress() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.start(topic("orders", NO_LEADER, 1))
    play(d, 25, topic("orders", NO_LEADER, 1), step=0.05)
    play(d, 2, topic("orders", NO_LEADER, 2), step=0.05)
    assert len(play(d, 20, topic("orders", NO_LEADER, 2), step=0.05)) >= 15


def test_progress_after_30_s_begins_anew() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.start(topic("orders", NO_LEADER, 1))
    play(d, 50, topic("orders", NO_LEADER, 1), step=0.05)
    while not d.open:
        d.wait(0.05)
    d.answer(d.sent(), topic("orders", NO_LEADER, 2))
    assert len(play(d, 5, topic("orders", NO_LEADER, 2))) >= 5


def test_a_new_reason_begins_anew() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.start(topic("orders", NO_LEADER))
    play(d, 50, topic("orders", NO_LEADER), step=0.05)
    d.policy.leader_unavailable("orders", 0, 5, d.now)
    assert d.sent().reason == "complaint"


def test_a_reason_that_comes_back_is_not_new() -> None:
    d = Driver(topics=["orders", "audit"], bootstrap=ADDRESSES, refresh_interval=None)
    d.start(topic("orders", NO_LEADER), topic("audit"))
    times = []
    start = d.now
    for i in range(2000):
        d.wait(0.01)
        for send in list(d.open.values()):
            leader = 77 if i % 2 else NO_LEADER
            times.append(d.sent_at[send.number] - start)
            d.answer(send, topic("orders", leader))
    assert len([time for time in times if time > 15]) < 15


def test_topics_that_are_due_at_almost_the_same_time_share_a_request() -> None:
    names = [f"t{i}" for i in range(20)]
    d = Driver(topics=names)
    d.start(*[topic(name) for name in names])
    for name in names:
        d.policy.wait_for_topic(d.now, name, 7)
        d.wait(0.03)
        for send in list(d.open.values()):
            d.answer(send, *[topic(each) for each in names_of(send)])
    times = play(d, 20, *[topic(each) for each in names])
    assert len([time for time in times if time > 10]) <= 13


def test_a_full_refresh_counts_as_asked_for_fast_topics() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders", NO_LEADER), topic("audit"))
    play(d, 10, topic("orders", NO_LEADER))
    while d.sends[-1].reason != "no leader" or d.now - d.sent_at[d.sends[-1].number] < 0.75:
        play(d, 0.01, topic("orders", NO_LEADER))
    d.policy.subscribe(["audit", "orders", "bills"], d.now)
    assert names_of(d.sent()) == ["audit", "bills", "orders"]
    d.answer(d.sent(), topic("orders", NO_LEADER), topic("audit"), topic("bills"))
    assert play(d, 0.7, topic("orders", NO_LEADER)) == []


def test_a_name_in_flight_is_not_asked_again() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    d.policy.wait_for_topic(d.now, "orders")
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.policy.refresh(d.now, ["orders"])
    d.wait(0.9)
    assert len(d.sends) == 1


def test_a_name_that_was_in_flight_is_asked_for_when_that_request_ends() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    full = d.sent()
    d.policy.wait_for_topic(d.now, "orders", 1)
    d.wait(0.3)
    d.answer(full, topic("orders"))
    assert (d.sent().reason, names_of(d.sent())) == ("waited for", ["orders"])


def test_a_name_in_flight_is_asked_again_by_force() -> None:
    d = Driver(topics=["orders"])
    d.connect()
    d.policy.refresh(d.now, ["orders"], force=True)
    d.poll()
    assert [send.kind for send in d.sends] == [RequestKind.FULL, RequestKind.NAMES]


def test_a_name_that_failed_is_in_flight_no_longer() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    send = d.sent()
    d.open.clear()
    d.policy.on_failure(send.number, d.now, TransportError("not sent"))
    d.wait(0.13)
    assert names_of(d.sent(RequestKind.NAMES)) == ["orders"]


# ---- the budget ---------------------------------------------------------------------------------


@pytest.mark.parametrize("longest", [0.5, 1.0, 3.0])
def test_any_window_has_8_requests_and_one_more_per_interval_of_the_budget(longest: float) -> None:
    names = [f"t{i}" for i in range(300)]
    d = Driver(topics=names, retry_backoff_max=longest)
    d.start(*[topic(name) for name in names])
    start = d.now
    for name in names:
        d.policy.wait_for_topic(d.now, name, 7)
        d.policy.refresh(d.now, ALL)
        d.policy.refresh(d.now, [name], force=True)
        d.wait(0.037)
        for send in list(d.open.values()):
            d.answer(send, *[topic(each) for each in names])
    times = [d.sent_at[send.number] for send in d.sends if d.sent_at[send.number] >= start]
    assert len(times) > 10
    for i, first in enumerate(times):
        for k in range(i, len(times)):
            assert k - i + 1 <= 8 + (times[k] - first) / (0.8 * longest) + 1e-6


def test_new_names_and_the_periodic_refresh_are_not_counted_by_the_budget() -> None:
    d = Driver(refresh_interval=3.0, topics=["orders"], retry_backoff_max=100.0)
    d.start(topic("orders"))
    for i in range(20):
        d.policy.need([f"new-{i}"], d.now)
        d.wait(0.02)
        d.answer(d.sent(), topic(f"new-{i}"))
    d.wait(5)
    assert d.sends[-1].reason == "interval"


def test_fast_reasons_go_first_when_the_budget_has_one_request() -> None:
    d = Driver(topics=["orders"], retry_backoff_max=5.0)
    d.start(topic("orders"), topic("other"))
    for i in range(7):
        d.policy.refresh(d.now, [f"missing-{i}"], force=True)
        d.wait(0.4 * 2 ** min(i, 4))
        for send in list(d.open.values()):
            d.answer(send)
    d.wait(5)
    budget = d.policy._requests._budget
    while budget.opens <= d.now:
        budget.take(d.now)
    d.policy.leader_unavailable("other", 7, 6, d.now)
    d.policy.refresh(d.now)
    d.poll()
    assert not d.open
    d.now = max(budget.opens, d.policy._gate.opens)
    assert names_of(d.sent()) == ["other"]


def test_a_full_refresh_that_covers_the_fast_reasons_serves_them_in_one_request() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    d.wait(2)
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.policy.refresh(d.now)
    assert names_of(d.sent()) == ["audit", "orders"]


def test_fast_reasons_go_before_a_full_refresh_of_many_topics() -> None:
    names = [f"t{i}" for i in range(1001)]
    d = Driver(topics=names)
    d.start(*[topic(name) for name in names])
    d.wait(2)
    d.policy.leader_unavailable("t5", 0, 6, d.now)
    d.policy.refresh(d.now)
    d.poll()
    assert [len(names_of(send)) for send in d.sends[1:]] == [1, 1000]


def test_fast_reasons_without_an_end_hold_up_a_full_refresh_for_the_longest_backoff() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))

    def complain(seconds: float) -> None:
        for i in range(round(20 * seconds)):
            d.policy.leader_unavailable(f"t{i}-{len(d.sends)}", 0, 6, d.now)
            d.wait(0.05)
            for send in list(d.open.values()):
                d.answer(send, *(topic(name) for name in names_of(send)))

    complain(5)  # they use up the budget
    waiter = d.policy.refresh(d.now)
    complain(1)
    assert waiter not in d.finished
    complain(2)
    assert d.finished[waiter].error is None


@pytest.mark.slow
def test_a_storm_of_leaderless_topics_costs_one_request_per_step() -> None:
    names = [f"t{i}" for i in range(1000)]
    d = Driver(topics=names)
    d.start(*[topic(name, NO_LEADER) for name in names])
    times = play(d, 35, *[topic(name, NO_LEADER) for name in names], step=0.05)
    assert len([time for time in times if time < 15]) <= 226
    assert len([time for time in times if time >= 15]) <= 25


# ---- elections ----------------------------------------------------------------------------------


def are_100_ms_apart(times: list[float]) -> bool:
    return all(0.066 <= gap <= 0.1 + 0.011 for gap in gaps(times))


@pytest.mark.parametrize("cause", ["no leader", "complaint", "epoch seen", "suspect"])
def test_while_an_election_may_be_under_way_a_topic_is_asked_for_every_fast_interval(
    cause: str,
) -> None:
    d = Driver(topics=["orders", "audit"], bootstrap=ADDRESSES, refresh_interval=None)
    answers = topic("orders", NO_LEADER if cause == "no leader" else 1), topic("audit", 2)
    d.start(*answers)
    if cause == "complaint":
        d.policy.leader_unavailable("orders", 0, 6, d.now)
    elif cause == "epoch seen":
        d.policy.epoch_seen("orders", 0, 99, d.now)
    elif cause == "suspect":
        d.fail(next(link for link in d.links if d.node_of(link) == "broker-1"))
        others = [each.link for each in d.connecting() if each.node.host != "broker-1"]
        d.connect(others[0])
    times = play(d, 28, *answers)
    early = [time for time in times if 2 < time < 14.8]
    assert len(early) >= 105
    assert are_100_ms_apart(early)
    assert 8 <= len([time for time in times if time > 16]) <= 18  # then the wait doubles


@pytest.mark.slow
def test_complaints_do_not_renew_the_time_of_an_election_but_another_epoch_does() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.start(topic("orders"))

    def complain(seconds: int, epoch: int) -> int:
        before = len(d.sends)
        for _ in range(10 * seconds):
            d.policy.leader_unavailable("orders", 0, 6, d.now)
            play(d, 0.1, topic("orders", epoch=epoch))
        return len(d.sends) - before

    assert 110 <= complain(16, 1) <= 235
    assert complain(60, 1) <= 76
    complain(1, 2)
    assert 110 <= complain(15, 2) <= 235
    assert complain(60, 2) <= 80


@pytest.mark.slow
def test_brokers_of_several_versions_do_not_renew_the_time_of_an_election() -> None:
    d = Driver(topics=["orders"], refresh_interval=None)
    d.start(topic("orders", 2))
    before = 0
    for second in range(60):
        before = len(d.sends) if second == 16 else before
        d.policy.leader_unavailable("orders", 0, 6, d.now)
        for _ in range(100):
            d.wait(0.01)
            for send in list(d.open.values()):
                version = 5 if len(d.sends) % 2 else 12
                body = frames.response(version, [topic("orders", 2)], brokers=d.brokers)
                d.respond(send, body, version)
    assert len(d.sends) - before <= 60


@pytest.mark.slow
def test_an_hour_without_a_leader_costs_no_more_after_the_time_of_an_election(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after = []
    for seconds in (15.0, 0.0):  # 0: as if there were no elections
        monkeypatch.setattr(retry_schedule, "ELECTION_S", seconds)
        d = Driver(topics=["orders"], refresh_interval=None)
        d.start(topic("orders", NO_LEADER))
        times = play(d, 3600, topic("orders", NO_LEADER), step=0.05)
        assert len([time for time in times if time < 15]) <= (226 if seconds else 18)
        after.append(len([time for time in times if time > 16]))
    assert after[0] <= after[1] + 2, "the times of both have jitter"


def test_the_requests_for_elections_are_shared_and_leave_the_budget_to_others() -> None:
    names = [f"t{i}" for i in range(100)]
    d = Driver(topics=names, refresh_interval=None)
    d.start(*[topic(name) for name in names])
    start = d.now
    for name in names:  # each begins at another time
        d.policy.leader_unavailable(name, 0, 6, d.now)
        play(d, 0.05, *[topic(each) for each in names])
    times = play(d, 5, *[topic(each) for each in names])
    assert are_100_ms_apart(times)
    assert d.policy._requests._budget.opens < start


# ---- two counters -------------------------------------------------------------------------------


def refresh_times(d: Driver, n: int) -> list[float]:
    """Refreshes n times in a loop without pause; returns when the full requests left."""
    times = []
    for _ in range(n):
        waiter = d.policy.refresh(d.now)
        while waiter not in d.finished:
            d.wait(0.001)
            for send in list(d.open.values()):
                if send.kind is RequestKind.FULL:
                    times.append(d.sent_at[send.number])
                d.answer(send, topic("orders"), topic("audit"))
    return times


def test_a_refresh_in_a_loop_backs_off() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    found = gaps(refresh_times(d, 8))
    for gap, mean in zip(found, [0.2, 0.4, 0.8, 1.0, 1.0], strict=False):
        assert 0.8 * mean <= gap <= 1.2 * mean + 0.01


def test_a_new_topic_resets_the_equivalent_answers() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    refresh_times(d, 6)
    d.policy.need(["new"], d.now)
    d.wait(0.011)
    d.answer(d.sent(RequestKind.NEW), topic("new"))
    start = d.now
    assert refresh_times(d, 1)[0] == pytest.approx(start)


def test_the_periodic_refresh_resets_the_equivalent_answers() -> None:
    d = Driver(topics=["orders", "audit"], refresh_interval=12.0)
    d.start(topic("orders"), topic("audit"))
    refresh_times(d, 8)
    while not d.open:
        d.wait(0.01)
    assert d.sent().reason == "interval"
    d.answer(d.sent(), topic("orders"), topic("audit"))
    start = d.now
    assert refresh_times(d, 1)[0] - start < 0.13


def test_leader_unavailable_does_not_reset_the_equivalent_answers() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    refresh_times(d, 8)
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    d.answer(d.sent(), topic("orders"))
    start = d.now
    assert refresh_times(d, 1)[0] - start > 0.7


def test_an_answer_without_progress_resets_nothing() -> None:
    d = Driver(topics=["orders", "lost"])
    d.start(topic("orders"), topic("lost", NO_LEADER))
    gate = d.policy._gate
    play(d, 10, topic("lost", NO_LEADER))
    assert gate.equivalents >= 8


def test_an_answer_with_progress_resets_the_equivalent_answers() -> None:
    d = Driver(topics=["orders", "lost"])
    d.start(topic("orders"), topic("lost", NO_LEADER))
    play(d, 10, topic("lost", NO_LEADER))
    play(d, 2, topic("lost", 1, 2))
    assert d.policy._gate.equivalents == 0


def test_failed_attempts_wait_longer_each_time() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    d.policy.refresh(d.now)
    times = []
    for _ in range(6):
        while not d.open:
            d.wait(0.001)
        send = d.sent()
        times.append(d.sent_at[send.number])
        d.open.clear()
        d.policy.on_failure(send.number, d.now, TransportError("not sent"))
    for gap, mean in zip(gaps(times), [0.1, 0.2, 0.4, 0.8, 1.0], strict=True):
        assert 0.8 * mean <= gap <= 1.2 * mean + 0.002


def test_the_longer_wait_of_both_counters_wins() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    refresh_times(d, 8)
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    send = d.sent()
    d.open.clear()
    d.policy.on_failure(send.number, d.now, TransportError("not sent"))
    start = d.now
    assert refresh_times(d, 1)[-1] - start > 0.5


def test_one_request_of_each_kind_is_in_flight() -> None:
    d = Driver(topics=["orders", "audit"])
    d.start(topic("orders"), topic("audit"))
    d.wait(2)
    for i in range(3):
        d.policy.refresh(d.now)
        d.policy.refresh(d.now, ())
        d.policy.refresh(d.now, [f"by-name-{i}"])
        d.policy.need([f"new-{i}"], d.now)
        d.wait(0.2)
    kinds = sorted(send.kind.value for send in d.open.values())
    assert kinds == ["brokers", "full", "names", "new"] or kinds == ["full", "names", "new"]


def test_a_second_wait_keeps_a_topic_fast_for_as_long_as_the_first() -> None:
    d = Driver(propagation_max=5.0)
    d.connect()
    d.answer(d.sent())
    d.policy.wait_for_topic(d.now, "orders")
    play(d, 4, T("orders", (), error=3))
    d.policy.wait_for_topic(d.now, "orders")
    before = len(d.sends)
    play(d, 4.5, T("orders", (), error=3))
    assert len(d.sends) >= before + 4


def test_a_full_refresh_whose_names_are_in_flight_returns_if_they_fail() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders"))
    d.policy.leader_unavailable("orders", 0, 6, d.now)
    complaint = d.sent()
    d.policy.subscribe(["orders", "^audit"], d.now)
    d.policy.subscribe(["orders"], d.now)
    d.poll()
    d.answer(complaint, topic("orders", 2, 2), cluster_id="another")
    d.wait(40)
    assert any(send.kind is RequestKind.FULL for send in d.sends[1:])
