"""A file of history comes into place whole, and on the disk, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rdmeta.history.writing import write_whole

ONE, TWO = (pa.table({"a": pa.array(range(count))}) for count in (1, 2))


def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that gets a line for each sync and rename, with the file's name."""
    seen: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        seen.append(f"sync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        sync(descriptor)

    def renamed(old: Path, new: Path) -> None:
        seen.append(f"rename {old.name} {new.name}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    return seen


def test_a_file_is_synced_before_its_rename_and_its_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = steps(monkeypatch)
    write_whole(tmp_path / "cluster=one/day=1/x.parquet", ONE)
    above, folder, file, rename, after = seen
    hidden = file.removeprefix("sync ")
    assert (above, folder) == (f"sync {tmp_path.name}", "sync cluster=one")
    assert hidden.startswith(".x.parquet.")
    assert hidden.endswith(".tmp")
    assert rename == f"rename {hidden} x.parquet"
    assert after == "sync day=1"
    assert pq.ParquetFile(tmp_path / "cluster=one/day=1/x.parquet").read().equals(ONE)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_file_stays_as_it_was_when_a_step_fails(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    write_whole(path, ONE)

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="disk is full"):
        write_whole(path, TWO)
    assert [each.name for each in tmp_path.iterdir()] == ["x.parquet"]
    assert pq.ParquetFile(path).read().equals(ONE)
