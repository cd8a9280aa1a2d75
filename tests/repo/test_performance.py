"""The pages of figures show missed goals, commits and ratios, and what was not measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import build, performance, results, run, scale
from bench.figure import Scale
from bench.figures_spark import spark_figures
from bench.performance import between, missed, page, signatures
from bench.results import RESULTS

ROWS = results.load(RESULTS)


def row(**more: Any) -> results.Row:
    """Returns a row of results.json."""
    about = {"commit": "abc", "machine": "a machine", "measured_at": "2026-01-02T03:04:05+00:00"}
    return {
        "name": "a figure",
        "unit": "ns",
        "value": 12.0,
        "reference": 8.0,
        "ratio": 1.5,
        "goal": 9.6,
        "ok": False,
        "rule": "<= 1.2 x reference",
        "reference_name": "a floor",
        "best": 11.0,
        "worst": 13.0,
        "group": "lookup",
        "run": "bench",
        **about,
        **more,
    }


def test_a_missed_goal_is_shown_as_a_ratio_to_its_reference() -> None:
    assert missed([row(), row(name="good", ok=True), row(name="free", ok=None, rule=None)]) == [
        "- a figure: 1.5 times a floor (12 and 8 ns); the goal is <= 1.2 x reference."
    ]
    assert missed([row(ok=True)]) == ["No goal is missed."]
    assert missed([row(why="It starts a thread.")]) == [
        "- a figure: 1.5 times a floor (12 and 8 ns); the goal is <= 1.2 x reference."
        " It starts a thread."
    ]


def test_a_run_of_a_tree_with_changes_claims_no_commit() -> None:
    assert signatures([row(), row(commit="def-dirty", name="b"), row(name="c")]) == [
        "- 2 rows: commit `abc`, 2026-01-02, a machine",
        "- 1 rows: commit `def` and uncommitted changes, 2026-01-02, a machine",
    ]


def test_a_ratio_is_marked_where_it_is_not_the_quotient_of_the_medians() -> None:
    assert performance.ratio(row()) == "1.5"
    assert performance.ratio(row(ratio=1.4)) == "1.4 *"
    assert performance.ratio(row(ratio=None)) == "-"


def test_the_page_says_which_rows_could_not_be_measured_and_why() -> None:
    about = performance.about(RESULTS.with_suffix(".machine.json"))
    peers = performance.about(RESULTS.with_suffix(".peers.json"))
    title = "## Rows that could not be measured"
    text = page([row()], {**about, "missing": {"a figure": "no Java"}}, peers)
    assert f"\n{title}\n\n- a figure: no Java\n" in text
    assert title not in page([row()], {**about, "missing": {}}, peers)


def test_text_between_marks_is_replaced_and_missing_marks_are_an_error() -> None:
    text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
    assert between(text, "x", "new") == "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n"
    with pytest.raises(ValueError, match="no <!-- y -->"):
        between(text, "y", "new")


def test_a_run_into_another_file_leaves_the_documents_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bool] = []
    monkeypatch.setattr(performance, "write", lambda: written.append(True))
    monkeypatch.setattr(build, "c_benches", lambda: None)
    monkeypatch.setattr(run, "run_once", lambda _job, _turn: {"imported": [2.0], "bare": [1.0]})
    assert run.main(["--only", "import", "--json", str(tmp_path / "r.json")]) == 0
    assert not written
    monkeypatch.setattr(results, "RESULTS", tmp_path / "r.json")
    assert run.main(["--only", "import"]) == 0
    assert written


def test_the_page_of_scale_leaves_out_what_was_not_measured_and_names_it() -> None:
    name = "100 M changes of history to silver: CPU of plain processes"
    measured = row(name=name, value=90.0, reference=100.0)
    text = scale.page([measured])
    assert "| CPU time, all of it | 90 s | 0.25 hours |" in text
    assert f"| {name} | `abc` | 2026-01-02 | a machine |" in text
    assert "- one day more on 100\n" in text
    assert "One day more" not in text


def test_the_page_of_scale_rests_on_rows_that_the_bench_has() -> None:
    names = {figure.name for figure in spark_figures(Scale())}
    assert set(scale.facts_of([]).missing) <= names
