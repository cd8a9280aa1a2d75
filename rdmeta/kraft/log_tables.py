"""The records and the states of a metadata log as tables for Arrow. This module needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rdmeta.errors import MissingExtraError

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError.of("to_arrow()", "arrow") from error


_TIME = pa.timestamp("us", tz="UTC")
_IDS, _TEXTS = pa.list_(pa.int32()), pa.list_(pa.string())
_ORIGIN = [("offset", pa.int64()), ("time", _TIME), ("at_or_before", pa.bool_())]
_SCHEMAS = {
    "records": pa.schema(
        [
            ("cluster_id", pa.string()), ("offset", pa.int64()), ("epoch", pa.int32()),
            ("time", _TIME), ("type", pa.string()), ("version", pa.int32()),
            ("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32()),
            ("broker", pa.int32()), ("data", pa.string()),
        ]
    ),
    "topics": pa.schema(
        [("topic", pa.string()), ("topic_id", pa.string()), ("partitions", pa.int32()), *_ORIGIN]
    ),
    "partitions": pa.schema(
        [
            ("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32()),
            ("leader", pa.int32()), ("leader_epoch", pa.int32()), ("partition_epoch", pa.int32()),
            ("recovering", pa.bool_()), ("replicas", _IDS), ("isr", _IDS), ("removing", _IDS),
            ("adding", _IDS), ("elr", _IDS), ("last_known_elr", _IDS), ("directories", _TEXTS),
            *_ORIGIN,
        ]
    ),
    "replicas": pa.schema(
        [
            ("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32()),
            ("broker", pa.int32()), ("position", pa.int32()), ("is_leader", pa.bool_()),
            ("in_isr", pa.bool_()), ("directory", pa.string()),
        ]
    ),
    "brokers": pa.schema(
        [
            ("broker", pa.int32()), ("epoch", pa.int64()), ("fenced", pa.bool_()),
            ("shutting_down", pa.bool_()), ("rack", pa.string()), ("log_dirs", _TEXTS),
            ("cordoned", _TEXTS), ("registration", pa.string()), *_ORIGIN,
        ]
    ),
    "configs": pa.schema(
        [
            ("resource_type", pa.int32()), ("resource", pa.string()), ("name", pa.string()),
            ("value", pa.string()), *_ORIGIN,
        ]
    ),
}  # fmt: skip
_AT_ONCE = 65_536


def table_of(name: str, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Returns rows as the table of a name; few of them are Python objects at a time."""
    schema = _SCHEMAS[name]
    batches, waiting = [], []
    for row in rows:
        waiting.append(row)
        if len(waiting) == _AT_ONCE:
            batches.append(_batch(waiting, schema))
            waiting = []
    if waiting:
        batches.append(_batch(waiting, schema))
    return pa.Table.from_batches(batches, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.record_batch([pa.array(values, type) for values, type in columns], schema=schema)
