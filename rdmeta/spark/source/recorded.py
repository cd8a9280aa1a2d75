"""The tables of a folder: change records and silver, of the recordings that a read asks for.

The folder is one of `rdmeta record`, or an OUT of `rdmeta pipeline`, whose copies lie in `bronze`.
Silver is made from recordings as a task runs, or read from an OUT. The tasks are those of the
pipeline, so a read has the rows that `rdmeta pipeline silver` would write. A task takes whole days
of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from rdmeta.errors import ConfigError
from rdmeta.history.directory_scan import RecordingFilter
from rdmeta.history.schema import HistoryError
from rdmeta.pipeline.days import DAY_US, Day, begin_of, day_at, days_of
from rdmeta.pipeline.inputs import (
    InputRecording,
    Lister,
    cluster_of,
    input_of,
    listing,
    name_of,
    recordings_in,
    shown,
)
from rdmeta.pipeline.layout import BRONZE, LAYOUT, SILVER, cluster_folder, has_logs, parts_of_rows
from rdmeta.pipeline.manifest import Manifest, read_manifest
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.task import rows_of
from rdmeta.pipeline.work import VERSIONS, Period, Task, tables_of
from rdmeta.spark.source.files import ROW_BYTES, Part, Slice, packed
from rdmeta.spark.source.row_filter import RowFilter, chosen

_ADVICE = "move it elsewhere, or read tables of `rdmeta pipeline`, which sets it aside"


def is_pipeline(store: Store) -> bool:
    """Returns whether a folder is an OUT of the pipeline; raises ConfigError if it is not there."""
    if not store.exists():
        raise ConfigError(f"option path = {store.where!r}: there is no such folder")
    return store.read(LAYOUT) is not None


def parts_of_changes(store: Store, filter_: RowFilter) -> Iterator[Part]:
    """Yields the files with wanted change records; raises ConfigError and HistoryError."""
    for recording in recordings(store, filter_):
        for file in recording.files:
            if filter_.has(file.from_us, file.to_us):
                yield Part(file.store, file.name, file.bytes, file.rows)


def recordings(store: Store, filter_: RowFilter) -> list[InputRecording]:
    """Returns the recordings with a part in the wanted time.

    Raises ConfigError if there is no such cluster, or no history at all, and HistoryError for a
    file that is damaged or foreign, or rests on one that is.
    """
    store = history_place(store)
    lister, found = Lister(), listing(store)
    ids = {cluster_of(each.path) for each in found} - {""}
    if not ids:
        raise ConfigError(f"option path = {store.where!r}: there are no history files")
    names: dict[str, str] = {}
    if filter_.clusters is not None and not filter_.clusters <= ids:
        files = lister.seen(store, RecordingFilter(), found).files
        names = {each.cluster_id: each.name for each in files if each.name is not None}
    clusters = frozenset(chosen_clusters(store, filter_, ids, names))
    if not clusters:
        return []
    only = None if clusters == ids else clusters
    limits = RecordingFilter(only, None, filter_.since, filter_.until)
    seen = lister.seen(store, limits, found)
    for fault in seen.faults:
        raise HistoryError(f"{shown(store, fault)}: {fault.reason}; {_ADVICE}")
    # A name stands for the digest, which nothing here needs.
    named = [(name_of(store, file), file) for file in seen.files]
    made = recordings_in(input_of(store, name, file, name) for name, file in named)
    return [each for each in made if filter_.has(each.from_us, each.to_us)]


def history_place(store: Store) -> Store:
    """Returns the folder with the recordings: an OUT of the pipeline has them in `bronze`.

    Raises ConfigError if it is not there.
    """
    if not is_pipeline(store):
        return store
    bronze = store.below(BRONZE)
    if not bronze.exists():
        raise ConfigError(
            f"option path = {store.where!r}: there is no folder {BRONZE} in it, as the tables were"
            " made with --in-place; give the folder of the recorder"
        )
    return bronze


def chosen_clusters(
    store: Store, filter_: RowFilter, ids: Iterable[str], names: dict[str, str]
) -> list[str]:
    """Returns the ids of the wanted clusters; `names` are those of ids.

    Raises ConfigError for a cluster that is not there.
    """
    every = sorted(set(ids))
    if filter_.clusters is not None:
        unknown = filter_.clusters - set(every) - {names[c] for c in every if c in names}
        if unknown:
            raise ConfigError(
                f"option cluster = {sorted(unknown)[0]!r}: {store.where} has"
                f" {', '.join(every) or 'no cluster'}"
            )
    return [
        each
        for each in every
        if filter_.clusters is None or not filter_.clusters.isdisjoint((each, names.get(each)))
        if filter_.cluster_ids is None or each in filter_.cluster_ids
    ]


class TasksSlice(Slice):
    """Tasks of the pipeline, of which only one table is made, and nothing is written."""

    def __init__(self, table: str, tasks: Sequence[Task], filter_: RowFilter) -> None:
        super().__init__()
        self._table, self._tasks, self._filter = table, tuple(tasks), filter_

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yields the wanted rows; raises BadFileError and OSError."""
        for task in self._tasks:
            for rows in rows_of(task, self._table):
                yield chosen(rows, self._table, self._filter)


class _PartChain(NamedTuple):
    """Days of a cluster that one task makes, as each needs the state of the one before."""

    cluster_id: str
    days: tuple[Day, ...]

    @property
    def rows(self) -> int:
        files = {f.name: f.rows for day in self.days for s in day.stretches for f in s.files}
        return sum(files.values())


def slices_of_days(store: Store, table: str, filter_: RowFilter) -> list[Slice]:
    """Returns the tasks that make a table of a folder's recordings, in slices.

    Raises ConfigError and HistoryError.
    """
    tasks = [
        task for chain in _chains(store, table, filter_) for task in _tasks(store, table, chain)
    ]
    packs = packed(tasks, lambda task: task.rows * ROW_BYTES // task.buckets)
    return [TasksSlice(table, pack, filter_) for pack in packs]


def _chains(store: Store, table: str, filter_: RowFilter) -> Iterator[_PartChain]:
    """Yields the wanted days of each cluster.

    Which recording tells of a moment follows from all recordings of the day. Which changes of
    leader are of a day also follows from the day before.
    """
    whole = _of_whole_days(filter_)
    if table == "leader_change" and whole.since_us is not None:
        whole = replace(whole, since_us=whole.since_us - DAY_US)
    found = recordings(store, whole)
    for cluster_id, group in groupby(found, key=lambda each: each.cluster_id):
        chain: list[Day] = []
        for day in days_of(list(group), VERSIONS):
            if not _has_day(filter_, day):
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


def _of_whole_days(filter_: RowFilter) -> RowFilter:
    """Returns whole days; a change at midnight itself may belong to the day that ends there."""
    since, until = filter_.since_us, filter_.until_us
    return replace(
        filter_,
        # A recording that ended at the midnight before tells of none of these days.
        since_us=None if since is None else max(since - 1, 0) // DAY_US * DAY_US + 1,
        until_us=None if until is None else -(-until // DAY_US) * DAY_US,
    )


def _has_day(filter_: RowFilter, day: Day) -> bool:
    since, until = filter_.since_us, filter_.until_us
    if until is not None and begin_of(day.day) >= until:
        return False
    if since is None or day.day >= day_at(since):
        return True
    return any(file.to_us >= since for stretch in day.stretches for file in stretch.files)


# ---- an OUT of the pipeline ---------------------------------------------------------------------


def parts_of_silver(out: Store, table: str, filter_: RowFilter) -> Iterator[Part]:
    """Yields the parts of a table that may have wanted rows, by their names.

    Raises ConfigError if there is no silver or no such cluster.
    """
    manifest = read_manifest(out)
    files = partial(files_below, out, manifest, has_logs(out))
    names = [name for name, _ in files(f"{SILVER}/observation")]
    ids = {unquote(_value(name, "cluster")) for name in names}
    if not ids:
        raise ConfigError(
            f"option path = {out.where!r}: it has no silver; run rdmeta pipeline silver"
        )
    whole = _of_whole_days(filter_)
    for cluster_id in chosen_clusters(out, filter_, ids, manifest.names):
        below = f"{SILVER}/{table}/{cluster_folder(cluster_id)}"
        for path, part in files(below):
            name = path.rpartition("/")[2]
            if not name.endswith(".parquet") or name.startswith((".", "_")):
                continue
            if _has_period(whole, _value(path, "period")):
                yield part


def files_below(
    out: Store, manifest: Manifest, is_logged: bool, below: str
) -> Iterator[tuple[str, Part]]:
    """Yields the files below a folder by their names; the manifest knows those of tables with logs.

    It is written after all commits, so that the tables are of one run. Until the first run has
    ended, there are no files.
    """
    if is_logged:
        for name, each in manifest.files.items():
            if name.startswith(f"{below}/"):
                yield name, Part(out.where, each.stored, each.bytes)
        return
    for entry in out.files(below):
        yield entry.name, Part(out.where, entry.name, entry.size)


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
