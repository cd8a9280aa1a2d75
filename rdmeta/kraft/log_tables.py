"""The records and the states of a metadata log as tables for Arrow. This module needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from rdmeta.errors import MissingExtraError

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError.of("to_arrow()", "arrow") from error


_TYPES = {
    "text": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "ids": pa.list_(pa.int32()),
    "texts": pa.list_(pa.string()),
}
_ORIGIN = " offset:long time:time at_or_before:bool"
_SCHEMAS = {
    "records": "cluster_id:text offset:long epoch:int time:time type:text version:int topic:text"
    " topic_id:text partition:int broker:int data:text",
    "topics": f"topic:text topic_id:text partitions:int{_ORIGIN}",
    "partitions": "topic:text topic_id:text partition:int leader:int leader_epoch:int"
    " partition_epoch:int recovering:bool replicas:ids isr:ids removing:ids adding:ids elr:ids"
    f" last_known_elr:ids directories:texts{_ORIGIN}",
    "replicas": "topic:text topic_id:text partition:int broker:int position:int is_leader:bool"
    " in_isr:bool directory:text",
    "brokers": "broker:int epoch:long fenced:bool shutting_down:bool rack:text log_dirs:texts"
    f" cordoned:texts registration:text{_ORIGIN}",
    "configs": f"resource_type:int resource:text name:text value:text{_ORIGIN}",
}
_AT_ONCE = 65_536


def table_of(name: str, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Returns rows as the table of a name; few of them are Python objects at a time."""
    fields = (each.split(":") for each in _SCHEMAS[name].split())
    schema = pa.schema([(field, _TYPES[type]) for field, type in fields])
    left = iter(rows)
    batches = [_batch(part, schema) for part in iter(lambda: list(islice(left, _AT_ONCE)), [])]
    return pa.Table.from_batches(batches, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.record_batch([pa.array(values, type) for values, type in columns], schema=schema)
