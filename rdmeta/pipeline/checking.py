"""Compares an output folder with its manifest."""

from __future__ import annotations

import os
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta._atomic import is_leftover
from rdmeta.history.directory_scan import INDEX_NAME
from rdmeta.pipeline import lock
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.inputs import sha256_of
from rdmeta.pipeline.layout import INPUT, LAYOUT, MANIFEST, SILVER, read_layout
from rdmeta.pipeline.manifest import FileEntry, read_digests, read_manifest
from rdmeta.pipeline.store import Store, contacted

__all__ = ["Fault", "check", "kept"]

_ALSO_THERE = {INPUT, LAYOUT, MANIFEST, lock.NAME}


class Fault(NamedTuple):
    """A file that differs from the manifest, and how."""

    path: str
    reason: str


def check(out: str | os.PathLike[str], *, timeout: float = 30.0) -> list[Fault]:
    """Returns how the files of an output folder differ from its manifest; none if it is whole.

    It reads each file: size, SHA-256 and rows. Files that the manifest does not have are named too.
    An object store gets `timeout` seconds for its first answer. Raises PipelineError if the folder
    has no manifest, or is of another version; and OSError.
    """
    store = contacted(out, timeout)
    read_layout(store)
    parts = read_digests(store)
    if parts is None:
        raise PipelineError(f"{store.where}: it has no {MANIFEST}; run rdmeta pipeline all first")
    manifest = read_manifest(store)
    faults = []
    if lock.is_marked(store):
        faults.append(Fault(store.shown(lock.NAME), "a run works on it, or did not end well"))
    for name in sorted(parts):
        if _sha256(store, name) != parts[name]:
            faults.append(Fault(store.shown(name), f"its digest differs from that in {MANIFEST}"))
    there = {each.name for each in store.files()}
    for name in sorted(manifest.files):
        if name not in there:
            faults.append(Fault(store.shown(name), "it is missing"))
            continue
        reason = _difference(store, name, manifest.files[name])
        if reason is not None:
            faults.append(Fault(store.shown(name), reason))
    for name in sorted(there - set(manifest.files) - set(parts) - _ALSO_THERE):
        last = name.rpartition("/")[2]
        if is_leftover(last):
            faults.append(Fault(store.shown(name), "a run left it unfinished"))
        elif last != INDEX_NAME and not name.startswith(f"{SILVER}/_state/"):
            faults.append(Fault(store.shown(name), "the manifest does not have it"))
    return faults


def kept(store: Store, name: str) -> FileEntry:
    """Returns what the manifest says of a file that is there; raises OSError, ArrowException."""
    with store.opened(name) as stream:
        digest = sha256_of(stream)
        size = stream.tell()
        stream.seek(0)
        return FileEntry(pq.read_metadata(stream).num_rows, size, digest)


def _sha256(store: Store, name: str) -> str:
    with store.opened(name) as stream:
        return sha256_of(stream)


def _difference(store: Store, name: str, wanted: FileEntry) -> str | None:
    try:
        found = kept(store, name)
    except (pa.ArrowException, OSError) as error:
        return f"it cannot be read: {error}"
    if found == wanted:
        return None
    if found.bytes != wanted.bytes:
        return f"it has {found.bytes} bytes, and the manifest says {wanted.bytes}"
    if found.rows != wanted.rows:
        return f"it has {found.rows} rows, and the manifest says {wanted.rows}"
    return "its digest differs from the manifest's"
