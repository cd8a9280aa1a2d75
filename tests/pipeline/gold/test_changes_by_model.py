"""Churn, flaps, balance and reassignments are those of naive walks over silver."""

from __future__ import annotations

from collections.abc import Callable

import gold_model
import gold_model_changes as models
import pyarrow as pa
import pytest
from gold_rows import at, broker, change, interval, observation, tables
from gold_tables import gold_of, rows_of_silver, same
from random_silver import random_silver

FLAP_SECONDS = 4 * 3600
# Some random fleets have no row of these.
RARE = ("isr_flap_day", "reassignment")
MODELS: dict[str, Callable[[gold_model.Silver], list[gold_model.Row]]] = {
    "churn_day": models.churn,
    "isr_flap_day": lambda silver: models.flaps(silver, FLAP_SECONDS),
    "balance_hour": models.balance,
    "reassignment": models.reassignments,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_measure_of_changes_is_that_of_a_naive_walk(
    silver: dict[str, pa.Table], model: gold_model.Silver, name: str
) -> None:
    found = gold_of(silver, name, flap_seconds=FLAP_SECONDS)
    wanted = MODELS[name](model)
    assert wanted or name in RARE
    same([row for row in found if row.get("kind") != "rack"], wanted)


@pytest.mark.parametrize("name", ["balance_hour", "reassignment", "churn_day"])
def test_a_measure_of_changes_in_a_log_is_that_of_a_naive_walk(name: str, seed: int) -> None:
    silver = random_silver(seed, clusters=1)
    model = {table: gold_model.with_times(rows.to_pylist()) for table, rows in silver.items()}
    found = gold_of(silver, name)
    assert found
    same([row for row in found if row.get("kind") != "rack"], MODELS[name](model))


def test_a_broker_that_is_back_in_time_has_flapped_and_a_hole_is_no_return() -> None:
    silver = tables(
        [
            interval(0, 100),
            interval(100, 160, isr=[1, 3]),
            interval(160, 300),
            interval(300, 400, isr=[1, 2]),
            interval(500, 600),
        ],
        observation(0, 400, "gap"),
        observation(500, 600),
    )
    (flap,) = gold_of(silver, "isr_flap_day")
    assert (flap["broker"], flap["times"], flap["median_seconds"]) == (2, 1, 60.0)
    assert flap["day"] == at(0)
    assert len(gold_of(silver, "isr_flap_day", flap_seconds=60)) == 1
    assert gold_of(silver, "isr_flap_day", flap_seconds=59) == []


def test_a_broker_without_its_replica_has_not_come_back() -> None:
    rows = [interval(0, 100), interval(100, 160, isr=[1, 3])]
    rows += [interval(160, 300, isr=[1, 3], replicas=[1, 3]), interval(300, 400)]
    assert gold_of(tables(rows, observation(0, 400)), "isr_flap_day") == []


def test_leaderships_are_gained_lost_and_kept_and_unseen_elections_are_counted() -> None:
    changes = [
        change(10, 1, 2),
        change(20, 2, None),
        change(30, None, 3, elections=4),
        change(40, 3, 3, elections=2),
        change(50, None, None),
    ]
    silver = {"leader_change": rows_of_silver("leader_change", changes)}
    rows = gold_of(silver, "churn_day")
    names = ("gained", "lost", "kept", "elections", "unseen_elections")
    found = {(row["kind"], row["broker"]): tuple(row[name] for name in names) for row in rows}
    assert found == {
        ("broker", 1): (0, 1, 0, 0, 0),
        ("broker", 2): (1, 1, 0, 1, 0),
        ("broker", 3): (1, 0, 1, 6, 4),
        ("topic", None): (2, 2, 1, 9, 4),
        ("cluster", None): (2, 2, 1, 9, 4),
    }
    assert {row["unclean"] for row in rows} == {None}


def test_a_log_tells_of_unclean_elections_or_that_there_was_none() -> None:
    unclean = {"kind": "unclean_election", "topic": "orders", "broker": 3, "observed_at": at(30)}
    term = {"cluster_id": "one", "broker": 1, "epoch": 2, "us": 1, "began_at": at(0)}
    silver = {
        "leader_change": rows_of_silver("leader_change", [change(30, 1, 3), change(40, 3, 2)]),
        "change": rows_of_silver("change", [unclean | {"cluster_id": "one"}]),
        "controller": rows_of_silver("controller", [term]),
    }
    rows = gold_of(silver, "churn_day")
    found = {(row["kind"], row["broker"]): row["unclean"] for row in rows}
    assert found == {
        ("broker", 1): 0,
        ("broker", 2): 0,
        ("broker", 3): 1,
        ("topic", None): 1,
        ("cluster", None): 1,
    }
    model = {table: gold_model.with_times(each.to_pylist()) for table, each in silver.items()}
    same(rows, models.churn(model))


def test_a_broker_that_is_fenced_is_not_listed_but_has_its_rack() -> None:
    silver = tables([interval(0, 600)], observation(0, 600))
    steps = [broker(0, 600, 1), broker(0, 300, 2), broker(300, 600, 2, fenced=True)]
    steps += [broker(0, 600, number, fenced=True) for number in (3, 4)]
    rows = [{**row, "rack": f"rack-{row['broker']}"} for row in steps]
    silver["broker_interval"] = rows_of_silver("broker_interval", rows)
    found = gold_of(silver, "balance_hour")
    listed = {row["rack"]: row["brokers"] for row in found if row["kind"] == "rack"}
    assert listed == {"rack-1": 1.0, "rack-2": 0.5, "rack-3": 0.0}
    of = {row["broker"]: row["skew"] for row in found if row["kind"] == "broker"}
    assert of == {1: 1.0, 2: -1.0, 3: None}


def test_balance_is_averaged_over_observed_time_and_listed_brokers_count() -> None:
    silver = tables(
        [
            interval(0, 600),
            interval(1200, 1800),
            interval(0, 600, partition=1, leader=None),
            interval(1200, 1800, partition=1, leader=2, replicas=[2, 3, 1]),
        ],
        observation(0, 600, "gap"),
        observation(1200, 1800),
    )
    listed = [broker(begin, begin + 600, b, rack="east") for b in (1, 2) for begin in (0, 1200)]
    silver["broker_interval"] = rows_of_silver("broker_interval", listed)
    rows = gold_of(silver, "balance_hour")
    of = {row["broker"]: row for row in rows if row["kind"] == "broker"}
    assert [of[b]["leaders"] for b in (1, 2, 3)] == [1.0, 0.5, 0.0]
    assert [of[b]["skew"] for b in (1, 2, 3)] == [1 / 3, -1 / 3, None]
    assert [of[b]["preferred"] for b in (1, 2, 3)] == [1.5, 0.5, 0.0]
    assert of[1]["preferred_led_by_others"] == 0.5
    (cluster,) = (row for row in rows if row["kind"] == "cluster")
    assert (cluster["leaders"], cluster["leaderless"], cluster["observed"]) == (1.5, 0.5, 20.0)
    assert (cluster["max_to_mean"], cluster["variation"]) == (4 / 3, 1 / 3)
    assert (cluster["brokers"], cluster["replicas"]) == (2.0, 6.0)
    (rack,) = (row for row in rows if row["kind"] == "rack")
    assert (rack["rack"], rack["leaders"], rack["replicas"]) == ("east", 1.5, 4.0)


def test_a_first_replica_that_is_being_added_is_not_preferred_yet() -> None:
    added = {"replicas": [4, 1], "isr": [1], "adding": [4], "removing": []}
    rows = [interval(0, 600, **added), interval(600, 1800, **{**added, "adding": []})]
    found = gold_of(tables(rows, observation(0, 1800)), "balance_hour")
    (row,) = (each for each in found if each["kind"] == "broker" and each["broker"] == 4)
    assert row["preferred"] == row["preferred_led_by_others"] == 2 / 3
    assert row["replicas"] == 1.0


@pytest.mark.parametrize(
    ("last", "outcome"),
    [([4, 1], "done"), ([1, 2], "cancelled"), ([1, 2, 3], "unknown"), (None, "running")],
)
def test_a_log_tells_how_a_reassignment_ended(last: list[int] | None, outcome: str) -> None:
    quiet: dict[str, list[int]] = {"adding": [], "removing": []}
    rows = [
        interval(0, 10, replicas=[1, 2], isr=[1, 2], **quiet),
        interval(10, 20, replicas=[4, 1, 2], isr=[1, 2], adding=[4], removing=[2]),
        interval(20, 30, replicas=[4, 1, 2], isr=[1, 2, 4], adding=[4], removing=[2]),
    ]
    if last is not None:
        rows.append(interval(30, 40, replicas=last, isr=[1], **quiet))
    (row,) = gold_of(tables(rows, observation(0, 40)), "reassignment")
    assert (row["from_replicas"], row["to_replicas"]) == ([1, 2], [4, 1])
    assert (row["began_at"], row["outcome"]) == (at(10), outcome)
    assert (row["ended_at"], row["seconds"]) == ((at(30), 20.0) if last else (None, None))


def test_in_a_log_another_order_of_replicas_is_done_at_once() -> None:
    quiet: dict[str, list[int]] = {"adding": [], "removing": []}
    rows = [interval(0, 10, **quiet), interval(10, 20, replicas=[2, 1, 3], **quiet)]
    (row,) = gold_of(tables(rows, observation(0, 20)), "reassignment")
    assert (row["to_replicas"], row["outcome"], row["seconds"]) == ([2, 1, 3], "done", 0.0)
    assert row["began_at"] == row["ended_at"] == at(10)
