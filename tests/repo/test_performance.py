"""The documents that bench.performance makes from bench/results.json are up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import build, performance, results, run, scale
from bench.figure import Scale
from bench.figures import all_figures
from bench.figures_spark import spark_figures
from bench.performance import between, missed, page, signatures
from bench.results import RESULTS

ROWS = results.load(RESULTS)


def test_each_figure_has_been_measured_or_is_missing_for_a_reason() -> None:
    about = performance.about(RESULTS.with_suffix(".machine.json"))
    measured = {row["name"] for row in ROWS} | {name for name, reason in about["missing"].items()}
    assert [each.name for each in all_figures(Scale()) if each.name not in measured] == []


def test_only_rows_beside_a_program_that_few_have_may_be_missing() -> None:
    """A goal must be measured."""
    measured = {row["name"] for row in ROWS}
    missing = [each for each in all_figures(Scale()) if each.name not in measured]
    assert [each.name for each in missing if each.goal] == []


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


def test_the_page_lists_the_commit_of_each_run() -> None:
    assert signatures([row(), row(commit="def", name="b"), row(name="c")]) == [
        "- 2 rows: commit `abc`, 2026-01-02, a machine",
        "- 1 rows: commit `def`, 2026-01-02, a machine",
    ]


def test_the_page_has_a_group_without_a_title_too() -> None:
    about = performance.about(RESULTS.with_suffix(".machine.json"))
    peers = performance.about(RESULTS.with_suffix(".peers.json"))
    assert "\n## odd\n" in page([row(group="odd")], about, peers)


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
