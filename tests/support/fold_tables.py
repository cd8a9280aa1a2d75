"""Rows of fold_model as Arrow tables, and the tables of a fold as pieces."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from fold_model import COLUMNS, Piece, Row, piece_of

from rdmeta import Fold
from rdmeta.history.schema import CHANGE_SCHEMA

TABLES = (*COLUMNS, "leader_change", "change")


def as_table(rows: list[Row]) -> pa.Table:
    """Returns rows as the table that a history file has."""
    columns = []
    for field in CHANGE_SCHEMA:
        given = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        columns.append(pa.array([row.get(field.name) for row in rows], given).cast(field.type))
    return pa.Table.from_arrays(columns, schema=CHANGE_SCHEMA)


def take(fold: Fold, name: Any) -> list[Row]:
    """Returns the rows of one table; times are microseconds, lists are tuples."""
    table = pa.table(fold.take(name))
    table.validate(full=True)
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, table[i].cast(pa.int64()))
    return [
        {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        for row in table.to_pylist()
    ]


def pieces(fold: Fold) -> list[Piece]:
    """Returns the intervals of all tables so far."""
    found = []
    for name in COLUMNS:
        for row in take(fold, name):
            assert row["us"] == row["ended_at"] - row["began_at"] >= 0
            found.append(piece_of(name, row))
    return found
