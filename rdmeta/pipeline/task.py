"""One task: makes all tables of some periods of a cluster, from its input files.

A task is plain data, and `make` runs it in any process. It reads the files of each day, folds them,
and gives each table's part its one name. A part that says it was made from the same input stays as
it is. Days that have not changed are copied from the part that is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, Protocol

import pyarrow as pa

from rdmeta._atomic import commit
from rdmeta._core import Fold
from rdmeta.errors import Error
from rdmeta.pipeline import elections, lock
from rdmeta.pipeline.days import DAY_US, Day, File, Span, Stretch, begin_of, day_at, digest_of
from rdmeta.pipeline.epoch_chains import State, Thing
from rdmeta.pipeline.errors import BadFileError, PipelineError
from rdmeta.pipeline.handing_over import LateSights, handed_over
from rdmeta.pipeline.layout import state_file, stored_name, table_file
from rdmeta.pipeline.min_isrs_beside import MinIsrRows, min_isrs_beside
from rdmeta.pipeline.reading import batches, of_time
from rdmeta.pipeline.store import Store, sha256_of
from rdmeta.pipeline.tables import (
    OF_FOLD,
    SCHEMAS,
    TABLES,
    FoldTableName,
    TableWriter,
    made_from,
    rows_of_days,
)
from rdmeta.pipeline.work import VERSIONS, MadeFile, Period, Result, Task, tables_of

# A task takes what a fold has made after so many rows: many files have few.
_TAKEN = 65_536
# Bytes of rows that a fold makes before a task takes them: one record can end the intervals of all
# partitions, and each row repeats its lists.
_MOST_WAITING = 4 << 20
_OF_END: dict[str, Literal["open", "midnight"]] = {"open": "open", "midnight": "midnight"}


def make(task: Task) -> Result:
    """Makes what differs; a part takes its name when all parts of its period are whole.

    Raises BadFileError for an input that is damaged or has changed, LockedError if another run has
    taken over the output folder, PipelineError for a part that is damaged and whose input is gone,
    and OSError.
    """
    result = Result(task.cluster_id)
    maker = _Maker(task, result)
    for period in task.periods:
        maker.make(period)
    return result


def rows_of(task: Task, table: str) -> Iterator[pa.Table]:
    """Yields the rows that `make` would write to a table's parts, and writes nothing.

    Raises BadFileError for an input that is damaged or has changed, and OSError.
    """
    maker = _Maker(task, Result(task.cluster_id), _Memory())
    for period in task.periods:
        for day in period.days:
            for name, rows in _DayMaker(maker, day, (table,)).rows():
                if name == table:
                    yield rows.select(SCHEMAS[table].names)


class _States(Protocol):
    """Where the states at midnights are kept."""

    def read(self, name: str) -> bytes | None: ...

    def put(self, name: str, content: bytes) -> None: ...


class _Memory:
    """Keeps states in this process."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        return self._kept.get(name)

    def put(self, name: str, content: bytes) -> None:
        self._kept[name] = content


class _Maker:
    def __init__(self, task: Task, result: Result, states: _States | None = None) -> None:
        self._task, self._result = task, result
        self._out = Store(task.out, task.stored)
        self._states = self._out if states is None else states

    def make(self, period: Period) -> None:
        """Makes the parts of a period that differ."""
        task = self._task
        names = {
            table: table_file(table, task.cluster_id, period.name, task.bucket, task.buckets)
            for table in tables_of(task.bucket)
        }
        found = {table: made_from(self._out, name) for table, name in names.items()}
        there = [self._days_of(text, period) for text in found.values()]
        days = {
            day.day: there[0].get(day.day, day.digest) if day.is_kept else self._digest(day)
            for day in period.days
        }
        footer = json.dumps({**self._footer(period), "days": days}, sort_keys=True)
        stale = {table: name for table, name in names.items() if found[table] != footer}
        targets = self._targets(stale, footer)
        stale = {table: name for table, name in stale.items() if table in targets}
        self._result.unchanged += [name for table, name in names.items() if table not in stale]
        if not stale:
            return
        kept = {day for day in days if all(days[day] == each.get(day) for each in there)}
        if not all(self._is_whole(name, footer) for name in stale.values()):
            kept = set()
        with contextlib.ExitStack() as stack:
            writers = {}
            for table in stale:
                writers[table] = TableWriter(self._out, targets[table], table, footer)
                stack.callback(writers[table].drop)
            for is_copied, group in groupby(period.days, lambda d: d.is_kept or d.day in kept):
                if is_copied:
                    self._copy([day.day for day in group], names, writers)
                    continue
                for day in group:
                    for table, rows in _DayMaker(self, day).rows():
                        if table in writers:
                            writers[table].write(day.day, rows)
            self._commit(writers, stale)

    def _targets(self, stale: Mapping[str, str], footer: str) -> dict[str, str]:
        """Returns the names that parts get. A file of content that lies there needs no other."""
        if self._task.stored is None:
            return dict(stale)
        digest = hashlib.sha256(footer.encode()).hexdigest()
        found = {}
        for table, name in stale.items():
            target = stored_name(name, digest)
            if made_from(self._out, target) == footer:
                self._result.stored[name] = target
            else:
                found[table] = target
        return found

    def state_at(self, stretch: Stretch, begin_us: int) -> bytes | None:
        """Returns the state of a stretch at the midnight where it begins.

        Makes it from the nearest one before, or from the origin's begin, and keeps each.
        """
        if not stretch.earlier:
            return None
        day, first = begin_us // DAY_US, stretch.earlier[0].from_us // DAY_US
        state, start = None, first
        for number in range(day, first, -1):
            state = self._states.read(self._state_name(stretch, number))
            if state is not None:
                start = number
                break
        for number in range(start, day):
            fold = self.fold(stretch, state, number * DAY_US, tables=())
            end = (number + 1) * DAY_US
            for _ in self.added(fold, stretch.origin, stretch.earlier, number * DAY_US, end):
                pass
            with _blaming(stretch):
                fold.cut(end)
            state = bytes(fold.state())
            self._states.put(self._state_name(stretch, number + 1), state)
        return state

    def fold(
        self,
        stretch: Stretch,
        state: bytes | None,
        begin: int,
        tables: Iterable[str] = OF_FOLD,
        end: int | None = None,
    ) -> Fold:
        """Returns a fold of an origin for this task's topics, which counts from `begin` on.

        With `end` it counts up to there: behind that another origin tells.
        """
        task = self._task
        return Fold(
            task.cluster_id,
            stretch.origin,
            counts_from=begin,
            counts_to=end,
            buckets=task.buckets,
            bucket=task.bucket,
            state=state,
            tables=tables,
            most_waiting=_MOST_WAITING,
        )

    def added(
        self,
        fold: Fold | None,
        origin: str,
        files: tuple[File, ...],
        begin: int,
        end: int | None,
        beside: MinIsrRows | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Adds the rows of files from `begin` to before `end`, and yields each part after that.

        The caller takes the fold's rows once they are `_MOST_WAITING` bytes. Without a fold it only
        yields the parts. Rows `beside` those of a log are added between these, and not yielded.
        """
        for file in files:
            if file.to_us < begin or (end is not None and file.from_us >= end):
                continue
            path = _path(file)
            try:
                for batch in batches(file, self.cluster_id, origin):
                    rows = of_time(batch, file, begin, end)
                    parts = beside.between(rows) if beside is not None else ((rows, True),)
                    for part, is_own in parts:
                        left = part
                        while left.num_rows:
                            taken = left.num_rows if fold is None else fold.add(left)
                            yield left.slice(0, taken) if is_own else rows.slice(0, 0)
                            left = left.slice(taken)
            except FileNotFoundError as error:
                raise BadFileError(path, "it is gone") from error
            except (pa.ArrowException, OSError, ValueError, Error) as error:
                if Store(file.store).is_failing(file.name, error):
                    raise
                raise BadFileError(path, f"its rows are damaged: {error}") from error

    def count(self, stats: Mapping[str, object], rows: int) -> None:
        """Adds a fold's counters to those of the result."""
        counted = {"read": rows, **{k: v for k, v in stats.items() if type(v) is int}}
        for name in ("memory", "waiting", "waiting_bytes"):  # these do not count change records
            counted.pop(name, None)
        for name, number in counted.items():
            self._result.rows[name] = self._result.rows.get(name, 0) + number

    @property
    def cluster_id(self) -> str:
        return self._task.cluster_id

    def _digest(self, day: Day) -> str:
        """Returns the digest of a day's inputs and of the states that it begins with."""
        if not day.is_carried:
            return day.digest
        states = (self.state_at(each, begin_of(day.day)) for each in day.stretches)
        carried = [None if s is None else sha256_of(pa.BufferReader(s)) for s in states]
        return digest_of([day.digest, carried])

    def _footer(self, period: Period) -> dict[str, object]:
        task = self._task
        return {
            "cluster_id": task.cluster_id,
            "period": period.name,
            "part": [task.bucket, task.buckets],
            "versions": VERSIONS,
        }

    def _days_of(self, text: str | None, period: Period) -> dict[str, str]:
        """Returns the days that a part has, if it is such a part and these versions made it."""
        if text is None:
            return {}
        found: dict[str, Any] = json.loads(text)
        days: dict[str, str] = found.pop("days", {})
        return days if found == self._footer(period) else {}

    def _is_whole(self, name: str, footer: str) -> bool:
        """Returns whether a part is the one of the manifest, or one that another attempt made."""
        wanted = self._task.digests.get(name)
        if wanted is None:
            return True
        try:
            with self._out.opened(name) as stream:
                if sha256_of(stream) == wanted:
                    return True
        except FileNotFoundError:
            return False
        return made_from(self._out, name) == footer

    def _copy(
        self, days: Sequence[str], names: Mapping[str, str], writers: Mapping[str, TableWriter]
    ) -> None:
        for table, writer in writers.items():
            try:
                for day, rows in rows_of_days(self._out, names[table], days):
                    writer.write(day, rows)
            except (pa.ArrowException, OSError, ValueError, KeyError) as error:
                is_missing = isinstance(error, FileNotFoundError)
                if not is_missing and self._out.is_failing(names[table], error):
                    raise
                raise PipelineError(
                    f"{self._out.shown(names[table])}: it is missing or damaged, and input of"
                    f" {days[0]} is gone: restore it, or name a new folder"
                ) from error

    def _commit(self, writers: Mapping[str, TableWriter], names: Mapping[str, str]) -> None:
        sizes = {table: writer.close() for table, writer in writers.items()}
        digests = {}
        for table, writer in writers.items():
            with pa.OSFile(str(writer.draft.path), "rb") as stream:
                digests[table] = sha256_of(stream)
        lock.require_held(self._out, self._task.token)
        commit([writer.draft for writer in writers.values()])
        for table, writer in writers.items():
            stored = "" if writer.name == names[table] else writer.name
            self._result.made.append(
                MadeFile(names[table], writer.rows, sizes[table], digests[table], stored)
            )

    def _state_name(self, stretch: Stretch, number: int) -> str:
        """Returns the name of a state at the midnight at which a day begins."""
        midnight = number * DAY_US
        before = [each.sha256 for each in stretch.earlier if each.from_us < midnight]
        task = self._task
        key = digest_of([VERSIONS, before])
        day = day_at(midnight)
        return state_file(task.cluster_id, stretch.origin, day, key, task.bucket, task.buckets)


class _DayMaker:
    """Folds one day's stretches into the rows of some tables."""

    def __init__(self, maker: _Maker, day: Day, tables: Collection[str] = TABLES) -> None:
        self._maker, self._day = maker, day
        self._begin = begin_of(day.day)
        self._elections: list[pa.Table] = []
        self._past: elections.Past = {}
        wanted = {*tables}
        if "leader_change" in wanted:  # it needs what intervals tell of the past
            wanted.add("partition_interval")
        self._stretches = handed_over(day.stretches, day.before, self._rows_from)
        self._first_parts = _of_origins(self._stretches)
        self._late_sights = LateSights(self._stretches)
        self._tables: tuple[FoldTableName, ...] = tuple(t for t in OF_FOLD if t in wanted)

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Yields the day's rows, each with its table; `observation` is always among these."""
        stretches = self._stretches
        for stretch in stretches if self._tables else ():
            begin, end = stretch.counts_from_us, stretch.counts_to_us
            is_whole = begin == stretch.seen_from_us and (end or 0) >= stretch.seen_to_us
            if begin is not None:
                yield from self._fold(stretch, begin, is_whole=is_whole)
            if not is_whole and stretch in self._first_parts:
                seen_from = stretch.seen_from_us
                yield from self._fold(stretch, seen_from, is_whole=True, is_counted=False)
        yield "observation", _observations(self._maker.cluster_id, stretches)
        if self._elections:
            spans: dict[str, list[Span]] = {each.origin: [] for each in stretches}
            for each in stretches:
                if each.counts_from_us is not None and each.counts_to_us is not None:
                    spans[each.origin].append((each.counts_from_us, each.counts_to_us))
            yield "leader_change", self._joined(pa.concat_tables(self._elections), spans)

    def _joined(self, rows: pa.Table, spans: Mapping[str, Sequence[Span]]) -> pa.Table:
        """Returns the changes of leader of all recordings as one chain."""
        day, begin = self._day, self._begin
        before = self._seen(day.before, begin - DAY_US) if day.before else None
        states: list[pa.Table] = []
        ids = elections.skipped(rows, *([] if before is None else [before]))
        if len(ids) and (before is not None or len(spans) > 1):
            states.append(self._seen(day.before, begin - DAY_US, ids))
            states.append(self._seen(day.stretches, begin, ids))
        exact = {each.origin for each in day.stretches if each.is_of_log}
        return elections.joined(rows, spans, self._past, before, states, exact)

    def _seen(
        self, stretches: Iterable[Stretch], begin: int, ids: pa.Array | None = None
    ) -> pa.Table:
        """Returns what the rows of a day say of leaders, as `elections.seen_in`."""
        found = [elections.SEEN.empty_table()]
        for stretch in _of_origins(stretches):
            after = begin + DAY_US if stretch.goes_on else None
            for rows in self._maker.added(None, stretch.origin, stretch.files, begin, after):
                found.append(elections.seen_in(rows, stretch.origin, ids))
        return pa.concat_tables(found)

    def _fold(
        self, stretch: Stretch, begin: int, *, is_whole: bool, is_counted: bool = True
    ) -> Iterator[tuple[str, pa.Table]]:
        """Folds a stretch from `begin` to its end, and yields its rows with their tables.

        A whole one tells of all changes of leader that the origin saw. One that is not counted
        tells of nothing else.
        """
        maker = self._maker
        state = maker.state_at(stretch, self._begin)
        end = stretch.counts_to_us if is_counted else None
        if end is not None and end >= stretch.seen_to_us:
            end = None
        fold = maker.fold(stretch, state, begin, self._tables, end)
        after = self._begin + DAY_US if stretch.goes_on else None
        rows = taken = 0
        tells_past = is_whole and stretch.continues and len(self._day.stretches) > 1
        baseline = elections.Baseline(self._begin)
        beside = None
        if stretch.is_of_log and is_counted:
            beside = min_isrs_beside(stretch, self._stretches, self._all_rows)
        files = stretch.origin, stretch.files
        for batch in maker.added(fold, *files, self._begin, after, beside):
            if tells_past and not baseline.is_over:
                self._note_past(stretch, baseline.states(batch))
            rows += batch.num_rows
            if rows - taken >= _TAKEN or fold.stats()["waiting_bytes"] > _MOST_WAITING:
                yield from self._take(fold, stretch, is_whole, is_counted)
                taken = rows
        with _blaming(stretch):
            seen_to = max(stretch.seen_to_us, stretch.counts_to_us or 0)
            fold.end(seen_to, _OF_END.get(stretch.ended_by, "gap"))
        yield from self._take(fold, stretch, is_whole, is_counted)
        if is_counted or stretch.counts_from_us is None:
            maker.count(fold.stats(), rows)

    def _rows_from(self, stretch: Stretch, begin: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows that a stretch has from a time on, up to the end of that day."""
        after = begin - begin % DAY_US + DAY_US if stretch.goes_on else None
        return self._maker.added(None, stretch.origin, stretch.files, begin, after)

    def _all_rows(self, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a stretch, and those of its origin before that."""
        yield from self._maker.added(None, stretch.origin, stretch.earlier, 0, self._begin)
        yield from self._rows_from(stretch, self._begin)

    def _take(
        self, fold: Fold, stretch: Stretch, is_whole: bool, is_counted: bool
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yields the rows that a fold has made so far, with their tables."""
        for table in self._tables:
            # pa.table() would import pandas where there is one.
            rows = pa.RecordBatchReader.from_stream(fold.take(table)).read_all()
            if rows.num_rows == 0:
                continue
            if stretch.is_partial:
                rows = _as_partial(rows)
            if table == "partition_interval" and is_whole and stretch.continues:
                self._note_past(stretch, elections.past_of(rows))
            if table == "leader_change":
                if is_whole:
                    self._elections.append(rows.cast(elections.SCHEMA))
            elif is_counted:
                yield table, self._late_sights.without(stretch, rows) if table == "change" else rows

    def _note_past(self, stretch: Stretch, past: Mapping[Thing, State]) -> None:
        if len(self._day.stretches) > 1:
            self._past.setdefault(stretch.origin, {}).update(past)


@contextlib.contextmanager
def _blaming(stretch: Stretch) -> Iterator[None]:
    """Raises BadFileError, which names the last file of a stretch, for an error of its fold."""
    try:
        yield
    except Error as error:
        file = (*stretch.earlier, *stretch.files)[-1]
        raise BadFileError(_path(file), f"its times are wrong: {error}") from error


def _of_origins(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Returns the first stretch of each origin."""
    return list({each.origin: each for each in reversed([*stretches])}.values())[::-1]


def _path(file: File) -> str:
    return f"{file.store.rstrip('/')}/{file.name}"


def _as_partial(rows: pa.Table) -> pa.Table:
    store = rows.schema.get_field_index("partial")
    value = pa.array([True] * rows.num_rows, pa.bool_())
    return rows.set_column(store, rows.schema.field(store), value)


def _observations(cluster_id: str, stretches: Iterable[Stretch]) -> pa.Table:
    """Returns a row for each origin of a day, also for one that does not count."""
    rows = [
        {
            "cluster_id": cluster_id,
            "origin": each.origin,
            "seen_from": each.seen_from_us,
            "seen_to": each.seen_to_us,
            "counts_from": each.counts_from_us,
            "counts_to": each.counts_to_us,
            "ended_by": each.ended_by,
            "longest_gap_us": each.longest_gap_us,
            "partial": each.is_partial,
        }
        for each in stretches
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["observation"])
