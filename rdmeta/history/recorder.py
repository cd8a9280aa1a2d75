"""Appends a cache's changes to Parquet files as the recorder observes them.

A recording has these rows in this order:

    observed_from    the recording begins
    whole state      everything in the cache, as if all of it had been added at that version
    changes          with higher versions
    observed_to      the recording ends

A recording never covers time without observations. It ends at its last observation if the cache no
longer holds all changes, if observations are too far apart, or if another cluster answers. Then a
new recording begins, whose second row is `resync` and gives the reason. A process that dies writes
no `observed_to`; its observations end at the last file's `observed_to_us`.

The recorder makes each file by rename: a file is complete and on disk, or it is not there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history.schema import CHANGE_SCHEMA, FileName, Footer, HistoryError
from rdmeta.history.states import Cache, FellBehindError, State, drain, partition_rows, read_state
from rdmeta.model import Broker, Change

__all__ = ["Recorder"]

_NOTHING = Change(*[None] * len(Change._fields))  # type: ignore[arg-type]


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Recorder:
    """Appends a cache's changes to Parquet files in a directory.

    The caller calls `observe()` after each successful refresh, and only then: the call states that
    an answer has just confirmed the whole cache. A recorder is meant for a cache whose refreshes
    ask one broker, always the same, for all topics. Brokers that lag behind each other would flip
    an ISR back and forth.

    `flush_every` limits, in seconds, the time that a crash loses. `flush_rows` limits the rows in
    memory. Observations more than `max_gap` seconds apart belong to two recordings. `cluster_id`
    names the cluster if its brokers do not (Metadata v0 and v1). Times are wall-clock time in UTC;
    within a recording they never run backwards. One thread at a time may use a recorder. Other
    recorders, also of the same cluster, may write to the same directory.

    Raises HistoryError if the cluster has no name, and OSError if a file cannot be written. Then
    the recorder keeps its rows, and the next call tries again.
    """

    def __init__(
        self,
        cache: Cache,
        directory: str | os.PathLike[str],
        *,
        cluster_id: str | None = None,
        flush_every: float = 300.0,
        flush_rows: int = 100_000,
        max_gap: float = 60.0,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._cache = cache
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._named = cluster_id
        self._flush_every = timedelta(seconds=flush_every)
        self._flush_rows = flush_rows
        self._max_gap = timedelta(seconds=max_gap)
        self._clock = clock
        self._recording: _Recording | None = None
        self._files: list[Path] = []

    @property
    def session(self) -> str | None:
        """The UUID of the current recording, None if there is none."""
        return self._recording.session if self._recording else None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files written so far, oldest first."""
        return tuple(self._files)

    def observe(self) -> int:
        """Takes the changes since the last call; returns the number of rows that they make.

        An empty cache makes no rows.
        """
        now = self._clock()
        if self._recording is None:
            return self._begin(now)
        try:
            return self._take(self._recording, now)
        except (FellBehindError, _InterruptedError) as error:
            self._end(self._recording)
            return self._begin(now, str(error))

    def flush(self) -> None:
        """Writes the rows in memory to a file now."""
        if self._recording is not None:
            self._write(self._recording)

    def close(self) -> None:
        """Ends the recording at the last observation; a second call does nothing."""
        if self._recording is not None:
            self._end(self._recording)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take(self, recording: _Recording, now: datetime) -> int:
        gap = now - recording.observed_to
        if gap > self._max_gap:
            raise _InterruptedError(f"no observation for {gap.total_seconds():.1f} s")
        if recording.ended:
            raise _InterruptedError("the last row of the previous recording could not be written")
        rows, until = drain(self._cache, recording.until)
        if any(row.kind == "cluster_changed" for row in rows):
            raise _InterruptedError("another cluster answered")
        taken = recording.add(rows, until, now)
        due = recording.observed_to - recording.flushed_at >= self._flush_every
        if due or recording.row_count >= self._flush_rows:
            self._write(recording)
        return taken

    def _begin(self, now: datetime, reason: str | None = None) -> int:
        """Starts a recording with the whole state; returns the number of its rows.

        `reason` says why the previous recording ended, None if there is none.
        """
        try:
            state = read_state(self._cache)
        except FellBehindError as error:
            raise HistoryError(str(error)) from error
        cluster_id = state.cluster_id or self._named
        if not state.brokers and not state.topics:
            return 0
        if cluster_id is None:
            raise HistoryError(
                "the brokers did not name their cluster (Metadata v0 and v1 cannot):"
                " name it with cluster_id="
            )
        self._recording = recording = _Recording(cluster_id, now)
        taken = recording.add(_baseline(state, now, reason), state.version, now)
        self._write(recording)
        return taken

    def _end(self, recording: _Recording) -> None:
        end = _NOTHING._replace(
            version=recording.until,
            observed_at=recording.observed_to,
            source="poll",
            kind="observed_to",
        )
        recording.end(end)
        self._write(recording)
        self._recording = None

    def _write(self, recording: _Recording) -> None:
        footer = recording.footer()
        path = self._directory / str(footer.file)
        _write_whole(path, recording.table().replace_schema_metadata(footer.metadata()))
        recording.written()
        if path not in self._files[-1:]:
            self._files.append(path)


class _InterruptedError(Exception):
    """The present state does not continue the current recording."""


class _Recording:
    """One unbroken observation of one cluster, with the rows that are not in a file yet."""

    def __init__(self, cluster_id: str, now: datetime) -> None:
        self.cluster_id = cluster_id
        self.session = str(uuid4())
        self.until = 0
        self.observed_to = now
        self.flushed_at = now
        self._since = 0
        self._from = now
        self._rows: list[Change] = []
        self.ended = False

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def add(self, rows: list[Change], until: int, now: datetime) -> int:
        """Adds `rows`, which lead up to version `until` and were observed by `now`.

        Returns their number.
        """
        clock = self.observed_to
        for row in rows:
            clock = max(clock, row.observed_at)
            self._rows.append(
                row._replace(cluster_id=self.cluster_id, session=self.session, observed_at=clock)
            )
        self.until = until
        self.observed_to = max(clock, now)
        return len(rows)

    def end(self, row: Change) -> None:
        """Adds the last row; a second call does nothing."""
        if not self.ended:
            self.ended = True
            self.add([row], self.until, self.observed_to)

    def footer(self) -> Footer:
        """Returns the footer of the next file."""
        name = FileName(self.cluster_id, self.session, self._since, self.until)
        return Footer(name, self._from, self.observed_to)

    def table(self) -> pa.Table:
        """Returns the rows in memory as Arrow."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(Change._fields)
        arrays = [
            pa.array(values, field.type)
            for values, field in zip(columns, CHANGE_SCHEMA, strict=False)
        ]
        arrays.append(pa.nulls(len(self._rows), CHANGE_SCHEMA.field("unseen_us").type))
        return pa.Table.from_arrays(arrays, schema=CHANGE_SCHEMA)

    def written(self) -> None:
        """Drops the rows, which are in a file now."""
        if self._since < self.until:
            self._from = self.observed_to
        # Otherwise the file only extends the time without changes. The next such file replaces it,
        # so its footer must begin at the same time.
        self._rows.clear()
        self._since = self.until
        self.flushed_at = self.observed_to


def _baseline(state: State, now: datetime, reason: str | None) -> list[Change]:
    """Returns the first rows of a recording: its begin and the whole state."""
    first = _NOTHING._replace(version=state.version, observed_at=now, source="poll")
    rows = [first._replace(kind="observed_from")]
    if reason is not None:
        rows.append(first._replace(kind="resync", detail=reason))
    rows += (
        first._replace(kind="broker_added", broker=broker.id, detail=_endpoint(broker))
        for broker in state.brokers
    )
    for topic in state.topics:
        row = first._replace(kind="topic_added", topic=topic.name, topic_id=topic.topic_id)
        rows.append(row)
        rows += partition_rows(row, topic.partitions)
    return rows


def _endpoint(broker: Broker) -> str:
    """Returns a broker's address as change records spell it."""
    rack = "" if broker.rack is None else f" rack={broker.rack}"
    return f"{broker.host}:{broker.port}{rack}"


def _write_whole(path: Path, table: pa.Table) -> None:
    """Writes `table` under a name that readers ignore, syncs it, and renames it to `path`."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Syncs a directory, so that a rename in it is on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
