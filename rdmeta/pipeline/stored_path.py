"""A file or a folder of an object store as a path, as far as readers of metadata logs need one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from functools import total_ordering
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from rdmeta.pipeline.store import Store


class StoredStat(NamedTuple):
    """What a store says of a file; the names are those of os.stat."""

    st_size: int
    st_mtime_ns: int


@total_ordering
class StoredPath:
    """A name in a store, with the methods of a Path that read. It raises OSError as a Path does."""

    def __init__(self, store: Store, name: str, about: StoredStat | None = None) -> None:
        self._store, self._name, self._about = store, name, about

    def __str__(self) -> str:
        return self._store.shown(self._name).rstrip("/")

    def __repr__(self) -> str:
        return f"<StoredPath {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredPath) and str(self) == str(other)

    def __lt__(self, other: StoredPath) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str) -> StoredPath:
        return StoredPath(self._store, f"{self._name}/{name}".lstrip("/"))

    @property
    def name(self) -> str:
        return str(self).rpartition("/")[2]

    @property
    def parent(self) -> StoredPath:
        folder = self._name.rpartition("/")[0] if self._name else ".."
        return StoredPath(self._store, folder)

    def iterdir(self) -> Iterator[StoredPath]:
        """Yields the files of the folder: a store has no folders of its own."""
        begin = f"{self._name}/".lstrip("/")
        for each in self._store.files(self._name):
            if "/" not in each.name[len(begin) :]:
                about = StoredStat(each.size, each.mtime_ns)
                yield StoredPath(self._store, each.name, about)

    def stat(self) -> StoredStat:
        if self._about is None:
            found = self._store.about(self._name)
            if found is None:
                raise self._missing()
            self._about = StoredStat(found.size, found.mtime_ns)
        return self._about

    def is_file(self) -> bool:
        return self._store.has(self._name)

    exists = is_file

    def open(self, mode: str = "rb", buffering: int = 0) -> Any:
        """Opens the file for reading at any position."""
        try:
            return self._store.opened(self._name)
        except FileNotFoundError:
            raise self._missing() from None

    def read_bytes(self) -> bytes:
        content = self._store.read(self._name)
        if content is None:
            raise self._missing()
        return content

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def _missing(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))


def path_in(store: Store, name: str) -> Path:
    """Returns a file or a folder of a store as a path; "" is the store itself."""
    if store.is_local:
        return Path(store.path(name))
    return cast("Path", StoredPath(store, name))
