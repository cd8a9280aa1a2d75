"""What readers of tables with logs see, and folders that have the same tables without logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from rdmeta import pipeline
from rdmeta.pipeline.committing import EVERY_TABLE, LoggedTable
from rdmeta.pipeline.layout import CATALOG, read_kind
from rdmeta.pipeline.store import Store

SILVER = tuple(each for each in EVERY_TABLE if each.layer == "silver")


def made(source: Path, out: Path | str, **options: Any) -> pipeline.Made:
    return pipeline.run(pipeline.plan([source], out, **options), workers=1)


def rows_of_folder(out: Path, table: LoggedTable) -> list[str]:
    """Returns the rows of a table in a folder without logs, in an order of their own."""
    return _sorted(ds.dataset(out / table.folder, partitioning=None).to_table().to_pylist())


def rows_by_reader(out: Path, table: LoggedTable) -> Mapping[str, list[str]]:
    """Returns the rows of a table as the log's own library and polars see them."""
    kind = read_kind(Store(out))
    assert kind is not None
    read = _by_delta if kind.name == "delta" else _by_iceberg
    return {who: _sorted(rows.to_pylist()) for who, rows in read(out, table).items()}


def _by_delta(out: Path, table: LoggedTable) -> dict[str, Any]:
    deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")
    where = str(out / table.folder)
    if not deltalake.DeltaTable.is_deltatable(where):
        return {"delta-rs": pa.table({}), "polars": pa.table({})}
    period = table.partition_by[1]
    return {
        "delta-rs": deltalake.DeltaTable(where).to_pyarrow_table().drop_columns([period]),
        "polars": polars.read_delta(where).drop(period).to_arrow(),
    }


def _by_iceberg(out: Path, table: LoggedTable) -> dict[str, Any]:
    loaded = iceberg_table(out, table)
    if loaded is None:
        return {"pyiceberg": pa.table({}), "polars": pa.table({})}
    period = table.partition_by[1]
    with pytest.MonkeyPatch.context() as patch:  # polars warns of a package that it lacks
        patch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
        by_polars = polars.scan_iceberg(loaded).collect().drop(period).to_arrow()
    return {"pyiceberg": loaded.scan().to_arrow().drop_columns([period]), "polars": by_polars}


def iceberg_table(out: Path, table: LoggedTable) -> Any:
    """Returns a table of the catalog that lies in a folder, None if it is not there."""
    sql = pytest.importorskip("pyiceberg.catalog.sql", reason="the extra iceberg is not installed")
    if not (out / CATALOG).exists():
        return None
    catalog = sql.SqlCatalog("rdmeta", uri=f"sqlite:///{out / CATALOG}")
    name = (f"rdmeta_{table.layer}", table.name)
    found = catalog.load_table(name) if catalog.table_exists(name) else None
    catalog.close()
    return found


def configured_catalog(monkeypatch: pytest.MonkeyPatch, catalog: str, **values: str) -> None:
    """Sets pyiceberg's configuration of a catalog; it reads that once, when it is imported."""
    from pyiceberg.utils.config import Config

    for key, value in values.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{catalog}__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())


def assert_same_rows(out: Path, folder: Path, tables: tuple[LoggedTable, ...]) -> None:
    """Compares what each reader sees of the tables with the rows of a folder without logs."""
    for table in tables:
        wanted = rows_of_folder(folder, table)
        for reader, rows in rows_by_reader(out, table).items():
            assert rows == wanted, (table.name, reader)


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)
