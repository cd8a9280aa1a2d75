"""The bench runs, judges goals and keeps results. The tests do not check speeds."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench import build, run
from bench.build import ROOT
from bench.figure import ANY, Missing
from bench.figures import QUICK, Figure, Goal, Job, Scale, all_figures, series
from bench.results import RESULTS, load, merge, write
from bench.run import main, select

KEYS = {"name", "unit", "value", "reference", "ratio", "goal", "ok"}


def figure(goal: Goal | None) -> Figure:
    """Returns a figure over two invented series."""
    return Figure("g", "f", "ns", Job("none", ()), series("a"), series("b"), "floor", goal)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_quick_run_writes_every_figure_and_judges_no_goal(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "bench", "--quick", "--json", str(results)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr

    rows = json.loads(results.read_text(encoding="utf-8"))
    machine = json.loads((tmp_path / "results.machine.json").read_text(encoding="utf-8"))
    wanted = [figure.name for figure in all_figures(QUICK)]
    assert [row["name"] for row in rows] == [n for n in wanted if n not in machine["missing"]]
    reasons = {"a quick run starts no Kafka", "kcat is not installed"}
    assert {"a quick run starts no Kafka"} <= set(machine["missing"].values()) <= reasons
    for row in rows:
        assert row.keys() >= KEYS
        # Finite, but perhaps negative: some references are the difference of two times, and this
        # run is short.
        assert math.isfinite(row["value"])
        assert math.isfinite(row["reference"])
        assert row["ok"] is None
    assert machine["cores"] >= 1


def test_names_of_figures_are_distinct() -> None:
    names = [figure.name for figure in all_figures(Scale())]
    assert len(set(names)) == len(names)


def test_a_goal_relative_to_the_floor_is_judged_by_the_rounds_own_ratios() -> None:
    # Round 2 was slow for both series: its ratio is equal to those of the other rounds.
    run = {"a": [11.0, 110.0, 11.0], "b": [10.0, 100.0, 10.0]}
    row = figure(Goal(factor=1.1)).result([run], judged=True)
    assert row["ok"] is True
    assert row["ratio"] == 1.1
    assert figure(Goal(factor=1.09)).result([run], judged=True)["ok"] is False


def test_an_absolute_goal_is_judged_by_the_median() -> None:
    run = {"a": [9.0, 10.0, 99.0], "b": [1.0, 1.0, 1.0]}
    assert figure(Goal(plus=10)).result([run], judged=True)["ok"] is True
    assert figure(Goal(plus=9.9)).result([run], judged=True)["ok"] is False


def test_a_goal_above_the_reference_is_judged_by_the_rounds_own_differences() -> None:
    run = {"a": [24.0, 240.0, 24.0], "b": [10.0, 230.0, 10.0]}
    assert figure(Goal(factor=1, plus=14)).result([run], judged=True)["ok"] is True
    assert figure(Goal(factor=1, plus=13)).result([run], judged=True)["ok"] is False


def test_a_value_that_is_small_enough_meets_a_goal_whatever_the_floor() -> None:
    goal = Goal(factor=1.5, enough=4)
    assert figure(goal).result([{"a": [4.0], "b": [1.0]}], judged=True)["ok"] is True
    assert figure(goal).result([{"a": [4.1], "b": [1.0]}], judged=True)["ok"] is False
    assert figure(goal).result([{"a": [6.0], "b": [4.0]}], judged=True)["ok"] is True
    assert goal.text("ns") == "<= 1.5 x reference or 4 ns"


def test_samples_of_several_processes_are_pooled() -> None:
    runs = [{"a": [1.0], "b": [1.0]}, {"a": [3.0, 5.0], "b": [1.0, 1.0]}]
    row = figure(None).result(runs, judged=True)
    assert (row["value"], row["best"], row["worst"], row["samples"]) == (3.0, 1.0, 5.0, 3)
    assert row["goal"] is None
    assert row["ok"] is None


def test_a_series_that_a_job_could_not_measure_is_missing_with_the_jobs_reason() -> None:
    run = {"a": [1.0], "missing": {"b": "no Java"}}
    with pytest.raises(Missing, match="no Java"):
        figure(None).result([run], judged=True)
    with pytest.raises(Missing, match="no Kafka"):
        figure(None).result([{"missing": {ANY: "no Kafka"}}], judged=True)
    with pytest.raises(KeyError):
        figure(None).result([{"a": [1.0], "missing": {}}], judged=True)


def test_a_series_that_was_measured_is_kept_beside_a_reason_for_all_others() -> None:
    run = {"a": [1.0], "b": [2.0], "missing": {ANY: "no Kafka"}}
    assert figure(None).result([run], judged=True)["value"] == 1.0


def test_rows_that_cannot_be_measured_here_are_printed_and_keep_the_old_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "run_once", lambda *_: {"missing": {ANY: "no Java"}})
    monkeypatch.setattr(build, "c_benches", lambda: None)
    path = tmp_path / "r.json"
    name = "topic created -> wait_for_topic(), called then, returns"
    path.write_text(json.dumps([row(name, 7, "bench")]))
    assert main(["--only", name, "--json", str(path)]) == 0
    assert f"missing: {name}: no Java" in capsys.readouterr().out
    assert json.loads(path.read_text()) == [row(name, 7, "bench")]
    beside = json.loads(path.with_suffix(".machine.json").read_text())
    assert beside["missing"] == {name: "no Java"}


def test_a_run_keeps_the_reasons_of_the_rows_that_it_does_not_try(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "run_once", lambda *_: defaultdict(lambda: [1.0]))
    monkeypatch.setattr(build, "c_benches", lambda: None)
    path = tmp_path / "r.json"
    beside = path.with_suffix(".machine.json")
    old = dict.fromkeys(["rdmeta --help", "rdmeta --version", "gone"], "no click")
    beside.write_text(json.dumps({"missing": old}))
    assert main(["--only", "rdmeta --help", "--json", str(path)]) == 0
    assert json.loads(beside.read_text())["missing"] == {"rdmeta --version": "no click"}


def test_a_reference_of_nothing_gives_no_ratio_and_meets_no_goal_in_it() -> None:
    run = {"a": [1.0, 9.0], "b": [-1.0, 3.0]}
    row = figure(Goal(factor=3)).result([run], judged=True)
    assert (row["ratio"], row["ok"]) == (3.0, True)
    row = figure(Goal(factor=3)).result([{"a": [1.0], "b": [0.0]}], judged=True)
    assert (row["ratio"], row["ok"]) == (None, False)
    assert run_table([row])


def run_table(rows: list[dict[str, object]]) -> str:
    """Returns the table of a run as text."""
    console = Console(width=140)
    with console.capture() as text:
        console.print(run.table(rows))
    return text.get()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the programs: `leader` fails, and all others return the same times."""

    def run_once(job: Job, _turn: int) -> dict[str, Any]:
        if job.program == "leader":
            raise run.MeasureError("leader: out of luck")
        return defaultdict(lambda: [2.0, 2.0])

    monkeypatch.setattr(run, "run_once", run_once)
    monkeypatch.setattr(build, "c_benches", lambda: None)


@pytest.mark.usefixtures("failing")
def test_the_failure_of_one_program_is_reported_and_keeps_the_others_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.json"
    only = ["--only", "python", "--only", "lookup", "--json", str(path)]
    assert main(["--quick", *only]) == 2
    assert "not measured: leader: out of luck" in capsys.readouterr().out
    groups = {row["group"] for row in json.loads(path.read_text())}
    assert "lookup" in groups
    assert "python" not in groups
    path.unlink()
    assert main(["--quick", "--only", "python", "--json", str(path)]) == 2
    assert not path.exists()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Replaces the programs by some that are slow in the first turns; returns a log of runs."""
    turns: list[tuple[str, int]] = []

    def run_once(job: Job, turn: int) -> dict[str, Any]:
        turns.append((job.program, turn))
        return defaultdict(lambda: [1.0], {f"{k}_cache": [3.0 - turn] for k in ("random", "hot")})

    monkeypatch.setattr(run, "run_once", run_once)
    monkeypatch.setattr(build, "c_benches", lambda: None)
    return turns


def measured(path: Path, *more: str) -> dict[str, Any]:
    """Measures one lookup, at full size but in one process; returns its row."""
    only = ["--only", "random of 1 k topics", "--processes", "1", "--json", str(path)]
    assert main([*only, *more]) == 0
    (found,) = json.loads(path.read_text())
    return dict(found)


def test_a_missed_goal_is_measured_again_before_it_is_reported(
    slow: list[tuple[str, int]], tmp_path: Path
) -> None:
    row = measured(tmp_path / "r.json")
    assert slow == [("lookup", 0), ("lookup", 1), ("lookup", 2)]
    assert (row["ratio"], row["ok"], row["times"]) == (1.0, True, 3)


def test_a_goal_that_is_missed_each_time_is_missed(
    slow: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "AGAIN", 1)
    row = measured(tmp_path / "r.json")
    assert len(slow) == 2
    assert (row["ratio"], row["ok"], row["times"]) == (2.0, False, 2)


def test_a_missed_goal_of_a_long_job_is_measured_again_once(
    slow: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "LONG_SECONDS", 0)
    row = measured(tmp_path / "r.json")
    assert slow == [("lookup", 0), ("lookup", 1)]
    assert (row["ratio"], row["ok"], row["times"]) == (2.0, False, 2)


def test_a_goal_that_is_met_is_measured_once(
    slow: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "run_once", lambda *_: defaultdict(lambda: [1.0]))
    assert measured(tmp_path / "r.json")["times"] == 1
    assert slow == []


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("how", [["--quick"], ["--churn-minutes", "60"], []])
def test_a_run_at_another_scale_keeps_every_figure(how: list[str], tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    hour = "memory after churn by RSS, ids <= 32767, 1 M partitions, 3600 s of it"
    names = {figure.name for figure in all_figures(Scale())} | {hour}
    old = [row(name, 1, "bench") | {"group": "churn"} for name in names]
    path.write_text(json.dumps(old))
    assert main([*how, "--only", "lookup", "--json", str(path)]) == 0
    assert {row["name"] for row in json.loads(path.read_text())} >= names


def test_a_quick_run_does_not_overwrite_the_results_by_default() -> None:
    assert RESULTS not in (run.arguments(["--quick"]).json, None)
    assert run.arguments([]).json == RESULTS


def test_the_option_only_takes_groups_and_parts_of_names() -> None:
    figures = all_figures(Scale())
    assert {figure.group for figure in select(figures, ["python"])} == {"python"}
    assert all("shuffled" in figure.name for figure in select(figures, ["shuffled"]))
    assert select(figures, None) == figures


def test_a_figure_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    assert main(["--only", "no such figure", "--json", str(tmp_path / "r.json")]) == 2
    assert not (tmp_path / "r.json").exists()


def row(name: str, value: float, run: str | None = None) -> dict[str, object]:
    """Returns a row of a program's results; without `run`, a row of an old version."""
    return {"name": name, "value": value} | ({} if run is None else {"run": run})


def test_a_run_replaces_its_own_rows_and_keeps_all_others() -> None:
    old = [row("a", 1), row("b", 1, "bench"), row("a", 1, "peers")]
    new = [row("b", 2, "bench"), row("c", 2, "bench")]
    merged = merge(old, new, "bench", ["a", "b", "c"])
    assert merged == [row("a", 1, "peers"), row("a", 1), *new]


def test_the_next_run_drops_the_rows_of_a_removed_figure() -> None:
    old = [row("gone", 1, "bench"), row("gone", 1, "peers")]
    assert merge(old, [row("a", 2, "bench")], "bench", ["a"]) == [
        row("gone", 1, "peers"),
        row("a", 2, "bench"),
    ]


def test_results_are_written_one_row_a_line(tmp_path: Path) -> None:
    rows = [row("a", 1, "bench"), row("b", 2, "bench")]
    write(tmp_path / "r.json", rows, "bench", ["a", "b"])
    assert load(tmp_path / "r.json") == rows
    assert len((tmp_path / "r.json").read_text(encoding="utf-8").splitlines()) == 1 + 2 + 1
