"""The tables of silver as DataFrames, of recordings and of an OUT."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from history_maker import START, Plan, make_history
from pyspark.sql import SparkSession
from recorded import cluster_day
from source_reads import read, sorted_rows

from rdmeta import pipeline
from rdmeta.errors import ConfigError
from rdmeta.pipeline.layout import Parts, write_layout
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import TABLES
from rdmeta.pipeline.work import MadeMonth
from rdmeta.spark import large_months, measures, tables
from rdmeta.spark.functions import as_of
from rdmeta.spark.silver_frames import spark_path

pytestmark = pytest.mark.timeout(600)

PLAN = Plan(clusters=3, days=3, changes=150, gaps=1, recorders=2, every=300, deleted=(1,))
PARTS = {"cluster-0": Parts("day", 1), "cluster-1": Parts("day", 2), "cluster-2": Parts("month", 2)}
NOON = START.replace(hour=12, minute=0, second=0, microsecond=0)
LOGGED = "delta [1]{a,b}*"  # Spark would take it for a pattern
NO_SESSION = cast(SparkSession, None)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random history, and in `out` what the pipeline makes of it: days of two, and a month.

    `LOGGED` has the same as tables of Delta Lake.
    """
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    root = tmp_path_factory.mktemp("tables")
    make_history(root / "history", seed, PLAN)
    write_layout(Store(root / "out"), PARTS)
    pipeline.run(pipeline.plan([root / "history"], root / "out"), workers=1)
    for until in (f"{START:%Y-%m-%d}", None):  # the first run's files stay beside the second's
        logged = pipeline.plan([root / "history"], root / LOGGED, tables="delta", until=until)
        pipeline.run(logged, workers=1)
    return root


PART = {"clusters": "cluster-0", "since": NOON, "until": NOON + timedelta(hours=12)}
CHOSEN = [
    {},
    {"clusters": ["cluster-1", "cluster-2"]},
    {"since": NOON + timedelta(days=1)},
    PART,
    {"until": NOON + timedelta(days=1, seconds=0.5)},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "chosen"),
    # The data source itself reads recordings, with the options that it gets.
    [*product(("out", LOGGED), CHOSEN), ("history", {}), ("history", PART)],
)
def test_they_have_the_rows_of_the_data_source(
    root: Path, light: SparkSession, source: str, chosen: dict[str, Any]
) -> None:
    found = tables(light, root / source, **chosen)
    options = {n.removesuffix("s") if n == "clusters" else n: v for n, v in chosen.items()}
    if "cluster" in options and not isinstance(options["cluster"], str):
        options["cluster"] = ",".join(options["cluster"])
    options = {n: v if isinstance(v, str) else v.isoformat() for n, v in options.items()}
    for table in ("partition_interval", "leader_change", "observation"):
        wanted = read(path=str(root / source), table=table, **options)
        assert sorted_rows(getattr(found, table).toArrow()) == sorted_rows(wanted), table
        assert wanted.num_rows


@pytest.mark.slow
def test_spark_reads_the_folders_of_the_wanted_clusters_and_periods_alone(
    root: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tables(spark, root / "out", clusters="cluster-0", since=NOON)
    found.change.explain()
    shown = capsys.readouterr().out
    assert "FileScan parquet" in shown
    assert "PartitionFilters: [(cluster" in shown.replace("isnotnull(cluster#", "(cluster#")
    found.create_views("rdmeta")
    count = spark.sql("SELECT count(DISTINCT cluster_id) FROM rdmeta_change").first()
    assert count == (1,)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns an OUT with a day of one cluster."""
    root = tmp_path_factory.mktemp("small")
    cluster_day(root / "history", "one", 1)
    pipeline.run(pipeline.plan([root / "history"], root / "out"), workers=1)
    pipeline.run(pipeline.plan([root / "history"], root / "delta", tables="delta"), workers=1)
    return root / "out"


def test_a_wrong_argument_is_told_before_spark_is_asked(small: Path, tmp_path: Path) -> None:
    wrong: list[tuple[Path, dict[str, Any], str]] = [
        (small / "nowhere", {}, "there is no such folder"),
        (small, {"clusters": "nope"}, "'nope': .* has one"),
        (small, {"since": "yesterday"}, "option since"),
        (small, {"since": NOON, "until": NOON}, "expected a time after"),
        (tmp_path, {}, "it has no silver; run rdmeta pipeline silver"),
    ]
    write_layout(Store(tmp_path), {})
    for path, chosen, text in wrong:
        with pytest.raises(ConfigError, match=text):
            tables(NO_SESSION, path, **chosen)


def test_tables_with_logs_have_no_rows_before_their_first_run_has_ended(
    small: Path, tmp_path: Path
) -> None:
    """The folder may have files of two runs that were killed before their commits."""
    out = shutil.copytree(small.parent / "delta", tmp_path / "out")
    (out / "manifest.json").unlink()
    for opened in (
        lambda: tables(NO_SESSION, out),
        lambda: read(path=str(out), table="observation"),
        lambda: as_of._files(str(out), "partition_interval"),
    ):
        with pytest.raises(ConfigError, match="it has no silver; run rdmeta pipeline silver"):
            opened()


def test_all_tables_of_silver_have_a_name(small: Path) -> None:
    found = tables(NO_SESSION, small)
    assert set(found.names) == {*TABLES, "input_file"}
    assert set(found.names) <= set(type(found).__annotations__)


@pytest.mark.parametrize("kind", ["out", "delta"])
def test_measures_name_the_period_of_silver_that_lacks_a_column(
    small: Path, tmp_path: Path, kind: str
) -> None:
    out = shutil.copytree(small.parent / kind, tmp_path / kind)
    (part,) = out.glob("silver/v1/partition_interval/*/*/*.parquet")
    rows = pq.read_table(part, partitioning=None)
    pq.write_table(rows.drop_columns(["racks", "partition_epoch"]), part)
    gold = measures(tables(NO_SESSION, out))
    with pytest.raises(ConfigError, match=r"no column racks, .*: make the period 2026-11 again"):
        gold.risk_hour  # noqa: B018
    with pytest.raises(AttributeError, match="read"):  # it needs no racks, and asks the session
        gold.config_change  # noqa: B018
    # The run says so, too, whichever engine makes the month.
    plan = pipeline.plan([], out, silver=False, gold=True)
    text = r"no column (partition_epoch, )?racks.*: make the period 2026-11 again"
    with pytest.raises(pipeline.PipelineError, match=text):
        pipeline.run(plan, workers=1)
    task = replace(plan.months[0], stored=plan.stored if kind == "delta" else None)
    month = large_months._MonthTables(NO_SESSION, task, MadeMonth("", "2026-11", None, None))
    with pytest.raises(ConfigError, match=r"no column racks, .*: make the period 2026-11 again"):
        month.require_columns("partition_interval", ["racks"])


def test_databricks_has_other_names_for_its_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_path("/Volumes/a/b[1]") == r"file:///Volumes/a/b\[1\]"
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert spark_path("/Volumes/a/b[1]") == r"dbfs:/Volumes/a/b\[1\]"
    assert spark_path("/dbfs/a/b") == "dbfs:/a/b"
    assert spark_path("/data/a") == "file:///data/a"
