"""A reader takes complete recordings, and names the fault of other files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock

from rdmeta.history import CHANGE_SCHEMA, HistoryError, Recorder, changes, files, read, recordings
from rdmeta.model import Change


def record(directory: Path, cluster_id: str = "cluster-A") -> list[Path]:
    """Writes a recording of three files: a baseline, a change, an end; returns their paths."""
    clock = FakeClock()
    cache = FakeCache(clock, cluster_id)
    cache.add_broker(1)
    cache.add_topic("orders", None, [1])
    with Recorder(cache, directory, clock=clock) as recorder:
        recorder.observe()
        clock.pass_seconds(1)
        cache.set_leader("orders", 0, 2)
        recorder.observe()
        recorder.flush()
    return list(recorder.files)


def rewrite(path: Path, table: pa.Table | None = None, **metadata: str) -> None:
    """Writes a file again with another table, or with other entries in its footer."""
    table = pq.read_table(path) if table is None else table
    words = {**pq.read_schema(path).metadata}
    words.update((f"rdmeta.{k}".encode(), v.encode()) for k, v in metadata.items())
    pq.write_table(table.replace_schema_metadata(words), path)


def test_rows_come_back_in_order_as_arrow_and_as_records(tmp_path: Path) -> None:
    record(tmp_path)
    table = read(tmp_path)
    assert table.schema.equals(CHANGE_SCHEMA)
    records = list(changes(tmp_path))
    assert [r.kind for r in records][-2:] == ["leader_changed", "observed_to"]
    assert table["kind"].to_pylist() == [r.kind for r in records]
    assert all(isinstance(r, Change) for r in records)
    assert records[-3].new_isr == (1, 2, 3)
    assert records[0].observed_at.tzinfo is not None


def test_rows_can_be_limited_to_a_cluster_and_to_a_recording(tmp_path: Path) -> None:
    record(tmp_path, "cluster-A")
    record(tmp_path / "below", "cluster-B")
    record(tmp_path / "below", "cluster-B")
    assert [r.cluster_id for r in recordings(tmp_path)] == ["cluster-A", *["cluster-B"] * 2]
    only = recordings(tmp_path)[1].session
    assert {r.cluster_id for r in changes(tmp_path, cluster_id="cluster-A")} == {"cluster-A"}
    assert {r.session for r in changes(tmp_path, session=only)} == {only}
    assert read(tmp_path, cluster_id="cluster-C").num_rows == 0


def test_unfinished_files_and_other_files_are_ignored(tmp_path: Path) -> None:
    whole = record(tmp_path)
    (tmp_path / f".{whole[0].name}.0123.tmp").write_bytes(b"PAR1")
    (tmp_path / f".{whole[0].name}").write_bytes(b"PAR1")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".making").mkdir()
    shutil.copy(whole[0], tmp_path / ".making")
    assert [file.path for file in files(tmp_path)] == whole


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="nowhere: not a directory"):
        files(tmp_path / "nowhere")


def test_a_parquet_file_of_another_name_is_an_error(tmp_path: Path) -> None:
    record(tmp_path)[1].rename(tmp_path / "renamed.parquet")
    with pytest.raises(HistoryError, match=r"renamed\.parquet: not a history file"):
        files(tmp_path)


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_truncated_file_is_an_error(tmp_path: Path, keep: int) -> None:
    path = record(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(HistoryError, match=f"{path.name}: not a whole Parquet file"):
        files(tmp_path)


def test_a_file_under_another_files_name_is_an_error(tmp_path: Path) -> None:
    first, second, _ = record(tmp_path)
    first.unlink()
    second.rename(first)
    with pytest.raises(HistoryError, match=f"its metadata says that it is {second.name}"):
        files(tmp_path)


def test_a_file_that_rdmeta_did_not_write_is_an_error(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    pq.write_table(CHANGE_SCHEMA.empty_table(), path)
    with pytest.raises(HistoryError, match="does not say that rdmeta wrote it"):
        files(tmp_path)


def test_a_file_of_a_later_format_is_an_error_that_names_both(tmp_path: Path) -> None:
    rewrite(record(tmp_path)[0], format="2")
    with pytest.raises(HistoryError, match=r"its format is 2, .* reads format 1"):
        files(tmp_path)


def test_a_footer_whose_times_are_no_numbers_is_an_error(tmp_path: Path) -> None:
    rewrite(record(tmp_path)[0], observed_to_us="yesterday")
    with pytest.raises(HistoryError, match="its metadata is damaged"):
        files(tmp_path)


def test_a_footer_that_ends_before_it_begins_is_an_error(tmp_path: Path) -> None:
    rewrite(record(tmp_path)[0], observed_to_us="0")
    with pytest.raises(HistoryError, match="ends before it begins"):
        files(tmp_path)


def test_a_column_of_another_type_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    table = pq.read_table(path)
    column = table.column_names.index("partition")
    wide = table.set_column(column, "partition", table["partition"].cast(pa.int64()))
    rewrite(path, wide)
    with pytest.raises(HistoryError, match=r"column 'partition' \(int64\)"):
        files(tmp_path)


def test_a_missing_column_is_null_and_an_unknown_one_is_passed_over(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    wanted = read(tmp_path)
    table = pq.read_table(path)
    rewrite(path, table.drop_columns(["detail"]).append_column("new", table["version"]))
    found = read(tmp_path)
    assert found.schema == CHANGE_SCHEMA
    assert found["detail"][: len(table)].null_count == len(table)
    assert found.drop_columns(["detail"]) == wanted.drop_columns(["detail"])


def test_a_gap_in_a_recording_is_an_error_that_names_the_files_around_it(tmp_path: Path) -> None:
    record(tmp_path)[1].unlink()
    with pytest.raises(HistoryError, match="begins at version 3, but .* ends at 2"):
        files(tmp_path)


def test_a_recording_without_its_beginning_is_an_error(tmp_path: Path) -> None:
    record(tmp_path)[0].unlink()
    with pytest.raises(HistoryError, match="first file, with the whole state, is missing"):
        files(tmp_path)


def test_the_same_file_twice_is_an_error(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    (tmp_path / "copy").mkdir()
    shutil.copy(path, tmp_path / "copy")
    with pytest.raises(HistoryError, match="the same file as"):
        files(tmp_path)
