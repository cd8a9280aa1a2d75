"""Writes a Parquet file so that readers see all of it or nothing, also after a crash."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["sync_directory", "write_whole"]


def write_whole(path: Path, table: pa.Table) -> None:
    """Writes `table` under a name that readers ignore, syncs it, and renames it to `path`.

    Makes the directories of `path` that are missing. Raises OSError; then `path` is as it was.
    """
    _make_directory(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def _make_directory(directory: Path) -> None:
    """Makes a directory and those above it, so that they are on the disk."""
    if not directory.is_dir():
        _make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Syncs a directory, so that a rename in it is on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
