"""Reads a directory of history without Spark, and checks that it is complete."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.history.arranging import Quarantined, arrange
from rdmeta.history.index import Index
from rdmeta.history.listing import Entry, Wanted, bad, listed
from rdmeta.history.opening import HistoryFile, opened, rows_of_file
from rdmeta.history.schema import CHANGE_SCHEMA, HistoryError
from rdmeta.model import Change

__all__ = [
    "Found",
    "OnError",
    "Recording",
    "changes",
    "files",
    "look",
    "read",
    "recordings",
]

_log = logging.getLogger(__name__)

OnError = Literal["raise", "quarantine"]

# How often a look begins again because files change meanwhile.
_LOOKS = 5


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
    """What lies below a directory. Only `files` are history that a reader may use.

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
    wanted = Wanted(cluster_id, session, since, until)
    entries = listed(root)
    for _ in range(_LOOKS):
        found = _look(root, entries, wanted)
        if not found.quarantined:
            break
        # A compaction replaces files. A listing that it disturbs may have neither old nor new.
        before, entries = entries, listed(root)
        if entries == before:
            break
    return found


def files(directory: str | os.PathLike[str], *, on_error: OnError = "raise") -> list[HistoryFile]:
    """Returns every history file below `directory` that a reader may use.

        for file in rdmeta.history.files("history", on_error="quarantine"):
            print(file.path, file.observed_from, file.observed_to)

    Each file is checked against its name, and `look` says how and in what order they come. With
    on_error="raise" it raises HistoryError, which names the file that is damaged, foreign,
    duplicated, or missing from the middle of a recording. With "quarantine" it leaves such files
    out, and what lies behind them in their recordings; `look` has the reasons.
    """
    return _files(directory, on_error, Wanted())


def recordings(
    directory: str | os.PathLike[str], *, on_error: OnError = "raise"
) -> list[Recording]:
    """Returns the recordings below `directory`, oldest first within a cluster.

    Raises the errors of `files`.
    """
    return _recordings(files(directory, on_error=on_error))


def read(
    directory: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    session: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    on_error: OnError = "raise",
) -> pa.Table:
    """Returns the change records below `directory` as Arrow, one recording after the other.

        day = datetime(2026, 11, 22, tzinfo=timezone.utc)
        table = rdmeta.history.read("history", since=day, until=day + timedelta(days=1))

    `cluster_id` and `session` limit it to one cluster, one recording. `since` and `until` limit it
    to rows with since <= observed_at < until; files without such rows are not read. Raises the
    errors of `files`. With on_error="quarantine" it leaves out a file without whole rows, and what
    lies behind it in its recording. It logs a warning that names the file.
    """
    wanted = Wanted(cluster_id, session, since, until)
    for left in reversed(range(_LOOKS)):
        try:
            tables = list(_tables(directory, on_error, wanted))
            break
        except HistoryError as error:
            if not left or not _is_gone(error):
                raise
    return pa.concat_tables(tables) if tables else CHANGE_SCHEMA.empty_table()


def changes(
    directory: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    session: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    on_error: OnError = "raise",
) -> Iterator[Change]:
    """Yields the change records below `directory` one by one, as a cache's changes() has them.

        for change in rdmeta.history.changes("history", cluster_id="lkc-7"):
            print(change.observed_at, change.kind, change.topic, change.partition)

    The arguments and errors are those of `read`. One file's rows are in memory at a time.
    """
    for table in _tables(directory, on_error, Wanted(cluster_id, session, since, until)):
        for batch in table.select(list(Change._fields)).to_batches():
            columns = (column.to_pylist() for column in batch.columns)
            yield from (_change(values) for values in zip(*columns, strict=True))


def _look(root: Path, entries: list[Entry], wanted: Wanted) -> Found:
    index, count = Index(root), 0
    good: list[HistoryFile] = []
    faults: list[Quarantined] = []
    for path, stamp, reason in entries:
        if not wanted.has_name(path):
            index.keep(path)
            continue
        if stamp is None:
            faults.append(bad(root, path, reason or ""))
            continue
        file = index.find(path, stamp)
        if file is None:
            count += 1
            try:
                file, metadata = opened(root / path, stamp.size)
            except HistoryError as error:
                faults.append(bad(root, path, str(error).removeprefix(f"{root / path}: ")))
                continue
            index.add(path, stamp, file, metadata)
        good.append(file)
    index.save()
    arranged = arrange(good, faults)
    return Found(
        _in_time(arranged.files, wanted),
        faults + arranged.quarantined,
        arranged.duplicates,
        arranged.covered,
        count,
    )


def _in_time(found: list[HistoryFile], wanted: Wanted) -> list[HistoryFile]:
    """Returns the files of the recordings that have a part in the time."""
    sessions = {
        recording.session
        for recording in _recordings(found)
        if wanted.has_time(recording.observed_from, recording.observed_to)
    }
    return [file for file in found if file.session in sessions]


def _recordings(found: Iterable[HistoryFile]) -> list[Recording]:
    made = []
    for (cluster_id, session), group in groupby(found, key=lambda f: (f.cluster_id, f.session)):
        parts = tuple(group)
        begin = min(part.observed_from for part in parts)
        end = max(part.observed_to for part in parts)
        made.append(Recording(cluster_id, session, begin, end, parts))
    return sorted(made, key=lambda r: (r.cluster_id, r.observed_from, r.session))


def _files(
    directory: str | os.PathLike[str], on_error: OnError, wanted: Wanted
) -> list[HistoryFile]:
    if on_error not in ("raise", "quarantine"):
        raise ValueError(f'on_error is "raise" or "quarantine", not {on_error!r}')
    found = look(directory, **wanted._asdict())
    if on_error == "raise":
        _raise(found)
    return found.files


def _raise(found: Found) -> None:
    for fault in found.quarantined:
        raise HistoryError(f"{fault.path}: {fault.reason}")
    for copy in found.duplicates:
        others = (str(f.path) for f in found.files if f.path.name == copy.path.name)
        raise HistoryError(f"{copy.path}: the same file as {next(others, 'another one')}")


def _tables(
    directory: str | os.PathLike[str], on_error: OnError, wanted: Wanted
) -> Iterator[pa.Table]:
    for recording in _recordings(_files(directory, on_error, wanted)):
        for file in recording.files:
            if not wanted.has_time(file.observed_from, file.observed_to):
                continue
            try:
                yield _rows(file, wanted)
            except HistoryError as error:
                if on_error == "raise" or _is_gone(error):
                    raise
                _log.warning("%s; it and what lies behind it in its recording is left out", error)
                break


def _is_gone(error: HistoryError) -> bool:
    """Returns whether a file went away after the look, as a compaction removes it."""
    return isinstance(error.__cause__, FileNotFoundError)


def _rows(file: HistoryFile, wanted: Wanted) -> pa.Table:
    rows = rows_of_file(file)
    times = rows["observed_at"]
    for bound, keeps in ((wanted.since, pc.greater_equal), (wanted.until, pc.less)):
        if bound is not None:
            scalar = pa.scalar(bound.astimezone(timezone.utc), times.type)
            rows = rows.filter(keeps(rows["observed_at"], scalar))
    return rows


def _change(values: Iterable[object]) -> Change:
    """Returns one row as a record; lists become tuples."""
    return Change(*(tuple(v) if isinstance(v, list) else v for v in values))  # type: ignore[arg-type]
