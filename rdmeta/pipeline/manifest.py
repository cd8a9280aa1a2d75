"""`OUT/manifest.json` and its parts: the files of a finished run, and what each day was made from.

Each cluster has a part for a month: `OUT/manifest/cluster=ID/2026-11.json`. So one more day writes
little. `manifest.json` has the digests of the parts, and is written last. No part holds a time or a
number of a run, so equal tables have an equal manifest.

A run that is killed between two renames leaves parts that differ from their digests. The next run
reads each part as it is: a part's days and files belong together, and the tables are in place.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from rdmeta._atomic import commit
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.layout import MANIFEST, MANIFEST_PARTS, cluster_folder
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.work import MadeMonth

__all__ = ["FileEntry", "DayRecord", "Manifest", "read_digests", "read_manifest", "write_manifest"]

_VERSION = 2
_AT_A_TIME = 16
_AGAIN = f"restore it, or remove {MANIFEST} and run again if no input is gone"
_MONTH = re.compile(r"/(?P<cluster>cluster=[^/]+)/(?:day|period|month)=(?P<month>\d{4}-\d\d)[/.-]")


@dataclass(frozen=True)
class FileEntry:
    """A file as the manifest has it."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class DayRecord:
    """A day's digest, and until when each origin told of it, in microseconds since 1970.

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
    files = {name: vars(kept) for name, kept in manifest.files.items() if not _part_of(name)}
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
            part(name)["files"][file] = vars(kept)
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
