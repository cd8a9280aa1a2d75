"""A month of gold that Spark SQL makes has the bytes that a DuckDB task writes."""

from __future__ import annotations

import shutil
import time
from datetime import datetime, timezone
from pathlib import Path

import fleet
import pytest
from fleet import Fleet
from pyspark.sql import SparkSession
from recorded import contents

from rdmeta import pipeline
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.gold.query import Room
from rdmeta.pipeline.work import MonthTask, Result
from rdmeta.spark import executors, large_months, run

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


def test_the_bytes_are_those_of_duckdb(
    light: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger one of two months is Spark's: the first one or the second one, by the seed."""
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    begin = datetime(2026, 10, 30 + seed % 2, 21, tzinfo=timezone.utc)
    monkeypatch.setattr(fleet, "BEGIN", begin)
    Fleet("one", tmp_path / "history", seed)
    source, by_duckdb, by_spark = (tmp_path / each for each in ("history", "duckdb", "spark"))
    pipeline.run(pipeline.plan([source], by_duckdb, in_place=True), workers=1)
    shutil.copytree(by_duckdb, by_spark)
    pipeline.run(pipeline.plan([source], by_duckdb, in_place=True, gold=True), workers=1)
    light.conf.set("spark.sql.session.timeZone", "America/New_York")
    monkeypatch.chdir(tmp_path)
    plan = pipeline.plan([source], "spark", in_place=True, gold=True)
    monkeypatch.setattr(large_months, "LARGEST", min(task.rows for task in plan.months))
    assert sum(large_months.is_large(each, Room(1 << 40, 1)) for each in plan.months) == 1
    broadcast = "spark.sql.autoBroadcastJoinThreshold"
    usual, limits = light.conf.get(broadcast), []

    def noted(session: SparkSession, task: MonthTask) -> Result:
        limits.append(session.conf.get(broadcast))
        return large_months.made_by_spark(session, task)

    monkeypatch.setattr(executors, "made_by_spark", noted)
    made = run(plan, light)
    assert (limits, light.conf.get(broadcast)) == (["1m"], usual)
    assert light.conf.get("spark.sql.session.timeZone") == "America/New_York"
    light.conf.set("spark.sql.session.timeZone", "UTC")
    assert len([each for each in made.made if "gold/" in each.name]) == 2 * len(MEASURES)
    assert contents(by_spark) == contents(by_duckdb)
    assert pipeline.check(by_spark) == []
    # A month may change from one way to the other: nothing is made again.
    again = pipeline.plan([source], by_spark, in_place=True, gold=True)
    assert not again.months
