"""Files that readers see whole or not at all, also after a crash.

A writer makes a file under the name `.NAME.HEX.tmp`, syncs it, renames it and syncs the folder. No
glob for Parquet matches that name, also not those of DuckDB and polars, which match names with a
dot.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
_AT_A_TIME = 8


class AtomicFile:
    """A file that no reader sees before `commit()`.

        with AtomicFile(final) as file:
            file.path.write_bytes(content)
            file.commit()

    The writer writes to `path` and closes it before the commit. Without a commit the end of the
    `with` block removes the file. `name` is what an error calls it, by default its final path.
    """

    def __init__(self, final: str | os.PathLike[str], name: str = "") -> None:
        self.final = Path(final)
        self.path = self.final.with_name(f".{self.final.name}.{uuid4().hex}.tmp")
        self._name = name or os.fspath(final)
        self._is_there = False

    def commit(self, *, sync: bool = True) -> None:
        """Gives the file its name; without `sync` a crash may lose it. Raises OSError."""
        if sync:
            commit([self])
        else:
            self.name_it()

    def drop(self) -> None:
        """Removes the file if it was not committed."""
        if not self._is_there:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.drop()
        if isinstance(error, OSError):
            with self.naming():
                raise error

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Gives an OSError of the block, such as that of a full disk, the name of the file."""
        try:
            yield
        except OSError as error:
            if error.filename not in (None, self.path, str(self.path)) or error.errno is None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), self._name) from error

    def sync(self) -> None:
        """Brings the content to the disk."""
        with self.naming():
            sync_path(self.path)

    def name_it(self) -> None:
        """Gives the file its name."""
        with self.naming():
            os.replace(self.path, self.final)
            self._is_there = True

    def mtime_ns(self) -> int:
        """Returns the time of the file that has its name; raises OSError."""
        return os.stat(self.final).st_mtime_ns

    def sync_folder(self) -> None:
        """Brings the name to the disk."""
        with self.naming():
            sync_path(self.path.parent)


def commit(files: Sequence[AtomicFile]) -> None:
    """Gives each file its name, in this order, once all are synced; then syncs each folder once.

    A disk syncs several files at a time in less time than one after the other. Raises OSError; then
    some files may have their names.
    """
    _each(AtomicFile.sync, files)
    for file in files:
        file.name_it()
    _each(AtomicFile.sync_folder, list({file.path.parent: file for file in files}.values()))


def _each(step: Callable[[AtomicFile], None], files: Sequence[AtomicFile]) -> None:
    if len(files) == 1:
        step(files[0])
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(pool.map(step, files))


def is_leftover(name: str) -> bool:
    """Returns whether a file of that name is the unfinished file of a writer."""
    return _LEFTOVER.fullmatch(name) is not None


def leftovers(final: Path) -> Iterator[Path]:
    """Yields the unfinished files of writers that died before this file had its name."""
    return final.parent.glob(f".{final.name}.*.tmp")


def sync_path(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
