"""Rows of fold_model as Arrow tables, and the tables of a fold as pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from fold_model import Key, Piece, Row

from rdmeta import Fold
from rdmeta.history.schema import CHANGE_SCHEMA

INTERVALS = ("partition_interval", "topic_interval", "broker_interval", "config_interval")
TABLES = (*INTERVALS, "leader_change", "change")


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


def _partition(row: Row) -> tuple[Key, tuple[Any, ...]]:
    names = ("topic_id", "leader", "leader_epoch", "isr", "replicas", "offline")
    state = tuple(row[name] for name in (*names, "min_isr", "racks"))
    return ("partition", row["topic"], row["partition"]), state


def _topic(row: Row) -> tuple[Key, tuple[Any, ...]]:
    return ("topic", row["topic"]), (row["topic_id"], row["partitions"])


def _broker(row: Row) -> tuple[Key, tuple[Any, ...]]:
    return ("broker", row["broker"]), (row["host"], row["port"], row["rack"])


def _config(row: Row) -> tuple[Key, tuple[Any, ...]]:
    return ("config", row["resource_type"], row["resource"], row["key"]), (row["value"],)


_SPLIT: dict[str, Callable[[Row], tuple[Key, tuple[Any, ...]]]] = dict(
    zip(INTERVALS, (_partition, _topic, _broker, _config), strict=True)
)


def pieces(fold: Fold) -> list[Piece]:
    """Returns the intervals of all tables so far."""
    found = []
    for name, split in _SPLIT.items():
        for row in take(fold, name):
            assert row["us"] == row["ended_at"] - row["began_at"] >= 0
            rest = (row[field] for field in Piece._fields[2:])
            found.append(Piece(*split(row), *rest))
    return found
