"""Lists the recordings of a folder, on this machine or in a store, by names and footers alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rdmeta.history.arranging import arrange
from rdmeta.history.directory_scan import (
    Quarantined,
    RecordingFilter,
    bad,
    has_history_name,
    listed,
    look,
)
from rdmeta.history.opening import HistoryFile, opened_source
from rdmeta.history.schema import FileName, HistoryError
from rdmeta.pipeline.store import Store, StoredFile, as_text, is_text

__all__ = ["Lister", "Seen", "cluster_of", "entries", "name_of", "shown"]


class Seen(NamedTuple):
    """The files in a folder that count, and paths with a fault."""

    files: list[HistoryFile]
    faults: list[Quarantined]


class Lister:
    """Looks at folders again and again, and opens only footers that are new.

    A folder of this machine has an index of them. Those of a store are known by name, size, time.
    """

    def __init__(self) -> None:
        self._known: dict[StoredFile, HistoryFile | HistoryError] = {}

    def seen(
        self, store: Store, limits: RecordingFilter, clusters: frozenset[str] | None = None
    ) -> Seen:
        """Returns what is wanted; it opens no file whose name or folder cannot match.

        `clusters` limit it only if all are ids that files have in their names. A cluster may also
        be given by the name that the recorder noted in footers.
        """
        # look() lists a folder of this machine itself: here only the ids are missing.
        found = [] if store.is_local and clusters is None else list(entries(store))
        every = [limits]
        if clusters is not None and clusters <= {cluster_of(each.name) for each, _ in found}:
            every = [limits._replace(cluster_id=each) for each in sorted(clusters)]
        if not store.is_local:
            return self._stored(store, [each for each, _ in found], every)
        looks = [look(store.path(), **each._asdict()) for each in every]
        return Seen(
            [file for each in looks for file in each.files],
            [fault for each in looks for fault in each.quarantined],
        )

    def _stored(self, store: Store, found: list[StoredFile], every: list[RecordingFilter]) -> Seen:
        known: dict[StoredFile, HistoryFile | HistoryError] = {}
        for entry in found:
            if any(each.has_name(entry.name) for each in every):
                file = self._known.get(entry) or _opened(store, entry)
                if file is not None:
                    known[entry] = file
        self._known = known
        good = [each for each in known.values() if isinstance(each, HistoryFile)]
        faults = [
            bad(Path(), entry.name, str(each).removeprefix(f"{entry.name}: "))
            for entry, each in known.items()
            if isinstance(each, HistoryError)
        ]

        def is_same(one: HistoryFile, other: HistoryFile) -> bool:
            return _digest(store, one) == _digest(store, other)

        arranged = arrange(good, is_same, faults)
        aside = [Quarantined(f.path, f.session, f.cluster_id, why) for f, why in arranged.aside]
        return Seen(arranged.files, faults + aside)


def entries(store: Store, below: str = "") -> Iterator[tuple[StoredFile, str | None]]:
    """Yields the files of a place that may be history, with a reason for one that cannot be.

    Names that begin with "." or "_", and names that do not end in ".parquet", are passed over.
    Raises OSError if an object store does not answer.
    """
    if not store.is_local:
        found = (each for each in store.files(below) if has_history_name(each.name))
        yield from ((each, None) for each in found)
        return
    top = Path(store.path(below))
    for path, stamp, reason in listed(top) if top.is_dir() else ():
        name = f"{below}/{path}" if below else path
        if not is_text(name):
            name, reason = as_text(name), "its path is not UTF-8: rename it"
        size, mtime_ns = (stamp.size, stamp.mtime_ns) if stamp else (0, 0)
        yield StoredFile(name, size, mtime_ns), reason


def cluster_of(path: str) -> str:
    """Returns the cluster that a file's name tells, "" for another name."""
    try:
        return FileName.parse(os.path.basename(path)).cluster_id
    except HistoryError:
        return ""


def name_of(store: Store, file: HistoryFile) -> str:
    """Returns the path of a seen file in its place."""
    return str(file.path.relative_to(store.path()) if store.is_local else file.path)


def shown(store: Store, fault: Quarantined) -> str:
    """Returns what a user calls a path with a fault."""
    return str(fault.path) if store.is_local else store.shown(str(fault.path))


def _opened(store: Store, entry: StoredFile) -> HistoryFile | HistoryError | None:
    """Returns an object's footer, or its fault; None if it is gone."""
    try:
        with store.opened(entry.name) as stream:
            return opened_source(Path(entry.name), stream, entry.size)
    except FileNotFoundError:
        return None
    except HistoryError as error:
        return error


def _digest(store: Store, file: HistoryFile) -> bytes:
    return hashlib.sha256(store.read(str(file.path)) or b"").digest()
