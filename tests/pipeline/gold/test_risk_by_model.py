"""Coverage, risk, incidents, recoveries and quality are those of naive walks over silver."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import gold_model
import pyarrow as pa
import pytest
from gold_rows import at, broker, interval, observation, tables
from gold_tables import gold_in, gold_of, rows_of_silver, same

from rdmeta.pipeline.gold import query
from rdmeta.pipeline.gold.measures import MEASURES

MODELS: dict[str, Callable[[gold_model.Silver, int | None], list[gold_model.Row]]] = {
    "coverage_hour": lambda silver, _: gold_model.coverage(silver),
    "risk_hour": gold_model.risk,
    "incident": gold_model.incidents,
    "recovery": lambda silver, _: gold_model.recoveries(silver),
    "data_quality": gold_model.quality,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("min_isr", [None, 2])
def test_a_measure_is_that_of_a_naive_walk(
    silver: dict[str, pa.Table], model: gold_model.Silver, name: str, min_isr: int | None
) -> None:
    wanted = MODELS[name](model, min_isr)
    found = gold_of(silver, name, min_isr=min_isr)
    assert found or name != "coverage_hour"
    same(found, wanted)


@pytest.mark.parametrize("name", list(MEASURES))
def test_the_files_of_the_months_are_the_query_over_all_silver(
    out: Path, silver: dict[str, pa.Table], name: str
) -> None:
    whole = gold_of(silver, name)
    assert sorted(map(str, gold_in(out, name))) == sorted(map(str, whole))


def test_a_hole_is_neither_risk_nor_health_and_cuts_incidents_and_recoveries() -> None:
    lost = {"isr": [1, 3]}
    silver = tables(
        [
            interval(0, 600, ended_by="gap", **lost),
            interval(1200, 1800, began_by="baseline", ended_by="open", **lost),
        ],
        observation(0, 600, "gap"),
        observation(1200, 1800),
    )
    (coverage,) = gold_of(silver, "coverage_hour")
    assert (coverage["observed"], coverage["hole"]) == (20.0, 10.0)
    assert coverage["holes"] == [{"reason": "gap", "minutes": 10.0}]
    (risk,) = gold_of(silver, "risk_hour")
    assert (risk["under_replicated"], risk["observed"]) == (20.0, 20.0)
    for name in ("incident", "recovery"):
        rows = gold_of(silver, name)
        spans = [
            (row["began_at"], row["ended_at"])
            for row in rows
            if row.get("kind") in (None, "under_replicated")
        ]
        assert spans == [(at(0), at(600)), (at(1200), at(1800))]
        assert all(row["censored"] for row in rows)


def test_what_no_source_tells_is_null_and_its_minutes_are_counted() -> None:
    silver = tables([interval(0, 600, min_isr=None, isr=[1])], observation(0, 600))
    (risk,) = gold_of(silver, "risk_hour")
    assert (risk["under_min_isr"], risk["at_min_isr"], risk["unknown_min_isr"]) == (
        None,
        None,
        10.0,
    )
    assert (risk["reassigning"], risk["unknown_reassigning"]) == (None, 10.0)
    assert (risk["rack_unsafe"], risk["unknown_racks"]) == (None, 10.0)
    assert risk["single_copy"] == 10.0
    assert risk["eff_is_exact"] is False
    (risk,) = gold_of(silver, "risk_hour", min_isr=2)
    assert (risk["under_min_isr"], risk["at_min_isr"], risk["unknown_min_isr"]) == (10.0, 0.0, 0.0)


def test_replicas_that_are_added_do_not_count_as_missing() -> None:
    row = interval(0, 600, replicas=[4, 1, 2, 3], adding=[4], removing=[])
    (risk,) = gold_of(tables([row], observation(0, 600)), "risk_hour")
    assert (risk["under_replicated"], risk["not_preferred"]) == (0.0, 0.0)
    assert (risk["reassigning"], risk["eff_is_exact"]) == (10.0, True)


def test_a_replica_that_is_added_is_not_the_broker_that_is_missing() -> None:
    row = interval(0, 600, replicas=[4, 1, 2, 5], adding=[4], removing=[], isr=[1, 2])
    silver = tables([row], observation(0, 600))
    (recovery,) = gold_of(silver, "recovery")
    assert recovery["brokers"] == [5]
    assert {row["broker"] for row in gold_of(silver, "incident")} == {5}
    model = {table: gold_model.with_times(rows.to_pylist()) for table, rows in silver.items()}
    model["broker_interval"] = []
    same(gold_of(silver, "incident"), gold_model.incidents(model))
    same(gold_of(silver, "recovery"), gold_model.recoveries(model))


def test_a_partition_that_is_at_min_isr_by_configuration_is_no_incident() -> None:
    row = interval(0, 600, isr=[1], replicas=[1], min_isr=1)
    silver = tables([row], observation(0, 600))
    (risk,) = gold_of(silver, "risk_hour")
    assert risk["at_min_isr"] == 10.0
    assert gold_of(silver, "incident") == []


def test_a_removed_topic_ends_a_recovery_that_is_not_censored() -> None:
    rows = [interval(0, 300, isr=[1, 2], ended_by="topic_removed")]
    (recovery,) = gold_of(tables(rows, observation(0, 600)), "recovery")
    assert (recovery["ended_by"], recovery["censored"]) == ("topic_removed", False)
    assert (recovery["seconds"], recovery["brokers"]) == (300.0, [3])
    assert (recovery["begin_unseen"], recovery["leader_changed"]) == (True, None)


def test_a_recovery_of_a_single_look_is_censored_at_both_ends() -> None:
    silver = tables([interval(0, 0, isr=[1, 2], ended_by="gap")], observation(0, 0, "gap"))
    (recovery,) = gold_of(silver, "recovery")
    assert (recovery["seconds"], recovery["ended_by"]) == (0.0, "gap")
    assert (recovery["begin_unseen"], recovery["censored"]) == (True, True)
    assert gold_of(silver, "coverage_hour") == []


def test_recoveries_of_one_moment_have_one_order_in_both_engines() -> None:
    """Those without duration share all columns but the brokers, of which 10 comes before 9."""
    at_once = [([1, 9], 10), ([1, 9, 10], None), ([1, 10], 9), ([1, 9, 10], None), ([9, 10], 1)]
    rows = [
        interval(300, 300, replicas=[1, 9, 10], isr=isr, version=version)
        for version, (isr, _) in enumerate(at_once, 1)
    ]
    rows.append(interval(300, 600, replicas=[1, 9, 10], isr=[1, 9, 10], version=6))
    found = gold_of(tables(rows, observation(0, 600)), "recovery")
    assert [row["brokers"] for row in found] == [[1], [10], [9]]
    assert len({row["ended_at"] for row in found}) == 1
    for order in permutations(found):
        table = pa.Table.from_pylist(list(order), MEASURES["recovery"].schema)
        assert query.in_order("recovery", table).to_pylist() == found


@pytest.mark.parametrize("ended_by", ["open", "gap", "midnight"])
def test_a_recovery_that_lasts_to_the_end_of_observation_is_censored(ended_by: str) -> None:
    rows = [interval(300, 600, isr=[1, 2], ended_by=ended_by)]
    (recovery,) = gold_of(tables(rows, observation(0, 600, ended_by)), "recovery")
    assert (recovery["begin_unseen"], recovery["censored"]) == (False, True)


def test_a_hole_lies_between_observations_of_one_cluster() -> None:
    other = {**observation(900, 1200), "cluster_id": "two"}
    silver = tables([], observation(0, 600, "gap"), other, observation(1800, 2400))
    found = {row["cluster_id"]: row["hole"] for row in gold_of(silver, "coverage_hour")}
    assert found == {"one": 20.0, "two": 0.0}


@pytest.mark.parametrize("ended_by", ["topic_error", "topic_absent"])
def test_a_recovery_of_a_topic_that_is_out_of_sight_is_censored(ended_by: str) -> None:
    rows = [interval(0, 300, isr=[1, 2], ended_by=ended_by), interval(360, 600, isr=[1, 2])]
    first, _ = gold_of(tables(rows, observation(0, 600)), "recovery")
    assert (first["ended_by"], first["censored"]) == (ended_by, True)


def test_racks_of_a_day_say_what_spreading_was_possible() -> None:
    rows = [interval(0, 600, racks=1)]
    brokers = [broker(0, 600, 1, rack="east"), broker(0, 600, 2, rack="west")]
    silver = tables(rows, observation(0, 600))
    silver["broker_interval"] = rows_of_silver("broker_interval", brokers)
    (risk,) = gold_of(silver, "risk_hour")
    assert (risk["rack_unsafe"], risk["unknown_racks"]) == (10.0, 0.0)
    silver["broker_interval"] = rows_of_silver("broker_interval", [{**brokers[0], "rack": None}])
    assert gold_of(silver, "risk_hour") == []
