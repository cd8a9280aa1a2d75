"""A verified file's rows agree with its footer; the first fault is named with the file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_files import record, rewrite

from rdmeta.history import CHANGE_SCHEMA, HistoryError, read, verify

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "history-1"


def with_value(path: Path, row: int, **values: Any) -> None:
    """Writes a file again with other values in one row."""
    rows = pq.read_table(path).to_pylist()
    rows[row] |= values
    rewrite(path, pa.Table.from_pylist(rows, schema=CHANGE_SCHEMA))


def test_a_recorders_files_are_whole(tmp_path: Path) -> None:
    for path in record(tmp_path, changes=3):
        found = verify(path)
        assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert found.file.rows == pq.read_metadata(path).num_rows
        assert found.file.path == path
        assert found.unknown_kinds == {}
        assert verify(path, path.read_bytes()) == found


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.parquet")), ids=lambda path: path.stem[-30:])
def test_files_of_format_1_are_whole(path: Path) -> None:
    assert verify(path).file.rows == pq.read_metadata(path).num_rows


@pytest.mark.parametrize(
    ("row", "values", "reason"),
    [
        (1, {"cluster_id": "other"}, "a row has another cluster_id"),
        (1, {"session": "0" * 36}, "a row has another session"),
        (1, {"session": None}, "column 'session' has 1 nulls"),
        (1, {"kind": None}, "column 'kind' has 1 nulls"),
        (2, {"version": 0}, "version runs backwards"),
        (-1, {"version": 1 << 62}, "its rows have version"),
        (0, {"version": -1}, "its rows have version -1"),
        (-1, {"new_isr": [1, None]}, "a list of column 'new_isr' has a null"),
        (0, {"kind": "broker_added"}, "its first row is not observed_from"),
        (2, {"kind": "observed_from"}, "a recording begins in the middle"),
        (2, {"kind": "resync"}, "observation was interrupted in the middle"),
        (1, {"kind": "observed_to"}, "the recording ends in the middle"),
    ],
)
def test_a_row_that_contradicts_the_footer_is_an_error(
    tmp_path: Path, row: int, values: dict[str, Any], reason: str
) -> None:
    path = record(tmp_path)[0]
    with_value(path, row, **values)
    with pytest.raises(HistoryError, match=f"{path.name}: .*{reason}"):
        verify(path)


def test_a_time_outside_of_the_footer_is_an_error(tmp_path: Path) -> None:
    path = record(tmp_path)[1]
    begin = int(pq.read_schema(path).metadata[b"rdmeta.observed_from_us"])
    rewrite(path, observed_to_us=str(begin))
    with pytest.raises(HistoryError, match="its rows have observed_at"):
        verify(path)


def test_a_time_that_runs_backwards_is_an_error(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    begin = pq.read_table(path)["observed_at"][0].as_py()
    with_value(path, 1, observed_at=begin.replace(year=begin.year + 1))
    with pytest.raises(HistoryError, match="observed_at runs backwards"):
        verify(path)


def test_text_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    content = path.read_bytes()
    rewrite(path, pq.read_table(path))
    table = pq.read_table(path)
    wrong = pa.array([b"\xff\xfe"] * len(table), pa.binary()).view(pa.string())
    place = table.schema.get_field_index("detail")
    rewrite(path, table.set_column(place, "detail", wrong))
    assert path.read_bytes() != content
    with pytest.raises(HistoryError, match=f"{path.name}: "):
        verify(path)


@pytest.mark.slow
def test_any_damage_of_a_file_is_an_error_or_leaves_its_rows(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    whole = path.read_bytes()
    refused = []
    for place in range(0, len(whole), 7):
        content = bytearray(whole)
        content[place] ^= 0x55
        try:
            verify(path, bytes(content))
        except HistoryError as error:
            refused.append(str(error))
    assert all(path.name in error for error in refused)
    assert len(refused) > len(whole) / 7 / 4


def test_kinds_of_a_later_version_are_counted(tmp_path: Path) -> None:
    path = record(tmp_path)[1]
    with_value(path, 0, kind="disk_full")
    assert verify(path).unknown_kinds == {"disk_full": 1}


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="cannot be read: No such file"):
        verify(tmp_path / "gone.parquet")


def test_a_file_of_few_rows_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(tmp_path)[1]
    opened, count = pq.ParquetFile, 0

    def counted(*arguments: Any, **options: Any) -> pq.ParquetFile:
        nonlocal count
        count += 1
        return opened(*arguments, **options)

    monkeypatch.setattr(pq, "ParquetFile", counted)
    assert verify(path).file.rows <= 8
    assert count == 1


@pytest.mark.parametrize(("count", "length"), [(60, 60_000), (1, 4_000_000)])
def test_lists_that_claim_a_thousand_times_the_files_size_are_refused(
    tmp_path: Path, count: int, length: int
) -> None:
    path = record(tmp_path)[1]
    rows = pq.read_table(path, partitioning=None)
    row = {**rows.to_pylist()[0], "old_isr": [0] * length}
    rewrite(path, pa.Table.from_pylist([row] * count, schema=rows.schema))
    with pytest.raises(HistoryError, match="more than 1000 times its size"):
        verify(path)
    with pytest.raises(HistoryError, match="more than 1000 times its size"):
        read(tmp_path)


def test_texts_that_claim_a_thousand_times_the_files_size_are_refused(tmp_path: Path) -> None:
    path = record(tmp_path)[1]
    rows = pq.read_table(path, partitioning=None)
    row = {**rows.to_pylist()[0], "detail": "x" * 100_000}
    rewrite(path, pa.Table.from_pylist([row] * 300, schema=rows.schema))
    with pytest.raises(HistoryError, match="more than 1000 times its size"):
        verify(path)
    with pytest.raises(HistoryError, match="more than 1000 times its size"):
        read(tmp_path)
