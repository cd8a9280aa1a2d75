"""Changes of leader that several recordings saw, joined to one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.pipeline.tables import SCHEMAS

__all__ = ["SCHEMA", "Baseline", "Past", "joined", "past_of"]

_SPREAD = "spread_us"
# The rows of one origin, as a fold gives them.
SCHEMA = pa.schema([each for each in SCHEMAS["leader_change"] if each.name != _SPREAD])

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


def joined(rows: pa.Table, counts: Mapping[str, tuple[int, int] | None], past: Past) -> pa.Table:
    """Returns one row for each change of leader of a day, at its first sight.

    `rows` are the changes that every origin saw, `counts` is the time for which each one counts.
    If topic id and epoch are known, rows of several origins are one change, and `recordings` is the
    number of origins; `spread_us` is the time between their first and their last sight, null for
    one origin. Otherwise only the origin that counts tells of it. A change whose epoch
    another origin had at the midnight before is past: the day before has it.
    """
    # One origin's rows lie in this order already. A day has many rows, so it makes no copy of them.
    order = [(name, "ascending") for name in ("observed_at", "origin", "version")]
    ordered = rows.sort_by(order) if len(counts) > 1 else rows
    same = pc.and_(pc.is_valid(ordered["topic_id"]), pc.is_valid(ordered["new_leader_epoch"]))
    ordered = ordered.append_column("same", same)
    wanted = pc.or_(same, _counted(ordered, counts))
    if not pc.all(wanted).as_py():
        ordered = ordered.filter(wanted)
    if past:
        ordered = _without_past(ordered, past)
    if len(counts) == 1 and not _has_repeats(ordered):
        unknown = pa.nulls(ordered.num_rows, pa.int64())
        return ordered.drop_columns(["same"]).append_column(_SPREAD, unknown)
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
    first = ordered.take(groups["number_min"]).drop_columns(["same", "number"])
    place = first.schema.get_field_index("recordings")
    recordings = groups["origin_count_distinct"].cast(pa.int32())
    spread = pc.subtract(groups["us_max"], groups["us_min"])
    is_shared = pc.greater(recordings, 1)
    return first.set_column(place, first.schema.field(place), recordings).append_column(
        _SPREAD, pc.if_else(is_shared, spread, pa.scalar(None, pa.int64()))
    )


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
