"""Looks at a directory of history: what lies there, what of it counts, and what is set aside.

A look lists the Parquet files below the directory. It takes the footers that it knows from an
index, opens the other files, and arranges all of them into recordings.

The index is `.rdmeta-index.json` in the directory that a reader looks at. It only saves time: a
reader ignores one that is missing, damaged or foreign, and works where it cannot write one. A file
is taken from the index while its size and its times of change are the same. A file that changed in
the last two seconds is not written to the index. It may change again without another time.
"""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import stat
import time
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rdmeta._atomic import AtomicFile
from rdmeta.history.arranging import arrange
from rdmeta.history.opening import HistoryFile, described, opened
from rdmeta.history.schema import FileName, HistoryError

INDEX_NAME = ".rdmeta-index.json"
_INDEX_FORMAT = 1
_SETTLED_NS = 2_000_000_000
_FOOTER_PREFIX = b"rdmeta."
_SUFFIX = ".parquet"
# How often a folder is listed again because it changes meanwhile.
_LISTINGS = 100
# How often a look goes back to folders that change meanwhile.
_LOOKS = 100
_Opened: TypeAlias = "tuple[HistoryFile, dict[bytes, bytes]] | HistoryError"


class Stamp(NamedTuple):
    """A file's size and its times of change, in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int


class Index:
    """The known footers of the files below a directory, by their paths in it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / INDEX_NAME
        self._entries = _index_entries(self._path)
        self._kept: dict[str, Any] = {}
        self._is_new = False

    def find(self, path: str, stamp: Stamp) -> HistoryFile | None:
        """Returns the file at a path in the directory, None if it must be opened."""
        entry = self._entries.get(path)
        try:
            if entry is None or tuple(entry["stamp"]) != stamp:
                return None
            metadata = {_FOOTER_PREFIX + k.encode(): v.encode() for k, v in entry["footer"].items()}
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
                key[len(_FOOTER_PREFIX) :].decode(errors="replace"): value.decode(errors="replace")
                for key, value in metadata.items()
                if key.startswith(_FOOTER_PREFIX)
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
        content = json.dumps({"format": _INDEX_FORMAT, "files": self._kept}, separators=(",", ":"))
        with contextlib.suppress(OSError), AtomicFile(self._path) as file:
            file.path.write_text(content, encoding="utf-8")
            file.commit(sync=False)


def _index_entries(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
        entries = content["files"] if content["format"] == _INDEX_FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


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

    clusters: frozenset[str] | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(
        cls,
        cluster_id: str | None,
        session: str | None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> RecordingFilter:
        """Returns the filter of one cluster; None: of all."""
        clusters = None if cluster_id is None else frozenset({cluster_id})
        return cls(clusters, session, since, until)

    def has_name(self, path: str) -> bool:
        """Returns whether a file may match the filter, by its name and its folder.

        A folder day=YYYY-MM-DD has recordings of that day alone.
        """
        try:
            name = FileName.parse(os.path.basename(path))
        except HistoryError:
            return True
        if self.clusters is not None and name.cluster_id not in self.clusters:
            return False
        if self.session not in (None, name.session):
            return False
        day = _day(os.path.basename(os.path.dirname(path)))
        return day is None or self.has_time(day, day + timedelta(days=1))

    def has_time(self, begin: datetime, end: datetime) -> bool:
        """Returns whether a time, with both ends, or a part of it lies in the filter's."""
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


class Recording(NamedTuple):
    """One recording's files in their order, and the time that they cover."""

    cluster_id: str
    session: str
    observed_from: datetime
    observed_to: datetime
    files: tuple[HistoryFile, ...]

    @property
    def continues(self) -> str | None:
        """The session of the recording that this one continues after midnight."""
        return self.files[0].continues

    @property
    def ended_by(self) -> str | None:
        """Why the recording ended, None if it has not or if an early version recorded it."""
        return self.files[-1].ended_by


class Found(NamedTuple):
    """The files below a directory. Only `files` are history that a reader may use.

    `quarantined` are paths with a fault, and files that rest on such a path or on a missing one.
    `duplicates` are copies of other files. `covered` are files whose rows are in a longer file,
    which a compaction or a recorder made. `opened` is the number of files that the look opened; it
    knew the others from the index.
    """

    files: list[HistoryFile]
    quarantined: list[Quarantined]
    duplicates: list[HistoryFile]
    covered: list[HistoryFile]
    opened: int


def look(
    directory: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    session: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Found:
    """Returns what lies below `directory`: files that are history, and what is set aside.

        found = rdmeta.history.look("history")
        for each in found.quarantined:
            print(each.path, each.reason)

    The arguments limit it to one cluster, one recording, and recordings that have a part in the
    time since <= t < until. A file that cannot match by its name or by its folder day=YYYY-MM-DD is
    not opened. The files are in the order of cluster, recording and version. Names that begin with
    "." or "_", and names that do not end in ".parquet", are ignored: these files are unfinished, or
    not history.

    A look opens only files that are new since the last one, by an index that it writes into
    `directory` if it can. Recorders and a compaction may write at the same time. Raises
    HistoryError if `directory` is none, and ValueError for times without a time zone.
    """
    return scan(Path(directory), RecordingFilter.of(cluster_id, session, since, until))


def scan(
    root: Path, filter_: RecordingFilter, entries: Iterable[ListedFile] | None = None
) -> Found:
    """Returns what of a directory matches the filter, as `look` does; `entries` are its files."""
    if not root.is_dir():
        raise HistoryError(f"{root}: not a directory")
    if any(time is not None and time.tzinfo is None for time in (filter_.since, filter_.until)):
        raise ValueError("since and until need a time zone, such as datetime.timezone.utc")
    there = listed(root) if entries is None else list(entries)
    known: dict[ListedFile, _Opened] = {}
    for _ in range(_LOOKS):
        found = _look(root, there, filter_, known)
        faulty = [os.path.relpath(each.path, root) for each in found.quarantined]
        # A compaction removes files that another one covers: the reason may be that these are gone.
        before, there = there, listed_again(root, there, faulty)
        if set(before) <= set(there):
            break
    return found


def recordings_of(found: Iterable[HistoryFile]) -> list[Recording]:
    """Returns the recordings that files in their order make up, oldest first within a cluster."""
    made = []
    for (cluster_id, session), group in groupby(found, key=lambda f: (f.cluster_id, f.session)):
        parts = tuple(group)
        begin = min(part.observed_from for part in parts)
        end = max(part.observed_to for part in parts)
        made.append(Recording(cluster_id, session, begin, end, parts))
    return sorted(made, key=lambda r: (r.cluster_id, r.observed_from, r.session))


def _in_time(found: list[HistoryFile], filter_: RecordingFilter) -> list[HistoryFile]:
    """Returns the files of the recordings that have a part in the time."""
    sessions = {
        recording.session
        for recording in recordings_of(found)
        if filter_.has_time(recording.observed_from, recording.observed_to)
    }
    return [file for file in found if file.session in sessions]


def _look(
    root: Path,
    entries: list[ListedFile],
    filter_: RecordingFilter,
    known: dict[ListedFile, _Opened],
) -> Found:
    """Returns what the entries are; `known` are those that this look has opened, and gets more."""
    index = Index(root)
    good: list[HistoryFile] = []
    faults: list[Quarantined] = []
    for entry in entries:
        path, stamp, reason = entry
        if not filter_.has_name(path):
            index.keep(path)
            continue
        if stamp is None:
            faults.append(bad(root, path, reason or ""))
            continue
        file = index.find(path, stamp)
        if file is None:
            if entry not in known:
                known[entry] = _opened(root / path, stamp.size)
            outcome = known[entry]
            if isinstance(outcome, HistoryError):
                reason = str(outcome).removeprefix(f"{root / path}: ")
                faults.append(bad(root, path, reason))
                continue
            file, metadata = outcome
            index.add(path, stamp, file, metadata)
        good.append(file)
    index.save()
    arranged = arrange(good, _is_same, faults)
    aside = [Quarantined(f.path, f.session, f.cluster_id, why) for f, why in arranged.aside]
    return Found(
        _in_time(arranged.files, filter_),
        faults + aside,
        [copy for copy, _ in arranged.duplicates],
        [covered for covered, _ in arranged.covered],
        len(known),
    )


def _is_same(file: HistoryFile, other: HistoryFile) -> bool:
    if file.bytes != other.bytes:
        return False
    try:
        return filecmp.cmp(file.path, other.path, shallow=False)
    except OSError:
        return False


def _opened(path: Path, size: int) -> _Opened:
    try:
        return opened(path, size)
    except HistoryError as error:
        return error
