"""The measures by Spark SQL have the rows that DuckDB and the naive walks find."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import gold_model as risks
import gold_model_brokers as brokers
import gold_model_changes as changes
import pyarrow as pa
import pytest
from fleet import Fleet
from given_frames import GivenTables, spark_gold
from gold_rows import interval, observation
from gold_rows import tables as rows_of_day
from gold_tables import gold_of, same, silver_of
from logged_tables import SILVER, made, rows_of_folder
from pyspark.sql import SparkSession
from random_silver import random_silver

from rdmeta.pipeline.committing import LoggedTable
from rdmeta.pipeline.gold.column_comments import COMMENTS
from rdmeta.pipeline.gold.measures import MEASURES, text_of
from rdmeta.spark import measures, tables
from rdmeta.spark.executors import _configured
from rdmeta.spark.gold_frames import _query_of
from rdmeta.spark.silver_frames import Tables

# A busy machine needs minutes to compile the largest plans.
pytestmark = pytest.mark.timeout(600)

# `make nightly` takes many.
SEEDS = int(os.environ.get("RDMETA_SEEDS", "1"))
FLAP_SECONDS = 4 * 3600
# Of recorded fleets; the others are compared on silver that metadata logs would give, too.
MODELS: dict[str, Callable[[risks.Silver, int | None], list[risks.Row]]] = {
    "coverage_hour": lambda silver, _: risks.coverage(silver),
    "risk_hour": risks.risk,
    "incident": risks.incidents,
    "recovery": lambda silver, _: risks.recoveries(silver),
    "data_quality": risks.quality,
    "churn_day": lambda silver, _: changes.churn(silver),
    "isr_flap_day": lambda silver, _: changes.flaps(silver, FLAP_SECONDS),
    "balance_hour": lambda silver, _: changes.balance(silver),
    "reassignment": lambda silver, _: changes.reassignments(silver),
}
OF_LOGS: dict[str, Callable[[dict[str, pa.Table]], list[risks.Row]]] = {
    "broker_day": brokers.broker_day,
    "topic_life": brokers.topic_life,
    "config_change": brokers.config_change,
    "controller": brokers.controller,
}


def unordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.fixture(scope="module")
def seed() -> int:
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    return seed


@pytest.fixture(scope="module")
def out(seed: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a random fleet, with one file that was set aside."""
    folder = tmp_path_factory.mktemp("frames")
    Fleet("one", folder / "history", seed)
    file = max((folder / "history").rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    settings = {"gold": True, "min_isr": 2, "flap_seconds": FLAP_SECONDS}
    made(folder / "history", folder / "out", in_place=True, **settings)
    return folder / "out"


@pytest.mark.proof
def test_measures_of_random_silver_are_those_of_duckdb(light: SparkSession, seed: int) -> None:
    silver = random_silver(seed, clusters=1, steps=40)
    given = GivenTables(light, silver)
    for name in ("risk_hour", "recovery", "topic_life", "config_change"):
        assert unordered(spark_gold(given, name)) == unordered(gold_of(silver, name)), name


@pytest.mark.nightly
@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_of_silver_of_logs_is_that_of_duckdb_and_of_a_naive_walk(
    light: SparkSession, seed: int, name: str
) -> None:
    silver = random_silver(seed)
    found = unordered(spark_gold(GivenTables(light, silver), name, min_isr=2))
    assert found == unordered(gold_of(silver, name, min_isr=2))
    if name in OF_LOGS:
        assert found == unordered(OF_LOGS[name](silver))


@pytest.mark.nightly
@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_the_same_where_spark_compiles_its_plan(
    spark: SparkSession, seed: int, name: str
) -> None:
    silver = random_silver(seed, clusters=12)
    found = unordered(spark_gold(GivenTables(spark, silver), name))
    assert found == unordered(gold_of(silver, name))


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_of_a_fleet_is_the_one_of_gold_and_of_a_naive_walk(
    light: SparkSession, out: Path, name: str
) -> None:
    """The session's days begin at another hour than those of gold, and one of them has 25."""
    with _configured(light, {"spark.sql.session.timeZone": "America/New_York"}):
        rows = spark_gold(tables(light, out), name, min_isr=2, flap_seconds=FLAP_SECONDS)
    assert unordered(rows) == rows_of_folder(out, LoggedTable("gold", name))
    assert name != "data_quality" or sum(row["files_aside"] for row in rows) == 1
    if name in MODELS:
        silver = {t: risks.with_times(found.to_pylist()) for t, found in silver_of(out).items()}
        # The walks know neither racks nor files that were set aside.
        told = [row for row in rows if row.get("kind") != "rack" and not is_aside_alone(row)]
        same([each | {"files_aside": 0} for each in told], MODELS[name](silver, 2))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SEEDS))
def test_a_fleet_has_equal_rows_as_data_frames_of_each_kind(
    light: SparkSession, tmp_path: Path, number: int
) -> None:
    """That their own readers see equal rows is a test of test_random_fleets."""
    seed = time.time_ns() % 10**9
    print(f"fleet {number}: seed {seed}")
    source, folder = tmp_path / "history", tmp_path / "folder"
    Fleet("one", source, seed)
    made(source, folder, gold=True, in_place=True)
    for kind in ("delta", "iceberg"):
        made(source, tmp_path / kind, tables=kind, in_place=True)
    for where in (source, folder, tmp_path / "delta", tmp_path / "iceberg"):
        found = tables(light, where)
        for table in SILVER:
            rows = unordered(getattr(found, table.name).toArrow().to_pylist())
            assert rows == rows_of_folder(folder, table), (where.name, table.name)
    # What a measure makes of equal rows is compared above; here all of them are, by night.
    for name in MEASURES if SEEDS > 1 else ("data_quality", "reassignment"):
        wanted = rows_of_folder(folder, LoggedTable("gold", name))
        assert unordered(spark_gold(found, name)) == wanted, name


def is_aside_alone(row: dict[str, Any]) -> bool:
    """Returns whether only a file that was set aside tells of a day."""
    return bool(row.get("files_aside")) and row["observations"] + row["holes"] == 0


def large_silver() -> dict[str, pa.Table]:
    """Returns silver whose sums need more than 64 bits: partitions at risk for centuries."""
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [2, 1, 3]]
    begin = datetime(1970, 1, 1, tzinfo=timezone.utc)
    span = {"began_at": begin, "ended_at": begin + timedelta(days=106_000)}
    return rows_of_day(
        [
            interval(0, 1, partition=number, isr=[1, 2], replicas=replicas[number % 4], **span)
            for number in range(1_100)
        ],
        observation(0, 1) | dict(zip(("counts_from", "counts_to"), span.values(), strict=True)),
    )


def large_hour() -> dict[str, pa.Table]:
    """Returns silver of an hour whose squares need more than 64 bits."""
    lists = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [2, 1, 3], [2, 3, 1]]
    rows = [
        interval(number / 7, 3600, partition=number, leader=r[0], replicas=r, isr=r)
        for number, r in enumerate(lists * 500)
    ]
    return rows_of_day(rows, observation(0, 3600))


def assert_large(gold: Callable[[dict[str, pa.Table], str], list[dict[str, Any]]]) -> None:
    for silver, name, column in (
        (large_silver(), "incident", "minutes"),
        (large_hour(), "balance_hour", "variation"),
    ):
        model = {table: risks.with_times(rows.to_pylist()) for table, rows in silver.items()}
        model = {"broker_interval": [], **model}
        found = gold(silver, name)
        same(found, MODELS[name](cast(risks.Silver, model), None))
        assert max(row[column] or 0 for row in found) > (1 << 63) / 60e6 * (name == "incident")


def test_the_largest_sums_of_duckdb_are_exact() -> None:
    assert_large(gold_of)


@pytest.mark.slow
def test_the_largest_sums_of_spark_are_exact(light: SparkSession) -> None:
    assert_large(lambda silver, name: spark_gold(GivenTables(light, silver), name))


@pytest.mark.slow
def test_a_session_without_ansi_counts_the_same(light: SparkSession, out: Path) -> None:
    with _configured(light, {"spark.sql.ansi.enabled": "false"}):
        for name in ("risk_hour", "recovery", "reassignment"):
            wanted = rows_of_folder(out, LoggedTable("gold", name))
            rows = spark_gold(tables(light, out), name, min_isr=2, flap_seconds=FLAP_SECONDS)
            assert unordered(rows) == wanted, name


@pytest.mark.slow
def test_measures_work_through_connect_and_as_views_that_explain_themselves(
    remote: SparkSession, seed: int
) -> None:
    silver = random_silver(seed, clusters=1, steps=40)
    gold = measures(GivenTables(remote, silver), min_isr=2)
    gold.create_views("rdmeta")
    found = remote.table("rdmeta_config_change").toArrow().cast(MEASURES["config_change"].schema)
    assert unordered(found.to_pylist()) == unordered(gold_of(silver, "config_change"))
    shown = {row.col_name: row.comment for row in remote.sql("DESCRIBE rdmeta_risk_hour").collect()}
    assert shown == COMMENTS["risk_hour"]


@pytest.mark.parametrize("name", MEASURES)
def test_a_query_reads_only_the_tables_that_its_measure_needs(name: str) -> None:
    query, needed = _query_of(name, Tables.names)
    assert needed
    assert all(f"{{{table}}}" in query for table in needed)
    # What Python formats has braces for tables only.
    assert query.count("{") == query.count("}") == len(needed)
    assert "{" not in text_of(name, "spark")
    assert ("partition_interval" in needed) is ("partition_interval" in query)
    assert set(COMMENTS[name]) == set(MEASURES[name].schema.names)


NO_SESSION = cast(SparkSession, None)


def test_settings_out_of_their_range_are_refused() -> None:
    given = GivenTables(NO_SESSION, {})
    with pytest.raises(ValueError, match="flap_seconds must be a whole number"):
        measures(given, flap_seconds=0)


def test_a_table_of_another_name_is_an_attribute_error() -> None:
    given = GivenTables(NO_SESSION, {})
    with pytest.raises(AttributeError, match="'controler': expected one of partition_interval"):
        given.controler  # noqa: B018
    with pytest.raises(ValueError, match="prefix 'a b'"):
        given.create_views("a b")
