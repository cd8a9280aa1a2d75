"""The input of a run: which recordings a folder has, on this machine or in a store.

`Lister` and `listing` list them by names and footers alone, `look` with the digests, and `arrange`
makes recordings of the files. `OUT/input.parquet` has a row for each file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta._moments import microseconds, moment
from rdmeta.history import arranging, directory_scan
from rdmeta.history.directory_scan import (
    ListedFile,
    Quarantined,
    RecordingFilter,
    Stamp,
    bad,
    has_history_name,
    listed,
)
from rdmeta.history.opening import HistoryFile, opened_source
from rdmeta.history.schema import FileName, HistoryError
from rdmeta.pipeline.layout import INPUT
from rdmeta.pipeline.store import Store, as_text, is_text, sha256_of

# A file of so many bytes is read once; of a larger one the footer is read again.
_SMALL = 8 << 20


class Seen(NamedTuple):
    """The files in a folder that count, and paths with a fault."""

    files: list[HistoryFile]
    faults: list[Quarantined]


class Lister:
    """Looks at folders again and again, and opens only footers that are new.

    A folder of this machine has an index of them. Those of a store are known by name, size, time.
    """

    def __init__(self) -> None:
        self._known: dict[ListedFile, HistoryFile | HistoryError] = {}

    def seen(
        self, store: Store, limits: RecordingFilter, found: Sequence[ListedFile] | None = None
    ) -> Seen:
        """Returns what is wanted of `found`, by default of what the store has now.

        It opens no file whose name or folder cannot match. Clusters limit it only if all are ids
        that files have in their names. A cluster may also be given by the name that the recorder
        noted in footers.
        """
        found = listing(store) if found is None else found
        clusters = limits.clusters
        if clusters is not None and not clusters <= {cluster_of(each.path) for each in found}:
            limits = limits._replace(clusters=None)
        if not store.is_local:
            return self._stored(store, found, limits)
        local = directory_scan.scan(Path(store.path()), limits, found)
        return Seen(local.files, local.quarantined)

    def _stored(self, store: Store, found: Iterable[ListedFile], limits: RecordingFilter) -> Seen:
        known: dict[ListedFile, HistoryFile | HistoryError] = {}
        for entry in found:
            if limits.has_name(entry.path):
                file = self._known.get(entry) or _opened(store, entry)
                if file is not None:
                    known[entry] = file
        self._known = known
        good = [each for each in known.values() if isinstance(each, HistoryFile)]
        faults = [
            bad(Path(), entry.path, str(each).removeprefix(f"{entry.path}: "))
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


def listing(store: Store, below: str = "") -> list[ListedFile]:
    """Returns the files of a store that may be history, with a reason for one that cannot be.

    Names that begin with "." or "_", and names that do not end in ".parquet", are passed over.
    Raises OSError if an object store does not answer.
    """
    if not store.is_local:
        there = [each for each in store.files(below) if has_history_name(each.name)]
        return [ListedFile(each.name, Stamp(each.size, each.mtime_ns, 0)) for each in there]
    top = Path(store.path(below))
    found = listed(top) if top.is_dir() else []
    return [each._replace(path=f"{below}/{each.path}") for each in found] if below else found


def cluster_of(path: str) -> str:
    """Returns the cluster that a file's name tells, "" for another name."""
    try:
        return FileName.parse(os.path.basename(path)).cluster_id
    except HistoryError:
        return ""


def name_of(store: Store, file: HistoryFile) -> str:
    """Returns the path of a seen file in its store."""
    return str(file.path.relative_to(store.path()) if store.is_local else file.path)


def shown(store: Store, fault: Quarantined) -> str:
    """Returns what a user calls a path with a fault."""
    return str(fault.path) if store.is_local else store.shown(str(fault.path))


def _opened(store: Store, entry: ListedFile) -> HistoryFile | HistoryError | None:
    """Returns an object's footer, or its fault; None if it is gone."""
    assert entry.stamp is not None
    try:
        with store.opened(entry.path) as stream:
            return opened_source(Path(entry.path), stream, entry.stamp.size)
    except FileNotFoundError:
        return None
    except HistoryError as error:
        return error


@dataclass(frozen=True)
class Input:
    """One input file; times are microseconds since 1970 in UTC.

    `state` is good, quarantined, duplicate, set aside or gone; `reason` says why it is not good.
    `kind` is history, or segment or snapshot of a metadata log. Only these have node, offsets, and
    the last three columns; `log_inputs` says what is in those. `source`,
    `made_from` and `unknown_records` are of a recording's footer.
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
    source: str | None = None
    made_from: str | None = None
    unknown_records: int | None = None
    epochs: str | None = None
    days: str | None = None
    marks: str | None = None

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
    later files of it are damaged or missing. `is_of_log` says that it was made of a metadata log.
    """

    cluster_id: str
    origin: str
    files: tuple[Input, ...]
    from_us: int
    to_us: int
    continues: str | None
    ended_by: str | None
    is_of_log: bool = False


def opened_here(store: Store, new: Iterable[Input]) -> Iterator[Input]:
    """Yields files with what their footers say; a damaged or foreign one is quarantined."""
    for each in new:
        yield _inspected(store, each)


def look(
    store: Store,
    known: Mapping[tuple[str, str], Input],
    below: str = "",
    opened: Callable[[Store, Sequence[Input]], Iterable[Input]] = opened_here,
) -> list[Input]:
    """Returns the history files of a store; `known` are those of the last run, by store and name.

    `opened` opens the others. A file that cannot be read is quarantined. Raises OSError if an
    object store does not answer.
    """
    found: list[Input] = []
    new: list[Input] = []
    for path, stamp, reason in listing(store, below):
        name = as_text(path)
        if not is_text(path):
            reason = "its path is not UTF-8: rename it"
        if stamp is None or reason is not None:
            found.append(_named(Input(store.where, name, 0, 0, "", "quarantined", reason)))
            continue
        before = known.get((store.where, name))
        same = before is not None and (before.bytes, before.mtime_ns) == stamp[:2]
        if before is not None and same and before.sha256:  # without it, it could not be read
            is_good = before.state in ("good", "quarantined")
            found.append(before if is_good else replace(before, state="good", reason=None))
        else:
            new.append(_named(Input(store.where, name, stamp.size, stamp.mtime_ns, "")))
    found += opened(store, new)
    return sorted(found, key=lambda each: each.name)


def _inspected(store: Store, bare: Input) -> Input:
    digest, path = "", Path(bare.name)
    try:
        with store.opened(bare.name) as stream:
            source = pa.BufferReader(stream.read()) if bare.bytes <= _SMALL else stream
            digest = sha256_of(source)
            source.seek(0)
            return _described(bare, digest, opened_source(path, source, bare.bytes))
    except HistoryError as error:
        reason = str(error).removeprefix(f"{path}: ")
    except OSError as error:
        reason = f"cannot be read: {error}"
    return replace(bare, sha256=digest, state="quarantined", reason=reason)


def input_of(store: Store, name: str, file: HistoryFile, digest: str) -> Input:
    """Returns a file of a store that has been opened already."""
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
        source=file.source,
        made_from=file.made_from,
        unknown_records=file.unknown_records,
    )


# ---- recordings ---------------------------------------------------------------------------------


def arrange(inputs: Iterable[Input]) -> tuple[list[InputRecording], list[Input]]:
    """Returns the recordings that these files make up, and the files with their states.

    The second of two equal files is a duplicate, and so is a file whose rows another one has. Files
    of one recording that contradict each other are set aside, and so are files that rest on one
    that is missing.
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
    return recordings_in(found.files, broken), states


def recordings_in(
    files: Iterable[Input], broken: Container[tuple[str, str]] = ()
) -> list[InputRecording]:
    """Returns the recordings of files that count, in the order of their begin.

    `broken` are those of which later files are damaged or missing.
    """
    found = [
        _recording(list(chain), is_cut=key in broken)
        for key, chain in groupby(files, key=lambda each: each.key[:2])
    ]
    return sorted(found, key=lambda r: (r.cluster_id, r.from_us, r.origin))


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
        first.source == "log",
    )


# ---- OUT/input.parquet --------------------------------------------------------------------------

_TIMES = {"from_us": "from_time", "to_us": "to_time"}
# The names of columns that are not those of fields.
_COLUMNS = _TIMES | {"session": "origin", "since": "from_version", "until": "to_version"}


def _field(name: str, kind: str) -> pa.Field:
    if name in _TIMES:
        return pa.field(_COLUMNS[name], pa.timestamp("us", tz="UTC"))
    return pa.field(_COLUMNS.get(name, name), pa.int64() if kind.startswith("int") else pa.string())


_LATER = ("source", "made_from", "unknown_records", "epochs", "days", "marks")
_SCHEMA = pa.schema([_field(each.name, str(each.type)) for each in fields(Input)])
_PLAIN = pa.schema(
    [
        (f.name, pa.int64() if pa.types.is_timestamp(t.type) else t.type)
        for f, t in zip(fields(Input), _SCHEMA, strict=True)
    ]
)


def read_inputs(out: Store) -> dict[tuple[str, str], Input]:
    """Returns the files of the last run by store and name; none if there is no such table.

    A damaged table counts as none, as it only saves a second look.
    """
    try:
        if out.read(INPUT) is None:
            return {}
        with out.opened(INPUT) as stream:
            table = pq.read_table(stream)
        for field in _SCHEMA:  # an earlier version did not write the last ones
            if field.name in _LATER and field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        table = table.select(_SCHEMA.names).rename_columns(_PLAIN.names)
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
