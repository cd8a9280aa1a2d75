"""Makes one file of each recording that has ended, so that months of history are few files."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta._atomic import AtomicFile, leftovers, sync_path
from rdmeta.history.directory_scan import look
from rdmeta.history.opening import HistoryFile, rows_in, rows_of_file, verify
from rdmeta.history.schema import CHANGE_SCHEMA, GROUP_ROWS, FileName, Footer, HistoryError

_log = logging.getLogger(__name__)


def compact(directory: str | os.PathLike[str]) -> list[Path]:
    """Makes one file of each recording below `directory` that has ended; returns the new files.

        rdmeta.history.compact("history")

    The new file lies in the folder of the recording's first one. It has all rows in their order,
    and readers prefer it to the files that it was made of. These are removed once it is on the
    disk. A crash at any moment leaves all rows there once for each reader; the next call goes on.

    Each file is verified first. A recording that has not ended stays as it is. So does one of which
    a file is damaged or missing, and one with columns that this version does not know. A warning in
    the log `rdmeta.history` names a damaged file. Recorders and readers may be at work meanwhile.
    Raises HistoryError if another compaction of `directory` is at work, and OSError if a file
    cannot be written or removed.
    """
    root = Path(directory)
    if not root.is_dir():
        raise HistoryError(f"{root}: not a directory")
    with _alone(root):
        found = look(root)
        faulty = {fault.session for fault in found.quarantined}
        covered = {
            session: [each.path for each in group]
            for session, group in groupby(
                sorted(found.covered, key=lambda f: f.session), key=lambda f: f.session
            )
        }
        made: list[Path] = []
        for session, group in groupby(found.files, key=lambda f: f.session):
            if session not in faulty:
                made += _compacted(list(group), covered.get(session, []))
        return made


def _compacted(files: list[HistoryFile], covered: list[Path]) -> Iterator[Path]:
    """Yields the new file of one recording, if it needs one; removes what it then covers."""
    if any(file.unknown_columns for file in files):
        return
    if len(files) == 1 and not (covered and files[0].compacted is not None):
        return
    try:
        if len(files) == 1:
            verify(files[0].path)
            _remove(covered)
            return
        if not _has_ended(files[-1]):
            return
        path, footer = _target(files)
        _remove(leftovers(path))
        _write(path, footer, files)
    except HistoryError as error:
        _log.warning("%s; its recording stays as it is", error)
        return
    _remove([*covered, *(file.path for file in files if file.path != path)])
    yield path


def _has_ended(last: HistoryFile) -> bool:
    """Returns whether a recording ended in its last file; early versions have it in a row."""
    if last.ended_by is not None:
        return True
    kinds = rows_of_file(last)["kind"]
    return len(kinds) > 0 and kinds[-1].as_py() == "observed_to"


def _target(files: list[HistoryFile]) -> tuple[Path, Footer]:
    first, last = files[0], files[-1]
    footer = Footer(
        FileName(first.cluster_id, first.session, first.since, last.until),
        min(file.observed_from for file in files),
        max(file.observed_to for file in files),
        continues=first.continues,
        ended_by=last.ended_by,
        name=last.name,
        longest_gap_us=max(
            (file.longest_gap_us for file in files if file.longest_gap_us is not None),
            default=None,
        ),
        max_gap_us=last.max_gap_us,
        min_isr=last.min_isr,
        compacted=sum(file.compacted or 1 for file in files),
        source=last.source,
    )
    return first.path.with_name(str(footer.file)), footer


def _write(path: Path, footer: Footer, files: list[HistoryFile]) -> None:
    """Writes one file with all rows; until it is whole and on the disk, it has another name."""
    schema = CHANGE_SCHEMA.with_metadata(footer.metadata())
    with AtomicFile(path) as file:
        with (
            open(file.path, "wb") as out,
            pq.ParquetWriter(out, schema, compression="zstd") as writer,
        ):
            for rows in _groups(files):
                writer.write_table(rows.replace_schema_metadata(schema.metadata))
        verify(path, file.path.read_bytes())
        file.commit()


def _groups(files: Iterable[HistoryFile]) -> Iterator[pa.Table]:
    """Yields the rows of verified files, many at a time."""
    waiting: list[pa.Table] = []
    for file in files:
        content = file.path.read_bytes()
        verify(file.path, content)
        waiting.append(rows_in(pa.BufferReader(content), len(content)))
        if sum(map(len, waiting)) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _remove(paths: Iterable[Path]) -> None:
    folders = set()
    for path in paths:
        path.unlink(missing_ok=True)
        folders.add(path.parent)
    for folder in folders:
        sync_path(folder)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Locks the directory against another compaction until the block ends."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HistoryError(f"{root}: another compaction is at work") from error
        yield
    finally:
        os.close(descriptor)
