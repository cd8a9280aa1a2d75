"""Looks at a directory of history: what lies there, what of it counts, and what is set aside."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rdmeta.history.arranging import arrange
from rdmeta.history.file_listing import (
    ListedFile,
    Quarantined,
    RecordingFilter,
    bad,
    listed,
    listed_again,
)
from rdmeta.history.index import Index
from rdmeta.history.opening import HistoryFile, opened
from rdmeta.history.schema import HistoryError

__all__ = ["Found", "Recording", "look", "recordings_of"]

# How often a look goes back to folders that change meanwhile.
_LOOKS = 100

_Opened: TypeAlias = "tuple[HistoryFile, dict[bytes, bytes]] | HistoryError"


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
    root = Path(directory)
    if not root.is_dir():
        raise HistoryError(f"{root}: not a directory")
    if any(time is not None and time.tzinfo is None for time in (since, until)):
        raise ValueError("since and until need a time zone, such as datetime.timezone.utc")
    wanted = RecordingFilter(cluster_id, session, since, until)
    entries = listed(root)
    known: dict[ListedFile, _Opened] = {}
    for _ in range(_LOOKS):
        found = _look(root, entries, wanted, known)
        faulty = [os.path.relpath(each.path, root) for each in found.quarantined]
        # A compaction removes files that another one covers: the reason may be that these are gone.
        before, entries = entries, listed_again(root, entries, faulty)
        if set(before) <= set(entries):
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


def _in_time(found: list[HistoryFile], wanted: RecordingFilter) -> list[HistoryFile]:
    """Returns the files of the recordings that have a part in the time."""
    sessions = {
        recording.session
        for recording in recordings_of(found)
        if wanted.has_time(recording.observed_from, recording.observed_to)
    }
    return [file for file in found if file.session in sessions]


def _look(
    root: Path, entries: list[ListedFile], wanted: RecordingFilter, known: dict[ListedFile, _Opened]
) -> Found:
    """Returns what the entries are; `known` are those that this look has opened, and gets more."""
    index = Index(root)
    good: list[HistoryFile] = []
    faults: list[Quarantined] = []
    for entry in entries:
        path, stamp, reason = entry
        if not wanted.has_name(path):
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
        _in_time(arranged.files, wanted),
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
