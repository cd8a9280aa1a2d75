"""A part's bytes follow from its rows and its footer, however the rows come."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rdmeta.pipeline import tables
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import SCHEMAS, TableWriter, made_from, rows_of_days

COUNT = 1000


def rows() -> pa.Table:
    """Returns rows of `observation`, in an order of columns of their own."""
    row = {"cluster_id": "c", "origin": "o", "seen_to": 2, "ended_by": "open", "partial": False}
    schema = SCHEMAS["observation"]
    table = pa.Table.from_pylist([{**row, "seen_from": n} for n in range(COUNT)], schema=schema)
    return table.select(schema.names[::-1])


def written(where: Path, sizes: list[int]) -> bytes:
    """Writes the rows in batches of these sizes; returns the part's bytes."""
    store, table = Store(where), rows()
    writer = TableWriter(store, "x.parquet", "observation", "made from")
    begin = 0
    for size in sizes:
        for offset in range(begin, begin + size):
            writer.write(f"2026-11-0{1 + offset // 500}", table.slice(offset, 1))
        begin += size
    writer.write("2026-11-02", table.slice(begin))
    assert writer.close() == writer.draft.path.stat().st_size
    writer.draft.commit()
    assert writer.rows == COUNT
    return (where / "x.parquet").read_bytes()


def test_the_batches_in_which_rows_come_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "GROUP_ROWS", 300)
    first = written(tmp_path / "a", [500])
    assert first == written(tmp_path / "b", [100, 7, 593])
    file = pq.ParquetFile(tmp_path / "a/x.parquet")
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert groups == [300, 300, 300, 100]
    assert file.schema_arrow.remove_metadata() == SCHEMAS["observation"]


def test_a_row_group_ends_earlier_if_its_texts_are_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "GROUP_ROWS", 300)
    monkeypatch.setattr(tables, "_MOST_BYTES", 6 * 130)  # a row has 6 bytes of texts
    assert written(tmp_path / "a", [500]) == written(tmp_path / "b", [100, 7, 593])
    file = pq.ParquetFile(tmp_path / "a/x.parquet")
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert groups == [130] * 7 + [90]


@pytest.mark.slow
def test_a_part_says_what_it_was_made_from_and_has_the_rows_of_each_day(tmp_path: Path) -> None:
    written(tmp_path, [500])
    store = Store(tmp_path)
    assert made_from(store, "x.parquet") == "made from"
    assert made_from(store, "y.parquet") is None
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    assert made_from(store, "cut.parquet") is None
    days = ["2026-11-01", "2026-11-02", "2026-11-03"]
    of_days = dict(rows_of_days(store, "x.parquet", days))
    assert [of_days[day].num_rows for day in days] == [500, 500, 0]
    assert of_days["2026-11-02"]["seen_from"].cast(pa.int64())[0].as_py() == 500


def test_times_are_micros_in_utc_for_every_reader(tmp_path: Path) -> None:
    written(tmp_path, [500])
    column = pq.ParquetFile(tmp_path / "x.parquet").schema.column(2)
    assert column.physical_type == "INT64"
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(column.logical_type)


def test_values_that_rise_are_stored_as_differences_and_only_times_have_bounds(
    tmp_path: Path,
) -> None:
    schema = SCHEMAS["partition_interval"]
    writer = TableWriter(Store(tmp_path), "x.parquet", "partition_interval", "")
    some = {"string": "a", "int32": 1, "bool": True, "timestamp[us, tz=UTC]": 7, "int64": 7}
    row = {field.name: some.get(str(field.type), [1, 2]) for field in schema}
    writer.write("2026-11-01", pa.Table.from_pylist([row] * 9, schema=schema))
    writer.close()
    writer.draft.commit()
    group = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0)
    columns = [group.column(store) for store in range(group.num_columns)]
    rising = {"began_at", "ended_at", "us", "version", "offset"}
    for column in columns:
        name = column.path_in_schema.split(".")[0]
        is_delta = "DELTA_BINARY_PACKED" in column.encodings
        has_dictionary = "RLE_DICTIONARY" in column.encodings
        assert (is_delta, has_dictionary) == (name in rising, name not in {*rising, "partial"})
        assert (column.statistics is not None) == (name in {"began_at", "ended_at"})


def test_a_writer_that_is_dropped_leaves_nothing(tmp_path: Path) -> None:
    writer = TableWriter(Store(tmp_path), "x.parquet", "observation", "")
    writer.write("2026-11-01", rows())
    writer.drop()
    assert list(tmp_path.iterdir()) == []
