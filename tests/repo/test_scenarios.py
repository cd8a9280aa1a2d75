"""Scenarios are judged by their bounds; the page shows what is beyond them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import real_kafka
import scenarios
from scenario_run import Seen, beyond_budget
from scenarios import KNOWN, RESULTS, ROUNDS, SCENARIOS, Row, load, merge, page, write

ROWS = load(RESULTS)


def row(**more: Any) -> Row:
    """Returns a row of scenarios.json."""
    about = {"commit": "abc", "machine": "a machine", "measured_at": "2026-01-02T03:04:05+00:00"}
    values = {"scenario": "cut-frame", "brokers": "Kafka", "client": "Client", "values": [1.0, 1.2]}
    return {**values, **about, **more}


def test_every_scenario_was_run_five_times_with_both_clients() -> None:
    seen = {(r["scenario"], r["client"]) for r in ROWS if len(r["values"]) >= ROUNDS}
    assert seen == {(key, client) for key in KNOWN for client in scenarios.CLIENTS}


def test_every_scenario_is_recorded_by_a_test() -> None:
    tests = "".join(path.read_text() for path in (RESULTS.parent).glob("test_*_scenarios.py"))
    assert [key for key in KNOWN if f'"{key}"' not in tests] == []
    assert len(KNOWN) == len(SCENARIOS)


def test_a_new_row_replaces_the_row_of_its_place(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    write(file, [row(), row(client="AsyncClient"), row(scenario="topics")])
    write(file, [row(values=[3.0]), row(scenario="gone")])
    found = [(r["scenario"], r["client"], r["values"]) for r in json.loads(file.read_text())]
    assert found == [
        ("topics", "Client", [1.0, 1.2]),
        ("cut-frame", "AsyncClient", [1.0, 1.2]),
        ("cut-frame", "Client", [3.0]),
    ]
    assert merge(load(file), []) == load(file)


def test_the_page_shows_median_and_worst_and_marks_what_is_beyond_its_bound() -> None:
    assert KNOWN["cut-frame"].worst == 1.5
    text = page([row(values=[1.0, 1.6, 1.2]), row(scenario="throttled", values=[0, 0, 1])])
    assert "| 1.20 s, **1.60 s** | -, - |" in text
    assert "| 0, **1** | -, - |" in text
    assert "- 2 rows: a machine; commit `abc`, 2026-01-02" in text


def test_a_median_beyond_its_bound_fails_the_scenario_without_a_second_more() -> None:
    assert (KNOWN["killed-told"].median, KNOWN["killed-told"].worst) == (1.3, 2.0)
    seen = Seen()
    for value in (1.2, 1.2, 1.3, 1.4, 2.9):  # a busy machine may be a second late, once
        seen.add("killed-told", "Kafka", "Client", value)
    seen.check("killed-told")
    for value in (1.4, 1.4):
        seen.add("killed-told", "Kafka", "Client", value)
    with pytest.raises(AssertionError, match="killed-told, Kafka, Client"):
        seen.check("killed-told")


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        ([], "no Java"),
        (["java"], "Kafka 4.3.0 is not here, and Maven, which fetches it, is not installed"),
        (["java", "mvn"], "Kafka 4.3.0 is not here: `make kafka-jars` fetches it"),
    ],
)
def test_scenarios_that_are_skipped_say_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: list[str], reason: str
) -> None:
    monkeypatch.setattr(real_kafka, "JARS", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: name if name in installed else None)
    assert real_kafka.missing("4.3.0") == reason


def test_a_value_beyond_its_bound_fails_the_scenario() -> None:
    seen = Seen()
    seen.add("throttled", "Kafka", "Client", 0)
    seen.add("cut-frame", "Kafka", "Client", 1.6)  # a busy machine may be a second late
    seen.check("throttled", "cut-frame")
    seen.add("throttled", "Kafka", "Client", 1)
    seen.check("cut-frame")
    with pytest.raises(AssertionError, match=r"throttled, Kafka, Client: \[0, 1\]"):
        seen.check("throttled")


def test_a_value_below_its_least_fails_the_scenario_and_is_the_worst_of_the_page() -> None:
    assert (KNOWN["sessions"].least, KNOWN["sessions"].worst) == (10, None)
    assert (KNOWN["denied-alone"].least, KNOWN["denied-alone"].worst) == (8, 12)
    text = page([row(scenario="sessions", values=[13, 9, 12])])
    assert "| 12, **9** | -, - |" in text
    text = page([row(scenario="denied-alone", values=[11.0, 7.5, 11.5])])
    assert "| 11.0 s, **11.5 s** | -, - |" in text
    for key, value in (("sessions", 9), ("denied-alone", 7.9)):
        seen = Seen()
        seen.add(key, "Kafka", "Client", value)
        with pytest.raises(AssertionError, match=key):
            seen.check(key)


def test_the_budget_of_requests_is_judged_in_every_window() -> None:
    steady = [0.8 * i for i in range(20)]
    assert beyond_budget(steady, 1.0) == pytest.approx(1 - 8)
    assert beyond_budget([*steady, *[30.0] * 9], 1.0) == pytest.approx(9 - 8)
    assert beyond_budget([5.0] * 8, 1.0) == 0
    assert beyond_budget([5.0] * 9, 1.0, late=0.8) == 0
