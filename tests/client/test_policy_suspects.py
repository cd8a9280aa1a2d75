"""Suspect brokers: dead ones that every answer still names as leaders."""

from __future__ import annotations

from policy_driver import ADDRESSES, B, Driver, T, names_of, topic

from rdmeta.client.actions import RequestKind, Send


def lead(names: list[str], leader: int = 1, epoch: int = 1) -> list[T]:
    return [topic(name, leader, epoch) for name in names]


def broken(names: list[str], **config: object) -> tuple[Driver, int]:
    """Returns a driver whose connection to broker 1, the leader of all, broke; and another link."""
    d = Driver(topics=names, bootstrap=ADDRESSES[:1], **config)  # type: ignore[arg-type]
    d.start(*lead(names))
    d.fail(d.sends[0].link)
    while d.node_of(d.connecting()[-1].link) == "broker-1":
        d.fail(d.connecting()[-1].link)
        d.wait(0.05)
    others = [each.link for each in d.connecting() if each.node.host != "broker-1"]
    return d, d.connect(others[0])


def answer_all(d: Driver, topics: dict[str, T]) -> list[Send]:
    """Answers every open request; returns them."""
    sends = list(d.open.values())
    for send in sends:
        d.answer(send, *[topics[name] for name in names_of(send)])
    return sends


def test_the_broker_of_a_broken_connection_is_suspect_and_its_topics_are_asked_for_fast() -> None:
    names = [f"t{i}" for i in range(3)]
    d, _ = broken(names)
    assert d.policy.stats()["suspects"] == [1]
    known = dict(zip(names, lead(names), strict=True))
    answer_all(d, known)
    before = len(d.sends)
    for _ in d.ticks(5):
        answer_all(d, known)
    times = [d.sent_at[s.number] for s in d.sends[before:] if s.reason == "suspect"]
    assert 45 <= len(times) <= 76
    assert max(b - a for a, b in zip(times, times[1:], strict=False)) <= 0.121


def test_a_broker_with_another_link_that_works_is_not_suspect() -> None:
    d = Driver(topics=["orders"], bootstrap=ADDRESSES[:1])
    d.brokers = d.brokers[:1]
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(1.5)
    d.connect()
    d.fail(d.sends[0].link)
    assert d.policy.stats()["suspects"] == []
    d.fail(d.sends[-1].link)
    assert d.policy.stats()["suspects"] == [1]


def test_a_suspect_that_leads_nothing_needed_is_none() -> None:
    d = Driver(topics=["orders"])
    d.start(topic("orders", 2))
    d.fail(d.sends[0].link)
    assert d.policy.stats()["suspects"] == []


def test_100_topics_of_a_suspect_are_asked_for_in_turn() -> None:
    names = [f"t{i}" for i in range(250)]
    d, _ = broken(names)
    known = dict(zip(names, lead(names), strict=True))
    answer_all(d, known)
    asked: set[str] = set()
    for _ in d.ticks(4):
        for send in answer_all(d, known):
            if send.reason == "suspect":
                assert len(names_of(send)) == 100
                asked.update(names_of(send))
    assert asked == set(names)


def test_all_topics_of_a_suspect_are_asked_for_once_one_has_moved() -> None:
    names = [f"t{i}" for i in range(2500)]
    d, _ = broken(names)
    known = dict(zip(names, lead(names), strict=True))
    answer_all(d, known)
    while d.sends[-1].reason != "suspect" or not d.open:
        d.wait(0.01)
    send = d.sent()
    first = names_of(send)[0]
    moved = {name: topic(name, 2, 2) if name == first else known[name] for name in names}
    answer_all(d, moved)
    assert set(names_of(d.sent())) >= set(names) - {first}
    answer_all(d, dict(zip(names, lead(names, 2, 2), strict=True)))
    assert d.policy.stats()["suspects"] == []
    d.wait(20)
    assert not [send for send in d.open.values() if send.reason == "suspect"]


def test_a_suspect_is_probed_by_connecting_within_its_backoff() -> None:
    d, _ = broken(["orders"])
    known = {"orders": topic("orders")}
    start, before = d.now, len(d.connects)
    for _ in d.ticks(20):
        answer_all(d, known)
        for link in d.connecting():
            d.fail(link.link)
    probes = d.connects[before:]
    assert {each.node.host for each in probes} == {"broker-1"}
    assert 5 <= len(probes) <= 10
    assert d.now - start < 20.1


def test_two_suspects_are_probed_at_a_time() -> None:
    d = Driver(topics=["t2", "t3", "t4", "t5"], reconnect_backoff=5.0)
    d.brokers = tuple(B(i, f"broker-{i}") for i in range(1, 6))
    known = {f"t{i}": topic(f"t{i}", i) for i in range(2, 6)}
    d.connect()
    d.answer(d.sent(), *known.values(), throttle_ms=500)
    d.policy.refresh(d.now)
    d.wait(0.2)
    for _ in range(4):
        d.fail()
    assert sorted(d.policy.stats()["suspects"]) == [2, 3, 4, 5]
    before, most = len(d.connects), 0
    for _ in d.ticks(10):
        answer_all(d, known)
        most = max(most, len(d.connecting()))
    assert (most, len(d.connects) - before) == (2, 2)


def test_a_probe_that_fails_is_no_new_reason() -> None:
    d, _ = broken(["orders"])
    known = {"orders": topic("orders")}
    answer_all(d, known)
    for _ in d.ticks(3):
        answer_all(d, known)
    full = [send for send in d.sends if send.kind is RequestKind.FULL]
    for _ in d.ticks(10):
        answer_all(d, known)
        for link in d.connecting():
            d.fail(link.link)
    assert [send for send in d.sends if send.kind is RequestKind.FULL] == full


def test_a_suspect_is_cleared_when_a_link_is_ready_for_requests() -> None:
    d, _ = broken(["orders"])
    d.wait(1)
    d.connect(next(each.link for each in d.connecting() if each.node.host == "broker-1"))
    assert d.policy.stats()["suspects"] == []


def test_a_suspect_that_comes_again_within_30_s_goes_on_where_its_schedule_was() -> None:
    d, _ = broken(["orders"])
    known = {"orders": topic("orders")}
    for _ in d.ticks(20):
        answer_all(d, known)
    for expected in ("goes on", "begins anew"):
        while not [each for each in d.connecting() if each.node.host == "broker-1"]:
            d.wait(0.05)
            answer_all(d, known)
        link = d.connect(next(e.link for e in d.connecting() if e.node.host == "broker-1"))
        d.wait(29 if expected == "goes on" else 31)
        answer_all(d, known)
        before = len(d.sends)
        assert link in d.links
        d.fail(link)
        for _ in range(60):
            d.wait(0.01)
            answer_all(d, known)
        suspected = [send for send in d.sends[before:] if send.reason == "suspect"]
        assert (len(suspected) <= 1) == (expected == "goes on")


def test_a_suspect_without_progress_is_asked_about_every_10_s_after_30_s() -> None:
    d, _ = broken(["orders"], refresh_interval=None)
    known = {"orders": topic("orders")}
    start = d.now
    for _ in d.ticks(80, 0.02):
        answer_all(d, known)
        for link in d.connecting():
            d.fail(link.link)
    times = [d.sent_at[s.number] - start for s in d.sends if s.reason == "suspect"]
    late = [time for time in times if time > 31]
    assert 3 <= len(late) <= 7


def test_a_topic_that_becomes_needed_and_is_led_by_a_suspect_is_asked_for_too() -> None:
    d, _ = broken(["orders"])
    known = {"orders": topic("orders"), "new": topic("new")}
    answer_all(d, known)
    d.policy.need(["new"], d.now)
    asked: set[str] = set()
    for _ in d.ticks(3):
        for send in answer_all(d, known):
            asked.update(names_of(send) if send.reason == "suspect" else [])
    assert asked == {"orders", "new"}


def test_forgotten_topics_of_a_suspect_are_not_asked_for() -> None:
    d, _ = broken(["orders"])
    answer_all(d, {"orders": topic("orders")})
    d.policy.forget(["orders"], d.now)
    assert d.policy.stats()["suspects"] == []


def test_a_request_that_times_out_makes_its_broker_suspect() -> None:
    d = Driver(topics=["orders"], socket_timeout=5.0, refresh_interval=None)
    d.start(topic("orders"))
    d.policy.refresh(d.now)
    d.wait(6)
    assert d.policy.stats()["suspects"] == [1]
