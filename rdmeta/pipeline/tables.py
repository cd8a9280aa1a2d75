"""The tables of silver: their columns, and one part of a table as it is written.

A part's bytes follow from its rows and its footer alone: row groups are cut at a number of rows,
however the rows come.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rdmeta._atomic import AtomicFile
from rdmeta.history.schema import GROUP_ROWS
from rdmeta.pipeline.store import Store

FoldTableName: TypeAlias = Literal[
    "partition_interval",
    "broker_interval",
    "topic_interval",
    "config_interval",
    "leader_change",
    "change",
    "controller",
]

_TIME = pa.timestamp("us", tz="UTC")
IDS = pa.list_(pa.int32())
# Bytes of texts and lists after which a row group ends earlier.
_MOST_BYTES = 8 << 20
# Nearly each row has its own value of these, and they rise in small steps: differences need less
# time and fewer bytes than a dictionary.
_RISING = ("us", "version", "offset")
_MADE_FROM = b"rdmeta.made_from"
_ROWS = b"rdmeta.rows_of_days"

_TYPES = {"str": pa.string(), "i32": pa.int32(), "i64": pa.int64(), "bool": pa.bool_()}
_TYPES |= {"ids": IDS, "time": _TIME}
_TYPES |= {"f64": pa.float64(), "strs": pa.list_(pa.string()), "f64s": pa.list_(pa.float64())}
_HOLE = pa.struct([("reason", pa.string()), ("minutes", pa.float64())])
_TYPES |= {"holes": pa.list_(_HOLE)}


def schema_of(columns: str) -> pa.Schema:
    """Returns a schema of `name type` pairs; a type that ends in "?" may be null."""
    fields = []
    for column in columns.split(","):
        name, kind = column.split()
        fields.append(pa.field(name, _TYPES[kind.rstrip("?")], kind.endswith("?")))
    return pa.schema(fields)


_SPAN = (
    ", began_at time, ended_at time, us i64, began_by str, ended_by str, unseen_us i64?,"
    " source str?, origin str, version i64, offset i64?, partial bool"
)
_SEEN = ", unseen_us i64?, origin str, version i64, offset i64?"

SCHEMAS: dict[str, pa.Schema] = {
    "partition_interval": schema_of(
        "cluster_id str, topic str, topic_id str?, partition i32, leader i32?, leader_epoch i32?,"
        " partition_epoch i32?, isr ids?, replicas ids?, adding ids?, removing ids?, elr ids?,"
        " offline ids?, min_isr i32?, racks i32?" + _SPAN
    ),
    "broker_interval": schema_of(
        "cluster_id str, broker i32, broker_epoch i64?, rack str?, host str, port i32,"
        " fenced bool?, shutting_down bool?" + _SPAN
    ),
    "topic_interval": schema_of("cluster_id str, topic str, topic_id str?, partitions i32" + _SPAN),
    "config_interval": schema_of(
        "cluster_id str, resource_type str, resource str, key str, value str" + _SPAN
    ),
    "leader_change": schema_of(
        "cluster_id str, topic str, topic_id str?, partition i32, observed_at time,"
        " old_leader i32?, new_leader i32?, old_leader_epoch i32?, new_leader_epoch i32?,"
        " elections i32?, source str?, source_broker i32?"
        + _SEEN
        + ", recordings i32, partial bool, spread_us i64?"
    ),
    "change": schema_of(
        "cluster_id str, kind str, topic str?, topic_id str?, partition i32?, broker i32?,"
        " observed_at time, source str?, source_broker i32?, old_isr ids?, new_isr ids?,"
        " old_replicas ids?, new_replicas ids?, old_offline ids?, new_offline ids?, detail str?"
        + _SEEN
        + ", partial bool"
    ),
    "controller": schema_of("cluster_id str, broker i32?, epoch i32" + _SPAN),
    "observation": schema_of(
        "cluster_id str, origin str, seen_from time, seen_to time, counts_from time?,"
        " counts_to time?, ended_by str, longest_gap_us i64?, partial bool"
    ),
}
TABLES = tuple(SCHEMAS)
OF_FOLD: tuple[FoldTableName, ...] = (
    "partition_interval",
    "broker_interval",
    "topic_interval",
    "config_interval",
    "leader_change",
    "change",
    "controller",
)


class TableWriter:
    """Writes one part of a table; the part has its name after `commit()`.

    `footer` is what the part says it was made from. `rows` and `bytes` count what it holds.
    """

    def __init__(self, store: Store, name: str, table: str, footer: str) -> None:
        schema = SCHEMAS[table]
        self.name, self.rows = name, 0
        self.draft: AtomicFile = store.draft(name)
        self._schema = schema
        self._waiting: list[Any] = []
        self._days: dict[str, int] = {}
        self._count = self._bytes = 0
        try:
            with self.draft.naming():
                self._writer = parquet_writer(self.draft.path, schema, footer)
        except BaseException:
            self.draft.drop()
            raise

    def write(self, day: str, rows: pa.Table) -> None:
        """Adds rows of a day, which is not before that of earlier rows.

        Columns are found by name. Raises OSError, and ValueError for other types.
        """
        if rows.num_rows == 0:
            return
        self._days[day] = self._days.get(day, 0) + rows.num_rows
        chosen = rows.select(self._schema.names)
        if not chosen.schema.equals(self._schema):
            chosen = chosen.cast(self._schema)
        self._waiting.append(chosen)
        self._count += chosen.num_rows
        self.rows += chosen.num_rows
        self._bytes += _size(chosen)
        while count := self._group():
            self._flush(count)

    def close(self) -> int:
        """Ends the file, which has no name yet; returns its size in bytes."""
        if self._count:
            self._flush(self._count)
        self._writer.add_key_value_metadata({_ROWS.decode(): json.dumps(self._days)})
        with self.draft.naming():
            self._writer.close()
        return self.draft.path.stat().st_size

    def drop(self) -> None:
        """Removes the file if it has no name yet."""
        with contextlib.suppress(OSError):  # the disk may be full
            self._writer.close()
        self.draft.drop()

    def _group(self) -> int:
        """Returns how many rows the next row group has, 0 while it is not full.

        That depends on the rows alone, not on the parts in which they come.
        """
        if self._bytes >= _MOST_BYTES:
            total = _running_size(pa.concat_tables(self._waiting))
            self._bytes = total[-1].as_py()
            if self._bytes >= _MOST_BYTES:
                below = int(pc.sum(pc.less(total, _MOST_BYTES), min_count=0).as_py())
                return min(below + 1, GROUP_ROWS)
        return GROUP_ROWS if self._count >= GROUP_ROWS else 0

    def _flush(self, count: int) -> None:
        rows = pa.concat_tables(self._waiting)
        group = rows.slice(0, count).combine_chunks()
        with self.draft.naming():
            self._writer.write_table(group, row_group_size=GROUP_ROWS)
        self._waiting = [rows.slice(count)]
        self._count, self._bytes = rows.num_rows - count, _size(self._waiting[0])


def _size(rows: pa.Table) -> int:
    """Returns how many bytes texts and lists take, by their buffers: a few more than they have."""
    return sum(each.nbytes - 4 * rows.num_rows for each in _sized(rows))  # without their offsets


def _sized(rows: pa.Table) -> list[pa.ChunkedArray]:
    """Returns the columns of texts and lists."""
    return [each for each in rows.columns if pa.types.is_string(each.type) or each.type == IDS]


def _running_size(rows: pa.Table) -> pa.ChunkedArray:
    """Returns, for each row, the bytes of texts and lists up to its end."""
    sizes: Any = pa.chunked_array([pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)])
    for column in _sized(rows):
        if pa.types.is_string(column.type):
            one: Any = pc.binary_length(column)
        else:
            one = pc.multiply(pc.list_value_length(column), 4)
        sizes = pc.add(sizes, pc.fill_null(one, 0).cast(pa.int64()))
    return pc.cumulative_sum(sizes)


def parquet_writer(path: Path, schema: pa.Schema, footer: str) -> pq.ParquetWriter:
    """Returns a writer of a file that says what it was made from; the caller closes it."""
    return pq.ParquetWriter(
        path,
        schema.with_metadata({_MADE_FROM: footer.encode()}),
        compression="zstd",
        version="2.6",
        data_page_version="1.0",
        store_schema=True,
        **_encodings(schema),
    )


def lacking(out: Store, part: str, columns: Iterable[str], there: Collection[str]) -> str | None:
    """Returns what to do about a part of silver that lacks columns; None if it has all."""
    missing = [each for each in columns if each not in there]
    if not missing:
        return None
    period = part.partition("period=")[2].partition("/")[0]
    return (
        f"{out.shown(part)}: it has no column {', '.join(missing)}, as an older version of rdmeta"
        f" made it: make the period {period} again, with rdmeta pipeline silver"
    )


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Returns the writer's options for each column.

    Rows come in the order of time. So only the bounds of times let a reader pass over a row group,
    and no other column has bounds.
    """
    times = [field.name for field in schema if field.type == _TIME]
    rising = [*times, *(name for name in _RISING if name in schema.names)]
    repeated = [
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
        for field in schema
        if field.name not in rising and field.type != _TYPES["holes"]
    ]
    return {
        "use_dictionary": repeated,
        "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
        "write_statistics": times,
    }


def made_from(store: Store, name: str) -> str | None:
    """Returns what a part says it was made from, None if it is not there or not whole."""
    try:
        with store.opened(name) as stream:
            metadata = pq.read_schema(stream).metadata or {}
        found: bytes | None = metadata.get(_MADE_FROM)
        return None if found is None else found.decode()
    except (pa.ArrowException, OSError, ValueError):
        return None


def rows_of_days(store: Store, name: str, days: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yields each of these days with the rows that a part has of it; the part is read once.

    Raises OSError.
    """
    with store.opened(name) as stream:
        file = pq.ParquetFile(stream)
        counts: dict[str, int] = json.loads(file.metadata.metadata[_ROWS])
        # Before release 20 pyarrow cannot read a file without rows.
        rows = file.read() if counts else file.schema_arrow.empty_table()
    for day in days:
        before = sum(count for each, count in counts.items() if each < day)
        yield day, rows.slice(before, counts.get(day, 0))
