"""The input of a run: which recordings a folder has, on this machine or in a store.

`Lister` and `entries` list them by names and footers alone, `look` with the digests, and `arrange`
makes recordings of the files. `OUT/input.parquet` has a row for each file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history import arranging, directory_scan
from rdmeta.history.directory_scan import (
    Quarantined,
    RecordingFilter,
    bad,
    has_history_name,
    listed,
)
from rdmeta.history.opening import HistoryFile, opened_source
from rdmeta.history.schema import FileName, HistoryError, microseconds, moment
from rdmeta.pipeline.layout import INPUT
from rdmeta.pipeline.store import Store, StoredFile, as_text, is_text, sha256_of

__all__ = [
    "Input",
    "InputRecording",
    "Lister",
    "Seen",
    "arrange",
    "cluster_of",
    "entries",
    "input_of",
    "look",
    "name_of",
    "read_inputs",
    "shown",
    "write_inputs",
]


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
        looks = [directory_scan.look(store.path(), **each._asdict()) for each in every]
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
            if one.bytes != other.bytes:
                return False
            try:
                return store.sha256(str(one.path)) == store.sha256(str(other.path))
            except FileNotFoundError:
                return False

        arranged = arranging.arrange(good, is_same, faults)
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
    session: str | None = None
    node: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    since: int = 0
    until: int = 0
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
        return arranging.order(self)

    @property
    def file_name(self) -> str:
        """The name that the recorder gives to such a file."""
        return str(FileName(*self.key))

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
        session=name.session,
        since=name.since,
        until=name.until,
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
        first.session or "",
        tuple(chain),
        first.from_us,
        max(each.to_us for each in chain),
        first.continues,
        "missing" if is_cut and last.ended_by is None else last.ended_by,
    )


# ---- OUT/input.parquet --------------------------------------------------------------------------

_TIMES = {"from_us": "from_time", "to_us": "to_time"}
# The names of columns that are not those of fields.
_COLUMNS = _TIMES | {"session": "origin", "since": "from_version", "until": "to_version"}


def _field(name: str, kind: str) -> pa.Field:
    if name in _TIMES:
        return pa.field(_COLUMNS[name], pa.timestamp("us", tz="UTC"))
    return pa.field(_COLUMNS.get(name, name), pa.int64() if kind.startswith("int") else pa.string())


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
