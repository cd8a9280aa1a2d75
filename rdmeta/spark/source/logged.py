"""The tables of metadata logs: their records, and the state at an offset or a time.

The folder has logs as `rdmeta pipeline` takes them, or is an OUT, whose copies lie in `bronze`. The
nodes of a cluster are joined as the pipeline joins them, and only what is proven counts.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta._core import kraft_columns, kraft_summary, kraft_types
from rdmeta._moments import microseconds, nearest_moment
from rdmeta.errors import ConfigError, MalformedError
from rdmeta.kraft.log_files import KraftError
from rdmeta.kraft.log_state import KraftState
from rdmeta.pipeline.inputs import Input, read_inputs
from rdmeta.pipeline.layout import BRONZE
from rdmeta.pipeline.log_inputs import good_bytes, log_folders, look_at_logs, parts_of
from rdmeta.pipeline.log_joining import JoinedLog, LogSpan, SegmentPart, joined, latest_us_at
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.transcribing import begun, is_of_log
from rdmeta.pipeline.work import LogPart
from rdmeta.spark.source.files import ReadError, Slice, opened, packed
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.recorded import chosen_clusters, is_pipeline
from rdmeta.spark.source.row_filter import RowFilter, chosen
from rdmeta.spark.source.schemas import RECORDS, arrow_schema

_Way: TypeAlias = tuple[tuple[SegmentPart, ...], int, "Input | None", int, "int | None"]
_PIECE = 4 << 20
# A record has about so many bytes as a row, for each that it has in its file.
_RATIO = 4
_ADVICE = "move it elsewhere, or read an OUT of `rdmeta pipeline`, which sets it aside"
_NONE = -(1 << 31)


def logs_in(store: Store, filter_: RowFilter) -> list[JoinedLog]:
    """Returns the logs of the wanted clusters.

    Raises ConfigError if there is no such cluster, or no log at all, and ReadError for a file that
    is damaged or foreign.
    """
    is_out = is_pipeline(store)
    known = read_inputs(store) if is_out else {}
    folders, bad = log_folders(store, is_out=is_out)
    for each in bad:
        raise ReadError(f"{each.path}: {each.reason}; {_ADVICE}")
    ids = {each.files.cluster_id or "" for each in folders}
    if not ids:
        more = f", as none were copied to its {BRONZE}; give the folder of the logs"
        raise ConfigError(
            f"option path = {store.where!r}: there are no metadata logs{more if is_out else ''}"
        )
    clusters = chosen_clusters(store, filter_, ids, {})
    wanted = [each for each in folders if each.files.cluster_id in clusters]
    look_at_logs(wanted, known, known)
    for row in (row for each in wanted for row in each.rows):
        if row.state == "quarantined" and not is_out:
            raise ReadError(f"{row.path}: {row.reason}; {_ADVICE}")
    found = []
    for cluster in clusters:
        mine = [each for each in wanted if each.files.cluster_id == cluster]
        recordings = [e for e in known.values() if e.cluster_id == cluster and is_of_log(e)]
        found.append(joined(cluster, mine, store.where, recordings))
    return found


# ---- states -------------------------------------------------------------------------------------


def state_tables(options: Options, filter_: RowFilter) -> Iterator[tuple[KraftState, pa.Table]]:
    """Yields the state of each wanted cluster, with its configurations if they are wanted.

    Raises ConfigError for an offset or a time that a log does not have.
    """
    for log in logs_in(Store(options.where), filter_):
        state = _state_at(log, options.at)
        rows = []
        if options.table == "configs":
            for fact in state.facts("configs"):
                of_topic = fact.data["resourceType"] == _OF_TOPIC
                if of_topic and filter_.has_topic(fact.data["resourceName"]):
                    about = (fact.data[name] for name in ("resourceName", "name", "value"))
                    rows.append((log.cluster_id, *about, None))
        columns = arrow_schema("configs")
        table = pa.Table.from_pylist(
            [dict(zip(columns.names, row, strict=True)) for row in sorted(rows)], columns
        )
        yield state, table


_OF_TOPIC = 2


def _state_at(log: JoinedLog, at: int | datetime | None) -> KraftState:
    """Returns the state before an offset, or at a time; None: at the end of what is proven.

    A snapshot that a replay contradicts is not used, if there is another one before it.
    """
    *others, last = _ways_to(log, at)
    for way in others:
        with suppress(KraftError):
            return _replayed(log, at, *way)
    return _replayed(log, at, *last)


def _replayed(
    log: JoinedLog,
    at: int | datetime | None,
    pieces: tuple[SegmentPart, ...],
    restart: int,
    snapshot: Input | None,
    end: int,
    until_us: int | None,
) -> KraftState:
    parts = tuple(
        LogPart(each.file, max(each.begin, restart), min(each.end, end))
        for each in pieces
        if each.begin < end and each.end > restart
    )
    latest_us = None if snapshot is None else latest_us_at(pieces, snapshot)
    with ExitStack() as stack:
        about = log.cluster_id, snapshot, latest_us, parts, log.leaders
        replay = begun(*about, restart, stack)
        replay.advance(end, until_us)
        if until_us is not None and replay.next == end < log.proof.end:
            raise _missing(log, at)  # in a hole, or before the batches that follow it
        return KraftState(replay.replay, log.cluster_id, log.proof.end)


def _ways_to(log: JoinedLog, at: int | datetime | None) -> list[_Way]:
    """Returns runs, a restart point in each, the offset to replay to, and the time to end at.

    The nearest restart point comes first. Raises ConfigError if there is none.
    """
    found: dict[int, _Way] = {}
    for span in log.spans:
        first, behind = span.days[0].first, span.pieces[-1].end
        for restart, snapshot in span.restarts.items():
            if restart < first:
                continue
            if isinstance(at, datetime):
                us = microseconds(at)
                begin_us = span.days[0].begin_us
                if snapshot is not None:
                    begin_us = latest_us_at(span.pieces, snapshot)
                is_there, end, until_us = begin_us <= us, behind, us
            else:
                end, until_us = log.proof.end if at is None else at, None
                is_there = restart <= end <= behind
            if is_there:
                found[restart] = span.pieces, restart, snapshot, end, until_us
    for end, snapshot in log.alone.items():
        until_us = microseconds(at) if isinstance(at, datetime) else None
        wanted = log.proof.end if until_us is not None or at is None else at
        if end == wanted and (until_us is None or snapshot.to_us <= until_us):
            found[end] = (), end, snapshot, end, until_us
    if not found:
        raise _missing(log, at)
    # A time behind a run of offsets is none of an earlier run.
    run = found[max(found)][0]
    return [found[each] for each in sorted(found, reverse=True) if found[each][0] == run]


def _missing(log: JoinedLog, at: int | datetime | None) -> ConfigError:
    """Returns the error for a point without a state; it names those that have one."""
    there = [
        f"{span.days[0].first} to {span.days[-1].end} ({_time(span.days[0].begin_us)} to"
        f" {_time(_last_us(span))})"
        for span in log.spans
    ]
    there += [f"{end} ({_time(each.to_us)})" for end, each in log.alone.items()]
    behind = "" if log.waits is None else f"; {log.waits}"
    shown = at.isoformat() if isinstance(at, datetime) else log.proof.end if at is None else at
    return ConfigError(
        f"option at = {shown}: the log of cluster {log.cluster_id} has no state there; it has"
        f" those at the offsets {', '.join(there) or 'of no record'}{behind}"
    )


def _last_us(span: LogSpan) -> int:
    parts = [each.part.last_ms for day in span.days for each in day.slices]
    return max([span.days[0].begin_us, *(1000 * ms for ms in parts)])


def _time(us: int) -> str:
    return nearest_moment(us).isoformat(" ", "milliseconds")[:23] + " UTC"


# ---- records ------------------------------------------------------------------------------------


class RecordPiece(NamedTuple):
    """Whole batches of a file, and the offsets in them that count."""

    cluster_id: str
    store: str
    name: str
    from_byte: int
    to_byte: int
    first: int
    end: int

    @property
    def weight(self) -> int:
        return (self.to_byte - self.from_byte) * _RATIO


@dataclass(frozen=True)
class _Look:
    """A piece as the driver saw it."""

    piece: RecordPiece
    from_us: int
    to_us: int
    content: bytes


class RecordsSlice(Slice):
    """Pieces of files; `names` are those of topics by their ids."""

    def __init__(
        self, pieces: Sequence[RecordPiece], names: Mapping[bytes, str], filter_: RowFilter
    ) -> None:
        super().__init__()
        self._pieces, self._names, self._filter = tuple(pieces), dict(names), filter_

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yields the wanted rows; raises ReadError."""
        for piece in self._pieces:
            store = Store(piece.store)
            try:
                content = _content(store, piece.name, piece.from_byte, piece.to_byte)
                found = kraft_columns(content, piece.first, piece.end, "data" in columns.names)
            except (OSError, MalformedError) as error:
                raise ReadError(f"{store.shown(piece.name)}: {error}; read again") from error
            rows = _table(found, self._names)
            rows = rows.append_column("cluster_id", _repeated(piece.cluster_id, rows))
            rows = rows.append_column("file", _repeated(store.shown(piece.name), rows))
            yield chosen(rows, RECORDS, self._filter)


def slices_of_records(store: Store, filter_: RowFilter) -> list[Slice]:
    """Returns the wanted records of a folder's logs, in slices.

    Each file is first read for the names of topics, as records of a partition have only the id.
    Raises as logs_in() does.
    """
    slices: list[Slice] = []
    for log in logs_in(store, filter_):
        names: dict[bytes, str] = {}
        for snapshot in _first_snapshots(log):
            for _ in _looks(log.cluster_id, _all_of(snapshot), names):
                pass
        pieces = [
            look.piece
            for part in log.pieces
            for look in _looks(log.cluster_id, part, names)
            if _has_match(look, names, filter_)
        ]
        if filter_.topics is not None:
            names = {id: name for id, name in names.items() if name in filter_.topics}
        slices += [
            RecordsSlice(pack, names, filter_) for pack in packed(pieces, lambda each: each.weight)
        ]
    return slices


def _first_snapshots(log: JoinedLog) -> Iterator[Input]:
    """Yields the snapshots with the topics that are older than the records."""
    for span in log.spans:
        if (snapshot := span.restarts[min(span.restarts)]) is not None:
            yield snapshot


def _all_of(snapshot: Input) -> SegmentPart:
    return SegmentPart(snapshot, 0, (1 << 63) - 1)


def _has_match(look: _Look, names: Mapping[bytes, str], filter_: RowFilter) -> bool:
    piece = look.piece
    if not filter_.has(look.from_us, look.to_us):
        return False
    if not filter_.has_offsets(piece.first, piece.end):
        return False
    if filter_.topics is None:
        return True
    # The bytes of a record about a topic have its id or its name.
    needles = [id for id, name in names.items() if name in filter_.topics]
    needles += [name.encode() for name in filter_.topics]
    return any(each in look.content for each in needles)


def _looks(cluster_id: str, part: SegmentPart, names: dict[bytes, str]) -> Iterator[_Look]:
    """Yields the pieces of a part of a file, and adds the names of topics. Raises ReadError."""
    file, store = part.file, Store(part.file.store)
    days = [d for d in parts_of(file) if d.first < part.end and d.end > part.begin]
    at = days[0].from_byte if days else 0
    behind = days[-1].to_byte if days else good_bytes(file)
    size = _PIECE
    while at < behind:
        try:
            content = _content(store, file.name, at, min(at + size, behind))
        except OSError as error:
            raise ReadError(f"{store.shown(file.name)}: {error}") from error
        fault, used, first, end, least, most, topics = kraft_summary(content)
        if not used and fault == "cut" and at + size < behind:
            size *= 2
            continue
        if not used or fault not in (None, "cut"):
            where = f"{store.shown(file.name)}, byte {at + used}"
            raise ReadError(f"{where}: {fault or 'it has become shorter'}; read again")
        names.update(topics)
        low, high = max(first, part.begin), min(end, part.end)
        if low < high:
            piece = RecordPiece(cluster_id, file.store, file.name, at, at + used, low, high)
            yield _Look(piece, 1000 * least, 1000 * most, content[:used])
        at, size = at + used, _PIECE


def _content(store: Store, name: str, begin: int, end: int) -> bytes:
    with opened(store, name) as stream:
        stream.seek(begin)
        return bytes(stream.read(end - begin))


def _repeated(text: str, rows: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows.num_rows)


_TYPE_NAMES = {-1 - n if control else n: name for name, (control, n) in kraft_types().items()}


def _table(found: Mapping[str, Any], names: Mapping[bytes, str]) -> pa.Table:
    """Returns records that C has decoded as a table."""
    count = found["count"]

    def numbers(name: str, type: pa.DataType) -> Any:
        return pa.Array.from_buffers(type, count, [None, pa.py_buffer(found[name])])

    def some(name: str) -> Any:
        every = numbers(name, pa.int32())
        return pc.if_else(pc.equal(every, _NONE), pa.scalar(None, pa.int32()), every)

    def texts(name: str) -> Any:
        ends = pa.py_buffer(bytes(4) + found[f"{name}_ends"])
        return pa.StringArray.from_buffers(count, ends, pa.py_buffer(found[name]))

    codes, own, data = numbers("type", pa.int32()), texts("topic"), texts("data")
    ids = numbers("topic_id", pa.binary(16)).dictionary_encode()
    is_own = pc.greater(pc.binary_length(own), 0)
    columns = {
        "offset": numbers("offset", pa.int64()),
        "epoch": numbers("epoch", pa.int32()),
        "time": numbers("time", pa.timestamp("us", tz="UTC")),
        "type": _of_dictionary(
            codes.dictionary_encode(), lambda code: _TYPE_NAMES.get(code, str(code))
        ),
        "version": numbers("version", pa.int32()),
        "topic": pc.if_else(is_own, own, _of_dictionary(ids, names.get)),
        "topic_id": _of_dictionary(ids, _id_text),
        "partition": some("partition"),
        "broker": some("broker"),
        "data": _whole(data),
    }
    return pa.table(columns)


def _of_dictionary(encoded: Any, text_of: Any) -> Any:
    """Returns the text of each value."""
    texts = pa.array([text_of(each) for each in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _id_text(id: bytes) -> str | None:
    return base64.urlsafe_b64encode(id).decode()[:22] if any(id) else None


def _whole(data: Any) -> Any:
    """Returns JSON objects; that of an unknown record is its value in base64, as `raw`."""
    is_object = pc.starts_with(data, "{")
    if pc.all(pc.or_(is_object, pc.equal(data, ""))).as_py() is not False:
        return data
    raw = pc.binary_join_element_wise('{"raw":', data, "}", "")
    return pc.if_else(is_object, data, raw)
