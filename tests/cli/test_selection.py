"""Which topics and partitions `rdmeta list` shows."""

from __future__ import annotations

import re

import answers
import frames
import pytest
from frames import P, T

from rdmeta import ALL, MetadataCache
from rdmeta.cli.messages import Messages
from rdmeta.cli.selection import ClusterState, Selection, conditions, named_topics

WELL = P(0, 1, 5, (1, 2, 3))
URP = P(1, 1, 5, (1, 2, 3), (1, 2))
LEADERLESS = P(2, -1, 5, (3, 2), (3,), error=5)
OFFLINE = P(3, 1, 5, (1, 2), (1,), (2,))
MOVED = P(4, 2, 5, (1, 2))


@pytest.fixture
def state() -> ClusterState:
    cache = MetadataCache()
    care = T("care", [WELL, URP, LEADERLESS, OFFLINE, MOVED])
    answers.apply_answer(cache, care, T("well"), T("__own", internal=True), asked=ALL)
    return ClusterState("prod", cache)


def found(state: ClusterState, chosen: Selection) -> list[tuple[str, int]]:
    """Returns what is shown of the topic with all kinds of partitions, and of the others."""
    return [
        (topic.name, each.partition)
        for topic, partitions in chosen.topics_of(state)
        for each in partitions
    ]


@pytest.mark.parametrize(
    ("flags", "numbers"),
    [
        (["urp"], [1, 2, 3]),
        (["leaderless"], [2]),
        (["offline"], [3]),
        (["nonpreferred"], [4]),
        (["leaderless", "nonpreferred"], [2, 4]),
    ],
)
def test_one_condition_is_enough(flags: list[str], numbers: list[int], state: ClusterState) -> None:
    chosen = Selection(conditions=conditions(flags))
    assert found(state, chosen) == [("care", number) for number in numbers]


@pytest.mark.parametrize(("down", "numbers"), [([3], [2]), ([1], [3]), ([1, 2], [1, 3, 4])])
def test_what_brokers_would_take_with_them(
    down: list[int], numbers: list[int], state: ClusterState
) -> None:
    chosen = Selection(conditions=conditions([], if_down=down), down=frozenset(down))
    assert found(state, chosen) == [("care", number) for number in numbers]


def test_names_patterns_brokers_and_conditions_must_all_hold(state: ClusterState) -> None:
    pattern = re.compile("^c")
    assert [name for name, _ in found(state, Selection(names=["well"]))] == ["well"]
    assert {name for name, _ in found(state, Selection(["well"], [pattern]))} == {"care", "well"}
    on_3 = Selection((), [pattern], frozenset({3}), None, conditions(["urp"]))
    assert found(state, on_3) == [("care", 1), ("care", 2)]
    assert [name for name, _ in found(state, Selection(internal=True))] == ["__own"]
    assert "__own" not in [name for name, _ in found(state, Selection(internal=False))]


def test_a_topic_without_partitions_is_shown_unless_they_are_restricted() -> None:
    cache = MetadataCache()
    answers.apply_answer(cache, T("empty", []), asked=ALL)
    state = ClusterState(None, cache)
    assert [topic.name for topic, _ in Selection().topics_of(state)] == ["empty"]
    assert not list(Selection(brokers=frozenset({1})).topics_of(state))


def test_what_is_missing_is_said_with_the_cluster(
    state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = Selection(["nope"], [re.compile("x")], frozenset({1, 9}), None, (), frozenset({8}))
    assert chosen.missing(state, Messages()) == 1
    assert capsys.readouterr().err == (
        "rdmeta: prod: topic nope is unknown\n"
        "rdmeta: prod: no topic matches /x/\n"
        "rdmeta: prod: broker 8 is unknown\n"
        "rdmeta: prod: broker 9 is unknown\n"
    )
    assert Selection(["care"], [re.compile("^w")], frozenset({3})).missing(state, Messages()) == 0


def test_a_broker_that_is_away_is_known_by_its_replicas(
    state: ClusterState, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = MetadataCache()
    answer = frames.response(12, [T("t", [P(0, 1, 5, (1, 7))])], brokers=[frames.B(1)])
    cache.apply(answer, 12, ALL)
    assert Selection(brokers=frozenset({7})).missing(ClusterState(None, cache), Messages()) == 0
    assert capsys.readouterr().err == ""


def test_a_topic_that_may_not_be_described_is_no_usable_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cache = MetadataCache()
    answers.apply_answer(cache, T("secret", [], error=29), asked=["secret"])
    assert Selection(["secret"]).missing(ClusterState(None, cache), Messages()) == 3
    assert capsys.readouterr().err == (
        "rdmeta: topic secret: the user may not describe it: grant DESCRIBE on it\n"
    )


def test_slashes_mark_a_regular_expression() -> None:
    names, patterns = named_topics(["b", "/a|b/", "a", "b"])
    assert (names, [each.pattern for each in patterns]) == (["a", "b"], ["a|b"])
