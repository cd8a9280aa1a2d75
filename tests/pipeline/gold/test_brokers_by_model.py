"""broker_day, topic_life, config_change and controller equal what naive walks count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fleet import Fleet
from gold_model_brokers import broker_day, config_change, controller, topic_life
from gold_tables import gold_of, silver_of
from random_silver import random_silver

from rdmeta import pipeline
from rdmeta.pipeline.gold.measures import MEASURES

MODELS: dict[str, Callable[[Mapping[str, pa.Table]], list[dict[str, Any]]]] = {
    "broker_day": broker_day,
    "topic_life": topic_life,
    "config_change": config_change,
    "controller": controller,
}
MONTH = datetime(2026, 11, 1, tzinfo=timezone.utc)
# The columns of begin and end; those of other tables are began_at and ended_at.
TIMES = {
    "observation": ("counts_from", "counts_to"),
    **dict.fromkeys(("leader_change", "change"), ("observed_at", "observed_at")),
}


def unordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("name", MODELS)
def test_a_measure_of_random_silver_is_what_a_naive_walk_counts(name: str, seed: int) -> None:
    silver = random_silver(seed)
    found, wanted = gold_of(silver, name), MODELS[name](silver)
    assert unordered(found) == unordered(wanted)
    assert found


@pytest.mark.slow
def test_measures_of_recorded_fleets_are_what_naive_walks_count(tmp_path: Path, seed: int) -> None:
    for number, name in enumerate(("one", "two")):
        Fleet(name, tmp_path / "history", seed + number)
    out = tmp_path / "out"
    pipeline.run(pipeline.plan([tmp_path / "history"], out, in_place=True), workers=1)
    silver = silver_of(out)
    for name, model in MODELS.items():
        assert unordered(gold_of(silver, name)) == unordered(model(silver)), name


def of_month(silver: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Returns what a run has for November: no day behind it, and the last day before in part."""
    found = {}
    for table, rows in silver.items():
        begins, ends = TIMES.get(table, ("began_at", "ended_at"))
        least = MONTH if table == "partition_interval" else MONTH - timedelta(days=1)
        mask = pc.greater_equal(rows[ends], pa.scalar(least, rows[ends].type))
        if table != "partition_interval":
            mask = pc.greater_equal(rows[begins], pa.scalar(least, rows[begins].type))
        found[table] = rows.filter(mask)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_month_follow_from_the_month_and_the_day_before(name: str, seed: int) -> None:
    silver = random_silver(seed)
    column = MEASURES[name].time
    wanted = [row for row in gold_of(silver, name) if row[column] >= MONTH]
    found = [row for row in gold_of(of_month(silver), name) if row[column] >= MONTH]
    assert found == wanted


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_month_do_not_depend_on_later_months(name: str, seed: int) -> None:
    silver = random_silver(seed)
    column = MEASURES[name].time
    early = {}
    for table, rows in silver.items():
        begins, _ = TIMES.get(table, ("began_at", "ended_at"))
        early[table] = rows.filter(pc.less(rows[begins], pa.scalar(MONTH, rows[begins].type)))
    wanted = [row for row in gold_of(silver, name) if row[column] < MONTH]
    assert [row for row in gold_of(early, name) if row[column] < MONTH] == wanted
