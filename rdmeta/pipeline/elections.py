"""Changes of leader that several recordings saw, joined to one chain of epochs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.pipeline.days import Span
from rdmeta.pipeline.epoch_chains import EpochRow, SeenChange, State, Thing, row_of, rows_of
from rdmeta.pipeline.tables import SCHEMAS

_SPREAD = "spread_us"
# The rows of one origin, as a fold gives them.
SCHEMA = pa.schema([each for each in SCHEMAS["leader_change"] if each.name != _SPREAD])

_THING = ("topic", "topic_id", "partition")
_STEP = ("old_leader_epoch", "old_leader", "new_leader_epoch", "new_leader")
# What is needed of changes of the day before, and of states.
_ORDER = ("observed_at", "origin", "version")
SEEN = pa.schema([SCHEMA.field(name) for name in (*_THING, *_STEP, *_ORDER)])

_STATES = ("topic_added", "topic_recreated", "partitions_added", "leader_epoch_changed")

# For each origin that came over a midnight: the epoch and the leader there of each partition.
Past = dict[str, dict[Thing, State]]


def past_of(pieces: pa.Table) -> dict[Thing, State]:
    """Returns the epochs and leaders that stood at the midnight at which these pieces begin."""
    stood = pieces.filter(pc.equal(pieces["began_by"], "midnight"))
    return _states(stood, "leader_epoch", "leader")


class Baseline:
    """Reads the epochs and leaders of a recording's baseline, if it begins at that midnight.

    A state that a change ends at the midnight itself makes no piece, so that only its baseline
    tells it.
    """

    def __init__(self, midnight: int) -> None:
        self._midnight = midnight
        self._version: int | None = None
        self.is_over = False

    def states(self, rows: pa.RecordBatch) -> dict[Thing, State]:
        """Returns what the recording's next rows tell; the baseline may be over then."""
        if rows.num_rows == 0 or self.is_over:
            return {}
        if self._version is None:
            self._version = rows["version"][0].as_py()
            if rows["kind"][0].as_py() != "observed_from":
                self.is_over = True
                return {}
        at_begin = pc.and_(
            pc.equal(rows["version"], self._version),
            pc.equal(pc.cast(rows["observed_at"], pa.int64()), self._midnight),
        )
        self.is_over = not at_begin[-1].as_py()
        is_state = pc.and_(pc.equal(rows["kind"], "topic_added"), pc.is_valid(rows["partition"]))
        return _states(rows.filter(pc.and_(at_begin, is_state)), "new_leader_epoch", "new_leader")


def _states(rows: pa.Table | pa.RecordBatch, *names: str) -> dict[Thing, State]:
    columns = (rows[each].to_pylist() for each in (*_THING, *names))
    return {
        (topic, topic_id, partition): (epoch, leader)
        for topic, topic_id, partition, epoch, leader in zip(*columns, strict=True)
        if topic_id is not None and epoch is not None
    }


def seen_in(rows: pa.RecordBatch, origin: str, ids: pa.Array | None = None) -> pa.Table:
    """Returns the changes of leader among the rows of an origin, as SEEN, if all is known.

    With ids of topics it returns the states of their partitions that no change of leader tells.
    """
    if ids is None:
        is_known = pc.equal(rows["kind"], "leader_changed")
    else:
        is_known = pc.is_in(rows["kind"].cast(pa.string()), pa.array(_STATES))
        is_known = pc.and_(is_known, pc.is_in(rows["topic_id"].cast(pa.string()), ids))
    for name in (*_THING, "new_leader_epoch"):
        is_known = pc.and_(is_known, pc.is_valid(rows[name]))
    found = pa.Table.from_batches([rows.filter(is_known)])
    found = found.append_column("origin", pa.repeat(origin, found.num_rows))
    return found.select(SEEN.names).cast(SEEN)


def skipped(*found: pa.Table) -> pa.Array:
    """Returns the ids of topics of which an origin saw a rise that skipped epochs."""
    ids = []
    for rows in found:
        rise = pc.subtract(rows["new_leader_epoch"], rows["old_leader_epoch"])
        ids += rows["topic_id"].filter(pc.greater(rise, 1)).drop_null().chunks
    return pc.unique(pa.chunked_array(ids, pa.string()))


def joined(
    rows: pa.Table,
    counts: Mapping[str, Sequence[Span]],
    past: Past,
    before: pa.Table | None = None,
    states: Sequence[pa.Table] = (),
    exact: Collection[str] = (),
) -> pa.Table:
    """Returns the changes of leader of a day: one row for each epoch, at its first sight.

    `rows` are the changes that every origin saw, `counts` are the times for which each one counts.
    If topic id and epoch are known, rows of several origins are one change, and `recordings` is the
    number of origins; `spread_us` is the time between their first and their last sight, null for
    one origin. Otherwise only the origin that counts tells of it.

    `before` are the changes that origins saw on the day before, as SEEN. A rise that one of them
    saw is not of this day. If that day has no input, one whose epoch another origin had at midnight
    is not. Any other change is not if another origin had its epoch and leader at midnight.

    `states` are those of the day before and of the day, as SEEN, if a rise skipped epochs.

    `exact` are the origins that are metadata logs: where one tells of an epoch, that is the first
    sight, whatever a recorder's clock said.
    """
    # One origin's rows lie in this order already. A day has many rows, so it makes no copy of them.
    ordered = _in_order(rows) if len(counts) > 1 else rows
    same = pc.and_(pc.is_valid(ordered["topic_id"]), pc.is_valid(ordered["new_leader_epoch"]))
    wanted = pc.or_(same, _counted(ordered, counts))
    if not pc.all(wanted).as_py():
        ordered, same = ordered.filter(wanted), same.filter(wanted)
    if len(counts) == 1 and before is None and not _has_repeats(ordered.filter(same)):
        return ordered.append_column(_SPREAD, pa.nulls(ordered.num_rows, pa.int64()))
    earlier = _by_thing(before)
    stated = [_by_thing(each) for each in states]
    now: dict[Thing, list[SeenChange]] = {}
    made: list[EpochRow] = []
    seen_changes = list(zip(_changes(ordered), same.to_pylist(), strict=True))
    if exact:
        seen_changes.sort(key=lambda each: each[0].origin not in exact)
    for change, is_same in seen_changes:
        if is_same:
            now.setdefault(change.thing, []).append(change)
        else:
            made.append(row_of([change]))
    for thing, changes in now.items():
        stood = {origin: states[thing] for origin, states in past.items() if thing in states}
        seen = None if before is None else earlier.get(thing, [])
        made += rows_of(changes, seen, stood, [each.get(thing, []) for each in stated])
    return _table(ordered, sorted(made, key=lambda row: (row.number, row.new_leader_epoch or 0)))


def _in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in _ORDER])


def _by_thing(rows: pa.Table | None) -> dict[Thing, list[SeenChange]]:
    found: dict[Thing, list[SeenChange]] = {}
    for change in _changes(_in_order(rows)) if rows is not None else ():
        found.setdefault(change.thing, []).append(change)
    return found


def _changes(rows: pa.Table) -> Iterator[SeenChange]:
    """Yields changes in their order; the names of topics and origins are shared."""
    times = pc.cast(rows["observed_at"], pa.int64()).to_pylist()
    topics, ids, origins = (_shared(rows[name]) for name in ("topic", "topic_id", "origin"))
    things = zip(topics, ids, rows["partition"].to_pylist(), strict=True)
    steps = (rows[name].to_pylist() for name in _STEP)
    yield from map(SeenChange, range(rows.num_rows), things, times, *steps, origins)


def _shared(column: pa.ChunkedArray) -> list[Any]:
    """Returns a column's texts; equal ones are one object."""
    codes = pc.dictionary_encode(column.combine_chunks())
    texts = codes.dictionary.to_pylist()
    return [None if code is None else texts[code] for code in codes.indices.to_pylist()]


def _table(rows: pa.Table, made: Sequence[EpochRow]) -> pa.Table:
    found = rows.take(pa.array([each.number for each in made], pa.int64()))
    for name in EpochRow._fields[1:]:
        field = SCHEMAS["leader_change"].field(name)
        values = pa.array([getattr(each, name) for each in made], field.type)
        place = found.schema.get_field_index(name)
        if place < 0:
            found = found.append_column(field, values)
        else:
            found = found.set_column(place, found.schema.field(place), values)
    return found


def _has_repeats(rows: pa.Table) -> bool:
    """Returns whether two rows may be one change: grouping by texts takes much longer."""
    codes = pc.dictionary_encode(rows["topic_id"]).combine_chunks()
    indices = codes.indices if isinstance(codes, pa.DictionaryArray) else codes.chunk(0).indices
    columns = [
        indices,
        rows["partition"].combine_chunks(),
        rows["new_leader_epoch"].combine_chunks(),
    ]
    keys = pa.table(columns, names=["topic", "partition", "epoch"])
    ordered = keys.sort_by([(name, "ascending") for name in keys.column_names])
    equal = [
        pc.equal(column.slice(1), column.slice(0, max(len(column) - 1, 0)))
        for column in ordered.combine_chunks().columns
    ]
    return bool(pc.any(pc.and_(pc.and_(equal[0], equal[1]), equal[2])).as_py())


def _counted(rows: pa.Table, counts: Mapping[str, Sequence[Span]]) -> Any:
    """Returns for each row whether its origin counts at its time."""
    times = pc.cast(rows["observed_at"], pa.int64())
    found: Any = pa.chunked_array([pa.array([False] * rows.num_rows, pa.bool_())])
    for origin, spans in counts.items():
        for low, high in spans:
            inside = pc.and_(pc.greater_equal(times, low), pc.less_equal(times, high))
            found = pc.or_(found, pc.and_(pc.equal(rows["origin"], origin), inside))
    return found
