"""Rows of history as Arrow columns: records of a cache, stamped with a recording and its time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta._change_table import END_KINDS
from rdmeta._moments import microseconds
from rdmeta.health import MIN_ISR
from rdmeta.history.schema import CHANGE_SCHEMA
from rdmeta.model import Arrow

_STATE_AT_ONCE = "topic_added"


class ChangeRows(Protocol):
    """Change records in order, up to the version `until`; part of `rdmeta.model.Changes`."""

    @property
    def until(self) -> int: ...

    @property
    def resync(self) -> bool: ...

    def to_arrow(self) -> Arrow: ...


def rows_of(changes: ChangeRows) -> pa.Table:
    """Returns records as rows of history."""
    # pa.table() would import pandas where there is one.
    table = pa.RecordBatchReader.from_stream(changes.to_arrow()).read_all()
    return pa.table([table[name] for name in CHANGE_SCHEMA.names], schema=CHANGE_SCHEMA)


def rows_until(changes: ChangeRows, version: int) -> pa.Table:
    """Returns the records up to `version`, as rows of history."""
    rows = rows_of(changes)
    if changes.until <= version:
        return rows
    count = pc.sum(pc.less_equal(rows["version"], pa.scalar(version))).as_py()
    return rows.slice(0, count or 0)


def single(fields: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Returns rows that have only these fields."""
    return pa.Table.from_pylist(list(fields), schema=CHANGE_SCHEMA)


def without_offsets(state: pa.Table) -> pa.Table:
    """Returns a state whose rows do not say which record made them: a snapshot does not know it."""
    place = state.schema.get_field_index("offset")
    field = state.schema.field(place)
    return state.set_column(place, field, pa.nulls(len(state), field.type))


def has_kind(rows: pa.Table, kind: str) -> bool:
    """Returns whether one of the rows is of that kind."""
    return bool(pc.any(pc.equal(rows["kind"], pa.scalar(kind))).as_py())


def topics_gone(rows: pa.Table) -> list[str]:
    """Returns the names of the topics that a row ended, also of those that came again."""
    ends = pc.and_(
        pc.is_in(rows["kind"], pa.array(END_KINDS)),
        pc.and_(pc.is_null(rows["partition"]), pc.is_valid(rows["topic"])),
    )
    found: list[str] = rows["topic"].filter(ends).to_pylist()
    return found


def config(topic: str, topic_id: str | None, version: int, value: int | None) -> dict[str, Any]:
    """Returns the fields of a row with a topic's min ISR; None: it is not known any more."""
    return {
        "version": version,
        "source": "poll",
        "kind": "config_changed",
        "topic": topic,
        "topic_id": topic_id,
        "detail": MIN_ISR if value is None else f"{MIN_ISR}={value}",
    }


def topics_of(state: pa.Table) -> dict[str, str | None]:
    """Returns the names of a state's topics, with their ids."""
    heads = _heads(state)
    columns = (state[name].take(heads).to_pylist() for name in ("topic", "topic_id"))
    return dict(zip(*columns, strict=True))


def with_min_isr(rows: pa.Table, version: int, min_isr: Mapping[str, int]) -> pa.Table:
    """Returns the rows of a whole state, with a row per known min ISR behind those of its topic."""
    if not min_isr:
        return rows
    heads = _heads(rows)
    names = rows["topic"].take(heads).to_pylist()
    ids = rows["topic_id"].take(heads).to_pylist()
    ends = [*heads.to_pylist()[1:], len(rows)]
    known = [
        (config(name, topic_id, version, min_isr[name]), end)
        for name, topic_id, end in zip(names, ids, ends, strict=True)
        if name in min_isr
    ]
    places = pa.array([2 * place for place in range(len(rows))] + [2 * end - 1 for _, end in known])
    both = pa.concat_tables([rows, single(fields for fields, _ in known)])
    return both.take(pc.sort_indices(places))


def _heads(state: pa.Table) -> Any:
    """Returns the places of the rows that begin a topic."""
    return pc.indices_nonzero(
        pc.and_(pc.equal(state["kind"], pa.scalar(_STATE_AT_ONCE)), pc.is_null(state["partition"]))
    )


def stamped(
    rows: pa.Table,
    cluster_id: str,
    session: str,
    span: tuple[datetime, datetime],
    before: datetime | None,
) -> pa.Table:
    """Returns the rows of a recording, with times within `span` that never run backwards.

    A cache stamps a record when an answer comes. If somebody sets the clock between that and the
    observation, the time may lie outside of what the observation covers.
    `before` is the time of the observation before the one that saw the rows: unseen_us counts from
    it. None: the rows tell a state that stood before the recording.
    """
    first, last = (pa.scalar(microseconds(when)) for when in span)
    times = pc.max_element_wise(rows["observed_at"].cast(pa.int64()), first)
    times = pc.cumulative_max(pc.min_element_wise(times, last))
    new: dict[str, Any] = {
        "cluster_id": pa.repeat(cluster_id, len(rows)),
        "session": pa.repeat(session, len(rows)),
        "observed_at": times.cast(CHANGE_SCHEMA.field("observed_at").type),
    }
    if before is not None:
        new["unseen_us"] = pc.subtract(times, pa.scalar(microseconds(before)))
    return _replaced(rows, new)


def _replaced(rows: pa.Table, new: Mapping[str, Any]) -> pa.Table:
    columns: Sequence[Any] = [new.get(name, rows[name]) for name in CHANGE_SCHEMA.names]
    return pa.table(columns, schema=CHANGE_SCHEMA)
