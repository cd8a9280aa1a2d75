"""A month of gold that Spark SQL makes has the bytes that a DuckDB task writes."""

from __future__ import annotations

import shutil
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import fleet
import pytest
from fleet import Fleet
from pyspark.sql import SparkSession
from recorded import contents, large_days

from rdmeta import pipeline
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.gold.query import Room
from rdmeta.pipeline.running import _Runner
from rdmeta.pipeline.work import MonthTask, Result
from rdmeta.spark import executors, large_months, run

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", ["folder", "delta"])
def test_the_bytes_are_those_of_duckdb(
    light: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The larger one of two months is Spark's: the first one or the second one, by the seed.

    Months of silver are parts of a folder, and days are those of tables with logs.
    """
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    if kind == "delta":
        large_days(monkeypatch)
    begin = datetime(2026, 10, 30 + seed % 2, 21, tzinfo=timezone.utc)
    monkeypatch.setattr(fleet, "BEGIN", begin)
    Fleet("one", tmp_path / "history", seed)
    source, by_duckdb, by_spark = (tmp_path / each for each in ("history", "duckdb", "spark"))
    given: dict[str, Any] = {"in_place": True, "min_isr": 2 if kind == "delta" else None}
    pipeline.run(pipeline.plan([source], by_duckdb, tables=kind, **given), workers=1)
    shutil.copytree(by_duckdb, by_spark)
    pipeline.run(pipeline.plan([source], by_duckdb, gold=True, **given), workers=1)
    light.conf.set("spark.sql.session.timeZone", "America/New_York")
    monkeypatch.chdir(tmp_path)
    where = "spark" if kind == "folder" else by_spark.as_uri()
    plan = pipeline.plan([source], where, gold=True, **given)
    monkeypatch.setattr(large_months, "LARGEST", min(task.rows for task in plan.months))
    assert sum(large_months.is_large(each, Room(1 << 40, 1)) for each in plan.months) == 1
    broadcast = "spark.sql.autoBroadcastJoinThreshold"
    usual, limits = light.conf.get(broadcast), []

    def noted(session: SparkSession, task: MonthTask) -> Result:
        limits.append(session.conf.get(broadcast))
        return large_months.made_by_spark(session, task)

    monkeypatch.setattr(executors, "made_by_spark", noted)
    made = run(plan, light) if kind == "folder" else run_that_goes_on(plan, light, monkeypatch)
    assert (limits, light.conf.get(broadcast)) == (["1m"] * (1 + (kind == "delta")), usual)
    assert light.conf.get("spark.sql.session.timeZone") == "America/New_York"
    light.conf.set("spark.sql.session.timeZone", "UTC")
    count = len([each for each in made.made if "gold/" in each.name])
    assert count == (2 * len(MEASURES) if kind == "folder" else 0)
    assert files(by_spark) == files(by_duckdb)
    assert pipeline.check(by_spark) == []
    # A month may change from one way to the other: nothing is made again.
    again = pipeline.plan([source], by_spark, gold=True, **given)
    assert not again.months


def run_that_goes_on(
    plan: pipeline.Plan, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> pipeline.Made:
    """Carries out a plan after a run that ended before its commits; it makes no file again."""
    with monkeypatch.context() as patch:
        patch.setattr(_Runner, "commit", Mock(side_effect=InterruptedError))
        with pytest.raises(InterruptedError):
            run(plan, session)
    with monkeypatch.context() as patch:
        patch.setattr(large_months, "_written", Mock(side_effect=AssertionError))
        return run(plan, session)


def files(out: Path) -> dict[str, bytes]:
    """Returns the content of an output folder without its logs, whose commits have times."""
    found = contents(out)
    has_logs = any("_delta_log" in name for name in found)
    return {n: each for n, each in found.items() if not has_logs or n.endswith(".parquet")}
