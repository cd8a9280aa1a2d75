"""The tables of silver: made from recordings as a task runs, or read from an OUT of the pipeline.

The tasks are those of the pipeline, so a read has the rows that `rdmeta pipeline silver` would
write. A task takes whole days of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from rdmeta.errors import ConfigError
from rdmeta.pipeline.days import DAY_US, Day, begin_of, day_at, days_of
from rdmeta.pipeline.layout import SILVER, cluster_folder, parts_of_rows
from rdmeta.pipeline.manifest import read_manifest
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.task import rows_of
from rdmeta.pipeline.work import VERSIONS, Period, Task, tables_of
from rdmeta.spark.source.files import ROW_BYTES, Part, packed
from rdmeta.spark.source.recorded import chosen_clusters, recordings
from rdmeta.spark.source.row_filter import RowFilter, chosen
from rdmeta.spark.source.slices import Slice

__all__ = ["parts_of_silver", "slices_of_days"]


class TasksSlice(Slice):
    """Tasks of the pipeline, of which only one table is made, and nothing is written."""

    def __init__(self, table: str, tasks: Sequence[Task], wanted: RowFilter) -> None:
        super().__init__()
        self._table, self._tasks, self._wanted = table, tuple(tasks), wanted

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yields the wanted rows; raises BadFileError and OSError."""
        for task in self._tasks:
            for rows in rows_of(task, self._table):
                yield chosen(rows, self._table, self._wanted)


class _PartChain(NamedTuple):
    """Days of a cluster that one task makes, as each needs the state of the one before."""

    cluster_id: str
    days: tuple[Day, ...]

    @property
    def rows(self) -> int:
        files = {f.name: f.rows for day in self.days for s in day.stretches for f in s.files}
        return sum(files.values())


def slices_of_days(store: Store, table: str, wanted: RowFilter) -> list[Slice]:
    """Returns the tasks that make a table of a folder's recordings, in slices.

    Raises ConfigError and HistoryError.
    """
    tasks = [
        task for chain in _chains(store, table, wanted) for task in _tasks(store, table, chain)
    ]
    packs = packed(tasks, lambda task: task.rows * ROW_BYTES // task.buckets)
    return [TasksSlice(table, pack, wanted) for pack in packs]


def _chains(store: Store, table: str, wanted: RowFilter) -> Iterator[_PartChain]:
    """Yields the wanted days of each cluster.

    Which recording tells of a moment follows from all recordings of the day. Which changes of
    leader are of a day also follows from the day before.
    """
    whole = _of_whole_days(wanted)
    if table == "leader_change" and whole.since_us is not None:
        whole = replace(whole, since_us=whole.since_us - DAY_US)
    found = recordings(store, whole)
    for cluster_id, group in groupby(found, key=lambda each: each.cluster_id):
        chain: list[Day] = []
        for day in days_of(list(group), VERSIONS):
            if not _has_day(wanted, day):
                continue
            if chain and not day.is_carried:
                yield _PartChain(cluster_id, tuple(chain))
                chain = []
            chain.append(day)
        if chain:
            yield _PartChain(cluster_id, tuple(chain))


def _tasks(store: Store, table: str, chain: _PartChain) -> Iterator[Task]:
    buckets = parts_of_rows(-(-chain.rows // len(chain.days)))
    period = Period(chain.days[0].day, chain.days)
    for bucket in range(buckets):
        if table in tables_of(bucket):
            yield Task(store.where, chain.cluster_id, bucket, buckets, (period,), "a read")


def _of_whole_days(wanted: RowFilter) -> RowFilter:
    """Returns whole days; a change at midnight itself may belong to the day that ends there."""
    since, until = wanted.since_us, wanted.until_us
    return replace(
        wanted,
        # A recording that ended at the midnight before tells of none of these days.
        since_us=None if since is None else max(since - 1, 0) // DAY_US * DAY_US + 1,
        until_us=None if until is None else -(-until // DAY_US) * DAY_US,
    )


def _has_day(wanted: RowFilter, day: Day) -> bool:
    since, until = wanted.since_us, wanted.until_us
    if until is not None and begin_of(day.day) >= until:
        return False
    if since is None or day.day >= day_at(since):
        return True
    return any(file.to_us >= since for stretch in day.stretches for file in stretch.files)


# ---- an OUT of the pipeline ---------------------------------------------------------------------


def parts_of_silver(out: Store, table: str, wanted: RowFilter) -> Iterator[Part]:
    """Yields the parts of a table that may have wanted rows, by their names.

    Raises ConfigError if there is no silver or no such cluster.
    """
    names = [entry.name for entry in out.files(f"{SILVER}/observation")]
    ids = {unquote(_value(name, "cluster")) for name in names}
    if not ids:
        raise ConfigError(
            f"option path = {out.where!r}: it has no silver; run rdmeta pipeline silver"
        )
    whole = _of_whole_days(wanted)
    for cluster_id in chosen_clusters(out, wanted, ids, read_manifest(out).names):
        for entry in out.files(f"{SILVER}/{table}/{cluster_folder(cluster_id)}"):
            name = entry.name.rpartition("/")[2]
            if not name.endswith(".parquet") or name.startswith((".", "_")):
                continue
            if _has_period(whole, _value(entry.name, "period")):
                yield Part(out.where, entry.name, entry.size)


def _value(name: str, key: str) -> str:
    """Returns the value of `key=value` in a path, "" if it is not there."""
    found: Any = (each.partition("=") for each in name.split("/"))
    return next((value for each, _, value in found if each == key), "")


def _has_period(whole: RowFilter, period: str) -> bool:
    """Returns whether a day, or a month, has a part in whole days."""
    since, until = whole.since_us, whole.until_us
    size = len(period)
    # The last day of the time, as `until` is the first one after it.
    return (since is None or period >= day_at(since)[:size]) and (
        until is None or period <= day_at(until - DAY_US)[:size]
    )
