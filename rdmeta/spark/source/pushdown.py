"""A reader that takes filters of a query, so that fewer files are read.

Spark refuses each read of a reader that has `pushFilters`, unless
`spark.sql.python.filterPushdown.enabled` is on. So it is a class of its own, chosen by an option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from rdmeta.history.schema import microseconds
from rdmeta.spark.source.batch_reader import BatchReader
from rdmeta.spark.source.options import LAST_US
from rdmeta.spark.source.row_filter import RowFilter, times_of

__all__ = ["PushReader", "narrowed"]


class PushReader(BatchReader):
    """A reader that narrows what it reads by filters on cluster_id, topic, partition and times."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Returns all filters: Spark goes on to compare each row with them."""
        for each in filters:
            self._wanted = narrowed(self._wanted, self._options.table, each)
        return filters


def narrowed(wanted: RowFilter, table: str, each: Filter) -> RowFilter:
    """Returns what is wanted of rows that a filter lets pass, perhaps with some more rows."""
    attribute: tuple[str, ...] = getattr(each, "attribute", ())
    if len(attribute) != 1:
        return wanted
    if attribute[0] in ("cluster_id", "topic"):
        return _of_names(wanted, attribute[0], each)
    if attribute[0] == "partition":
        return _of_partitions(wanted, each)
    moment = _moment(getattr(each, "value", None))
    if moment is None:
        return wanted
    begin, end = times_of(table)
    since, until = wanted.since_us, wanted.until_us
    # The end of a row is never before its begin, so a bound of either holds for both. A row that
    # ends at `since` does not count as one of that time.
    if attribute[0] in (begin, end):
        if isinstance(each, (GreaterThan, GreaterThanOrEqual, EqualTo)):
            low = moment if begin == end else moment - 1
            since = low if since is None else max(since, low)
        if isinstance(each, (LessThan, LessThanOrEqual, EqualTo)):
            until = moment + 1 if until is None else min(until, moment + 1)
    return replace(wanted, since_us=since, until_us=until)


def _of_names(wanted: RowFilter, name: str, each: Filter) -> RowFilter:
    names = frozenset(_names(each))
    if not isinstance(each, (EqualTo, In)):
        return wanted
    if name == "cluster_id":
        before = wanted.cluster_ids
        return replace(wanted, cluster_ids=names if before is None else before & names)
    before = wanted.topics
    return replace(wanted, topics=names if before is None else before & names)


def _of_partitions(wanted: RowFilter, each: Filter) -> RowFilter:
    if not isinstance(each, (EqualTo, In)):
        return wanted
    values = each.value if isinstance(each, In) else (each.value,)
    numbers = frozenset(one for one in values if isinstance(one, int))
    before = wanted.partitions
    return replace(wanted, partitions=numbers if before is None else before & numbers)


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
