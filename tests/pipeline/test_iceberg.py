"""Tables of Iceberg: one snapshot each and run, of whole files, in a catalog."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import commands
import pyarrow as pa
import pytest
from logged_tables import SILVER, configured_catalog, iceberg_table, made, rows_by_reader
from recorded import cluster_day, contents, tree

from rdmeta import pipeline
from rdmeta.pipeline.committing import LoggedTable
from rdmeta.pipeline.layout import CATALOG
from rdmeta.pipeline.store import Store

sql = pytest.importorskip("pyiceberg.catalog.sql", reason="the extra iceberg is not installed")

INTERVALS = LoggedTable("silver", "partition_interval")
NAME = ("rdmeta_silver", "partition_interval")


@pytest.fixture
def before(tmp_path: Path) -> tuple[Path, Path]:
    """A history of one day, and tables of it."""
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    cluster_day(source, "a/b %", 1)
    made(source, out, tables="iceberg")
    return source, out


def opened(out: Path, table: LoggedTable = INTERVALS) -> Any:
    return iceberg_table(out, table)


@pytest.mark.slow
def test_a_run_is_one_snapshot_of_whole_files(before: tuple[Path, Path]) -> None:
    source, out = before
    old = opened(out).current_snapshot()
    cluster_day(source, "one", 2)
    made(source, out)
    runs = set()
    for table in SILVER:
        first, last = opened(out, table).snapshots()
        runs.add(last.summary["rdmeta.run"])
        # A file that a delete rewrites would be a third that is added.
        assert (last.summary["added-data-files"], last.summary["deleted-data-files"]) == ("1", "1")
        assert first.summary["added-data-files"] == "2"
    assert len(runs) == 1
    assert "2026-11" in last.summary["rdmeta.made_from"]
    at = opened(out).scan(snapshot_id=old.snapshot_id).to_arrow()
    assert at.num_rows < len(rows_by_reader(out, INTERVALS)["pyiceberg"])
    assert {
        name for name in contents(out) if name.endswith(".parquet") and "/data/" in name
    } == set()
    assert pipeline.check(out) == []
    seen = tree(out)
    made(source, out, tables="iceberg")
    assert tree(out) == seen


@pytest.mark.slow
def test_vacuum_keeps_the_statistics_of_a_snapshot_that_stays(before: tuple[Path, Path]) -> None:
    from pyiceberg.table.statistics import StatisticsFile

    source, out = before
    paths = []
    for day in (2, 3):  # the first snapshot goes
        table = opened(out)
        path = out / INTERVALS.folder / "metadata" / f"{day}.stats"
        path.write_bytes(b"PFA1")
        with table.update_statistics() as new:
            told = {"snapshot-id": table.current_snapshot().snapshot_id, "blob-metadata": []}
            sizes = {"file-size-in-bytes": 4, "file-footer-size-in-bytes": 0}
            new.set_statistics(
                StatisticsFile.model_validate({"statistics-path": path.as_uri(), **told, **sizes})
            )
        paths.append(path)
        if day == 2:
            cluster_day(source, "one", day)
            made(source, out)
    assert pipeline.vacuum(out, "0h", dry_run=True) == pipeline.vacuum(out, "0h")
    assert [path.exists() for path in paths] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("column", "changed the columns of the Iceberg table rdmeta_silver.partition_interval"),
        ("partition", "changed the partition fields of"),
        ("deletes", "deleted rows by 1 delete files"),
    ],
)
def test_a_table_that_another_program_made_otherwise_is_refused(
    before: tuple[Path, Path], how: str, why: str
) -> None:
    from pyiceberg.manifest import DataFile, DataFileContent
    from pyiceberg.types import StringType

    source, out = before
    table = opened(out)
    if how == "column":
        with table.update_schema() as columns:
            columns.add_column("more", StringType())
    elif how == "partition":
        with table.update_spec() as spec:
            spec.add_identity("topic")
    else:  # pyiceberg writes none, and Spark does
        (entry,) = (each.file for each in table.scan(row_filter="cluster_id = 'one'").plan_files())
        file = DataFile.from_args(
            content=DataFileContent.POSITION_DELETES, file_path=f"{entry.file_path}.deletes",
            file_format=entry.file_format, partition=entry.partition, record_count=1,
            file_size_in_bytes=1, spec_id=entry.spec_id,
        )  # fmt: skip
        with table.transaction() as begun, begun.update_snapshot().fast_append() as new:
            new.append_data_file(file)
    seen = tree(out)
    with pytest.raises(pipeline.PipelineError, match=f"another program has {why}"):
        made(source, out, overwrite_foreign=True)
    assert tree(out) == seen


@pytest.mark.slow
def test_a_partition_field_may_come_back_in_another_place(before: tuple[Path, Path]) -> None:
    source, out = before
    for change in ("remove_field", "add_identity"):
        with opened(out).update_spec() as spec:
            getattr(spec, change)("cluster_id")
    cluster_day(source, "one", 2)
    made(source, out)
    found = opened(out).scan(row_filter="cluster_id = 'one' and period = '2026-11'").to_arrow()
    assert len(found) == 16
    assert pipeline.check(out) == []


@pytest.mark.slow
def test_vacuum_keeps_what_spark_names_otherwise(before: tuple[Path, Path]) -> None:
    """Spark writes locations of the local file system with one slash."""
    _, out = before
    wanted = rows_by_reader(out, INTERVALS)
    (metadata,) = (out / INTERVALS.folder / "metadata").glob("*.metadata.json")
    text = metadata.read_text()
    lists = [each.manifest_list for each in opened(out).snapshots()]
    for each in lists:
        text = text.replace(each, each.replace("file:///", "file:/"))
    metadata.write_text(text)
    with closing(sqlite3.connect(out / CATALOG)) as found, found:
        found.execute(
            "update iceberg_tables set metadata_location = replace(metadata_location, ?, ?)",
            ("file:///", "file:/"),
        )
    assert "///" not in opened(out).metadata_location + opened(out).snapshots()[0].manifest_list
    pipeline.vacuum(out, "0h")
    assert rows_by_reader(out, INTERVALS) == wanted
    assert pipeline.check(out) == []


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A catalog of the user, by the name `lake`."""
    uri = f"sqlite:///{tmp_path / 'lake.db'}"
    configured_catalog(monkeypatch, "LAKE", TYPE="sql", URI=uri, WAREHOUSE=str(tmp_path / "lake"))
    found = sql.SqlCatalog("lake", uri=uri, warehouse=str(tmp_path / "lake"))
    yield found
    found.close()


def test_tables_come_into_the_catalog_of_the_user(catalog: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    made(source, out, tables="iceberg", catalog="lake")
    assert catalog.load_table(NAME).location() == f"file://{out / INTERVALS.folder}"
    assert not (out / "catalog.db").exists()
    seen = tree(out)
    with pytest.raises(pipeline.PipelineError, match="in the catalog 'lake', not 'pond'"):
        pipeline.plan([source], out, catalog="pond")
    with pytest.raises(pipeline.PipelineError, match="partition_interval of the catalog lies in"):
        pipeline.plan([source], tmp_path / "other", tables="iceberg", catalog="lake")
    assert tree(out) == seen


def test_a_table_that_rdmeta_did_not_make_stays_as_it_is(catalog: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    catalog.create_namespace(NAME[0])
    catalog.create_table(NAME, pa.schema([("x", pa.int64())]))
    with pytest.raises(pipeline.PipelineError, match="rdmeta did not make the Iceberg table"):
        pipeline.plan([source], out, tables="iceberg", catalog="lake")
    assert not out.exists()


def test_a_catalog_that_is_down_or_unknown_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    configured_catalog(monkeypatch, "DOWN", TYPE="rest", URI="http://127.0.0.1:9")
    for name in ("down", "nowhere"):
        with pytest.raises(pipeline.PipelineError) as caught:
            pipeline.plan([tmp_path / "history"], tmp_path / "out", tables="iceberg", catalog=name)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_catalog_is_for_iceberg_and_a_store_needs_one(tmp_path: Path) -> None:
    from rdmeta.pipeline.iceberg import IcebergLogs

    cluster_day(tmp_path / "history", "one", 1)
    with pytest.raises(pipeline.PipelineError, match="for tables of Iceberg alone"):
        pipeline.plan([tmp_path / "history"], tmp_path / "out", tables="delta", catalog="lake")
    with pytest.raises(pipeline.PipelineError, match="need a catalog: give --catalog"):
        IcebergLogs(Store("s3://bucket/out?region=us-east-1"), "")


@contextmanager
def locked(catalog: Path) -> Iterator[None]:
    with closing(sqlite3.connect(catalog)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def taken_away(catalog: Path) -> Iterator[None]:
    away = catalog.rename(catalog.with_name("away"))
    try:
        yield
    finally:
        away.replace(catalog)


@contextmanager
def overwritten(catalog: Path) -> Iterator[None]:
    content = catalog.read_bytes()
    catalog.write_bytes(b"no catalog\n" * 1000)
    try:
        yield
    finally:
        catalog.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize("down", [locked, taken_away, overwritten])
def test_a_catalog_that_goes_down_before_the_commit_leaves_its_table_as_it_was(
    before: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    down: Callable[[Path], AbstractContextManager[None]],
) -> None:
    from rdmeta.pipeline.iceberg import IcebergLogs

    source, out = before
    wanted = rows_by_reader(out, INTERVALS)
    cluster_day(source, "one", 2)
    words = ("pipeline", "silver", str(source), str(out), "--engine", "local", "--json")
    commit = IcebergLogs.commit

    def late(self: IcebergLogs, *arguments: Any) -> None:
        with down(out / "catalog.db"):
            commit(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(IcebergLogs, "commit", late)
        done = commands.run(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert done.err.startswith(f"rdmeta: {out}/silver/v1/partition_interval: "), done.err
    assert rows_by_reader(out, INTERVALS) == wanted
    assert made(source, out).made == []  # only committed
    assert len(rows_by_reader(out, INTERVALS)["polars"]) > len(wanted["polars"])
    assert pipeline.check(out) == []
