"""Each value of a report is what a naive walk over the rows of gold gives."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from report_walk import GRAVEST, KINDS, SHOWN, Walk
from written_gold import BEGIN, Rows, random_gold, write_gold

from rdmeta import report
from rdmeta.report.wording import duration

pytestmark = pytest.mark.slow
SEEDS = int(os.environ.get("RDMETA_SEEDS", "4"))
COUNTED = re.compile(r"(\d+) (reassignment|term|configuration|restart|unclean election)")
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


@pytest.fixture(scope="module")
def before(gold: Rows) -> Walk:
    return Walk(gold, NAMES, BEGIN, BEGIN + timedelta(days=3), 1)


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


def assert_before(found: Any, earlier: Sequence[dict[str, Any]], *keys: str) -> None:
    """Asserts that each row of an earlier span is beside the one with the same texts."""
    same = {tuple(row[key] for key in keys): row for row in earlier}
    assert same.keys() <= {tuple(row[key] for key in keys) for row in found["rows"]}
    for row in found["rows"]:
        wanted = same.get(tuple(row[key] for key in keys), dict.fromkeys(row["before"]))
        assert_rows({"rows": [row["before"]], "more": 0}, [{n: wanted[n] for n in row["before"]}])


def assert_cells(found: Any, wanted: Sequence[float | None], digit: float = 0.011) -> None:
    assert found["cells"] == [c if c is None else pytest.approx(c, abs=digit) for c in wanted]


def test_the_fleet_is_ranked_by_what_was_worst(model: Any, walk: Walk, before: Walk) -> None:
    found = part(model, "Partition-minutes at risk, by cluster")
    assert_rows(found, walk.fleet(), ordered=True)
    assert_before(found, before.fleet(), "cluster")
    strips = part(model, "The largest of these three by day; L, M or U says which is the gravest")
    assert [row["label"] for row in strips["rows"]] == [[r["cluster"]] for r in found["rows"]]
    for days, key in ((walk.fleet_days(), None), (before.fleet_days(), "before")):
        for row in strips["rows"]:
            cells, letters = days[row["label"][0]]
            shown = row[key] if key else row
            assert shown["letters"] == letters
            assert_cells(shown, cells)


def test_incidents_are_counted_cut_into_cells_and_ordered(model: Any, walk: Walk) -> None:
    assert_rows(part(model, "All incidents by kind"), walk.incident_kinds(), ordered=True)
    found = part(model, "The gravest incidents")
    every = sum(row["kind"] in SHOWN for row in walk.reaching("incident"))
    assert found["more"] == every - len(found["rows"])
    gravest = walk.gravest()
    for row, known in zip(found["rows"], gravest, strict=True):
        also, text = known.pop("also"), " ".join(row["also"])
        away = duration(also.pop("away") * 60)
        assert ("away for" in text) == (away != "0 s")
        assert f"away for {away}" in text or away == "0 s"
        assert {words for words, _ in KINDS.values() if words in text} == also.pop("kinds")
        assert {noun: int(n) for n, noun in COUNTED.findall(text)} == also
    assert_rows({**found, "more": 0}, gravest)
    strips = part(model, "Time with an incident, with a letter for its gravest kind")
    wanted = walk.incident_strips()
    letters = {row["label"][0]: row["letters"] for row in strips["rows"]}
    assert letters == {name: found[1] for name, found in wanted.items()}
    for row in strips["rows"]:
        assert_cells(row, wanted[row["label"][0]][0])


def test_topics_have_strips_for_three_kinds_and_sums_of_all(model: Any, walk: Walk) -> None:
    assert_rows(part(model, "Partition-minutes by topic and kind"), walk.topics())
    for kind in GRAVEST:
        found = part(model, f"Topics {KINDS[kind][0]}, worst first")
        wanted = walk.topic_strips(kind)
        assert len(found["rows"]) == len(wanted)
        for row, (label, total, cells) in zip(found["rows"], wanted, strict=True):
            assert row["label"] == label
            assert row["total"] == pytest.approx(total, abs=0.011)
            assert_cells(row, cells)


def test_brokers_and_balance_and_recoveries(model: Any, walk: Walk, before: Walk) -> None:
    assert_rows(part(model, "Brokers away, restarted, flapping or losing leaders"), walk.brokers())
    for kind in ("broker", "rack"):
        title = (
            f"Leaders and replicas by {kind} on the first and the last day, averaged over the day"
        )
        found = part(model, title)
        # The page also shows brokers and racks that only the earlier span has.
        there = [
            row for row in found["rows"] if {row["leaders_first"], row["leaders_last"]} - {None}
        ]
        assert_rows({**found, "rows": there}, walk.balance(kind))
        assert_before(found, before.balance(kind), "cluster", "who")
    strips = part(model, "How far the broker with the most leaders is above the mean")
    for row in strips["rows"]:
        cluster = next(c for c, name in NAMES.items() if [name] == row["label"])
        for each, shown in ((walk, row), (before, row["before"])):
            bins = range(each.bins)
            assert_cells(shown, [each.skew(cluster, (number,)) for number in bins], 2e-4)
            assert shown["total"] == pytest.approx(each.skew(cluster, bins), abs=2e-4)
    found = part(model, "Recoveries by length")
    now, old = ({row["cluster"]: row for row in each.recoveries()} for each in (walk, before))
    kept = [name for name in now if now[name]["episodes"] or old[name]["episodes"]]
    assert_rows(found, [now[name] for name in kept])
    assert_before(found, [old[name] for name in kept], "cluster")
    for each, word in ((walk, ""), (before, " before")):
        slowest = part(model, f"The slowest recoveries{word}")
        assert slowest["more"] == max(0, len(each.reaching("recovery")) - 10)
        assert_rows({**slowest, "more": 0}, each.slowest())


def test_changes_are_counted_and_what_was_not_seen_is_named(model: Any, walk: Walk) -> None:
    for title, every in walk.changes().items():
        found, wanted = part(model, title), sorted(every, key=lambda row: row["began_at"])
        assert found["more"] == max(0, len(wanted) - 40)
        assert [row["began_at"] for row in found["rows"]] == [r["began_at"] for r in wanted[:40]]
        # More than 40 may end among rows of one time.
        last = wanted[39]["began_at"] if found["more"] else "9"
        rows = [row for row in found["rows"] if row["began_at"] < last]
        assert_rows({"rows": rows, "more": 0}, [r for r in wanted if r["began_at"] < last])
    assert_rows(part(model, "What is missing, by cluster"), walk.unseen())
    strips = part(model, "Time that was observed")
    for row in strips["rows"]:
        cluster = next(c for c, name in NAMES.items() if [name] == row["label"])
        for cell, seen in zip(row["cells"], walk.seen(cluster), strict=True):
            assert cell == (pytest.approx(seen, abs=0.011) if seen else None)
