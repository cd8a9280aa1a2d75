"""Gold of a real cluster's log says what was done to it: tests/golden/kraft, docs/log.md.

Broker 2 was killed, then broker 1, and both came back; broker 3 was shut down and came back. A
replica of audit/0 moved from broker 1 to 3. The partition risky/0 got a leader that lacked records.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow.parquet as pq
import pytest
from kraft_logs import GOLDEN

import rdmeta
from rdmeta import pipeline
from rdmeta.kraft import KraftLog
from rdmeta.pipeline.gold.measures import MEASURES

pytestmark = pytest.mark.proof

Row = dict[str, Any]


def at(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-26T06:{time}").replace(tzinfo=timezone.utc)


def minutes(*spans: tuple[str, str]) -> Any:
    return pytest.approx(sum((at(end) - at(begin)).total_seconds() / 60 for begin, end in spans))


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    folder = tmp_path_factory.mktemp("gold-of-a-log")
    rdmeta.kraft.record(KraftLog(GOLDEN / "4.3.0"), folder / "in")
    plan = pipeline.plan([folder / "in"], folder / "out", in_place=True, gold=True)
    pipeline.run(plan, workers=1)
    files = {name: (folder / f"out/gold/v1/{name}").rglob("*.parquet") for name in MEASURES}
    return {name: pq.read_table(next(file)).to_pylist() for name, file in files.items()}


def of(rows: list[Row], **values: Any) -> Row:
    (row,) = (row for row in rows if values.items() <= row.items())
    return row


def test_terms_are_those_of_the_log_with_the_time_between_them(gold: dict[str, list[Row]]) -> None:
    assert [(row["broker"], row["epoch"], row["seconds"]) for row in gold["controller"]] == [
        *((2, 2, 57.71), (None, 2, 2.295), (3, 3, 5.94), (None, 3, 6.179)),
        *((3, 5, 28.608), (None, 5, 0.418), (2, 6, 23.587)),
    ]
    assert [row["censored"] for row in gold["controller"]] == [False] * 6 + [True]


def test_the_one_unclean_election_is_counted(gold: dict[str, list[Row]]) -> None:
    counts = {(row["broker"], row["topic"]): row["unclean"] for row in gold["churn_day"]}
    assert {who for who, count in counts.items() if count} == {
        (None, None), (None, "risky"), (2, None),
    }  # fmt: skip
    assert {*counts.values()} == {0, 1}


def test_brokers_are_fenced_for_so_long_and_one_went_in_good_order(
    gold: dict[str, list[Row]],
) -> None:
    one, two, three = gold["broker_day"]
    assert [row["unclean_restarts"] for row in gold["broker_day"]] == [1, 1, 0]
    for row in gold["broker_day"]:
        assert (row["restarts"], row["unknown_restarts"], row["unknown_fenced"]) == (1, 0, 0)
    assert one["fenced"] == minutes(("08:28.450", "08:30.840"), ("09:30.507", "10:02.618"))
    assert two["fenced"] == minutes(("08:28.309", "08:30.840"), ("09:27.736", "09:40.847"))
    assert two["up"] == minutes(("08:30.840", "09:27.736"), ("09:40.847", "10:29.299"))
    assert three["shutting_down"] == minutes(("10:03.384", "10:04.572"))


def test_a_reassignment_has_its_begin_and_its_end(gold: dict[str, list[Row]]) -> None:
    (row,) = gold["reassignment"]
    assert (row["topic"], row["from_replicas"], row["to_replicas"]) == ("audit", [1, 2], [2, 3])
    assert (row["began_at"], row["ended_at"]) == (at("09:21.078"), at("09:21.576"))
    assert row["outcome"] == "done"
    reassigning = of(gold["incident"], kind="reassigning")
    assert (reassigning["began_at"], reassigning["most"]) == (row["began_at"], 1)


def test_risks_are_exact_and_nothing_is_unknown(gold: dict[str, list[Row]]) -> None:
    for row in gold["risk_hour"]:
        unknown = [row[f"unknown_{name}"] for name in ("min_isr", "reassigning", "racks")]
        assert (unknown, row["eff_is_exact"]) == ([0, 0, 0], True)
    moved = of(gold["risk_hour"], topic="audit")
    assert moved["reassigning"] == minutes(("09:21.078", "09:21.576"))
    risky = of(gold["risk_hour"], topic="risky")
    # Its min ISR is that of all brokers, 1.
    assert risky["leaderless"] == risky["under_min_isr"] == minutes(("09:30.507", "09:40.847"))
    orders = of(gold["incident"], kind="under_min_isr")
    assert (orders["began_at"], orders["ended_at"]) == (at("09:30.507"), at("09:41.602"))
    assert gold["data_quality"][0]["unknown_min_isr"] == gold["data_quality"][0]["partial"] == 0


def test_recoveries_flaps_and_lives_have_the_log_s_times(gold: dict[str, list[Row]]) -> None:
    back = of(gold["recovery"], topic="risky")
    assert (back["began_at"], back["ended_at"]) == (at("09:27.736"), at("10:03.190"))
    assert of(gold["isr_flap_day"], topic="risky", broker=2)["median_seconds"] == 13.111
    first, second = (row for row in gold["topic_life"] if row["topic"] == "gone")
    assert (first["ended_at"], first["ended_by"]) == (at("09:21.939"), "topic_removed")
    assert (second["began_at"], second["begin_seen"]) == (at("09:22.272"), True)
    (hour,) = gold["coverage_hour"]
    assert (hour["observed"], hour["hole"]) == (minutes(("08:24.562", "10:29.299")), 0)


def test_all_configurations_are_told_and_secrets_are_not(gold: dict[str, list[Row]]) -> None:
    found = [
        (row["resource_type"], row["resource"], row["key"], row["old_value"], row["new_value"])
        for row in gold["config_change"]
    ]
    assert found == [
        ("broker", "", "min.insync.replicas", None, "1"),
        ("topic", "orders", "min.insync.replicas", None, "2"),
        ("topic", "audit", "cleanup.policy", None, "delete"),
        ("topic", "audit", "retention.ms", None, "60000"),
        ("topic", "risky", "unclean.leader.election.enable", None, "true"),
        ("topic", "gone", "retention.ms", None, "1000"),
        ("topic", "audit", "retention.ms", "60000", None),
        ("topic", "audit", "segment.bytes", None, "1048576"),
        ("broker", "2", "listener.name.plaintext.ssl.key.password", None, "***"),
        ("broker", "", "log.retention.ms", None, "5"),
    ]


def test_fenced_brokers_are_not_listed(gold: dict[str, list[Row]]) -> None:
    cluster = of(gold["balance_hour"], kind="cluster")
    up = sum(row["up"] for row in gold["broker_day"])
    assert cluster["brokers"] == pytest.approx(up / cluster["observed"])
    assert cluster["leaderless"] == pytest.approx(10.34 / 60 / cluster["observed"])
