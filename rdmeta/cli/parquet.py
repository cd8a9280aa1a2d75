"""A table as a Parquet file. Only --parquet imports this, and with it pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from rdmeta.errors import MissingExtraError

try:
    import pyarrow as pa
    from pyarrow import parquet
except ImportError as error:
    raise MissingExtraError.of("--parquet", "arrow") from error

__all__ = ["write"]

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
    part = f"{path}.{os.getpid()}.part"
    try:
        with (
            open(part, "wb") as file,
            parquet.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for batch in _batches(schema, rows, group):
                writer.write_batch(batch)
        os.replace(part, path)
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


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
