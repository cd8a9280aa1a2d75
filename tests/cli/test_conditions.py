"""Conditions of `rdmeta wait` say whether they hold in a state, and what is missing."""

from __future__ import annotations

import frames
import pytest
from frames import B, P, T

from rdmeta import ALL, MetadataCache
from rdmeta.cli.wait import Answers, Conditions, Verdict, conditions

BROKERS = [B(1), B(2), B(3)]
UNKNOWN, DENIED = 3, 29


def found(cache: MetadataCache, wanted: Conditions) -> list[Verdict]:
    """Returns what the conditions find after the cache's last answer."""
    answers = Answers(wanted.topics)
    answers.look(cache)
    return [each(cache, answers) for each in conditions(wanted)]


def missing(cache: MetadataCache, wanted: Conditions) -> list[str | None]:
    return [each.missing for each in found(cache, wanted)]


@pytest.fixture
def cache() -> MetadataCache:
    """Returns a state: `orders` is not in sync, `clicks` has no leader, `gone` is absent."""
    made = MetadataCache()
    topics = [
        T("orders", [P(0, 1, 1, (1, 2, 3), (1, 2)), P(1, 2, 1, (2, 3), (2,))]),
        T("clicks", [P(0, -1, 1, (1,), ()), P(1, 1, 1, (1,), (1,))]),
        T("sound", [P(0, 2, 1, (2, 1), (2, 1))]),
        T("gone", error=UNKNOWN),
    ]
    names = [str(topic.name) for topic in topics]
    made.apply(frames.response(12, topics, brokers=BROKERS), 12, names)
    return made


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Conditions(["sound"], 0, 1, 2, 2), [None] * 4),
        (Conditions(["orders"]), [None]),
        (Conditions(["clicks"]), ["clicks-0 has no leader"]),
        (Conditions(["clicks"], 1), [None]),
        (Conditions(["orders"], 7), ["topic orders has 2 partitions, none of number 7"]),
        (Conditions(["gone"]), ["topic gone does not exist"]),
        (Conditions(["new"]), ["nothing is known of topic new yet"]),
        (Conditions(["sound"], partitions=2), [None, "topic sound has 1 of 2 partitions"]),
        (Conditions(["orders"], isr=2), [None, "orders-1 has 1 of 2 replicas in sync (2)"]),
        (Conditions(["orders"], 0, isr=2), [None, None]),
        (Conditions(["orders"], leader=1), [None, "orders-1 has leader 2, not 1"]),
        (Conditions(["clicks"], 0, leader=1),
         ["clicks-0 has no leader", "clicks-0 has no leader, not 1"]),
        (Conditions(["gone"], gone=True), [None]),
        (Conditions(["sound", "new"], gone=True),
         ["topic sound exists", "nothing is known of topic new yet"]),
        (Conditions(brokers=[1]), ["broker 1 is not in sync for 1 of 4 partitions, such as clicks-0"
                               " (replicas 1, ISR none)"]),
        (Conditions(["sound"], brokers=[1, 9]), [None, None, "broker 9 is not listed"]),
        (Conditions(["sound"], no_urp=True), [None, None]),
        (Conditions(no_urp=True), ["3 of 5 partitions are under-replicated, such as clicks-0"
                               " (replicas 1, ISR none)"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_with_the_present_value(
    cache: MetadataCache, wanted: Conditions, said: list[str | None]
) -> None:
    assert missing(cache, wanted) == said


def test_a_finding_has_the_present_value_beside_the_wanted_one(cache: MetadataCache) -> None:
    findings = found(cache, Conditions(["orders"], partitions=3, isr=3, leader=1, no_urp=True))
    values = {each.condition: (each.wanted, each.present) for each in findings}
    assert values == {
        "topic": (None, None),
        "partitions": (3, 2),
        "isr": (3, 1),
        "leader": (1, 2),
        "no_urp": (0, 2),
    }


def test_a_broker_without_replicas_only_needs_to_be_listed(cache: MetadataCache) -> None:
    assert missing(cache, Conditions(["sound"], brokers=[3])) == [None, None]


def test_several_leaderless_partitions_are_counted() -> None:
    cache = MetadataCache()
    topics = [T("new", [P(each, -1, 0, (1,), (1,)) for each in range(3)])]
    cache.apply(frames.response(12, topics, brokers=BROKERS), 12, ["new"])
    said = "3 of 3 partitions of new, such as new-0, have no leader"
    assert missing(cache, Conditions(["new"])) == [said]


def test_absence_is_remembered_until_another_answer() -> None:
    """The cache keeps it for a moment only: an empty one stands for it, a moment later."""
    cache, later = MetadataCache(), MetadataCache()
    answers, condition = Answers(["new"]), conditions(Conditions(["new"], gone=True))[0]
    cache.apply(frames.response(12, [T("new", error=UNKNOWN)], brokers=BROKERS), 12, ["new"])
    answers.look(cache)
    answers.look(later)
    was_absent = condition(later, answers).missing
    later.apply(frames.response(12, [T("new", [P(0)])], brokers=BROKERS), 12, ["new"])
    answers.look(later)
    assert (was_absent, condition(later, answers).missing) == (None, "topic new exists")


def test_a_topic_that_the_user_may_not_describe_is_named() -> None:
    cache, answers = MetadataCache(), Answers(["new", "secret"])
    cache.apply(frames.response(12, [T("secret", error=DENIED)], brokers=BROKERS), 12, ["secret"])
    answers.look(cache)
    assert answers.denied == "secret"


def test_all_topics_are_counted_without_a_look_at_each() -> None:
    cache = MetadataCache()
    topics = [T(f"t{n}", [P(0, 1, 1, (1, 2), (2, 1))]) for n in range(3)]
    cache.apply(frames.response(12, topics, brokers=BROKERS), 12, ALL)
    assert missing(cache, Conditions(brokers=[1, 2, 3], no_urp=True)) == [None] * 4
