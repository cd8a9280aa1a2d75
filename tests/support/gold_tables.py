"""The measures of gold over tables of silver that a test has in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rdmeta.pipeline.gold import query
from rdmeta.pipeline.tables import SCHEMAS

__all__ = ["gold_of", "rows_of_silver"]

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
