"""What readers of tables with logs see, and folders that have the same tables without logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rdmeta import pipeline
from rdmeta.pipeline.committing import EVERY_TABLE, LoggedTable

SILVER = tuple(each for each in EVERY_TABLE if each.layer == "silver")


def made(source: Path, out: Path, **options: Any) -> pipeline.Made:
    return pipeline.run(pipeline.plan([source], out, **options), workers=1)


def rows_of_folder(out: Path, table: LoggedTable) -> list[str]:
    """Returns the rows of a table in a folder without logs, in an order of their own."""
    return _sorted(ds.dataset(out / table.folder, partitioning=None).to_table().to_pylist())


def rows_by_reader(out: Path, table: LoggedTable) -> Mapping[str, list[str]]:
    """Returns the rows of a Delta table as delta-rs and polars see them."""
    deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")
    import polars

    where = str(out / table.folder)
    if not deltalake.DeltaTable.is_deltatable(where):
        return {"delta-rs": [], "polars": []}
    period = table.partition_by[1]
    by_rust = deltalake.DeltaTable(where).to_pyarrow_table().drop_columns([period])
    return {
        "delta-rs": _sorted(by_rust.to_pylist()),
        "polars": _sorted(polars.read_delta(where).drop(period).to_arrow().to_pylist()),
    }


def assert_same_rows(out: Path, folder: Path, tables: tuple[LoggedTable, ...]) -> None:
    """Compares what each reader sees of the tables with the rows of a folder without logs."""
    for table in tables:
        wanted = rows_of_folder(folder, table)
        for reader, rows in rows_by_reader(out, table).items():
            assert rows == wanted, (table.name, reader)


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)
