"""The bench of the pipeline on Spark has every row of the plan, and its peers make the same rows.

No speeds. `make nightly` also runs the parts that start Spark: a minute.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.figure import QUICK, Scale
from bench.figures import all_figures
from bench.figures_spark import spark_figures
from bench.run import judged
from bench.spark import (
    bronze,
    commits,
    day,
    executors,
    frames,
    functions,
    intervals,
    logs,
    memory,
    month,
    sessions,
    silver,
    small,
    worker,
    year,
)
from bench.spark.__main__ import PROGRAM
from bench.spark.histories import days_of_changes, make_history


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench") / "history"
    plan = days_of_changes(1_000)._replace(clusters=2, topics=10, changes=3_000, toggles=10)
    plan = plan._replace(file_every=6 * 3600.0)
    make_history(made, 1, plan)
    return made


def test_every_job_is_a_part_of_the_program_with_its_options() -> None:
    for figure in spark_figures(Scale()):
        part, *options = figure.job.arguments
        names = [option.removeprefix("--").partition("=")[0] for option in options]
        assert names == list(PROGRAM.parts[part])


def test_no_other_bench_runs_the_long_rows_of_spark() -> None:
    names = {figure.name for figure in spark_figures(QUICK)}
    assert not names & {figure.name for figure in all_figures(QUICK)}


@pytest.mark.slow
def test_one_day_more_reads_fewer_rows_than_the_full_run() -> None:
    found = day.measure(2_000, 3, 1)
    assert 0 < found["day_rows"][0] < found["full_rows"][0]


@pytest.mark.slow
def test_one_day_more_of_a_log_makes_its_recording_and_that_of_the_open_day(tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    logs._one_day_more(tmp_path, 2_000, 3, found)
    assert found["full_made"][0] > found["day_made"][0] == 2


@pytest.mark.slow
def test_a_dry_run_is_timed_beside_the_run_and_the_manifest_is_measured() -> None:
    found = year.measure(2, 1)
    assert {key: len(samples) for key, samples in found.items()} == {
        "dry": 1,
        "run": 1,
        "manifest": 1,
        "files": 1,
    }
    assert found["files"][0] > 0 < found["manifest"][0]


COMPARED = ["cluster_id", "topic", "topic_id", "partition", "leader", "leader_epoch", "isr"]
TIMES = ["began_at", "ended_at"]


def made_by(way: str, history: Path, out: Path) -> pa.Table:
    worker.main(way, str(history), str(out))
    files = sorted(out.glob("*.parquet")) if out.is_dir() else [out]
    tables = [pq.read_table(pa.OSFile(str(file))) for file in files]
    return pa.concat_tables(tables)


def rows_of(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    micros = pa.timestamp("us", "UTC")
    for name in TIMES:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(micros).cast(pa.int64()))
    keys = [(name, "ascending") for name in ("cluster_id", "topic", "partition", "version")]
    rows: list[dict[str, Any]] = table.sort_by(keys).select(names).to_pylist()
    return rows


@pytest.mark.parametrize("way", ["fold1", "duckdb", "polars"])
def test_each_way_makes_the_rows_that_the_fold_makes(
    way: str, history: Path, tmp_path: Path
) -> None:
    names = [*COMPARED, "replicas", "offline", *TIMES, "began_by", "ended_by", "version"]
    fold = rows_of(made_by("fold", history, tmp_path / "fold"), names)
    assert len(fold) > 3_000
    assert any(row["leader"] is None for row in fold)
    assert any(row["ended_by"] == "topic_removed" for row in fold)
    assert rows_of(made_by(way, history, tmp_path / way), names) == fold


def test_the_bench_refuses_a_peer_that_makes_something_else() -> None:
    intervals.compare("polars", {"us": 5, "rows": 2}, {"us": 5, "rows": 2})
    with pytest.raises(SystemExit, match="polars made 1 rows, the fold 2"):
        intervals.compare("polars", {"us": 5, "rows": 2}, {"us": 5, "rows": 1})


@pytest.mark.slow
def test_a_peer_that_is_not_installed_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden(tmp_path, monkeypatch, "None")
    found = intervals.measure("polars", 500, 1)
    reason = "polars is not installed"
    assert found == {"missing": {"peer": reason, "peer_memory": reason}}


@pytest.mark.slow
def test_the_error_of_a_peer_that_fails_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden(tmp_path, monkeypatch, "object()")
    with pytest.raises(SystemExit, match="^polars has failed: AttributeError: .*read_parquet"):
        intervals.measure("polars", 500, 1)


def hidden(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Gives the bench's processes something else in the place of polars."""
    script = folder / "sitecustomize.py"
    script.write_text(f"import sys\nsys.modules['polars'] = {module}\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{':'.join(sys.path)}")


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_every_row_on_spark_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts share a session here, as each start takes seconds."""
    with sessions.local("local[2]") as session:
        monkeypatch.setattr(sessions, "local", lambda master: nullcontext(session))
        runs = {
            "silver": silver.measure(1_000, 1),
            "memory": memory.measure("1000,2000", 2_000, 1),
            "executors": executors.measure(1_000, 1),
            "small": small.measure("clusters", 3, 1),
            "functions": functions.measure(2_000, 1),
            "bronze": bronze.measure(4, 1),
            "commits": commits.measure(20, 1),
            "frames": frames.measure(1_000, 1),
            "month": {
                key: times
                for kind in ("engines", "executors")
                for key, times in month.measure(kind, 2_000, 1).items()
            },
        }
    figures = [f for f in spark_figures(QUICK) if f.job.arguments[0] in runs]
    rows, missing = judged(figures, {f.job: [runs[f.job.arguments[0]]] for f in figures}, QUICK)
    assert missing == {}
    assert len(rows) == len(figures) > 10
    assert all(row["value"] >= 0 for row in rows.values())
