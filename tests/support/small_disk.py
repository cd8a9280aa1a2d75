"""A disk of a few pages, which a test fills up: a file system in memory, mounted by root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

__all__ = ["filled", "small_disk"]

_FILLER = ".filler"


@contextmanager
def small_disk(path: Path, size: int = 1 << 20) -> Iterator[Path]:
    """Mounts a disk of so many bytes at `path`; skips the test where that is not allowed."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no command mount")
    if done.returncode:
        pytest.skip(f"a disk cannot be mounted: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@contextmanager
def filled(disk: Path, left: int = 0) -> Iterator[None]:
    """Fills a disk up but for `left` bytes; they are free again after the block."""
    filler = disk / _FILLER
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        with suppress(OSError):
            while os.write(descriptor, bytes(4096)):
                pass
        size = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, max(size - left, 0))
        yield
    finally:
        os.close(descriptor)
        filler.unlink()
