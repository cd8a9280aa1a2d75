"""Writes a Parquet file so that readers see all of it or nothing, also after a crash."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta._atomic import AtomicFile, sync_path


def write_whole(path: Path, table: pa.Table) -> None:
    """Writes `table` under a name that readers ignore, syncs it, and renames it to `path`.

    Makes the directories of `path` that are missing. Raises OSError; then `path` is as it was.
    """
    _make_directory(path.parent)
    with AtomicFile(path) as file:
        with open(file.path, "wb") as out:
            pq.write_table(table, out)
        file.commit()


def _make_directory(directory: Path) -> None:
    """Makes a directory and those above it, so that they are on the disk."""
    if not directory.is_dir():
        _make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync_path(directory.parent)
