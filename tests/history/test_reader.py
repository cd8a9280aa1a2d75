"""A reader takes complete recordings, and names the fault of other files."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_files import record, rewrite
from recorded import cluster_day

from rdmeta.history import (
    CHANGE_SCHEMA,
    HistoryError,
    changes,
    compact,
    compaction,
    directory_scan,
    files,
    look,
    read,
    reader,
    recordings,
)
from rdmeta.model import Change


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


def test_a_recording_with_a_fault_is_left_out_from_the_fault_on(tmp_path: Path) -> None:
    good = record(tmp_path, "cluster-A")
    first, second, third = record(tmp_path, "cluster-B")
    second.write_bytes(second.read_bytes()[:-9])
    found = look(tmp_path)
    assert [file.path for file in found.files] == [*good, first]
    assert [(each.path, each.cluster_id) for each in found.quarantined] == [
        (second, "cluster-B"),
        (third, "cluster-B"),
    ]
    cut, behind = (each.reason for each in found.quarantined)
    assert cut.startswith("not a whole Parquet file")
    assert behind == f"rests on a file of its recording that is set aside: {second.name}"
    assert files(tmp_path, on_error="quarantine") == found.files
    assert [len(r.files) for r in recordings(tmp_path, on_error="quarantine")] == [3, 1]
    with pytest.raises(HistoryError, match=second.name):
        files(tmp_path)


def test_a_missing_first_file_sets_its_recording_aside_alone(tmp_path: Path) -> None:
    good = record(tmp_path, "cluster-A")
    first, second, third = record(tmp_path, "cluster-A")
    first.unlink()
    found = look(tmp_path)
    assert [file.path for file in found.files] == good
    assert [each.path for each in found.quarantined] == [second, third]
    assert "with the whole state, is missing" in found.quarantined[0].reason
    assert found.quarantined[1].reason.startswith(f"rests on {second.name}: ")


def test_another_way_to_take_errors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="on_error"):
        files(tmp_path, on_error="ignore")  # type: ignore[arg-type]


def cut_pages(path: Path) -> None:
    """Damages a file's rows; its footer stays whole."""
    content = bytearray(path.read_bytes())
    content[4:600] = bytes(596)
    path.write_bytes(content)


def test_damaged_rows_are_left_out_with_a_warning_that_names_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = record(tmp_path, "cluster-A")
    second = record(tmp_path, "cluster-B")[1]
    cut_pages(second)
    with pytest.raises(HistoryError, match=second.name):
        read(tmp_path)
    with caplog.at_level(logging.WARNING, "rdmeta.history"):
        rows = read(tmp_path, on_error="quarantine")
    assert second.name in caplog.text
    wanted = sum(pq.read_metadata(path).num_rows for path in good)
    assert rows["cluster_id"].to_pylist().count("cluster-A") == wanted
    assert rows["kind"].to_pylist().count("observed_from") == 2
    assert "observed_to" not in rows["kind"].to_pylist()[wanted:]


def test_copies_are_told_and_one_of_them_is_read(tmp_path: Path) -> None:
    paths = record(tmp_path)
    (tmp_path / "copy").mkdir()
    shutil.copy(paths[0], tmp_path / "copy")
    found = look(tmp_path)
    assert (len(found.files), len(found.duplicates), found.quarantined) == (3, 1, [])
    assert {found.files[0].path, found.duplicates[0].path} == {
        paths[0],
        tmp_path / "copy" / paths[0].name,
    }


def test_files_that_contradict_each_other_are_set_aside_both(tmp_path: Path) -> None:
    paths = record(tmp_path)
    (tmp_path / "copy").mkdir()
    other = Path(shutil.copy(paths[0], tmp_path / "copy"))
    rewrite(other, pq.read_table(other).slice(0, 2))
    found = look(tmp_path)
    assert found.files == []
    both = {each.path: each.reason for each in found.quarantined}
    assert both.keys() == {*paths, other}
    assert both[other] == f"contradicts {paths[0]}"


def test_a_longer_file_of_the_same_rows_wins(tmp_path: Path) -> None:
    first, second, third = record(tmp_path)
    table = pa.concat_tables([pq.read_table(first), pq.read_table(second)])
    until = int(second.stem[-20:])
    wide = first.with_name(first.name.replace(first.stem[-20:], f"{until:020d}"))
    shutil.copy(first, wide)
    end = pq.read_schema(second).metadata[b"rdmeta.observed_to_us"].decode()
    rewrite(wide, table, until=str(until), observed_to_us=end)
    found = look(tmp_path)
    assert [file.path for file in found.files] == [wide, third]
    assert [file.path for file in found.covered] == [first, second]
    assert read(tmp_path)["kind"].to_pylist().count("leader_changed") == 1


def test_a_file_without_a_column_that_each_row_needs_is_an_error(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    rewrite(path, pq.read_table(path).drop_columns(["kind"]))
    with pytest.raises(HistoryError, match="column 'kind' is missing"):
        files(tmp_path)


def test_unknown_columns_are_named(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    table = pq.ParquetFile(path).read()
    rewrite(path, table.append_column("new", table["version"]))
    assert look(tmp_path).files[0].unknown_columns == ("new",)


@pytest.mark.parametrize(
    "entries",
    [
        {"until": "9" * 5000},
        {"until": "-1"},
        {"observed_to_us": "9" * 40},
        {"observed_from_us": "-" + "9" * 18},
        {"session": "../../etc"},
        {"observed_from_us": "-1"},
        {"observed_to_us": "4102444800000000"},
        {"longest_gap_us": "long"},
        {"longest_gap_us": "-1"},
        {"compacted": str(1 << 63)},
        {"compacted": "1e9"},
    ],
)
def test_a_hostile_footer_is_an_error_that_names_the_file(
    tmp_path: Path, entries: dict[str, str]
) -> None:
    path = record(tmp_path)[0]
    rewrite(path, **entries)
    with pytest.raises(HistoryError, match=path.name):
        files(tmp_path)


def test_a_footer_that_is_no_text_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    words = {**pq.read_schema(path).metadata, b"rdmeta.session": b"\xff\xfe"}
    pq.write_table(pq.read_table(path).replace_schema_metadata(words), path)
    with pytest.raises(HistoryError, match=path.name):
        files(tmp_path)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def folder_with_that_name(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (folder_with_that_name, "a folder, not a file"),
        (os.mkfifo, "not a regular file"),
        (link_to_itself, "cannot be read: Too many levels of symbolic links"),
        (lambda path: path.symlink_to("nothing"), "cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_file_is_set_aside_and_all_else_is_read(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    whole = record(tmp_path)
    path = whole[0].with_name("a.parquet")
    make(path)
    found = look(tmp_path)
    assert [file.path for file in found.files] == whole
    assert [(each.path, each.reason) for each in found.quarantined] == [(path, reason)]
    with pytest.raises(HistoryError, match=r"a\.parquet: "):
        files(tmp_path)


def test_a_loop_of_folders_is_entered_once(tmp_path: Path) -> None:
    whole = record(tmp_path / "history")
    (tmp_path / "history" / "loop").symlink_to("..")
    assert [file.path for file in files(tmp_path)] == whole


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = record(tmp_path)[0]
    path.chmod(0)
    with pytest.raises(HistoryError, match=path.name):
        files(tmp_path)


def test_files_lie_flat_or_by_cluster_and_day(tmp_path: Path) -> None:
    nested = record(tmp_path, "cluster A/7")
    assert nested[0].parent.relative_to(tmp_path) == Path("cluster=cluster%20A%2F7/day=2025-06-01")
    flat = []
    for path in record(tmp_path / "other", "cluster-B"):
        flat.append(path.rename(tmp_path / path.name))
    assert {file.path for file in files(tmp_path)} == {*nested, *flat}


def test_a_limit_opens_no_file_that_cannot_match(tmp_path: Path) -> None:
    record(tmp_path, "cluster-A")
    record(tmp_path, "cluster-B")
    noon = datetime(2025, 6, 1, 12, tzinfo=timezone.utc)
    assert look(tmp_path, cluster_id="cluster-A").opened == 3
    session = look(tmp_path, cluster_id="cluster-B").files[0].session
    assert look(tmp_path, session=session).opened == 3
    assert look(tmp_path, since=noon + timedelta(days=1)).opened == 0
    assert look(tmp_path, until=noon - timedelta(days=1)).opened == 0
    assert look(tmp_path, since=noon, until=noon + timedelta(days=9)).opened == 6


def test_rows_can_be_limited_to_a_time(tmp_path: Path) -> None:
    record(tmp_path, changes=5)
    rows = read(tmp_path)
    times = rows["observed_at"].to_pylist()
    since, until = times[0] + timedelta(seconds=2), times[0] + timedelta(seconds=4)
    wanted = [when for when in times if since <= when < until]
    assert wanted
    found = read(tmp_path, since=since, until=until)
    assert found["observed_at"].to_pylist() == wanted
    assert [each.observed_at for each in changes(tmp_path, since=since, until=until)] == wanted


def test_the_last_hour_of_a_day_is_in_its_folder_and_the_end_of_a_time_is_not_in_it(
    tmp_path: Path,
) -> None:
    cluster_day(tmp_path, "one", 1, at=86400.0 - 40)
    (found,) = recordings(tmp_path)
    begin, midnight = found.observed_from, datetime(2026, 11, 2, tzinfo=timezone.utc)
    assert len(look(tmp_path, since=midnight - timedelta(minutes=1)).files) == len(files(tmp_path))
    assert look(tmp_path, until=begin).files == []
    assert look(tmp_path, until=begin + timedelta(microseconds=1)).files


def test_files_without_rows_of_a_time_are_not_read(tmp_path: Path) -> None:
    paths = record(tmp_path, changes=5)
    begin = files(tmp_path)[0].observed_from
    cut_pages(paths[0])
    assert len(read(tmp_path, since=begin + timedelta(seconds=2))) > 0


def test_a_time_without_a_time_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="time zone"):
        read(tmp_path, since=datetime(2025, 6, 1))


@pytest.mark.parametrize("number", [0, 4])
def test_a_compaction_between_two_rows_harms_no_reader(tmp_path: Path, number: int) -> None:
    record(tmp_path, changes=number)
    rows = list(changes(tmp_path))
    rest = changes(tmp_path)
    first = next(rest)
    compact(tmp_path)
    assert [first, *rest] == rows


def test_files_that_are_replaced_after_the_look_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (0, 4):
        record(tmp_path, f"cluster-{count}", changes=count)
    rows = read(tmp_path)
    real = directory_scan.scan

    def replaced(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        compact(tmp_path)
        return found

    # A compaction that is killed before it removes files leaves both.
    monkeypatch.setattr(compaction, "_remove", lambda paths: None)
    monkeypatch.setattr(reader, "scan", replaced)
    assert read(tmp_path).equals(rows)
    times = rows["observed_at"].to_pylist()
    late = read(tmp_path, since=times[0] + timedelta(seconds=2))
    assert late["observed_at"].to_pylist() == [
        when for when in sorted(times) if when >= times[0] + timedelta(seconds=2)
    ]


def test_a_recording_that_goes_away_while_it_is_read_is_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = record(tmp_path, changes=4)
    for on_error in ("raise", "quarantine"):
        rows = changes(tmp_path, on_error=on_error)
        next(rows)
        contents = {path: path.read_bytes() for path in paths[2:]}
        for path in contents:
            path.unlink()
        if on_error == "raise":
            with pytest.raises(HistoryError, match=paths[2].name):
                list(rows)
        else:
            assert len(list(rows)) < 8
            assert paths[2].name in caplog.text
        for path, content in contents.items():
            path.write_bytes(content)
