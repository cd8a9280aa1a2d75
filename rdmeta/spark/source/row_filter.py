"""The rows that a read asks for, and what need not be read because of it.

A row has a time: the moment of a change, or the begin and the end of an interval. A read from
`since` to before `until` has the changes of that time, and the intervals that have a part in it.
Intervals come whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

with contextlib.suppress(ImportError):  # Spark 4.0 has no filters, and does not need them
    from pyspark.sql.datasource import (
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        LessThan,
        LessThanOrEqual,
    )

from rdmeta._moments import microseconds, moment
from rdmeta.spark.source.options import LAST_US, Options
from rdmeta.spark.source.schemas import CHANGES, RECORDS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True)
class RowFilter:
    """The topics and the time of a read, in microseconds since 1970; None is no limit.

    Only tables of a state take `partitions`, and history leaves them to Spark.

    `clusters` are ids or names that the user gave, and `cluster_ids` are ids alone. `from_offset`
    and `to_offset`, which is behind the last one, are offsets of a metadata log's records.
    """

    clusters: frozenset[str] | None = None
    cluster_ids: frozenset[str] | None = None
    topics: frozenset[str] | None = None
    since_us: int | None = None
    until_us: int | None = None
    partitions: frozenset[int] | None = None
    from_offset: int = 0
    to_offset: int | None = None

    @classmethod
    def of(cls, options: Options) -> RowFilter:
        """Returns what the options ask for."""
        return cls(options.clusters, None, options.topics, options.since_us, options.until_us)

    @property
    def since(self) -> datetime | None:
        """The first moment."""
        return _time(self.since_us)

    @property
    def until(self) -> datetime | None:
        """The first moment after the time."""
        return _time(self.until_us)

    def has(self, begin_us: int, end_us: int) -> bool:
        """Returns whether rows from `begin_us` to `end_us`, both included, may be wanted."""
        if self.until_us is not None and begin_us >= self.until_us:
            return False
        return self.since_us is None or end_us >= self.since_us

    def has_offsets(self, first: int, end: int) -> bool:
        """Returns whether records from the offset `first` to before `end` may be wanted."""
        return end > self.from_offset and (self.to_offset is None or first < self.to_offset)

    def has_topic(self, topic: str) -> bool:
        """Returns whether rows of a topic are wanted."""
        return self.topics is None or topic in self.topics


def narrowed(filter_: RowFilter, table: str, each: Filter) -> RowFilter:
    """Returns what is wanted of rows that a filter lets pass, perhaps with some more rows."""
    attribute: tuple[str, ...] = getattr(each, "attribute", ())
    if len(attribute) != 1:
        return filter_
    if attribute[0] in ("cluster_id", "topic"):
        return _of_names(filter_, attribute[0], each)
    if attribute[0] == "partition":
        return _of_partitions(filter_, each)
    if attribute[0] == "offset" and table == RECORDS:
        return _of_offsets(filter_, each)
    moment = _moment(getattr(each, "value", None))
    if moment is None:
        return filter_
    begin, end = times_of(table)
    since, until = filter_.since_us, filter_.until_us
    # The end of a row is never before its begin, so a bound of either holds for both. A row that
    # ends at `since` does not count as one of that time.
    if attribute[0] in (begin, end):
        if isinstance(each, (GreaterThan, GreaterThanOrEqual, EqualTo)):
            low = moment if begin == end else moment - 1
            since = low if since is None else max(since, low)
        if isinstance(each, (LessThan, LessThanOrEqual, EqualTo)):
            until = moment + 1 if until is None else min(until, moment + 1)
    return replace(filter_, since_us=since, until_us=until)


def _of_names(filter_: RowFilter, name: str, each: Filter) -> RowFilter:
    names = frozenset(_names(each))
    if not isinstance(each, (EqualTo, In)):
        return filter_
    if name == "cluster_id":
        before = filter_.cluster_ids
        return replace(filter_, cluster_ids=names if before is None else before & names)
    before = filter_.topics
    return replace(filter_, topics=names if before is None else before & names)


def _of_partitions(filter_: RowFilter, each: Filter) -> RowFilter:
    if not isinstance(each, (EqualTo, In)):
        return filter_
    values = each.value if isinstance(each, In) else (each.value,)
    numbers = frozenset(one for one in values if isinstance(one, int))
    before = filter_.partitions
    return replace(filter_, partitions=numbers if before is None else before & numbers)


def _of_offsets(filter_: RowFilter, each: Filter) -> RowFilter:
    value, low, high = getattr(each, "value", None), filter_.from_offset, filter_.to_offset
    if isinstance(value, int):
        if isinstance(each, (GreaterThan, GreaterThanOrEqual, EqualTo)):
            low = max(low, value)
        if isinstance(each, (LessThan, LessThanOrEqual, EqualTo)):
            high = value + 1 if high is None else min(high, value + 1)
    return replace(filter_, from_offset=low, to_offset=high)


def _names(each: Filter) -> Iterator[str]:
    value: Any = getattr(each, "value", None)
    for one in value if isinstance(each, In) else (value,):
        if isinstance(one, str):
            yield one


def _moment(value: object) -> int | None:
    """Returns a time in microseconds, None for another value."""
    if not isinstance(value, datetime):
        return None
    found = microseconds(value if value.tzinfo else value.replace(tzinfo=timezone.utc))
    # No row is outside these. SQL has 9999-12-31 for "no end", and Python has no day after it.
    return min(max(found, 0), LAST_US)


def times_of(table: str) -> tuple[str, str]:
    """Returns the columns with the begin and the end of a row."""
    names = arrow_schema(table).names
    if "began_at" in names:
        return "began_at", "ended_at"
    for name in ("observed_at", "time"):
        if name in names:
            return name, name
    return "seen_from", "seen_to"


def needed(table: str, columns: pa.Schema, filter_: RowFilter) -> list[str]:
    """Returns the columns to read: those of the result, and those by which rows are chosen."""
    names = [*columns.names]
    if filter_.since_us is not None or filter_.until_us is not None:
        names += times_of(table)
    if filter_.topics is not None:
        names.append("topic")
    if table == CHANGES and "detail" in names:  # the kind says whether it may be a secret
        names.append("kind")
    return list(dict.fromkeys(names))


def chosen(rows: Rows, table: str, filter_: RowFilter) -> Rows:
    """Returns the rows that are wanted."""
    mask: Any = None
    for part in _masks(rows, table, filter_):
        mask = part if mask is None else pc.and_(mask, part)
    return rows if mask is None else rows.filter(mask)


def _masks(rows: Any, table: str, filter_: RowFilter) -> Iterator[Any]:
    yield from _overlaps(rows, table, filter_)
    if filter_.topics is not None:
        yield pc.is_in(rows.column("topic"), pa.array(sorted(filter_.topics), pa.string()))


def _overlaps(rows: Any, table: str, filter_: RowFilter) -> Iterator[Any]:
    """Yields masks of the rows that overlap the time; each is wanted as a whole."""
    begin, end = times_of(table)
    if filter_.since_us is not None:
        since = _scalar(filter_.since_us)
        is_in = pc.greater_equal(rows.column(begin), since)
        if begin != end:
            is_in = pc.or_(is_in, pc.greater(rows.column(end), since))
        yield is_in
    if filter_.until_us is not None:
        yield pc.less(rows.column(begin), _scalar(filter_.until_us))


def groups_of(metadata: Any, table: str, filter_: RowFilter) -> list[int]:
    """Returns the row groups of a Parquet file that may have wanted rows, by their bounds."""
    groups = range(metadata.num_row_groups)
    if filter_.since_us is None and filter_.until_us is None and filter_.topics is None:
        return list(groups)
    return [each for each in groups if _may_have(metadata.row_group(each), table, filter_)]


def _may_have(group: Any, table: str, filter_: RowFilter) -> bool:
    bounds = {}
    for number in range(group.num_columns):
        column = group.column(number)
        about = column.statistics
        if about is not None and about.has_min_max:
            bounds[column.path_in_schema] = about
    begin, end = times_of(table)
    lows, highs = _moments(bounds.get(begin)), _moments(bounds.get(end))
    if lows is not None and filter_.until_us is not None and lows[0] >= filter_.until_us:
        return False
    if highs is not None and lows is not None and filter_.since_us is not None:
        # An interval that ends at this moment is none of the time, unless it begins there.
        is_before = highs[1] <= filter_.since_us and lows[1] < filter_.since_us
        if is_before:
            return False
    topics = bounds.get("topic")
    if topics is None or filter_.topics is None:
        return True
    return any(topics.min <= each <= topics.max for each in filter_.topics)


def _moments(about: Any) -> tuple[int, int] | None:
    """Returns the bounds of a column of times in microseconds."""
    if about is None or "microseconds" not in str(about.logical_type):
        return None
    return about.min_raw, about.max_raw


def _scalar(us: int) -> Any:
    return pa.scalar(us, pa.timestamp("us", tz="UTC"))


def _time(us: int | None) -> datetime | None:
    return None if us is None else moment(us)
