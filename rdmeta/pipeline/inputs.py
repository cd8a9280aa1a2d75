"""The input files of a plan: what each one is, and which of them make up a recording.

`look` opens a file once. A file whose size and time have not changed since the last run is known
from `OUT/input.parquet`. `arrange` orders files into recordings, as far as they are unbroken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta, timezone
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history.schema import CHANGE_SCHEMA, FileName, Footer, HistoryError
from rdmeta.pipeline.layout import INPUT
from rdmeta.pipeline.place import Entry, Place

__all__ = ["Input", "Recording", "arrange", "look", "read_inputs", "sha256_of", "write_inputs"]

_CHUNK = 8 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Input:
    """One input file; times are microseconds since 1970 in UTC.

    `state` is good, quarantined, duplicate, set aside or gone; `reason` says why it is not good.
    Only a metadata log has `node`, `from_offset` and `to_offset`; they are None.
    """

    place: str
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
        return f"{self.place.rstrip('/')}/{self.name}"

    @property
    def key(self) -> tuple[str, str, int, int]:
        """The file's cluster, recording and versions."""
        return (self.cluster_id or "", self.origin or "", self.from_version, self.to_version)

    @property
    def file_name(self) -> str:
        """The name that the recorder gives to such a file."""
        return str(FileName(*self.key))


@dataclass(frozen=True)
class Recording:
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


def look(place: Place, known: Mapping[tuple[str, str], Input], below: str = "") -> Iterator[Input]:
    """Yields each history file of a place; `known` are those of the last run, by place and name.

    Names that begin with "." or "_", and names that do not end in ".parquet", are passed over.
    Raises OSError if a folder cannot be read.
    """
    for entry in place.files(below):
        parts = entry.name.split("/")
        if any(part.startswith((".", "_")) for part in parts) or not entry.name.endswith(
            ".parquet"
        ):
            continue
        before = known.get((place.where, entry.name))
        same = before is not None and (before.bytes, before.mtime_ns) == (
            entry.size,
            entry.mtime_ns,
        )
        if before is not None and same and before.sha256:  # without it, it could not be read
            is_bad = before.state == "quarantined"
            yield before if is_bad else replace(before, state="good", reason=None)
        else:
            yield _inspected(place, entry)


def sha256_of(stream: Any) -> str:
    """Returns the SHA-256 of the rest of a pyarrow stream, in hexadecimal."""
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _inspected(place: Place, entry: Entry) -> Input:
    """Opens a file; a damaged or foreign one is quarantined, with its reason."""
    digest = ""
    bare = Input(place.where, entry.name, entry.size, entry.mtime_ns, digest)
    try:
        with place.opened(entry.name) as stream:
            digest = sha256_of(stream)
            bare = replace(bare, sha256=digest)
            stream.seek(0)
            name = FileName.parse(entry.name.rpartition("/")[2])
            return _described(bare, name, pq.ParquetFile(stream))
    except HistoryError as error:
        reason = str(error)
    except (pa.ArrowException, OSError) as error:
        reason = f"not a whole Parquet file: {error}"
    return replace(bare, state="quarantined", reason=reason)


def _described(bare: Input, name: FileName, file: Any) -> Input:
    """Returns a file with what its footer says; raises HistoryError."""
    schema = file.schema_arrow
    footer = Footer.parse(schema.metadata)
    if footer.file != name:
        raise HistoryError(f"its metadata says that it is {footer.file}: rename it back")
    for field in schema:
        place = CHANGE_SCHEMA.get_field_index(field.name)
        if place >= 0 and CHANGE_SCHEMA.field(place).type != field.type:
            raise HistoryError(
                f"column {field.name!r} ({field.type}) does not match a change record"
            )
    if footer.observed_from > footer.observed_to:
        raise HistoryError("its observation ends before it begins")
    unknown = [field.name for field in schema if CHANGE_SCHEMA.get_field_index(field.name) < 0]
    return replace(
        bare,
        cluster_id=name.cluster_id,
        origin=name.session,
        from_version=name.since,
        to_version=name.until,
        from_us=_micros(footer.observed_from),
        to_us=_micros(footer.observed_to),
        rows=file.metadata.num_rows,
        continues=footer.continues,
        ended_by=footer.ended_by,
        label=footer.name,
        longest_gap_us=footer.longest_gap_us,
        unknown_columns=" ".join(unknown),
        compacted=footer.compacted,
    )


def _micros(when: datetime) -> int:
    return (when - _EPOCH) // timedelta(microseconds=1)


# ---- recordings ---------------------------------------------------------------------------------


def arrange(inputs: Iterable[Input]) -> tuple[list[Recording], list[Input]]:
    """Returns the recordings that these files make up, and the files with their states.

    The second of two equal files is a duplicate. Files of one recording that contradict each other
    are set aside, and so are files that rest on one that is missing. The recordings are in the
    order of their begin.
    """
    ordered = sorted(inputs, key=lambda each: (*each.key, each.path))
    states = [each for each in ordered if each.state != "good"]
    good = [each for each in ordered if each.state == "good"]
    found = []
    for _, group in groupby(good, key=lambda each: each.key[:2]):
        left = list(_not_compacted(list(group), states.append))
        chosen = list(_without_copies(left, states.append))
        aside: list[Input] = []
        chain = list(_chain(chosen, aside.append))
        states += aside
        if chain:
            is_cut = any(each.state == "set aside" for each in aside)
            found.append(_recording(chain, is_cut=is_cut))
    return sorted(found, key=lambda r: (r.cluster_id, r.from_us, r.origin)), states


def _recording(chain: list[Input], is_cut: bool) -> Recording:
    first, last = chain[0], chain[-1]
    end = max(each.to_us for each in chain)
    broken = is_cut and last.ended_by is None
    return Recording(
        first.cluster_id or "",
        first.origin or "",
        tuple(chain),
        first.from_us,
        end,
        first.continues,
        "missing" if broken else last.ended_by,
    )


def _not_compacted(group: list[Input], aside: Callable[[Input], object]) -> Iterator[Input]:
    """Yields a recording's files without those of which a compaction made one."""
    compacted = [each for each in group if each.compacted is not None]
    widest = max(compacted, key=lambda each: each.to_version, default=None)
    for each in group:
        behind = widest is None or each.to_version > widest.to_version
        if widest is None or behind or (each.compacted is not None and each.key == widest.key):
            yield each
        else:
            aside(replace(each, state="duplicate", reason=f"{widest.path} has its rows"))


def _without_copies(group: list[Input], aside: Callable[[Input], object]) -> Iterator[Input]:
    """Yields one file for each name; of files that only extend the time, the latest one."""
    for _, same in groupby(group, key=lambda each: each.key):
        first, *others = sorted(same, key=lambda each: (-each.to_us, each.path))
        differ = [each for each in others if each.sha256 != first.sha256]
        if differ and first.from_version != first.to_version:
            for each in (first, *others):
                reason = f"it contradicts {(first if each is not first else differ[0]).path}"
                aside(replace(each, state="set aside", reason=reason))
            continue
        yield first
        for each in others:
            aside(replace(each, state="duplicate", reason=f"the same as {first.path}"))


def _chain(group: list[Input], aside: Callable[[Input], object]) -> Iterator[Input]:
    """Yields the files from version 0 as far as they are unbroken; of two the longer one."""
    until, last = 0, None
    for each in sorted(group, key=lambda f: (f.from_version, -f.to_version)):
        extends = each.from_version == each.to_version == until and last is not None
        if each.from_version == until and (each.to_version > until or last is None or extends):
            until, last = each.to_version, each
            yield each
        elif last is not None and each.to_version <= until:
            aside(replace(each, state="duplicate", reason=f"{last.path} has its rows"))
        elif last is None:
            reason = "the recording's first file, with the whole state, is missing"
            aside(replace(each, state="set aside", reason=reason))
        else:
            reason = f"the file that follows {last.path} is missing or damaged"
            aside(replace(each, state="set aside", reason=reason))


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


def read_inputs(out: Place) -> dict[tuple[str, str], Input]:
    """Returns the files of the last run by place and name; none if there is no such table.

    A damaged table counts as none, as it only saves a second look.
    """
    try:
        if out.read(INPUT) is None:
            return {}
        with out.opened(INPUT) as stream:
            table = pq.read_table(stream).select(_SCHEMA.names).rename_columns(_PLAIN.names)
        found = (Input(**row) for row in table.cast(_PLAIN).to_pylist())
        return {(each.place, each.name): each for each in found}
    except (pa.ArrowException, OSError, KeyError, TypeError):
        return {}


def write_inputs(out: Place, inputs: Iterable[Input]) -> None:
    """Writes a row for each file; a table that says the same stays as it is. Raises OSError."""
    found = {(each.place, each.name): each for each in inputs}
    if found == read_inputs(out):
        return
    rows = [asdict(found[key]) for key in sorted(found)]
    with out.draft(INPUT) as draft:
        table = pa.Table.from_pylist(rows, schema=_PLAIN).rename_columns(_SCHEMA.names)
        pq.write_table(table.cast(_SCHEMA), draft.path, compression="zstd")
        draft.commit()
