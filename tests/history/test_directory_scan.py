"""A look finds every row once while a compaction replaces files, however often it is disturbed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_files import record, rewrite

from rdmeta.history import compact, directory_scan, files, look, read
from rdmeta.history.directory_scan import Found

CLUSTERS = tuple("ABCDEFGH")


@pytest.fixture
def compacted(tmp_path: Path) -> tuple[Path, Callable[[str], None]]:
    """A history, and a function that replaces a cluster's files as a compaction does."""
    directory, other = tmp_path / "history", tmp_path / "compacted"
    for name in CLUSTERS:
        record(directory, name, changes=3)
    shutil.copytree(directory, other)
    made = {path.parent.parent.name: path for path in compact(other)}

    def replace(name: str) -> None:
        new = made[f"cluster={name}"]
        (folder,) = (directory / f"cluster={name}").iterdir()
        old = list(folder.iterdir())
        shutil.copy(new, folder / f".{new.name}.tmp")
        (folder / f".{new.name}.tmp").rename(folder / new.name)
        for path in old:
            path.unlink()

    return directory, replace


def test_a_look_that_is_disturbed_again_and_again_finds_every_recording(
    compacted: tuple[Path, Callable[[str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, replace = compacted
    rows, left = read(directory), list(CLUSTERS)
    real = directory_scan._look

    def disturbed(*args: Any) -> Found:
        if left:
            replace(left.pop())
        return real(*args)

    monkeypatch.setattr(directory_scan, "_look", disturbed)
    assert read(directory).equals(rows)
    assert look(directory).quarantined == []


def test_a_second_look_goes_back_to_the_folders_that_changed_alone(
    compacted: tuple[Path, Callable[[str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, replace = compacted
    seen: list[str] = []
    left = ["C"]
    real, scandir = directory_scan._look, os.scandir

    def disturbed(*args: Any) -> Found:
        if left:
            replace(left.pop())
            seen.clear()
        return real(*args)

    def scanned(folder: str) -> Any:
        seen.append(os.path.relpath(folder, directory))
        return scandir(folder)

    monkeypatch.setattr(directory_scan, "_look", disturbed)
    monkeypatch.setattr(os, "scandir", scanned)
    assert len(look(directory).files) == 7 * 5 + 1
    assert set(seen) == {"cluster=C/day=2025-06-01"}


def test_a_folder_that_changes_while_it_is_read_is_read_again(
    compacted: tuple[Path, Callable[[str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, replace = compacted
    rows, scandir = read(directory), os.scandir
    left = ["B"]

    @contextlib.contextmanager
    def in_two_parts(folder: str) -> Iterator[list[os.DirEntry[str]]]:
        """Tells of the first file alone, and then all files but that one are replaced."""
        with scandir(folder) as entries:
            found = sorted(entries, key=lambda each: each.name)
        if left and "cluster=B/day" in folder:
            first = Path(found[0].path)
            content = first.read_bytes()
            replace(left.pop())
            first.write_bytes(content)
            found = found[:1]
        yield found

    monkeypatch.setattr(os, "scandir", in_two_parts)
    assert read(directory).equals(rows)
    assert not left


def test_a_fault_that_stays_is_told_while_other_files_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path)[1].write_bytes(b"PAR1")
    real = directory_scan._look
    looks: list[list[Path]] = []

    def busy(*args: Any) -> Found:
        looks.append(record(tmp_path, f"cluster-{len(looks)}"))
        return real(*args)

    monkeypatch.setattr(directory_scan, "_look", busy)
    assert len(look(tmp_path).quarantined) == 2
    assert len(looks) == 1
    assert len(files(tmp_path, on_error="quarantine")) > 0


@pytest.mark.slow
def test_a_file_whose_rows_claim_a_thousand_times_its_size_is_quarantined(tmp_path: Path) -> None:
    path = record(tmp_path)[-1]
    rows = pq.read_table(path)
    rewrite(path, rows.take(pa.array(bytes(1_000_000), pa.uint8())))
    (fault,) = look(tmp_path).quarantined
    assert fault.path == path
    assert "more than 1000 times its size" in fault.reason
