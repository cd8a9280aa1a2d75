"""The bench of the pipeline on Spark measures each part, with what is missing. No speeds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.figure import QUICK, Scale
from bench.figures import all_figures
from bench.figures_spark import spark_figures
from bench.spark import day, intervals, worker, year
from bench.spark.histories import days_of_changes


def test_the_rows_have_the_goals_of_the_plan() -> None:
    goals = {f.name: f.goal.text(f.unit) for f in spark_figures(Scale()) if f.goal is not None}
    two = "10 M changes of history to intervals, two threads"
    assert goals[f"{two}, windows"] == "<= reference / 8"
    assert goals[f"{two}, duckdb"] == "<= reference / 4"
    assert goals[f"{two}, polars"] == "<= 0.5 x reference"
    assert goals[f"{two}: the most memory"] == "<= reference / 10"
    assert goals["one day more on 100: rows decoded"] == "<= reference / 50"


def test_no_other_bench_runs_the_long_rows_of_spark() -> None:
    names = {figure.name for figure in spark_figures(QUICK)}
    assert not names & {figure.name for figure in all_figures(QUICK)}


def test_one_day_more_reads_fewer_rows_than_the_full_run() -> None:
    found = day.measure(2_000, 3, 1)
    assert 0 < found["day_rows"][0] < found["full_rows"][0]


def test_a_dry_run_is_timed_beside_the_run() -> None:
    assert {key: len(samples) for key, samples in year.measure(2, 1).items()} == {
        "dry": 1,
        "run": 1,
    }


@pytest.mark.parametrize("way", ["fold", "duckdb", "polars"])
def test_each_way_makes_about_a_row_per_change(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days_of_changes(tmp_path / "history", 2_000)
    worker.main(way, str(tmp_path / "history"), str(tmp_path / "out"))
    assert 1_000 < int(capsys.readouterr().out.partition('"rows": ')[2].rstrip("}\n")) < 5_000


def test_a_peer_that_is_not_installed_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "sitecustomize.py"
    script.write_text("import sys\nsys.modules['polars'] = None\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    monkeypatch.setattr(intervals, "WAYS", {"polars": worker.by_polars})
    found = intervals.measure(500, 1)
    assert found["missing"] == dict.fromkeys(("polars", "polars_memory"), "polars is not installed")
