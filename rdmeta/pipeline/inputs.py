"""The input files of a plan: what each one is, and which of them make up a recording.

`look` opens a file once. A file whose size and time have not changed since the last run is known
from `OUT/input.parquet`. `arrange` orders files into recordings, as far as they are unbroken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history.opening import HistoryFile, opened_stream
from rdmeta.history.schema import FileName, HistoryError, microseconds
from rdmeta.pipeline.layout import INPUT
from rdmeta.pipeline.place import Entry, Place

__all__ = ["Input", "Recording", "arrange", "look", "read_inputs", "sha256_of", "write_inputs"]

_CHUNK = 8 << 20
# The longest time that one file may add to a recording: 400 days.
_LONGEST_US = 400 * 86_400_000_000


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
    path = Path(entry.name)
    bare = Input(place.where, entry.name, entry.size, entry.mtime_ns, sha256="")
    try:
        with place.opened(entry.name) as stream:
            bare = replace(bare, sha256=sha256_of(stream))
            stream.seek(0)
            return _described(bare, opened_stream(path, stream, entry.size))
    except HistoryError as error:
        reason = str(error).removeprefix(f"{path}: ")
    except (pa.ArrowException, OSError) as error:
        reason = f"not a whole Parquet file: {error}"
    return replace(bare, state="quarantined", reason=reason)


def _described(bare: Input, file: HistoryFile) -> Input:
    """Returns an input with what the footer of its file says."""
    return replace(
        bare,
        cluster_id=file.cluster_id,
        origin=file.session,
        from_version=file.since,
        to_version=file.until,
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
        if last is not None and not _is_in_time(each, last):
            aside(replace(each, state="set aside", reason=f"its time contradicts {last.path}"))
        elif each.from_version == until and (each.to_version > until or last is None or extends):
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


def _is_in_time(each: Input, last: Input) -> bool:
    """Returns whether a file's time may follow that of the file before it in its recording."""
    return each.from_us >= last.from_us and each.to_us - last.to_us <= _LONGEST_US


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
