"""Changes of leader that several recordings saw, joined to one row each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.pipeline.tables import SCHEMAS

__all__ = ["SCHEMA", "Baseline", "Past", "joined", "past_of"]

_SPREAD = "spread_us"
# The rows of one origin, as a fold gives them.
SCHEMA = pa.schema([each for each in SCHEMAS["leader_change"] if each.name != _SPREAD])

_CHAIN = ("old_leader", "new_leader", "old_leader_epoch", "new_leader_epoch", "elections")
_KEYS = ["topic", "topic_id", "partition", "new_leader_epoch", "new_leader"]

# For each origin that came over a midnight: the epoch there of each topic id and partition.
Past = dict[str, dict[tuple[str, int], int]]


def past_of(pieces: pa.Table) -> dict[tuple[str, int], int]:
    """Returns the leader epochs that stood at the midnight at which these pieces begin."""
    stood = pieces.filter(pc.equal(pieces["began_by"], "midnight"))
    return _epochs(stood, "leader_epoch")


class Baseline:
    """Reads the leader epochs of a recording's baseline, if it begins at that midnight.

    A state that a change ends at the midnight itself makes no piece, so that only its baseline
    tells it.
    """

    def __init__(self, midnight: int) -> None:
        self._midnight = midnight
        self._version: int | None = None
        self.is_over = False

    def epochs(self, rows: pa.RecordBatch) -> dict[tuple[str, int], int]:
        """Returns the epochs that the recording's next rows have; the baseline may be over then."""
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
        return _epochs(rows.filter(pc.and_(at_begin, is_state)), "new_leader_epoch")


def _epochs(rows: pa.Table | pa.RecordBatch, name: str) -> dict[tuple[str, int], int]:
    columns = (rows[each].to_pylist() for each in ("topic_id", "partition", name))
    return {
        (topic_id, partition): epoch
        for topic_id, partition, epoch in zip(*columns, strict=True)
        if topic_id is not None and epoch is not None
    }


def joined(
    rows: pa.Table,
    counts: Mapping[str, tuple[int, int] | None],
    past: Past,
    before: pa.Table | None = None,
) -> pa.Table:
    """Returns one row for each change of leader of a day, at its first sight.

    `rows` are the changes that every origin saw, `counts` is the time for which each one counts.
    If topic id and epoch are known, rows of several origins are one change, and `recordings` is the
    number of origins; `spread_us` is the time between their first and their last sight, null for
    one origin. Otherwise only the origin that counts tells of it.

    `before` are the changes that origins saw on the day before. That day has them, and what all
    origins saw makes one chain of epochs. Without the input of that day, a change whose epoch
    another origin had at the midnight before is past.
    """
    rows = _marked(rows, is_new=True)
    if before is not None:
        rows = pa.concat_tables([_marked(before, is_new=False), rows])
    # One origin's rows lie in this order already. A day has many rows, so it makes no copy of them.
    order = [(name, "ascending") for name in ("is_new", "observed_at", "origin", "version")]
    ordered = rows.sort_by(order) if len(counts) > 1 or before is not None else rows
    same = pc.and_(pc.is_valid(ordered["topic_id"]), pc.is_valid(ordered["new_leader_epoch"]))
    ordered = ordered.append_column("same", same)
    wanted = pc.or_(same, _counted(ordered, counts))
    if not pc.all(wanted).as_py():
        ordered = ordered.filter(wanted)
    if past:
        ordered = _without_past(ordered, past)
    if len(counts) == 1 and before is None and not _has_repeats(ordered):
        unknown = pa.nulls(ordered.num_rows, pa.int64())
        return ordered.drop_columns(["same", "is_new"]).append_column(_SPREAD, unknown)
    number = pa.array(range(ordered.num_rows), pa.int64())
    ordered = ordered.append_column("number", number)
    # A row that is not the same as others is a group of its own.
    alone = pc.if_else(ordered["same"], pa.scalar(-1, pa.int64()), ordered["number"])
    groups = (
        ordered.append_column("alone", alone)
        .append_column("us", pc.cast(ordered["observed_at"], pa.int64()))
        .group_by([*_KEYS, "alone"], use_threads=False)
        .aggregate([("number", "min"), ("origin", "count_distinct"), ("us", "min"), ("us", "max")])
        .sort_by("number_min")
    )
    first = ordered.take(groups["number_min"]).drop_columns(["same", "number", "is_new"])
    place = first.schema.get_field_index("recordings")
    recordings = groups["origin_count_distinct"].cast(pa.int32())
    spread = pc.subtract(groups["us_max"], groups["us_min"])
    is_shared = pc.greater(recordings, 1)
    made = first.set_column(place, first.schema.field(place), recordings).append_column(
        _SPREAD, pc.if_else(is_shared, spread, pa.scalar(None, pa.int64()))
    )
    if len(counts) == 1 and before is None:
        return made
    is_new = ordered.take(groups["number_min"])["is_new"]
    return _chained(made, ordered, is_new.to_pylist()).filter(is_new)


def _marked(rows: pa.Table, *, is_new: bool) -> pa.Table:
    """Returns the rows with a column that says whether they are of the day, and not before it."""
    return rows.append_column("is_new", pa.array([is_new] * rows.num_rows, pa.bool_()))


def _chained(first: pa.Table, rows: pa.Table, news: Sequence[bool]) -> pa.Table:
    """Returns the changes with the old leaders and epochs that all origins together know.

    The first change to an epoch comes from the highest epoch before it that any origin knows. A
    later one, with another leader, comes from the leader of that epoch and is no election. Nor
    is one whose election a later epoch of the day before has in its number.
    """
    known: dict[Any, dict[int, Any]] = {}
    for thing, epoch, leader in _values(rows, "old_leader_epoch", "old_leader"):
        known.setdefault(thing, {}).setdefault(epoch, leader)
    for thing, epoch, leader in _values(rows, "new_leader_epoch", "new_leader"):
        known.setdefault(thing, {})[epoch] = leader
    ordered = {thing: sorted(epochs) for thing, epochs in known.items()}
    last: dict[Any, dict[int, Any]] = {}
    highest: dict[Any, int] = {}
    columns = {name: first[name].to_pylist() for name in _CHAIN}
    ids = zip(first["topic_id"].to_pylist(), first["partition"].to_pylist(), strict=True)
    for row, thing in enumerate(ids):
        epoch, old = columns["new_leader_epoch"][row], columns["old_leader_epoch"][row]
        if thing[0] is None or epoch is None:
            continue
        leaders = last.setdefault(thing, {})
        if old is not None and old < epoch:
            place = bisect_left(ordered[thing], epoch)
            nearest = ordered[thing][place - 1]  # `old` is one of them
            found = (old, columns["old_leader"][row], epoch - old)
            if epoch in leaders:
                found = (epoch, leaders[epoch], 0)
            elif nearest > old:
                found = (nearest, known[thing][nearest], epoch - nearest)
            if news[row] and epoch < highest.get(thing, -1):
                found = (*found[:2], 0)
            columns["old_leader_epoch"][row], columns["old_leader"][row] = found[:2]
            columns["elections"][row] = found[2]
        leaders[epoch] = columns["new_leader"][row]
        if not news[row]:
            highest[thing] = max(epoch, highest.get(thing, -1))
    for name in ("old_leader", "old_leader_epoch", "elections"):
        index = first.schema.get_field_index(name)
        field = first.schema.field(index)
        first = first.set_column(index, field, pa.array(columns[name], field.type))
    return first


def _values(rows: pa.Table, *names: str) -> Iterator[tuple[tuple[str, int], int, Any]]:
    """Yields topic id and partition, epoch and leader of rows that have an id and an epoch."""
    columns = (rows[name].to_pylist() for name in ("topic_id", "partition", *names))
    for topic_id, partition, epoch, leader in zip(*columns, strict=True):
        if topic_id is not None and epoch is not None:
            yield (topic_id, partition), epoch, leader


def _has_repeats(rows: pa.Table) -> bool:
    """Returns whether two rows may be one change: grouping by texts takes much longer."""
    codes = pc.dictionary_encode(rows["topic_id"]).combine_chunks()
    indices = codes.indices if isinstance(codes, pa.DictionaryArray) else codes.chunk(0).indices
    columns = [
        indices,
        rows["partition"].combine_chunks(),
        rows["new_leader_epoch"].combine_chunks(),
    ]
    keys = pa.table(columns, names=["topic", "partition", "epoch"]).filter(rows["same"])
    ordered = keys.sort_by([(name, "ascending") for name in keys.column_names])
    equal = [
        pc.equal(column.slice(1), column.slice(0, max(len(column) - 1, 0)))
        for column in ordered.combine_chunks().columns
    ]
    return bool(pc.any(pc.and_(pc.and_(equal[0], equal[1]), equal[2])).as_py())


def _counted(rows: pa.Table, counts: Mapping[str, tuple[int, int] | None]) -> Any:
    """Returns for each row whether its origin counts at its time."""
    times = pc.cast(rows["observed_at"], pa.int64())
    found: Any = pa.chunked_array([pa.array([False] * rows.num_rows, pa.bool_())])
    for origin, span in counts.items():
        if span is not None:
            inside = pc.and_(pc.greater_equal(times, span[0]), pc.less_equal(times, span[1]))
            found = pc.or_(found, pc.and_(pc.equal(rows["origin"], origin), inside))
    return found


def _without_past(rows: pa.Table, past: Past) -> pa.Table:
    """Returns the rows without those whose epoch another origin had at midnight."""
    names = ("topic_id", "partition", "new_leader_epoch", "origin")
    columns = zip(*(rows[name].to_pylist() for name in names), strict=True)
    kept = [
        topic_id is None
        or epoch is None
        or all(
            stood.get((topic_id, partition), -1) < epoch
            for other, stood in past.items()
            if other != origin
        )
        for topic_id, partition, epoch, origin in columns
    ]
    return rows.filter(pa.array(kept, pa.bool_()))
