"""Each value of a report is what a naive walk over the rows of gold gives."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from report_walk import GRAVEST, KINDS, SHOWN, Walk
from written_gold import BEGIN, Rows, random_gold, write_gold

from rdmeta import report

pytestmark = pytest.mark.slow
SEEDS = int(os.environ.get("RDMETA_SEEDS", "4"))
NAMES = {"one": "shop <b>", "two": "two"}


@pytest.fixture(scope="module", params=range(SEEDS))
def gold(request: pytest.FixtureRequest) -> Rows:
    seed = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9 + request.param))
    print(f"RDMETA_SEED={seed}")
    return random_gold(seed)


@pytest.fixture(scope="module")
def out(gold: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gold(tmp_path_factory.mktemp("gold") / "out", gold, {"one": NAMES["one"]})


@pytest.fixture(scope="module")
def model(out: Path) -> Any:
    made = report.make(out, since="2026-10-30", until="2026-11-02", compare="2026-10-29")
    return json.loads(made.json)


@pytest.fixture(scope="module")
def walk(gold: Rows) -> Walk:
    day = timedelta(days=1)
    return Walk(gold, NAMES, BEGIN + day, BEGIN + 4 * day, 1)


def part(model: Any, title: str) -> Any:
    parts = [p for section in model["sections"] for p in section["parts"] if p["title"] == title]
    return parts[0] if parts else {"rows": [], "more": 0}


def assert_rows(found: Any, wanted: Sequence[dict[str, Any]], *, ordered: bool = False) -> None:
    """Asserts that rows have the values of the walk; the last digit of a mean may differ."""
    assert found["more"] == 0
    names = sorted(wanted[0]) if wanted else []
    rows = [[row[name] for name in names] for row in found["rows"]]
    others = [[row[name] for name in names] for row in wanted]
    if not ordered:
        rows, others = sorted(rows, key=str), sorted(others, key=str)
    assert len(rows) == len(others)
    for row, other in zip(rows, others, strict=True):
        for name, value, known in zip(names, row, other, strict=True):
            is_number = isinstance(known, float) and value is not None
            assert value == (pytest.approx(known, abs=0.011) if is_number else known), name


def test_the_fleet_is_ranked_by_what_was_worst(model: Any, walk: Walk, gold: Rows) -> None:
    found = part(model, "Partition-minutes at risk, by cluster")
    assert_rows(found, walk.fleet(), ordered=True)
    before = Walk(gold, NAMES, BEGIN, BEGIN + timedelta(days=3), 1)
    for row, earlier in ((row, each) for row in found["rows"] for each in before.fleet()):
        if row["cluster"] == earlier["cluster"]:
            for name, value in row["before"].items():
                assert value == pytest.approx(earlier[name], abs=0.011), name


def test_incidents_are_counted_cut_into_cells_and_ordered(model: Any, walk: Walk) -> None:
    assert_rows(part(model, "All incidents by kind"), walk.incident_kinds(), ordered=True)
    found = part(model, "The gravest incidents")
    every = sum(row["kind"] in SHOWN for row in walk.reaching("incident"))
    assert found["more"] == every - len(found["rows"])
    assert_rows({**found, "more": 0}, walk.gravest())
    strips = part(model, "Time with an incident, with a letter for its gravest kind")
    rows = {row["label"][0]: (row["cells"], row["letters"]) for row in strips["rows"]}
    wanted = walk.incident_strips()
    assert {name: row[1] for name, row in rows.items()} == {n: w[1] for n, w in wanted.items()}
    for name, (cells, _) in wanted.items():
        assert rows[name][0] == [c if c is None else pytest.approx(c, abs=0.011) for c in cells]


def test_topics_have_strips_for_three_kinds_and_sums_of_all(model: Any, walk: Walk) -> None:
    assert_rows(part(model, "Partition-minutes by topic and kind"), walk.topics())
    for kind in GRAVEST:
        found = part(model, f"Topics {KINDS[kind][0]}, worst first")
        wanted = walk.topic_strips(kind)
        assert len(found["rows"]) == len(wanted)
        for row, (label, total, cells) in zip(found["rows"], wanted, strict=True):
            assert row["label"] == label
            assert row["total"] == pytest.approx(total, abs=0.011)
            assert row["cells"] == [c if c is None else pytest.approx(c, abs=0.011) for c in cells]


def test_brokers_and_balance_and_recoveries(model: Any, walk: Walk) -> None:
    assert_rows(part(model, "Brokers to which something happened"), walk.brokers())
    for kind in ("broker", "rack"):
        title = (
            f"Leaders and replicas by {kind} on the first and the last day, averaged over the day"
        )
        assert_rows(part(model, title), walk.balance(kind))
    strips = part(model, "How far the broker with the most leaders is above the mean")
    for row in strips["rows"]:
        cluster = next(c for c, name in NAMES.items() if [name] == row["label"])
        for each, cell in enumerate(row["cells"]):
            wanted = walk.skew(cluster, (each,))
            assert cell == (None if wanted is None else pytest.approx(wanted, abs=2e-4))
    assert_rows(part(model, "Recoveries by length"), walk.recoveries())
    slowest = part(model, "The slowest recoveries")
    assert slowest["more"] == max(0, len(walk.reaching("recovery")) - 10)
    assert_rows({**slowest, "more": 0}, walk.slowest())


def test_changes_are_counted_and_what_was_not_seen_is_named(model: Any, walk: Walk) -> None:
    for title, count in walk.changes():
        found = part(model, title)
        assert len(found["rows"]) + found["more"] == count, title
        assert [row["began_at"] for row in found["rows"]] == sorted(
            row["began_at"] for row in found["rows"]
        )
    assert_rows(part(model, "What is missing, by cluster"), walk.unseen())
    strips = part(model, "Time that was observed")
    for row in strips["rows"]:
        cluster = next(c for c, name in NAMES.items() if [name] == row["label"])
        for cell, seen in zip(row["cells"], walk.seen(cluster), strict=True):
            assert cell == (pytest.approx(seen, abs=0.011) if seen else None)
