"""Scenarios: equal arguments give equal bytes, Kafka's rules hold, the truth names each event."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import commands
import pytest
from recorded import contents

import rdmeta
from rdmeta.cli.generate import _SCENARIOS
from rdmeta.generate.cluster import ClusterTruth
from rdmeta.generate.recordings import answer
from rdmeta.generate.scenarios import SCENARIOS, ScenarioPlan, Sizes, clusters

BEGIN = datetime(2026, 11, 19, tzinfo=timezone.utc)
SIZES = Sizes(7, 1, 4, 2, 3)
SMALL = ("--days", "1", "--clusters", "1", "--brokers", "3", "--topics", "1", "--partitions", "1")


def test_the_command_knows_the_scenarios() -> None:
    assert tuple(SCENARIOS) == _SCENARIOS
    help = commands.run("generate", "--help").out
    assert all(f"{name} " in help for name in SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_equal_arguments_give_equal_bytes(name: str, tmp_path: Path) -> None:
    words = ("generate", name, "made", "--begin", "2026-11-20", *SMALL)
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        done = commands.run(*words, cwd=tmp_path / place)
        assert (done.code, done.err) == (0, "")
    one, two = (contents(tmp_path / place) for place in ("one", "two"))
    assert one == two
    assert {name.split("/")[1] for name in one} == {"history", "logs", "truth.json"}


def test_another_seed_gives_other_details() -> None:
    one, two = (clusters("bad-friday", seed, BEGIN, SIZES)[0].changes for seed in (1, 2))
    assert one != two


def test_the_truth_has_each_event_of_a_bad_friday(tmp_path: Path) -> None:
    words = (
        "bad-friday",
        str(tmp_path / "made"),
        "--begin",
        "2026-11-19",
        "--days",
        "2",
        *SMALL[2:],
    )
    said = commands.checked_json(commands.run("generate", *words, "--json").out)
    truth = json.loads((tmp_path / "made/truth.json").read_text())
    assert said == {"version": 1, "command": "generate", "path": str(tmp_path / "made"), **truth}
    kinds = [event["kind"] for event in truth["events"]]
    assert {"broker_lost", "slow_follower", "rack_lost", "unclean_election", "hole"} <= set(kinds)
    assert "reassignment_cancelled" in kinds
    (lost,) = (event for event in truth["events"] if event["kind"] == "broker_lost")
    assert (lost["begin"], lost["end"]) == (
        "2026-11-20T10:05:00.000Z",
        "2026-11-20T12:05:00.000Z",
    )
    assert (lost["brokers"], lost["cluster"]) == ([2], "cluster-1")


@pytest.mark.parametrize("name", SCENARIOS)
def test_leaders_are_in_service_and_in_sync_and_isrs_have_replicas_alone(name: str) -> None:
    (cluster,) = clusters(name, 1, BEGIN, SIZES._replace(days=4))
    moments = {change.at for change in cluster.changes}
    state, done = ClusterTruth(), iter([*cluster.changes])
    change = next(done, None)
    for moment in sorted(moments):
        while change is not None and change.at <= moment:
            state.apply(change)
            change = next(done, None)
        for topic in state.topics.values():
            for each in topic.partitions:
                assert set(each.isr) <= set(each.replicas), moment
                assert each.isr, moment
                assert set(each.offline) == set(each.replicas) & state.fenced, moment
                if each.leader is not None:
                    assert each.leader in each.isr, moment
                    assert each.leader not in state.fenced, moment


def test_a_broker_that_is_lost_stays_the_last_of_an_isr_and_leads_again() -> None:
    plan = ScenarioPlan(0, "seed", BEGIN, SIZES)
    plan.unclean_election(0)
    cluster = plan.cluster
    cluster.run(10 * 60_000_000)
    (first, *_) = cluster.state.topics["sessions"].partitions
    assert (first.leader, first.isr, first.replicas) == (None, (3,), (4, 3))
    cluster.run(20 * 60_000_000)
    assert (first.leader, first.isr) == (4, (4,))
    cluster.run(60 * 60_000_000)
    assert set(first.isr) == {3, 4}


def test_an_answer_is_what_a_broker_says_and_is_encoded_and_decoded() -> None:
    (cluster,) = clusters("quiet", 1, BEGIN, SIZES)
    state = cluster.state
    state.remove_broker(2)
    body = rdmeta.encode_metadata_response(answer("c", state))
    said = rdmeta.decode_metadata_response(body, 12)
    assert [each["id"] for each in said["brokers"]] == [1, 3, 4]
    cache = rdmeta.MetadataCache()
    cache.apply(body, 12, rdmeta.ALL)
    assert {topic.name for topic in cache.topics()} == {"orders", "payments", "sessions"}
