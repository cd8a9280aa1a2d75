"""Each turn of a partition or a broker has its cause: what its commit has, or what it implies."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from kraft_logs import GOLDEN, LOG

from rdmeta._core import KraftReplay
from rdmeta.kraft import Turn
from rdmeta.kraft.explaining import explained
from rdmeta.model import Change

BEGIN = datetime(2026, 11, 26, tzinfo=timezone.utc)


def of_log(name: str, **what: Any) -> list[Turn]:
    """Returns the turns in a golden log."""
    replay = KraftReplay(session="s")
    replay.replay((GOLDEN / name / "n1" / LOG / f"{0:020d}.log").read_bytes())
    return explained(replay.changes().read(), **what)


def short(turns: list[Turn]) -> list[tuple[Any, ...]]:
    """Returns what each turn is, its value, and its cause; an inferred one begins with a "?"."""
    return [
        (turn.what, turn.value, f"{'?' * turn.is_inferred}{turn.cause or ''}") for turn in turns
    ]


def change(version: int, kind: str, **fields: Any) -> Change:
    blank: dict[str, Any] = dict.fromkeys(Change._fields)
    at = {"observed_at": BEGIN + timedelta(seconds=version), "offset": version - 1}
    return Change(**{**blank, "version": version, "kind": kind, **at, **fields})


def made(*later: Change) -> list[Change]:
    """Returns the changes of a partition with replicas 1, 2, 3, and these."""
    fields: dict[str, Any] = {"new_isr": (1, 2, 3), "new_replicas": (1, 2, 3)}
    fields |= {"new_leader": 1, "new_leader_epoch": 0, "new_elr": ()}
    return [change(1, "topic_added", topic="t", partition=0, **fields), *later]


def of(version: int, kind: str, **fields: Any) -> Change:
    return change(version, kind, topic="t", partition=0, **fields)


def causes(*later: Change) -> list[str]:
    """Returns the causes of the turns that these changes make."""
    return [cause for _, _, cause in short(explained(made(*later), topic="t"))[2:]]


def test_a_real_partition_is_explained_by_fences_and_shutdowns() -> None:
    turns = of_log("4.3.0", topic="orders", partition=0)
    leaders = [turn for turn in turns if turn.what == "leader"]
    assert [turn.value["leader"] for turn in leaders] == [1, 3, 1]
    assert [turn.cause for turn in leaders] == [
        "the topic was created",
        "broker 1 was fenced (offset 87)",
        "broker 3 shuts down in good order (offset 115)",
    ]
    assert not any(turn.is_inferred for turn in leaders)
    isr = [(turn.value, turn.cause, turn.is_inferred) for turn in turns if turn.what == "isr"]
    assert isr[1:3] == [
        ((1, 3), "broker 2 was fenced (offset 79)", False),
        ((3,), "broker 1 was fenced (offset 87)", False),
    ]
    assert isr[3] == ((2, 3), "2 caught up with leader 3", True)
    assert {turn.partitions for turn in turns if turn.offset == 82} == {6}


def test_turns_stand_until_the_next_of_their_kind() -> None:
    turns = [turn for turn in of_log("4.3.0", topic="orders", partition=0) if turn.what == "isr"]
    for turn, later in zip(turns, turns[1:], strict=False):
        assert turn.stood == later.time - turn.time
    assert turns[-1].stood is None


@pytest.mark.parametrize("name", ["4.3.0", "4.3.0-dynamic", "3.9.1"])
def test_a_real_unclean_election_is_named(name: str) -> None:
    (turn,) = (
        turn
        for turn in of_log(name, topic="risky")
        if turn.what == "leader" and "unclean" in str(turn.cause)
    )
    assert str(turn.cause).startswith("an unclean election: broker 2 was unfenced (offset ")
    assert not turn.is_inferred


def test_a_real_reassignment_has_its_begin_and_its_end() -> None:
    found = short(of_log("4.3.0", topic="audit"))
    assert [row[1:] for row in found if row[0] == "reassignment"] == [
        ("adding 3, removing 1", "?it was asked for"),
        ("done: replicas are 2,3", "?the new replicas are in the ISR"),
    ]
    assert ("leader", {"leader": 2, "leader_epoch": 1}, "the reassignment") in found


def test_a_topic_that_is_made_anew_begins_again() -> None:
    turns = of_log("4.3.0", topic="gone", partition=0)
    places = [place for place, turn in enumerate(turns) if turn.what == "topic"]
    (place,) = places
    assert turns[place].value == "removed"
    before = turns[place - 1]
    assert before.stood == turns[place].time - before.time
    assert turns[place + 1].cause == "the topic was created"


def test_a_real_broker_is_explained() -> None:
    found = [row[1:] for row in short(of_log("4.3.0", broker=3))]
    assert found[1:4] == [
        ("unfenced", "?it has read the metadata log"),
        ("shuts down in good order", "?it asked for that"),
        ("fenced", "?its shutdown ended"),
    ]
    assert found[4][0].startswith("registered with epoch 131, 127.0.0.1:")
    assert found[4][1] == "?it started again"
    killed = [row[1:] for row in short(of_log("4.3.0", broker=2))]
    assert ("fenced", "?its heartbeats stayed out") in killed
    assert killed[1][1] == "?it registered once more"


def test_changes_that_stand_alone_are_inferred() -> None:
    assert causes(of(2, "isr_changed", old_isr=(1, 2, 3), new_isr=(1, 3))) == [
        "?2 fell behind, and leader 1 took it out"
    ]
    assert causes(of(2, "leader_changed", old_leader=1, new_leader=2)) == [
        "?the asked-for replica was elected"
    ]
    assert causes(of(2, "leader_changed", old_leader=2, new_leader=1)) == [
        "?the preferred replica was elected"
    ]
    assert causes(of(2, "leader_changed", old_leader=1, new_leader=1)) == [
        "?the controller raised the epoch of the same leader"
    ]
    assert causes(of(2, "leader_changed", old_leader=1), of(3, "leader_changed", new_leader=1)) == [
        "?no replica could lead",
        "?a replica could lead again",
    ]
    assert causes(of(2, "elr_changed", new_elr=(2,)), of(3, "elr_changed", new_elr=())) == [
        "?2 left the ISR, which is below min.insync.replicas",
        "?the ISR has min.insync.replicas again",
    ]


def test_a_setting_of_the_commit_is_the_cause_of_another_elr() -> None:
    assert causes(
        of(2, "elr_changed", new_elr=(2,)),
        change(3, "config_changed", topic="t", detail="min.insync.replicas=1"),
        of(3, "elr_changed", new_elr=()),
    )[1:] == ["min.insync.replicas=1 was set (offset 2)"]


def test_a_reassignment_is_cancelled_or_changed_or_has_no_end() -> None:
    asked = of(2, "reassignment_changed", new_adding=(4,), new_removing=())
    wider = of(2, "replicas_changed", new_replicas=(1, 2, 3, 4))
    again = of(3, "reassignment_changed", new_adding=(5,), new_removing=())
    narrow = of(4, "replicas_changed", new_replicas=(1, 2, 3))
    ended = of(4, "reassignment_changed", new_adding=(), new_removing=())
    found = short(explained(made(wider, asked, again, narrow, ended), topic="t"))[2:]
    assert [(row[1], row[2]) for row in found] == [
        ("adding 4, removing none", "?it was asked for"),
        ("adding 5, removing none", "?it was changed"),
        ("cancelled: replicas are 1,2,3", "?it was asked for"),
    ]
    alone = of(2, "replicas_changed", new_replicas=(3, 2, 1))
    assert short(explained(made(alone), topic="t"))[2][1] == "replicas are 3,2,1"


def test_added_partitions_and_removed_brokers_have_turns() -> None:
    more = change(2, "partitions_added", topic="t", partition=1, new_leader=1, new_isr=(1,))
    assert explained(made(more), topic="t", partition=1)[0].cause == "the topic got more partitions"
    removed = change(2, "broker_removed", broker=4)
    assert short(explained([removed], broker=4)) == [
        ("registration", "unregistered", "?it was asked for")
    ]
