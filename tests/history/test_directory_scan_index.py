"""A second look opens only the files that are new or changed since the first one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from history_files import record, rewrite

from rdmeta.history import HistoryError, directory_scan, look

NAME = ".rdmeta-index.json"


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gives the names of the Parquet files that are opened from now on.

    Files count as settled at once.
    """
    names: list[str] = []
    real = pq.ParquetFile

    def opened(source: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(os.path.basename(source))
        return real(source, *args, **kwargs)

    monkeypatch.setattr(pq, "ParquetFile", opened)
    monkeypatch.setattr(directory_scan, "_SETTLED_NS", 0)
    return names


def test_a_second_look_opens_new_files_alone(tmp_path: Path, opens: list[str]) -> None:
    record(tmp_path)
    first = look(tmp_path)
    assert (len(opens), first.opened) == (3, 3)
    opens.clear()
    assert look(tmp_path) == first._replace(opened=0)
    new = record(tmp_path, "cluster-B")
    assert look(tmp_path).opened == 3
    assert sorted(opens) == sorted(path.name for path in new)


def test_a_changed_file_is_opened_again(tmp_path: Path, opens: list[str]) -> None:
    path = record(tmp_path)[0]
    look(tmp_path)
    about = path.stat()
    rewrite(path, name="prod")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    opens.clear()
    assert look(tmp_path).files[0].name == "prod"
    assert opens == [path.name]


def test_a_file_that_is_gone_is_forgotten(tmp_path: Path, opens: list[str]) -> None:
    paths = record(tmp_path)
    look(tmp_path)
    paths[2].unlink()
    assert len(look(tmp_path).files) == 2
    assert len(json.loads((tmp_path / NAME).read_text())["files"]) == 2


def test_a_limited_look_keeps_what_is_known_of_other_files(
    tmp_path: Path, opens: list[str]
) -> None:
    record(tmp_path, "cluster-A")
    record(tmp_path, "cluster-B")
    look(tmp_path)
    look(tmp_path, cluster_id="cluster-A")
    assert look(tmp_path).opened == 0


def test_a_file_that_has_just_changed_is_not_in_the_index(tmp_path: Path) -> None:
    record(tmp_path)
    look(tmp_path)
    assert look(tmp_path).opened == 3


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b'{"format": 2, "files": {}}',
        b'{"format": 1, "files": 7}',
        b'{"format": 1, "files": [1]}',
    ],
)
def test_a_damaged_or_foreign_index_is_ignored(
    tmp_path: Path, opens: list[str], content: bytes
) -> None:
    record(tmp_path)
    wanted = look(tmp_path)
    (tmp_path / NAME).write_bytes(content)
    assert look(tmp_path) == wanted
    assert look(tmp_path).opened == 0


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"stamp": 5}, {"stamp": [1, 2, 3]}])
def test_a_damaged_entry_of_the_index_is_ignored(
    tmp_path: Path, opens: list[str], value: object
) -> None:
    record(tmp_path)
    wanted = look(tmp_path)
    content = json.loads((tmp_path / NAME).read_text())
    name = next(iter(content["files"]))
    stamp = content["files"][name]["stamp"]
    if isinstance(value, dict) and "stamp" in value:
        value = {**value, "stamp": stamp, "footer": {"format": 9}}
    content["files"][name] = value
    (tmp_path / NAME).write_text(json.dumps(content))
    assert look(tmp_path) == wanted._replace(opened=1)


def test_an_index_that_cannot_be_written_changes_nothing(
    tmp_path: Path, opens: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*paths: object) -> None:
        raise PermissionError("read-only")

    record(tmp_path)
    monkeypatch.setattr(os, "replace", refused)
    assert look(tmp_path).opened == look(tmp_path).opened == 3
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_bad_file_is_opened_again_until_it_is_good(tmp_path: Path, opens: list[str]) -> None:
    path = record(tmp_path)[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert look(tmp_path).files == []
    path.write_bytes(whole)
    assert len(look(tmp_path).files) == 3
    with pytest.raises(HistoryError, match="not a directory"):
        look(path)
