"""From metadata logs to recordings: which days to make, and the tasks that make them.

A recording of a log is a file of OUT/bronze like any other, but its footer says what it was made
from: its first offset, the epoch of the batch before it, and the digest of its batches. A day whose
recording says the same is not made again. So it does not matter in which files the batches lie.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta._moments import moment
from rdmeta.history.opening import opened_source
from rdmeta.history.recorder import OpenRecording
from rdmeta.history.schema import CHANGE_SCHEMA, GROUP_ROWS, Footer
from rdmeta.kraft.log_files import KraftError, NodeFiles, SegmentFile, SnapshotFile
from rdmeta.kraft.proving import looked_at
from rdmeta.kraft.recordings import LogDays
from rdmeta.kraft.replaying import LogReplay
from rdmeta.pipeline import lock
from rdmeta.pipeline.days import DAY_US, day_at
from rdmeta.pipeline.inputs import Input, input_of
from rdmeta.pipeline.layout import bronze_file
from rdmeta.pipeline.log_inputs import batches_between, cut_at
from rdmeta.pipeline.log_joining import JoinedLog, LogDay, LogSpan, latest_us_at
from rdmeta.pipeline.store import Store, sha256_of
from rdmeta.pipeline.stored_path import path_in
from rdmeta.pipeline.work import LogPart, LogRecording, LogTask, MadeFile, Result

# ---- the plan -----------------------------------------------------------------------------------


class LogPlan(NamedTuple):
    """The tasks of a log, and the recordings that others have taken the place of, by their names.

    The values of `superseded` are the names of those others.
    """

    tasks: tuple[LogTask, ...]
    superseded: Mapping[str, Input]


def is_of_log(each: Input) -> bool:
    """Returns whether a file is a recording that the pipeline made of a log."""
    return each.kind == "history" and each.made_from is not None


def plan_log(
    out: str, log: JoinedLog, held: Iterable[Input], unsure: Iterable[tuple[str, str]]
) -> LogPlan:
    """Returns the tasks that make what is missing; `held` are the recordings of the log in OUT.

    `unsure` are files that are new: the days in them are compared by their digests.
    """
    by_day = {
        day: list(found)
        for day, found in groupby(
            sorted(held, key=lambda each: (each.from_us, each.name)),
            key=lambda each: day_at(each.from_us),
        )
    }
    new, tasks, superseded = set(unsure), list[LogTask](), dict[str, Input]()
    for span in log.spans:
        reasons: dict[int, str] = {}
        for place, day in enumerate(span.days):
            there = by_day.get(day.day, [])
            reason = _why_make(day, there, new)
            if reason is not None:
                reasons[place] = reason
            else:
                superseded |= _superseded(day, there)
        for _, places in groupby(reasons, key=lambda at: span.restart(span.days[at].first)):
            tasks.append(_task(out, log, span, {at: reasons[at] for at in places}))
    return LogPlan(tuple(tasks), superseded)


def _first_of(recording: Input) -> int:
    return int((recording.made_from or "").partition(":")[0])


def _why_make(day: LogDay, held: Sequence[Input], new: set[tuple[str, str]]) -> str | None:
    """Returns why a day's recording is to be made, None if one is there that will do."""
    reason = f"{day.day} of the log is new"
    for each in held:
        first = _first_of(each)
        if first > day.first or each.until < day.end:
            reason = f"the log has more of {day.day}"
        elif (first, each.until) != (day.first, day.end):
            return None  # files that are gone had more of the day
        elif each.ended_by != day.ended_by:
            reason = f"{day.day} of the log is over"
        elif each.continues != day.continues:
            reason = f"the day before {day.day} begins elsewhere"
        elif not _is_new(day, new) or each.made_from == day.made_from:
            return None
        else:
            reason = f"the log's {day.day} differs"
    return reason


def _is_new(day: LogDay, new: set[tuple[str, str]]) -> bool:
    """Returns whether one of a day's files is new: of others the digests are known to agree."""
    return any((each.piece.file.store, each.piece.file.name) in new for each in day.slices)


def _superseded(day: LogDay, held: Sequence[Input]) -> Iterator[tuple[str, Input]]:
    """Yields the recordings of which another one of the day has all offsets, and that one."""
    best = max(held, key=lambda each: (each.until - _first_of(each), each.to_us, each.name))
    for each in held:
        is_within = _first_of(each) >= _first_of(best) and each.until <= best.until
        if each is not best and is_within and _first_of(each) >= day.first:
            yield each.name, best


def _task(out: str, log: JoinedLog, span: LogSpan, reasons: Mapping[int, str]) -> LogTask:
    """Returns the task that makes some days of a span, which have one restart point."""
    first, last = span.days[min(reasons)], span.days[max(reasons)]
    restart = span.restart(first.first)
    snapshot = span.restarts[restart]
    parts = tuple(
        LogPart(each.file, max(each.begin, restart), min(each.end, last.end))
        for each in span.pieces
        if each.begin < last.end and each.end > restart
    )
    is_over = last.ended_by == "midnight"
    days = [span.days[at] for at in sorted(reasons)]
    return LogTask(
        out,
        log.cluster_id,
        snapshot,
        None if snapshot is None else latest_us_at(span.pieces, snapshot),
        parts,
        first.first,
        last.end,
        first.begin_us,
        first.continues,
        span.reason if first is span.days[0] else None,
        (last.begin_us // DAY_US + 1) * DAY_US if is_over else None,
        last.ended_by,
        tuple(LogRecording(day.day, day.session, day.made_from) for day in days),
        log.leaders,
        restart > min(span.restarts),
        next(iter(reasons.values())),
    )


# ---- the task -----------------------------------------------------------------------------------


def transcribe(task: LogTask) -> Result:
    """Writes the recordings of a task, each one complete or not at all.

    A file that cannot be replayed is among the `refused` of the result, cut where it is bad. Raises
    LockedError if another run has taken over the output folder, LogChangedError for a live log that
    changed meanwhile, and OSError.
    """
    out, result = Store(task.out), Result(task.cluster_id)
    todo = {each.session: each for each in task.todo}
    with contextlib.ExitStack() as stack:
        try:
            rows = _Rows(todo, stack)
            for recording, unknown in _days_of(task, stack, rows.take).recordings():
                found = todo.get(recording.session)
                if found is not None:
                    rows.take(recording)
                    about = {"made_from": found.made_from, "unknown_records": unknown}
                    _write(out, task, found.day, recording.footer(**about), rows, result)
                rows.clear()
        except KraftError as error:
            if error.file is None:
                raise
            result.refused.append(_blamed(task, error))
    result.rows["read"] = task.rows
    return result


class _Rows:
    """The rows of a recording that is being made: in memory up to a row group, then in a file."""

    def __init__(self, todo: Collection[str], stack: contextlib.ExitStack) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rdmeta-"))
        self._todo, self._path = todo, Path(folder, "rows")
        self._waiting: list[pa.Table] = []
        self._count = 0
        self._spilled: pa.RecordBatchFileWriter | None = None

    def take(self, recording: OpenRecording) -> None:
        """Takes the rows that a recording has by now; of one that is not wanted they go."""
        rows = recording.take_rows()
        if recording.session not in self._todo:
            return
        self._waiting += rows
        self._count += sum(map(len, rows))
        if self._count >= GROUP_ROWS:
            if self._spilled is None:
                self._spilled = pa.ipc.new_file(self._path, CHANGE_SCHEMA)
            for each in self._waiting:
                self._spilled.write_table(each)
            self._waiting, self._count = [], 0

    def groups(self) -> Iterator[pa.Table]:
        """Yields all rows, in row groups that do not depend on how they came."""
        held: list[pa.Table] = []
        for each in self._all():
            held.append(each)
            while sum(map(len, held)) >= GROUP_ROWS:
                rows = pa.concat_tables(held)
                yield rows.slice(0, GROUP_ROWS)
                held = [rows.slice(GROUP_ROWS)]
        if sum(map(len, held)):
            yield pa.concat_tables(held)

    def _all(self) -> Iterator[pa.Table]:
        if self._spilled is not None:
            self._spilled.close()
            with pa.OSFile(str(self._path)) as file:
                batches = pa.ipc.open_file(file)
                for number in range(batches.num_record_batches):
                    yield pa.Table.from_batches([batches.get_batch(number)])
        yield from self._waiting

    def clear(self) -> None:
        """Drops all rows."""
        if self._spilled is not None:
            self._spilled.close()
        self._waiting, self._count, self._spilled = [], 0, None


def _days_of(
    task: LogTask, stack: contextlib.ExitStack, taken: Callable[[OpenRecording], None]
) -> LogDays:
    """Returns the recordings of a task, whose replay stands where the first one begins."""
    about = task.cluster_id, task.snapshot, task.latest_us, task.parts, task.leaders
    replay = begun(*about, task.first, stack, session="log")
    for _ in replay.steps(task.first):
        replay.replay.changes()
    replay.require(task.first)
    return LogDays(
        replay,
        task.cluster_id,
        task.end,
        moment(task.begin_us),
        continues=task.continues,
        reason=task.why_new,
        until=None if task.until_us is None else moment(task.until_us),
        ended_by=task.ended_by,
        taken=taken,
    )


def begun(
    cluster_id: str,
    snapshot: Input | None,
    latest_us: int | None,
    parts: Sequence[LogPart],
    leaders: Mapping[int, int],
    at: int,
    stack: contextlib.ExitStack,
    **options: Any,
) -> LogReplay:
    """Returns a replay of parts that follow a snapshot, or offset 0, with its first point at `at`.

    The arguments are what a LogTask has of a log. `stack` ends with the replay.
    """
    node = looked_at(_files_of(snapshot, parts, stack))
    if snapshot is not None:
        epoch = next(each.epoch for each in node.files.snapshots)
        options |= {"epoch": epoch, "latest_us": latest_us, "leader": leaders.get(epoch)}
    return LogReplay(node, at, cluster_id=cluster_id, **options)


def _files_of(
    snapshot: Input | None, parts: Sequence[LogPart], stack: contextlib.ExitStack
) -> NodeFiles:
    """Returns the files to replay: those of one node as they lie there, or one made of several."""
    snapshots = []
    if snapshot is not None:
        path = path_in(Store(snapshot.store), snapshot.name)
        end, epoch = path.name.removesuffix(".checkpoint").split("-")
        snapshots.append(SnapshotFile(int(end), int(epoch), path))
    paths = [path_in(Store(part.file.store), part.file.name) for part in parts]
    if _is_one_log(parts):
        segments = [SegmentFile(int(path.name.removesuffix(".log")), path) for path in paths]
    else:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rdmeta-")))
        base = parts[0].begin if parts else 0
        segments = [SegmentFile(base, folder / f"{base:020d}.log")]
        with segments[0].path.open("wb") as joined:
            for part in parts:
                for _, data in batches_between(part.file, part.begin, part.end):
                    joined.write(data)
    return NodeFiles(paths[0].parent if paths else Path(), tuple(segments), tuple(snapshots))


def _is_one_log(parts: Sequence[LogPart]) -> bool:
    """Returns whether the files follow each other, and are good to their ends."""
    if len({part.file.path.rpartition("/")[0] for part in parts}) > 1:
        return False
    whole = all(part.file.state == "good" for part in parts)
    after = all(part.begin == part.file.from_offset for part in parts[1:])
    return whole and after and all(part.end == part.file.to_offset for part in parts[:-1])


def _write(
    out: Store, task: LogTask, day: str, footer: Footer, rows: _Rows, result: Result
) -> None:
    name = bronze_file(task.cluster_id, day, str(footer.file))
    schema = CHANGE_SCHEMA.with_metadata(footer.metadata())
    with out.draft(name) as draft:
        with (
            draft.naming(),
            draft.path.open("wb") as stream,
            pq.ParquetWriter(stream, schema) as writer,
        ):
            for group in rows.groups():
                writer.write_table(group.replace_schema_metadata(schema.metadata))
        with pa.OSFile(str(draft.path)) as written:
            digest = sha256_of(written)
            written.seek(0)
            file = opened_source(Path(name), written, written.size())
        lock.require_held(out, task.token)
        draft.commit()
    made = replace(input_of(out, name, file, digest), mtime_ns=draft.mtime_ns())
    result.seen.append(made)
    result.made.append(MadeFile(name, made.rows, made.bytes, digest))


def _blamed(task: LogTask, error: KraftError) -> Input:
    """Returns the file of an error, of which nothing counts from there on.

    If the state before it came from a snapshot, and others could have given it, that is the file.
    """
    if task.snapshot is not None and task.has_earlier:
        reason = f"a replay from it fails: {error}"
        return cut_at(task.snapshot, None, reason)
    for each in task.files():
        if path_in(Store(each.store), each.name) == error.file:
            return cut_at(each, error.offset, str(error).removeprefix(f"{error.file}, "))
    for part in task.parts:  # the file that was made of several
        if error.offset is not None and part.begin <= error.offset < part.end:
            reason = str(error).partition(": ")[2]
            return cut_at(part.file, error.offset, f"offset {error.offset}: {reason}")
    raise error
