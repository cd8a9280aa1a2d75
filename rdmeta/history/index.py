"""An index of footers beside history files, so that a second look opens only new files.

The index is `.rdmeta-index.json` in the directory that a reader looks at. It only saves time: a
reader ignores one that is missing, damaged or foreign, and works where it cannot write one. A file
is taken from the index while its size and its times of change are the same. A file that changed in
the last two seconds is not written to the index. It may change again without another time.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from rdmeta._atomic import AtomicFile
from rdmeta.history.opening import HistoryFile, described
from rdmeta.history.schema import HistoryError

__all__ = ["NAME", "Index", "Stamp"]

NAME = ".rdmeta-index.json"
_FORMAT = 1
_SETTLED_NS = 2_000_000_000
_PREFIX = b"rdmeta."


class Stamp(NamedTuple):
    """A file's size and its times of change, in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int


class Index:
    """The known footers of the files below a directory, by their paths in it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / NAME
        self._entries = _entries(self._path)
        self._kept: dict[str, Any] = {}
        self._is_new = False

    def find(self, path: str, stamp: Stamp) -> HistoryFile | None:
        """Returns the file at a path in the directory, None if it must be opened."""
        entry = self._entries.get(path)
        try:
            if entry is None or tuple(entry["stamp"]) != stamp:
                return None
            metadata = {_PREFIX + k.encode(): v.encode() for k, v in entry["footer"].items()}
            unknown = tuple(str(name) for name in entry["unknown"])
            rows = int(entry["rows"])
            file = described(self._root / path, metadata, rows, stamp.size, unknown)
        except (AttributeError, HistoryError, KeyError, TypeError, ValueError):
            return None
        self._kept[path] = entry
        return file

    def add(self, path: str, stamp: Stamp, file: HistoryFile, metadata: dict[bytes, bytes]) -> None:
        """Notes a file that was opened."""
        if max(stamp.mtime_ns, stamp.ctime_ns) > time.time_ns() - _SETTLED_NS:
            return
        self._is_new = True
        self._kept[path] = {
            "stamp": stamp,
            "rows": file.rows,
            "unknown": file.unknown_columns,
            "footer": {
                key[len(_PREFIX) :].decode(errors="replace"): value.decode(errors="replace")
                for key, value in metadata.items()
                if key.startswith(_PREFIX)
            },
        }

    def keep(self, path: str) -> None:
        """Keeps what is known of a file that the caller does not want."""
        if path in self._entries:
            self._kept[path] = self._entries[path]

    def save(self) -> None:
        """Writes the index if it has changed; a directory where that fails keeps the old one."""
        if not self._is_new and self._kept.keys() == self._entries.keys():
            return
        content = json.dumps({"format": _FORMAT, "files": self._kept}, separators=(",", ":"))
        with contextlib.suppress(OSError), AtomicFile(self._path) as file:
            file.path.write_text(content, encoding="utf-8")
            file.commit(sync=False)


def _entries(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
        entries = content["files"] if content["format"] == _FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}
