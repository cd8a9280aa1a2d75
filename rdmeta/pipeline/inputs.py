"""The input files of a plan: what each one is, and which of them make up a recording.

`look` opens a file once. A file whose size and time have not changed since the last run is known
from `OUT/input.parquet`. `arrange` orders files into recordings, as far as they are unbroken.
`rdmeta.history` says what a file is, and which files count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history import arranging
from rdmeta.history.opening import HistoryFile, opened_source
from rdmeta.history.schema import FileName, HistoryError, microseconds, moment
from rdmeta.pipeline.layout import INPUT
from rdmeta.pipeline.listing import entries
from rdmeta.pipeline.store import Store, StoredFile

__all__ = [
    "Input",
    "InputRecording",
    "arrange",
    "input_of",
    "look",
    "read_inputs",
    "sha256_of",
    "write_inputs",
]

_CHUNK = 8 << 20


@dataclass(frozen=True)
class Input:
    """One input file; times are microseconds since 1970 in UTC.

    `state` is good, quarantined, duplicate, set aside or gone; `reason` says why it is not good.
    Only a metadata log has `node`, `from_offset` and `to_offset`; they are None.
    """

    store: str
    name: str
    bytes: int
    mtime_ns: int
    sha256: str
    state: str = "good"
    reason: str | None = None
    kind: str = "history"
    cluster_id: str | None = None
    origin: str | None = None
    node: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    from_version: int = 0
    to_version: int = 0
    from_us: int = 0
    to_us: int = 0
    rows: int = 0
    continues: str | None = None
    ended_by: str | None = None
    label: str | None = None
    longest_gap_us: int | None = None
    unknown_columns: str = ""
    compacted: int | None = None

    @property
    def path(self) -> str:
        """The file's path or URI, as the user's folder spells it."""
        return f"{self.store.rstrip('/')}/{self.name}"

    @property
    def key(self) -> tuple[str, str, int, int]:
        """The file's cluster, recording and versions."""
        return (self.cluster_id or "", self.origin or "", self.from_version, self.to_version)

    @property
    def file_name(self) -> str:
        """The name that the recorder gives to such a file."""
        return str(FileName(*self.key))

    @property
    def session(self) -> str | None:
        return self.origin

    @property
    def since(self) -> int:
        return self.from_version

    @property
    def until(self) -> int:
        return self.to_version

    @property
    def observed_from(self) -> datetime:
        return moment(self.from_us)

    @property
    def observed_to(self) -> datetime:
        return moment(self.to_us)


@dataclass(frozen=True)
class InputRecording:
    """One recording's unbroken files in their order; times are microseconds since 1970.

    `ended_by` is the reason in the last footer, None while the recording goes on, or "missing" if
    later files of it are damaged or missing.
    """

    cluster_id: str
    origin: str
    files: tuple[Input, ...]
    from_us: int
    to_us: int
    continues: str | None
    ended_by: str | None


def look(store: Store, known: Mapping[tuple[str, str], Input], below: str = "") -> Iterator[Input]:
    """Yields each history file of a place; `known` are those of the last run, by place and name.

    A file that cannot be read is quarantined. Raises OSError if an object store does not answer.
    """
    for entry, reason in entries(store, below):
        if reason is not None:
            bare = Input(store.where, entry.name, 0, 0, "", "quarantined", reason)
            yield _named(bare)
            continue
        before = known.get((store.where, entry.name))
        same = before is not None and (before.bytes, before.mtime_ns) == (
            entry.size,
            entry.mtime_ns,
        )
        if before is not None and same and before.sha256:  # without it, it could not be read
            is_good = before.state in ("good", "quarantined")
            yield before if is_good else replace(before, state="good", reason=None)
        else:
            yield _inspected(store, entry)


def sha256_of(stream: Any) -> str:
    """Returns the SHA-256 of the rest of a pyarrow stream, in hexadecimal."""
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _inspected(store: Store, entry: StoredFile) -> Input:
    """Opens a file; a damaged or foreign one is quarantined, with its reason."""
    bare = _named(Input(store.where, entry.name, entry.size, entry.mtime_ns, ""))
    digest, path = "", Path(entry.name)
    try:
        with store.opened(entry.name) as stream:
            digest = sha256_of(stream)
            stream.seek(0)
            return _described(bare, digest, opened_source(path, stream, entry.size))
    except HistoryError as error:
        reason = str(error).removeprefix(f"{path}: ")
    except OSError as error:
        reason = f"cannot be read: {error}"
    return replace(bare, sha256=digest, state="quarantined", reason=reason)


def input_of(store: Store, name: str, file: HistoryFile, digest: str) -> Input:
    """Returns a file of a place that has been opened already."""
    return _described(_named(Input(store.where, name, file.bytes, 0, "")), digest, file)


def _named(bare: Input) -> Input:
    """Returns a file with the cluster and the recording that its name tells."""
    try:
        name = FileName.parse(bare.name.rpartition("/")[2])
    except HistoryError:
        return bare
    return replace(
        bare,
        cluster_id=name.cluster_id,
        origin=name.session,
        from_version=name.since,
        to_version=name.until,
    )


def _described(bare: Input, digest: str, file: HistoryFile) -> Input:
    """Returns a file with what its footer says."""
    return replace(
        bare,
        sha256=digest,
        from_us=microseconds(file.observed_from),
        to_us=microseconds(file.observed_to),
        rows=file.rows,
        continues=file.continues,
        ended_by=file.ended_by,
        label=file.name,
        longest_gap_us=file.longest_gap_us,
        unknown_columns=" ".join(file.unknown_columns),
        compacted=file.compacted,
    )


# ---- recordings ---------------------------------------------------------------------------------


def arrange(inputs: Iterable[Input]) -> tuple[list[InputRecording], list[Input]]:
    """Returns the recordings that these files make up, and the files with their states.

    The second of two equal files is a duplicate, and so is a file whose rows another one has. Files
    of one recording that contradict each other are set aside, and so are files that rest on one
    that is missing. The recordings are in the order of their begin.
    """
    every = list(inputs)
    states = [each for each in every if each.state != "good"]
    good = (each for each in every if each.state == "good")
    found = arranging.arrange(good, lambda one, other: one.sha256 == other.sha256, states)
    broken = {each.key[:2] for each in (*states, *(each for each, _ in found.aside))}
    states += [replace(each, state="set aside", reason=why) for each, why in found.aside]
    for each, other in found.duplicates:
        states.append(replace(each, state="duplicate", reason=f"the same as {other.path}"))
    for each, other in found.covered:
        states.append(replace(each, state="duplicate", reason=f"{other.path} has its rows"))
    recordings = [
        _recording(list(chain), is_cut=key in broken)
        for key, chain in groupby(found.files, key=lambda each: each.key[:2])
    ]
    return sorted(recordings, key=lambda r: (r.cluster_id, r.from_us, r.origin)), states


def _recording(chain: Sequence[Input], is_cut: bool) -> InputRecording:
    first, last = chain[0], chain[-1]
    return InputRecording(
        first.cluster_id or "",
        first.origin or "",
        tuple(chain),
        first.from_us,
        max(each.to_us for each in chain),
        first.continues,
        "missing" if is_cut and last.ended_by is None else last.ended_by,
    )


# ---- OUT/input.parquet --------------------------------------------------------------------------

_TIMES = {"from_us": "from_time", "to_us": "to_time"}


def _field(name: str, kind: str) -> pa.Field:
    if name in _TIMES:
        return pa.field(_TIMES[name], pa.timestamp("us", tz="UTC"))
    return pa.field(name, pa.int64() if kind.startswith("int") else pa.string())


_SCHEMA = pa.schema([_field(each.name, str(each.type)) for each in fields(Input)])
_PLAIN = pa.schema(
    [
        (f.name, pa.int64() if pa.types.is_timestamp(t.type) else t.type)
        for f, t in zip(fields(Input), _SCHEMA, strict=True)
    ]
)


def read_inputs(out: Store) -> dict[tuple[str, str], Input]:
    """Returns the files of the last run by place and name; none if there is no such table.

    A damaged table counts as none, as it only saves a second look.
    """
    try:
        if out.read(INPUT) is None:
            return {}
        with out.opened(INPUT) as stream:
            table = pq.read_table(stream).select(_SCHEMA.names).rename_columns(_PLAIN.names)
        # The columns are in the order of the fields.
        columns = (column.to_pylist() for column in table.cast(_PLAIN).columns)
        found = (Input(*values) for values in zip(*columns, strict=True))
        return {(each.store, each.name): each for each in found}
    except (pa.ArrowException, OSError, KeyError, TypeError):
        return {}


def write_inputs(out: Store, inputs: Iterable[Input]) -> None:
    """Writes a row for each file; a table that says the same stays as it is. Raises OSError."""
    found = {(each.store, each.name): each for each in inputs}
    if found == read_inputs(out):
        return
    rows = [found[key] for key in sorted(found)]
    columns = [
        pa.array([getattr(each, plain.name) for each in rows], plain.type).cast(field.type)
        for plain, field in zip(_PLAIN, _SCHEMA, strict=True)
    ]
    with out.draft(INPUT) as draft:
        pq.write_table(pa.table(columns, schema=_SCHEMA), draft.path, compression="zstd")
        draft.commit()
