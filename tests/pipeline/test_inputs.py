"""Files make up recordings as far as these are unbroken, and each file is looked at once."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from recorded import cluster_day, tree

from rdmeta import pipeline
from rdmeta.pipeline.inputs import Input, arrange, look, read_inputs, write_inputs
from rdmeta.pipeline.store import Store


def file(since: int, until: int, to_us: int = 0, sha256: str = "", store: str = "p") -> Input:
    name = f"{since}-{until}"
    return Input(
        store,
        name,
        1,
        1,
        sha256 or name,
        cluster_id="c",
        session="o",
        since=since,
        until=until,
        to_us=to_us or until,
    )


def arranged(*files: Input) -> tuple[list[str], dict[str, str]]:
    """Returns the names of the only recording's files, and the states of the others."""
    found, states = arrange(files)
    assert len(found) <= 1
    return [f.name for r in found for f in r.files], {f.path: f.state for f in states}


def test_files_in_any_order_make_up_a_recording() -> None:
    files = [file(0, 3), file(3, 7), file(7, 8), file(8, 8, 9)]
    Random(1).shuffle(files)
    assert arranged(*files) == (["0-3", "3-7", "7-8", "8-8"], {})


def test_a_file_that_covers_others_wins() -> None:
    found, states = arranged(file(0, 3), file(3, 7), file(0, 7), file(7, 9))
    assert found == ["0-7", "7-9"]
    assert states == {"p/0-3": "duplicate", "p/3-7": "duplicate"}


def test_what_lies_behind_a_missing_file_is_set_aside() -> None:
    assert arranged(file(0, 3), file(5, 7)) == (["0-3"], {"p/5-7": "set aside"})
    assert arranged(file(3, 5)) == ([], {"p/3-5": "set aside"})
    (recording,), _ = arrange([file(0, 3), file(5, 7)])
    assert recording.ended_by == "missing"


def test_a_file_whose_time_cannot_follow_is_set_aside() -> None:
    first = replace(file(0, 3, 100), from_us=50)
    before = replace(file(3, 5, 120), from_us=20)
    assert arranged(first, before) == (["0-3"], {"p/3-5": "set aside"})


def test_a_compaction_has_the_rows_of_all_files_that_it_was_made_of() -> None:
    old = [file(0, 8, 8), file(8, 8, 9)]
    new = replace(file(0, 8, 9, sha256="other", store="q"), compacted=2)
    found, states = arranged(*old, new)
    assert found == ["0-8"]
    assert states == {"p/0-8": "duplicate", "p/8-8": "duplicate"}


def test_a_file_that_a_longer_one_covers_cuts_no_recording() -> None:
    (recording,), _ = arrange([file(0, 8), file(8, 8), file(8, 9)])
    assert [each.name for each in recording.files] == ["0-8", "8-9"]
    assert recording.ended_by is None


def test_the_second_of_two_equal_files_is_a_duplicate() -> None:
    found, states = arranged(file(0, 3), file(0, 3, store="q"))
    assert found == ["0-3"]
    assert states == {"q/0-3": "duplicate"}


def test_two_files_that_contradict_each_other_are_both_set_aside() -> None:
    found, states = arranged(file(0, 3), file(3, 5), file(3, 5, sha256="x", store="q"))
    assert found == ["0-3"]
    assert states == {"p/3-5": "set aside", "q/3-5": "set aside"}


def test_of_two_files_without_rows_the_one_with_the_later_end_counts() -> None:
    found, states = arrange([file(0, 3), file(3, 3, 7, "x"), file(3, 3, 9, "y", "q")])
    assert found[0].to_us == 9
    assert [each.path for each in states] == ["p/3-3"]


def looked(directory: Path, known: Iterable[Input] = ()) -> list[Input]:
    return look(Store(directory), {(each.store, each.name): each for each in known})


def test_a_file_that_has_not_changed_is_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path, "one", 1)
    first = looked(tmp_path)
    assert [(each.state, each.cluster_id, each.rows) for each in first] == [
        ("good", "one", 8),
        ("good", "one", 5),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(Store, "opened", None)
        assert looked(tmp_path, [replace(each, state="duplicate") for each in first]) == first
    path = Path(first[0].path)
    path.write_bytes(b"PAR1")
    assert [each.state for each in looked(tmp_path, first)] == ["quarantined", "good"]


def test_a_file_of_the_same_size_and_another_time_is_opened_again(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    first = looked(tmp_path)
    path = Path(first[0].path)
    path.write_bytes(bytes(first[0].bytes))
    os.utime(path, ns=(0, first[0].mtime_ns + 1))
    assert [each.state for each in looked(tmp_path, first)] == ["quarantined", "good"]


def test_foreign_files_are_quarantined_with_their_reason(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    whole = sorted(tmp_path.rglob("*.parquet"))[0]
    table = pq.read_table(whole)
    other = table.set_column(0, "version", table["kind"])
    pq.write_table(other, whole)
    pq.write_table(table.replace_schema_metadata(None), tmp_path / f"a{whole.name}")
    (tmp_path / "_x.parquet").write_bytes(b"")
    (tmp_path / ".x.parquet").write_bytes(b"")
    reasons = {each.name: each.reason for each in looked(tmp_path)}
    assert reasons[str(whole.relative_to(tmp_path))] == (
        "column 'version' (string) does not match a change record"
    )
    assert "not a history file" in str(reasons[f"a{whole.name}"])
    assert len(reasons) == 3


def test_a_file_that_cannot_be_opened_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path, "one", 1)

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "opened", denied)
        first = looked(tmp_path)
    assert {each.state for each in first} == {"quarantined"}
    assert {each.state for each in looked(tmp_path, first)} == {"good"}


def test_an_unknown_column_is_named_and_not_refused(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    path = next(tmp_path.rglob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.append_column("mood", table["kind"]), path)
    found = {each.path: each for each in looked(tmp_path)}[str(path)]
    assert (found.state, found.unknown_columns) == ("good", "mood")


def test_the_table_of_inputs_has_a_row_for_each_file(tmp_path: Path) -> None:
    cluster_day(tmp_path / "in", "one", 1)
    found = looked(tmp_path / "in")
    out = Store(tmp_path / "out")
    write_inputs(out, found)
    assert read_inputs(out) == {(each.store, each.name): each for each in found}
    shown = pq.read_table(tmp_path / "out/input.parquet").to_pylist()
    assert [row["kind"] for row in shown] == ["history", "history"]
    assert shown[0]["from_time"].isoformat() == "2026-11-01T01:00:00+00:00"
    before = tree(tmp_path / "out")
    write_inputs(out, reversed(found))
    assert tree(tmp_path / "out") == before


def test_a_damaged_table_of_inputs_counts_as_none(tmp_path: Path) -> None:
    out = Store(tmp_path)
    out.put("input.parquet", b"PAR1")
    assert read_inputs(out) == {}


def test_a_name_that_is_not_utf_8_sets_one_file_aside(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    Path(os.fsdecode(folder + b"/changes.parquet")).touch()
    found = {each.name: each for each in look(Store(tmp_path), {})}
    assert found["\ufffd/changes.parquet"].reason == "its path is not UTF-8: rename it"
    assert sorted(each.state for each in found.values()) == ["good", "good", "quarantined"]
    write_inputs(Store(tmp_path / "out"), found.values())
    assert len(read_inputs(Store(tmp_path / "out"))) == 3


def test_a_folder_that_cannot_be_read_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path / "open", "one", 1)
    cluster_day(tmp_path / "closed", "two", 1)
    scandir = os.scandir

    def refused(path: str) -> Any:
        if str(path) == str(tmp_path / "closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    result = pipeline.run(pipeline.plan([tmp_path], f"{tmp_path}-out", in_place=True))
    assert [(f.name, f.reason) for f in result.plan.quarantined] == [
        ("closed", "cannot be read: Permission denied")
    ]
    assert {task.cluster_id for task in result.plan.tasks} == {"one"}
