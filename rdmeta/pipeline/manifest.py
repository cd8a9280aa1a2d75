"""`OUT/manifest.json` and its parts: the files of a finished run, and what each day was made from.

Each cluster has a part for a month: `OUT/manifest/cluster=ID/2026-11.json`. So one more day writes
little. `manifest.json` has the digests of the parts, and is written last. No part holds a time or a
number of a run, so equal tables have an equal manifest. `check` of `upkeep.py` compares with it.

A run that is killed between two renames leaves parts that differ from their digests. The next run
reads each part as it is: a part's days and files belong together, and the tables are in place. A
kill between the renames of a period and the manifest leaves days that only the tables tell of. If
their input goes away before the next run, these are all there is: `days_of_parts` finds them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rdmeta._atomic import commit, is_leftover
from rdmeta.history.directory_scan import INDEX_NAME
from rdmeta.pipeline import lock
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.layout import (
    CATALOG,
    INPUT,
    LAYOUT,
    MANIFEST,
    MANIFEST_PARTS,
    SILVER,
    Parts,
    TableKind,
    cluster_folder,
    is_log_file,
    read_layout,
    table_file,
)
from rdmeta.pipeline.store import Store, sha256_of
from rdmeta.pipeline.tables import made_from, rows_of_days
from rdmeta.pipeline.work import VERSIONS, MadeMonth, tables_of

_VERSION = 2
_AT_A_TIME = 16
_AGAIN = f"restore it, or remove {MANIFEST} and run again if no input is gone"
_MONTH = re.compile(r"/(?P<cluster>cluster=[^/]+)/(?:day|period|month)=(?P<month>\d{4}-\d\d)[/.-]")
_OF_DAYS = "observation"
_OF_LOGS = ("silver/", "gold/", CATALOG)
_ALSO_THERE = {INPUT, LAYOUT, MANIFEST, lock.NAME}


@dataclass(frozen=True)
class FileEntry:
    """A file as the manifest has it, under the name `stored` if it has two."""

    rows: int
    bytes: int
    sha256: str
    stored: str = ""

    @property
    def values(self) -> dict[str, Any]:
        """What the JSON has of it."""
        return {name: value for name, value in vars(self).items() if value != ""}


@dataclass(frozen=True)
class DayRecord:
    """A day's digest, and until when each origin saw it, in microseconds since 1970.

    `is_gone` says that input of it is gone, and that what was made of it stays.
    """

    digest: str
    origins: dict[str, int]
    is_gone: bool = False


@dataclass
class Manifest:
    """`days` are by cluster and day, `files` by name, `names` by cluster.

    `months` are those of gold, by cluster and month.
    """

    days: dict[str, dict[str, DayRecord]] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    months: dict[str, dict[str, MadeMonth]] = field(default_factory=dict)


def read_manifest(out: Store) -> Manifest:
    """Returns the manifest of `out`, an empty one if there is none; raises PipelineError."""
    found = Manifest()
    whole = out.read(MANIFEST)
    if whole is not None:
        parts = _add(out, found, MANIFEST, whole)["parts"]
        for name, text in _contents(out, sorted(parts)).items():
            if text is None:
                raise PipelineError(f"{out.shown(name)}: it is missing; {_AGAIN}")
            _add(out, found, name, text)
    return found


def read_digests(out: Store) -> dict[str, str] | None:
    """Returns the SHA-256 of each part by its name, None if there is no manifest.

    Raises PipelineError.
    """
    whole = out.read(MANIFEST)
    return None if whole is None else dict(_add(out, Manifest(), MANIFEST, whole)["parts"])


def write_manifest(out: Store, manifest: Manifest) -> None:
    """Writes the parts, and then `manifest.json`; what says the same stays as it is.

    Raises OSError.
    """
    texts = {name: _text(part) for name, part in _parts(manifest).items()}
    before = _contents(out, texts)
    with ExitStack() as stack:
        drafts = []
        for name, text in texts.items():
            if before[name] != text:
                drafts.append(stack.enter_context(out.draft(name)))
                drafts[-1].path.write_bytes(text)
        if drafts:
            commit(drafts)
    digests = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    files = {name: kept.values for name, kept in manifest.files.items() if not _part_of(name)}
    whole = _text({"names": manifest.names, "files": files, "parts": digests})
    if out.read(MANIFEST) != whole:
        out.put(MANIFEST, whole)


def _contents(out: Store, names: Iterable[str]) -> dict[str, bytes | None]:
    """Returns the contents of files, None for one that is not there; raises OSError."""
    names = list(names)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return dict(zip(names, pool.map(out.read, names), strict=True))


def _part_of(file: str) -> str | None:
    """Returns the name of the part that has a file, None for a file of all months."""
    found = _MONTH.search(file)
    return found and _part(found["cluster"], found["month"])


def _part(folder: str, month: str) -> str:
    return f"{MANIFEST_PARTS}/{folder}/{month}.json"


def _parts(manifest: Manifest) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the values of each part by its name."""
    found: dict[str, dict[str, dict[str, Any]]] = {}

    def part(name: str) -> dict[str, dict[str, Any]]:
        return found.setdefault(name, {"days": {}, "files": {}})

    for cluster_id, days in manifest.days.items():
        for day, made in days.items():
            values = part(_part(cluster_folder(cluster_id), day[:7]))
            values["days"].setdefault(cluster_id, {})[day] = vars(made)
    for cluster_id, months in manifest.months.items():
        for month, gold in months.items():
            values = part(_part(cluster_folder(cluster_id), month))
            values.setdefault("months", {}).setdefault(cluster_id, {})[month] = vars(gold)
    for file, kept in manifest.files.items():
        name = _part_of(file)
        if name is not None:
            part(name)["files"][file] = kept.values
    return dict(sorted(found.items()))


def _text(values: Mapping[str, Any]) -> bytes:
    found = {"manifest": _VERSION, **values}
    return (json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n").encode()


def _add(out: Store, manifest: Manifest, name: str, text: bytes) -> Mapping[str, Any]:
    """Adds what a part says to the manifest; returns its values, and raises PipelineError."""
    try:
        part: Mapping[str, Any] = json.loads(text)
        if part["manifest"] != _VERSION:
            raise PipelineError(
                f"{out.shown(name)}: its version is {part['manifest']}, and this version of rdmeta"
                f" reads {_VERSION}: name a new folder, or use the rdmeta that made it"
            )
        for cluster_id, days in part.get("days", {}).items():
            made = {day: DayRecord(**values) for day, values in days.items()}
            manifest.days.setdefault(cluster_id, {}).update(made)
        for cluster_id, months in part.get("months", {}).items():
            gold = {month: MadeMonth(**values) for month, values in months.items()}
            manifest.months.setdefault(cluster_id, {}).update(gold)
        manifest.files.update({f: FileEntry(**values) for f, values in part["files"].items()})
        manifest.names.update(part.get("names", {}))
        return {"parts": {}, **part}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, PipelineError):
            raise
        raise PipelineError(f"{out.shown(name)}: it is damaged: {error}; {_AGAIN}") from error


def days_of_parts(
    out: Store, names: Iterable[str], parts: Mapping[str, Parts]
) -> dict[str, dict[str, DayRecord]]:
    """Returns the days by cluster that all tables of a period have; `names` are the files of `out`.

    A day that some of the tables lack is none: the run that made it was killed between them.
    """
    found: dict[str, dict[str, DayRecord]] = {}
    for name in sorted(names):
        if not name.startswith(f"{SILVER}/{_OF_DAYS}/"):
            continue
        footer = _footer(out, name)
        cluster_id, period = str(footer.get("cluster_id")), str(footer.get("period"))
        if cluster_id not in parts:
            continue
        buckets = parts[cluster_id].buckets
        if name != table_file(_OF_DAYS, cluster_id, period, 0, buckets):
            continue
        digests = _whole_days(out, cluster_id, period, buckets)
        for day, rows in rows_of_days(out, name, sorted(digests)):
            found.setdefault(cluster_id, {})[day] = DayRecord(digests[day], _origins(rows))
    return found


def _whole_days(out: Store, cluster_id: str, period: str, buckets: int) -> dict[str, str]:
    """Returns the days that each part of a period has, with their digests in the first bucket."""
    whole: dict[str, str] = {}
    for bucket in range(buckets):
        each: list[dict[str, str]] = [
            _footer(out, table_file(table, cluster_id, period, bucket, buckets)).get("days", {})
            for table in tables_of(bucket)
        ]
        same = dict(set(each[0].items()).intersection(*(days.items() for days in each)))
        whole = same if bucket == 0 else {day: whole[day] for day in whole if day in same}
    return whole


def _footer(out: Store, name: str) -> dict[str, Any]:
    """Returns what a part says it was made from, nothing if these versions did not make it."""
    text = made_from(out, name)
    footer: dict[str, Any] = {} if text is None else json.loads(text)
    return footer if footer.get("versions") == VERSIONS else {}


def _origins(rows: pa.Table) -> dict[str, int]:
    """Returns until when each origin saw a day, as the manifest has it."""
    times = pc.cast(rows["seen_to"], "int64").to_pylist()
    return dict(zip(rows["origin"].to_pylist(), times, strict=True))


class Fault(NamedTuple):
    """A file that differs from the manifest, and how."""

    path: str
    reason: str


def faults_of_files(store: Store, kind: TableKind) -> list[Fault]:
    """Returns how the files of an output folder differ from its manifest; none if it is whole.

    Raises PipelineError if the folder has no manifest, or is of another version; and OSError.
    """
    read_layout(store)
    parts = read_digests(store)
    if parts is None:
        raise PipelineError(f"{store.where}: it has no {MANIFEST}; run rdmeta pipeline all first")
    manifest = read_manifest(store)
    stored = {name: each.stored for name, each in manifest.files.items() if each.stored}
    store = Store(store.where, stored)
    faults = []
    if lock.is_marked(store):
        faults.append(Fault(store.shown(lock.NAME), "a run works on it, or did not end well"))
    for name in sorted(parts):
        if store.sha256(name) != parts[name]:
            faults.append(Fault(store.shown(name), f"its digest differs from that in {MANIFEST}"))
    there = {each.name for each in store.files()}
    for name in sorted(manifest.files):
        if store.stored(name) not in there:
            faults.append(Fault(store.shown(name), "it is missing"))
            continue
        reason = _difference(store, name, manifest.files[name])
        if reason is not None:
            faults.append(Fault(store.shown(name), reason))
    for name in sorted(there - set(manifest.files) - set(parts) - _ALSO_THERE):
        last = name.rpartition("/")[2]
        if kind.has_logs and name.startswith(_OF_LOGS) and not is_leftover(last):
            continue
        if is_leftover(last):
            faults.append(Fault(store.shown(name), "a run left it unfinished"))
        elif last != INDEX_NAME and not name.startswith(f"{SILVER}/_state/"):
            faults.append(Fault(store.shown(name), "the manifest does not have it"))
    return faults


def entry_of(store: Store, name: str) -> FileEntry:
    """Returns what the manifest says of a file that is there; raises OSError, ArrowException."""
    with store.opened(name) as stream:
        digest = sha256_of(stream)
        size = stream.tell()
        stream.seek(0)
        stored = "" if store.stored(name) == name else store.stored(name)
        rows = 0 if is_log_file(name) else pq.read_metadata(stream).num_rows
        return FileEntry(rows, size, digest, stored)


def _difference(store: Store, name: str, wanted: FileEntry) -> str | None:
    try:
        found = entry_of(store, name)
    except (pa.ArrowException, OSError) as error:
        return f"it cannot be read: {error}"
    if found == wanted:
        return None
    if found.bytes != wanted.bytes:
        return f"it has {found.bytes} bytes, and the manifest says {wanted.bytes}"
    if found.rows != wanted.rows:
        return f"it has {found.rows} rows, and the manifest says {wanted.rows}"
    return "its digest differs from the manifest's"
