"""Lists the Parquet files below a directory, with what is no readable file among them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from rdmeta.history.index import Stamp
from rdmeta.history.schema import FileName, HistoryError

__all__ = [
    "ListedFile",
    "Quarantined",
    "RecordingFilter",
    "bad",
    "has_history_name",
    "listed",
    "listed_again",
]

_SUFFIX = ".parquet"

# How often a folder is listed again because it changes meanwhile.
_LISTINGS = 100


class ListedFile(NamedTuple):
    """A file below the directory; `reason` says why it cannot be one of history."""

    path: str
    stamp: Stamp | None
    reason: str | None = None


class Quarantined(NamedTuple):
    """A path that is set aside, with the reason; its recording, if its name tells it."""

    path: Path
    session: str | None
    cluster_id: str | None
    reason: str


class RecordingFilter(NamedTuple):
    """The recordings that a caller asks for; None: all of them."""

    cluster_id: str | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def has_name(self, path: str) -> bool:
        """Returns whether a file may be wanted, by its name and its folder.

        A folder day=YYYY-MM-DD has recordings of that day alone.
        """
        try:
            name = FileName.parse(os.path.basename(path))
        except HistoryError:
            return True
        if self.cluster_id not in (None, name.cluster_id):
            return False
        if self.session not in (None, name.session):
            return False
        day = _day(os.path.basename(os.path.dirname(path)))
        return day is None or self.has_time(day, day + timedelta(days=1))

    def has_time(self, begin: datetime, end: datetime) -> bool:
        """Returns whether a time is wanted, both ends included, or a part of it."""
        if self.until is not None and begin >= self.until:
            return False
        return self.since is None or end >= self.since


def has_history_name(path: str) -> bool:
    """Returns whether a reader takes a file at a path in a directory for one of history."""
    return path.endswith(_SUFFIX) and not any(map(_is_hidden, path.split("/")))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def listed(root: Path) -> list[ListedFile]:
    """Returns the files whose names end in .parquet, in the order of their paths.

    Names that begin with "." or "_" are ignored. Links are followed; a folder is entered once.
    """
    found: list[ListedFile] = []
    _enter(str(root), "", set(), found)
    return sorted(found)


def listed_again(
    root: Path, entries: Iterable[ListedFile], paths: Iterable[str]
) -> list[ListedFile]:
    """Returns the entries after listing the folders of these paths once more."""
    folders = {os.path.dirname(path) for path in paths}
    kept = [each for each in entries if not _is_below(each.path, folders)]
    for folder in folders:
        is_inner = any(_is_below(folder, {other}) for other in folders - {folder})
        if not is_inner and (root / folder).is_dir():
            _enter(str(root / folder), folder, set(), kept)
    return sorted(kept)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(folder == "" or path.startswith(f"{folder}/") for folder in folders)


def bad(root: Path, path: str, reason: str) -> Quarantined:
    """Returns a path that is set aside, with the recording that its name tells."""
    try:
        name = FileName.parse(os.path.basename(path))
    except HistoryError:
        return Quarantined(root / path, None, None, reason)
    return Quarantined(root / path, name.session, name.cluster_id, reason)


def _enter(folder: str, path: str, entered: set[tuple[int, int]], found: list[ListedFile]) -> None:
    try:
        about = os.stat(folder)
        if (about.st_dev, about.st_ino) in entered:
            return
        entered.add((about.st_dev, about.st_ino))
        members = _members(folder)
    except OSError as error:
        found.append(ListedFile(path or ".", None, f"cannot be read: {error.strerror}"))
        return
    for each in members:
        if not _is_hidden(each.name):
            _member(each, f"{path}/{each.name}" if path else each.name, entered, found)


def _members(folder: str) -> list[os.DirEntry[str]]:
    """Returns what is in a folder at one moment; raises OSError.

    A large folder takes several reads. A file that takes the place of others between two of them
    would be missing, and so would they.
    """
    for _ in range(_LISTINGS):
        before = os.stat(folder).st_mtime_ns
        with os.scandir(folder) as entries:
            members = sorted(entries, key=lambda each: each.name)
        if os.stat(folder).st_mtime_ns == before:
            break
    return members


def _member(
    each: os.DirEntry[str], path: str, entered: set[tuple[int, int]], found: list[ListedFile]
) -> None:
    is_named = each.name.endswith(_SUFFIX)
    try:
        if each.is_dir():
            if is_named:
                found.append(ListedFile(path, None, "a folder, not a file"))
            else:
                _enter(each.path, path, entered, found)
        elif is_named:
            found.append(_file(each, path))
    except OSError as error:
        if is_named:
            found.append(ListedFile(path, None, f"cannot be read: {error.strerror}"))


def _file(each: os.DirEntry[str], path: str) -> ListedFile:
    about = each.stat()
    if not stat.S_ISREG(about.st_mode):
        return ListedFile(path, None, "not a regular file")
    return ListedFile(path, Stamp(about.st_size, about.st_mtime_ns, about.st_ctime_ns))


def _day(folder: str) -> datetime | None:
    if not folder.startswith("day="):
        return None
    try:
        return datetime.strptime(folder, "day=%Y-%m-%d").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
