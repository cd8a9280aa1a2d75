"""What keeps an output folder in order: `check` compares all files, `vacuum` removes old ones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from rdmeta.pipeline.committing import EVERY_TABLE, TableLogs, changes_of
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.layout import TableKind, read_kind
from rdmeta.pipeline.lock import Lock, NoLock
from rdmeta.pipeline.logs import logs_of
from rdmeta.pipeline.manifest import Fault, faults_of_files, read_manifest
from rdmeta.pipeline.storage import Storage, using
from rdmeta.pipeline.store import Store, contacted

_UNITS = {"h": 3600, "d": 86_400, "w": 604_800}
# On a store a run that works may have files of this age that no table has yet.
_OF_A_RUN = 7 * _UNITS["d"]


def check(
    out: str | os.PathLike[str],
    *,
    timeout: float = 30.0,
    storage: Mapping[str, str] | None = None,
) -> list[Fault]:
    """Returns how the files of an output folder differ from its manifest; none if it is whole.

    It reads each file: size, SHA-256 and rows. Files that the manifest does not have are named too.
    Tables with logs must have the files of the manifest. An object store gets `timeout` seconds for
    its first answer. `storage` is as in plan(). Raises PipelineError if the folder has no manifest,
    or is of another version; and OSError.
    """
    with using(Storage.parse(storage)):
        return _faults(contacted(out, timeout))


def _faults(store: Store) -> list[Fault]:
    kind = read_kind(store) or TableKind()
    faults = faults_of_files(store, kind)
    logs = logs_of(store, kind)
    if logs is not None:
        states = {table: logs.state(table) for table in EVERY_TABLE}
        for change in changes_of(states, read_manifest(store).files, store.has):
            reason = (
                f"its log has {len(change.removed)} files that the manifest does not have,"
                f" and lacks {len(change.added)}: run rdmeta pipeline again"
            )
            faults.append(Fault(store.shown(change.table.folder), reason))
    return faults


@dataclass(frozen=True)
class Vacuumed:
    """The files that were removed, or would be, and their size in bytes."""

    files: tuple[str, ...]
    bytes: int


def age_of(text: str) -> int:
    """Returns the seconds of an age such as 7d, 36h or 2w; raises ValueError."""
    found = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if found is None:
        raise ValueError(f"an age is a number with h, d or w, such as 7d, not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def vacuum(
    out: str | os.PathLike[str],
    older_than: str,
    *,
    dry_run: bool = False,
    timeout: float = 30.0,
    storage: Mapping[str, str] | None = None,
) -> Vacuumed:
    """Removes the files of tables that only versions older than an age have, or none.

    The tables cannot be read as of such versions any more. A file that no version has is removed
    once it has that age, on an object store once it is 7 days old. Those of the manifest stay.
    `storage` is as in plan(). Raises ValueError for an age that is none; PipelineError for a folder
    whose tables have no logs, or lost one; and LockedError, OSError.
    """
    seconds = age_of(older_than)
    with using(Storage.parse(storage)):
        return _vacuumed(contacted(out, timeout), seconds, dry_run)


def _spared_for(store: Store, seconds: int) -> int:
    """Returns the age in seconds up to which a file that no version has is spared."""
    return seconds if store.is_local else max(seconds, _OF_A_RUN)


def _require_logs(store: Store, logs: TableLogs) -> None:
    """Raises PipelineError if a table with files in the manifest has no log."""
    current = [each.stored for each in read_manifest(store).files.values()]
    for table in EVERY_TABLE:
        if any(each.startswith(f"{table.folder}/") for each in current) and not logs.has(table):
            raise PipelineError(
                f"{store.shown(table.folder)}: the log of this table is gone: restore it, or run"
                " rdmeta pipeline again, which makes a new one"
            )


def _vacuumed(store: Store, seconds: int, dry_run: bool) -> Vacuumed:
    kind = read_kind(store)
    logs = None if kind is None else logs_of(store, kind)
    if logs is None:
        raise PipelineError(
            f"{store.where}: its tables have no logs, so no file is of an older version"
        )
    _require_logs(store, logs)
    now = time.time()
    spared_ns = (now - _spared_for(store, seconds)) * 1e9
    files, size = [], 0
    with Lock(store) if store.is_local else NoLock() as held:
        if held.was_marked:
            raise PipelineError(
                f"{store.where}: the run before did not end well: run it again first"
            )
        current = {each.stored for each in read_manifest(store).files.values()}
        for table in EVERY_TABLE:
            there = {each.name: each for each in store.files(table.folder)}
            unneeded = logs.unneeded(table, int((now - seconds) * 1000), there, dry_run=dry_run)
            for name in sorted((unneeded.old | unneeded.unnamed) - current):
                if name in unneeded.old or there[name].mtime_ns < spared_ns:
                    files.append(name)
                    size += there[name].size
                    if not dry_run:
                        store.remove(name)
    return Vacuumed(tuple(files), size)
