"""The columns of each table, exactly as Arrow has them and as Spark has them.

Spark compares the schema of the first batch with that of the table, and takes all columns for ones
that may be null. So no field here is "not null", and no text is a dictionary or large.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types

from rdmeta.errors import ConfigError
from rdmeta.history.schema import CHANGE_SCHEMA
from rdmeta.pipeline.tables import SCHEMAS

CHANGES = "changes"
RECORDS = "records"

_TEXT, _BOOL, _IDS = pa.string(), pa.bool_(), pa.list_(pa.int32())
_BYTE2, _INT, _LONG, _DOUBLE = pa.int16(), pa.int32(), pa.int64(), pa.float64()

# The tables of a state, as `Image.to_arrow` has them, with the cluster first; and the configs.
_STATES: dict[str, list[tuple[str, pa.DataType]]] = {
    "brokers": [
        ("cluster_id", _TEXT),
        ("broker", _INT),
        ("host", _TEXT),
        ("port", _INT),
        ("rack", _TEXT),
        ("controller", _BOOL),
    ],
    "topics": [
        ("cluster_id", _TEXT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("internal", _BOOL),
        ("partitions", _INT),
        ("error", _BYTE2),
        ("operations", _INT),
        ("version", _LONG),
        ("state", _TEXT),
        ("source_broker", _INT),
        ("reason", _TEXT),
        ("age", _DOUBLE),
    ],
    "partitions": [
        ("cluster_id", _TEXT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("leader", _INT),
        ("leader_epoch", _INT),
        ("replicas", _IDS),
        ("isr", _IDS),
        ("offline_replicas", _IDS),
        ("error", _BYTE2),
        ("unreachable", _BOOL),
        ("leaderless", _BOOL),
        ("stale", _BOOL),
    ],
    "replicas": [
        ("cluster_id", _TEXT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("broker", _INT),
        ("position", _INT),
        ("leader", _BOOL),
        ("in_sync", _BOOL),
        ("offline", _BOOL),
        ("preferred", _BOOL),
    ],
    "configs": [
        ("cluster_id", _TEXT),
        ("topic", _TEXT),
        ("key", _TEXT),
        ("value", _TEXT),
        ("error", _TEXT),
    ],
}
_SCHEMAS: dict[str, pa.Schema] = {
    **{table: pa.schema(columns) for table, columns in _STATES.items()},
    CHANGES: pa.schema([(each.name, each.type) for each in CHANGE_SCHEMA]),
    **{t: pa.schema([(each.name, each.type) for each in s]) for t, s in SCHEMAS.items()},
}
# A record of a metadata log, and the file that it was read from.
_SCHEMAS[RECORDS] = pa.schema(
    [
        ("cluster_id", _TEXT),
        ("offset", _LONG),
        ("epoch", _INT),
        ("time", pa.timestamp("us", tz="UTC")),
        ("type", _TEXT),
        ("version", _INT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("broker", _INT),
        ("data", _TEXT),
        ("file", _TEXT),
    ]
)
STATE_TABLES = tuple(_STATES)
HISTORY_TABLES = (CHANGES, *SCHEMAS)

_SPARK: dict[pa.DataType, types.DataType] = {
    _TEXT: types.StringType(),
    _BOOL: types.BooleanType(),
    _BYTE2: types.ShortType(),
    _INT: types.IntegerType(),
    _LONG: types.LongType(),
    _DOUBLE: types.DoubleType(),
    _IDS: types.ArrayType(types.IntegerType()),
    pa.timestamp("us", tz="UTC"): types.TimestampType(),
}


def arrow_schema(table: str) -> pa.Schema:
    """Returns the columns of a table as Arrow has them."""
    return _SCHEMAS[table]


def spark_schema(table: str) -> types.StructType:
    """Returns the columns of a table as Spark has them."""
    fields = [types.StructField(each.name, _SPARK[each.type]) for each in arrow_schema(table)]
    return types.StructType(fields)


def columns_of(table: str, schema: types.StructType) -> pa.Schema:
    """Returns the columns that a read asks for: those of a schema that the user gave, or all.

    A user's schema may leave out columns and order them; raises ConfigError for others.
    """
    known = {each.name: each for each in spark_schema(table)}
    for field in schema:
        if field.name not in known or field.dataType != known[field.name].dataType:
            expected = ", ".join(f"{n} {f.dataType.simpleString()}" for n, f in known.items())
            raise ConfigError(
                f"schema: the table {table} has no column {field.name}"
                f" {field.dataType.simpleString()}; expected some of {expected}"
            )
    everything = arrow_schema(table)
    return pa.schema([everything.field(name) for name in schema.names])
