"""A table as a Parquet file. Only --parquet imports this, and with it pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from rdmeta._atomic import AtomicFile
from rdmeta.errors import MissingExtraError

try:
    import pyarrow as pa
    from pyarrow import parquet
except ImportError as error:
    raise MissingExtraError.of("--parquet", "arrow") from error

_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "integers": pa.list_(pa.int32()),
    "texts": pa.list_(pa.string()),
    "flag": pa.bool_(),
    "number": pa.float64(),
    "share": pa.float64(),
    "time": pa.timestamp("us", tz="UTC"),
}


def write(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]], path: str, group: int
) -> None:
    """Writes rows in row groups of `group`; the file appears under its name when it is whole.

    `columns` are names with the kinds of Column. Raises OSError, which names `path`. Text that is
    not UTF-8 has escapes, as the text of Parquet is UTF-8.
    """
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns])
    with AtomicFile(path) as file:
        with (
            open(file.path, "wb") as out,
            parquet.ParquetWriter(out, schema, compression="zstd") as writer,
        ):
            for batch in _batches(schema, rows, group):
                writer.write_batch(batch)
        file.commit(sync=False)


def _batches(schema: Any, rows: Iterable[Sequence[Any]], group: int) -> Iterator[Any]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, group)):
        arrays = [
            pa.array(map(_value, cells), field.type)
            for cells, field in zip(zip(*chunk, strict=True), schema, strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)


def _value(cell: Any) -> Any:
    return cell.encode(errors="backslashreplace").decode() if isinstance(cell, str) else cell
