"""The measures of gold over tables of silver that a test has in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from gold_model import with_times

from rdmeta.pipeline.gold import query
from rdmeta.pipeline.tables import SCHEMAS

__all__ = ["gold_in", "gold_of", "rows_of_silver", "same", "silver_of"]

_INPUT = pa.schema([("cluster_id", pa.string()), ("day", pa.string()), ("state", pa.string())])


def gold_of(
    silver: Mapping[str, pa.Table],
    name: str,
    *,
    min_isr: int | None = None,
    flap_seconds: int = 600,
) -> list[dict[str, Any]]:
    """Returns the rows of a measure over these tables; a table that is not there has no rows."""
    with query.connected() as connection:
        for table, schema in {**SCHEMAS, "input_file": _INPUT}.items():
            connection.register(table, silver.get(table, schema.empty_table()))
        query.prepare(connection, min_isr=min_isr, flap_seconds=flap_seconds)
        found: list[dict[str, Any]] = query.rows(connection, name).to_pylist()
    return found


def rows_of_silver(table: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Returns a table of silver with these rows; columns that a row lacks are null."""
    schema = SCHEMAS[table]
    columns = [pa.array([row.get(each.name) for row in rows], each.type) for each in schema]
    return pa.table(columns, names=schema.names)


def silver_of(out: Path) -> dict[str, pa.Table]:
    """Returns the tables of silver that a folder has, each as one."""
    tables = {}
    for name in SCHEMAS:
        files = sorted((out / "silver/v1" / name).rglob("*.parquet"))
        tables[name] = pa.concat_tables(pq.ParquetFile(path).read() for path in files)
    return tables


def gold_in(out: Path, name: str) -> list[dict[str, Any]]:
    """Returns the rows of a measure that a folder has."""
    files = sorted((out / "gold/v1" / name).rglob("*.parquet"))
    return [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """Asserts that rows are equal in the columns that the model has, in any order."""
    names = sorted(wanted[0]) if wanted else []
    left = [{name: row[name] for name in names} for row in with_times(found)]
    right = [{name: row[name] for name in names} for row in wanted]
    assert sorted(map(str, left)) == sorted(map(str, right))
