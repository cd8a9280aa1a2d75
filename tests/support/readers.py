"""What readers of an output folder see: pyarrow, DuckDB, polars and a shell's glob."""

from __future__ import annotations

from glob import glob
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from recorded import contents

from rdmeta.pipeline.tables import SCHEMAS, TABLES


def lasting(out: Path) -> dict[str, bytes]:
    """Returns all files whose bytes follow from the input alone."""
    return {name: c for name, c in contents(out).items() if name != "input.parquet"}


def assert_each_row_is_seen_once(out: Path, *, is_still: bool = True) -> None:
    """Reads each table by four readers; they see the same rows if the run stands still."""
    import polars

    for table in TABLES:
        folder = out / "silver/v1" / table
        pattern = f"{folder}/**/*.parquet"
        if not glob(pattern, recursive=True):
            continue
        columns = SCHEMAS[table].names
        quoted = ", ".join(f'"{name}"' for name in columns)
        seen = [
            _keys(ds.dataset(folder, partitioning=None).to_table(columns=columns).to_pylist()),
            _keys(_by_duckdb(f"select {quoted} from '{pattern}'")),  # noqa: S608
            _keys(polars.read_parquet(pattern).select(columns).to_arrow().to_pylist()),
            _keys(
                [
                    row
                    for path in glob(pattern, recursive=True)
                    for row in pq.ParquetFile(path).read().to_pylist()
                ]
            ),
        ]
        for found in seen:
            assert len(found) == len(set(found))
        if not is_still:
            continue
        for other in seen[1:]:
            assert len(other) == len(seen[0])
        assert seen[0] == seen[3]


def _keys(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(map(str, row.values())) for row in rows)


def _by_duckdb(query: str) -> list[dict[str, Any]]:
    found = duckdb.sql(query)
    assert found is not None
    rows: list[dict[str, Any]] = found.to_arrow_table().to_pylist()
    return rows
