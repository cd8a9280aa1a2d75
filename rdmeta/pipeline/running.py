"""Carries out a plan: the lock, the copies, the tasks, and last the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from rdmeta._atomic import is_leftover
from rdmeta.pipeline.attempting import local_engine
from rdmeta.pipeline.copying import copy_tasks
from rdmeta.pipeline.errors import BadFileError, CommitLostError, PipelineError
from rdmeta.pipeline.gold.months import months_of_footers, names_of_month
from rdmeta.pipeline.inputs import Input, write_inputs
from rdmeta.pipeline.layout import BRONZE, GOLD, SILVER, period_of, require_kind, write_layout
from rdmeta.pipeline.lock import Lock, NoLock
from rdmeta.pipeline.log_inputs import is_raw
from rdmeta.pipeline.logs import logs_of
from rdmeta.pipeline.manifest import FileEntry, Manifest, entry_of, read_manifest, write_manifest
from rdmeta.pipeline.planning import (
    Plan,
    changes_of_plan,
    files_in_place,
    files_of_period,
    plan_of,
)
from rdmeta.pipeline.storage import using
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import made_from
from rdmeta.pipeline.work import Engine, MadeFile, MonthTask, Result, Task

# So often a run plans again when another program commits before it.
_ATTEMPTS = 5


class Progress(Protocol):
    """Learns how far a run is; `stage` is "copy", "logs", "make" or "gold"."""

    def begin(self, stage: str, steps: int, rows: int, size: int) -> object: ...

    def step(self, rows: int, size: int) -> object: ...


class _Silent:
    def begin(self, stage: str, steps: int, rows: int, size: int) -> None: ...

    def step(self, rows: int, size: int) -> None: ...


@dataclass
class Made:
    """The result of a run. `plan` is the one that it carried out in the end.

    `copied` and `made` are names in the output folder, `unchanged` those of parts that were left as
    they are. `files` are those that the manifest has. `rows` counts change records, by what the
    fold did with them.
    """

    plan: Plan
    copied: list[str] = field(default_factory=list)
    made: list[MadeFile] = field(default_factory=list)
    files: dict[str, FileEntry] = field(default_factory=dict)
    unchanged: int = 0
    rows: dict[str, int] = field(default_factory=dict)


def run(
    plan: Plan,
    *,
    engine: Engine | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Made:
    """Carries out a plan, in processes of this machine unless `engine` runs the tasks elsewhere.

    `workers` is the number of processes, by default one for each CPU. Does nothing, not even take
    the lock, if there is nothing to do. A damaged input is quarantined, and the run goes on. If
    another program commits to a table meanwhile, the run plans again.
    Raises ValueError for `workers` below 1, LockedError if another run works on the output folder,
    PipelineError, OSError, and what an engine raises. The files in place stay right then, and the
    next run goes on.
    """
    if workers is not None and (type(workers) is not int or workers < 1):
        raise ValueError(f"workers must be a whole number of at least 1, not {workers!r}")
    progress = progress or _Silent()
    with using(plan.options.storage):
        if _has_nothing_to_do(plan):
            return Made(plan, files=plan.manifest.files, unchanged=len(plan.unchanged))
        run_id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{os.urandom(4).hex()}"
        for _ in range(_ATTEMPTS):
            try:
                return _carried_out(plan, engine, workers, progress, run_id)
            except CommitLostError as error:
                last = error
                plan = plan_of(plan.options, engine=engine)
    raise PipelineError(
        f"{plan.options.out}: other programs have changed it, and planning {_ATTEMPTS} times did"
        f" not help; the last time: {last}"
    )


def _carried_out(
    plan: Plan, engine: Engine | None, workers: int | None, progress: Progress, run_id: str
) -> Made:
    out = Store(plan.options.out)
    # On a store the commits to the tables keep runs apart.
    with Lock(out) if out.is_local or not plan.kind.has_logs else NoLock() as held:
        if held.was_marked or not _is_as_planned(out, plan):
            plan = plan_of(plan.options, is_marked=held.was_marked, engine=engine)
        for name in plan.leftovers:
            out.remove(name)
        write_layout(out, plan.parts, plan.kind)
        runner = _Runner(out, plan, engine or local_engine(workers), progress, held.token)
        made = runner.run(held.was_marked or (plan.kind.has_logs and plan.is_marked))
        if engine is not None:  # a process that was lost may have left files
            _remove_leftovers(out)
        manifest = runner.manifest()
        if plan.kind.has_logs:
            # On a store another first run may have begun this folder meanwhile.
            require_kind(out, plan.kind)
            runner.commit(manifest, run_id)
        if not plan.options.is_gold_alone:
            write_inputs(out, made.plan.files)
        if not plan.kind.has_logs:
            runner.remove_unwanted(manifest)
        write_manifest(out, manifest)
        for name in made.plan.superseded:
            out.remove(name)
        made.files = manifest.files
    return made


def _is_as_planned(out: Store, plan: Plan) -> bool:
    """Returns whether the manifest and the tables are still those that the plan was made for."""
    logs = logs_of(out, plan.kind)
    states = plan.states if logs is None else {each: logs.state(each) for each in plan.states}
    return read_manifest(out) == plan.manifest and states == plan.states


def _remove_leftovers(out: Store) -> None:
    for entry in [*out.files(BRONZE), *out.files(SILVER), *out.files(GOLD)]:
        if is_leftover(entry.name.rpartition("/")[2]):
            out.remove(entry.name)


def _has_nothing_to_do(plan: Plan) -> bool:
    if plan.copies or plan.log_tasks or plan.superseded:
        return False
    if plan.tasks or plan.leftovers or plan.is_marked:
        return False
    if plan.months or plan.is_news or any(changes_of_plan(plan, plan.manifest.files)):
        return False
    before = plan.manifest
    return plan.days == before.days and plan.names == before.names and bool(before.files)


class _Runner:
    def __init__(
        self, out: Store, plan: Plan, engine: Engine, progress: Progress, token: str
    ) -> None:
        self._stored = dict(plan.stored)
        self._out, self._plan, self._engine = Store(out.where, self._stored), plan, engine
        self._progress, self._token = progress, token
        self._known: dict[tuple[str, str], Input] = {}
        self._made = Made(plan)
        self._files: dict[str, FileEntry] = {}
        self._months = {c: dict(months) for c, months in plan.manifest.months.items()}
        self._trusted = True
        self._transcribed: set[tuple[str | None, str | None]] = set()
        self._has_failed = False

    def run(self, was_marked: bool) -> Made:
        """Copies and makes until no input turns out to be damaged."""
        self._trusted = not was_marked
        while self._copy() or self._transcribe() or self._make():
            # A task that failed may have left parts that are newer than the manifest.
            is_marked = was_marked or self._has_failed
            seen = {(each.store, each.name): each for each in self._plan.files}
            known = {**seen, **self._known}
            self._plan = plan_of(self._plan.options, known, is_marked, self._engine)
            write_layout(self._out, self._plan.parts, self._plan.kind)
            if self._plan.kind.has_logs:  # what this run has made is found by its name
                self._files = {n: each for n, each in self._files.items() if self._is_copy(n)}
                self._stored.clear()
                self._stored.update(self._plan.stored)
        if self._plan.options.gold:
            self._make_gold()
        self._made.plan = self._plan
        self._made.unchanged += len(self._plan.unchanged)
        return self._made

    def manifest(self) -> Manifest:
        """Returns the manifest of what is in place now."""
        plan = self._plan
        names = {e.name for e in plan.files if self._is_bronze(e) and e.state != "gone"}
        names |= set(plan.notes)
        for cluster_id, days in plan.days.items():
            parts = plan.parts[cluster_id]
            for period in {period_of(day, parts) for day in days}:
                names |= set(files_of_period(cluster_id, period, parts))
        if plan.options.is_gold_alone:
            names |= {name for name in plan.manifest.files if self._is_copy(name)}
        for cluster_id, months in self._months.items():
            for month in months:
                names |= set(names_of_month(cluster_id, month))
        files = {name: self._kept(name) for name in sorted(names)}
        found = {name: each for name, each in files.items() if each is not None}
        made = {c: dict(d) for c, d in plan.days.items()}
        return Manifest(made, found, dict(plan.names), self._months)

    def commit(self, manifest: Manifest, run_id: str) -> None:
        """Brings the tables to the files of the manifest: those of silver first, then gold."""
        logs = logs_of(self._out, self._plan.kind)
        assert logs is not None
        for change in changes_of_plan(self._plan, manifest.files, self._require):
            logs.commit(change, change.properties(run_id))

    def _require(self, name: str) -> bool:
        """Raises CommitLostError if a file to commit is gone, as after a vacuum beside this run."""
        if not self._out.has(name):
            raise CommitLostError(
                f"{self._out.shown(name)}: another program has removed it; if its input is gone,"
                " give that again"
            )
        return True

    def remove_unwanted(self, manifest: Manifest) -> None:
        """Removes the parts that no manifest has, and this run or one that died has made.

        They rest on an input that is damaged, or a kill left some tables of a day without others.
        """
        if self._trusted and not self._has_failed:
            return
        wanted = {*manifest.files, *self._plan.manifest.files}
        there = [each.name for each in self._out.files(SILVER)]
        for name in there:
            if name not in wanted and made_from(self._out, name) is not None:
                self._out.remove(name)

    def _copy(self) -> bool:
        """Makes the copies of the plan; returns whether there were any."""
        copies = self._plan.copies
        storage = self._plan.options.storage
        # What lies beside a log is written last: it proves what was there before.
        rounds = [
            [
                replace(each, storage=storage)
                for each in copy_tasks(
                    self._out.where,
                    [copy for copy in copies if (copy.source.kind == "note") == is_note],
                    self._token,
                )
            ]
            for is_note in (False, True)
        ]
        if copies:
            rows, size = (sum(getattr(c.source, n) for c in copies) for n in ("rows", "bytes"))
            self._progress.begin("copy", sum(map(len, rounds)), rows, size)
        for result in chain.from_iterable(self._engine(tasks) for tasks in rounds if tasks):
            if isinstance(result, BadFileError):
                raise result
            for bad in result.refused:
                self._known[bad.store, bad.name] = bad
            for source, made in result.copied:
                self._known[made.store, made.name] = made
                self._known[source.store, source.name] = source
                if made.kind != "note":
                    self._made.copied.append(made.name)
                self._files[made.name] = self._entry_of_copy(made)
            done = [*result.refused, *(source for source, _ in result.copied)]
            self._progress.step(sum(f.rows for f in done), sum(f.bytes for f in done))
        return bool(copies)

    def _entry_of_copy(self, made: Input) -> FileEntry:
        if made.kind == "note":
            return entry_of(self._out, made.name)
        return FileEntry(0 if is_raw(made) else made.rows, made.bytes, made.sha256)

    def _transcribe(self) -> bool:
        """Makes recordings of metadata logs; returns whether there were any to make."""
        tasks = [
            replace(task, token=self._token, storage=self._plan.options.storage)
            for task in self._plan.log_tasks
            if not all((e.session, e.made_from) in self._transcribed for e in task.todo)
        ]
        if tasks:
            self._progress.begin("logs", len(tasks), sum(task.rows for task in tasks), 0)
        for result in self._engine(tasks) if tasks else ():
            if isinstance(result, BadFileError):
                raise result
            for each in (*result.refused, *result.seen):
                self._known[each.store, each.name] = each
            self._transcribed.update((each.session, each.made_from) for each in result.seen)
            for file in result.made:
                self._files[file.name] = FileEntry(file.rows, file.bytes, file.sha256)
            self._made.made += result.made
            self._progress.step(result.rows.get("read", 0), sum(f.bytes for f in result.made))
        return bool(tasks)

    def _make(self) -> bool:
        """Makes the tasks of the plan; returns whether an input was damaged."""
        tasks = [replace(task, **self._given(task)) for task in self._plan.tasks]
        self._made.unchanged = 0  # a round before this one ended by a damaged file
        if not tasks:
            return False
        self._progress.begin("make", len(tasks), sum(task.rows for task in tasks), 0)
        inputs = {each.path: each for each in self._plan.files}
        is_damaged = False
        for result in self._engine(tasks):
            if isinstance(result, BadFileError):
                if result.path not in inputs:
                    raise result
                self._quarantine(inputs[result.path], result.reason)
                is_damaged = self._has_failed = True
                continue
            self._take(result)
            left = [name for name in result.unchanged if name not in self._files]
            again = list(self._made_before(left))
            for file in again:
                self._files[file.name] = FileEntry(file.rows, file.bytes, file.sha256)
            self._made.made += [*result.made, *again]
            self._made.unchanged += len(left) - len(again)
            for what, rows in result.rows.items():
                self._made.rows[what] = self._made.rows.get(what, 0) + rows
            self._progress.step(result.rows.get("read", 0), sum(f.bytes for f in result.made))
        return is_damaged

    def _given(self, task: Task | MonthTask) -> dict[str, Any]:
        """Returns what a run gives to each task: its lock, credentials, and where files lie."""
        given = {"token": self._token, "storage": self._plan.options.storage}
        return given | {"stored": self._stored_of(task) if self._plan.kind.has_logs else None}

    def _stored_of(self, task: Task | MonthTask) -> dict[str, str]:
        """Returns where a task finds the files that it may read."""
        if isinstance(task, MonthTask):
            names = list(task.digests)
        else:
            parts = self._plan.parts[task.cluster_id]
            names = [
                name
                for period in task.periods
                for name in files_of_period(task.cluster_id, period.name, parts)
            ]
        return {name: self._stored[name] for name in names if name in self._stored}

    def _take(self, result: Result) -> None:
        """Notes the files that a task has made, and those that an earlier run left there."""
        for file in result.made:
            if file.stored:
                self._stored[file.name] = file.stored
            entry = FileEntry(file.rows, file.bytes, file.sha256, file.stored)
            self._files[file.name] = entry
        self._stored.update(result.stored)
        for name in result.stored:
            self._files[name] = entry_of(self._out, name)
        self._made.unchanged += len(result.stored)

    def _made_before(self, unchanged: Sequence[str]) -> Iterator[MadeFile]:
        """Yields the unchanged parts of a task that an attempt of this run made before it was lost.

        Spark makes a task again when its worker dies, and may make one twice at a time.
        """
        before = self._plan.manifest.files
        for name in unchanged if self._trusted else ():
            there = entry_of(self._out, name)
            if there != before.get(name):
                yield MadeFile(name, there.rows, there.bytes, there.sha256)

    def _quarantine(self, source: Input, reason: str) -> None:
        bad = replace(source, state="quarantined", reason=reason)
        self._known[bad.store, bad.name] = bad

    def _make_gold(self) -> None:
        """Makes the months of gold that differ from silver as it is now."""
        gold = None
        if not self._trusted:  # files may be newer than the manifest
            names = [
                name for name in files_in_place(self._out, self._stored) if name.startswith(GOLD)
            ]
            gold = months_of_footers(self._out, names)
            self._months.update({c: dict(months) for c, months in gold.items()})
        tasks = self._plan.gold_after(self._digest, self._rows, gold)
        if tasks:
            self._run_gold(tasks)

    def _run_gold(self, months: Sequence[MonthTask]) -> None:
        tasks = [replace(each, beside=len(months), **self._given(each)) for each in months]
        self._progress.begin("gold", len(tasks), sum(task.rows for task in tasks), 0)
        for result in self._engine(tasks):
            if isinstance(result, BadFileError):
                raise result
            self._take(result)
            self._made.made += result.made
            self._months.setdefault(result.cluster_id, {}).update(result.months)
            self._progress.step(
                sum(file.rows for file in result.made), sum(file.bytes for file in result.made)
            )

    def _digest(self, name: str) -> str:
        """Returns the digest of a part that is there; raises OSError."""
        return (self._kept(name) or entry_of(self._out, name)).sha256

    def _rows(self, name: str) -> int:
        """Returns the number of rows of a part that is there; raises OSError."""
        return (self._kept(name) or entry_of(self._out, name)).rows

    def _is_copy(self, name: str) -> bool:
        return name.startswith(f"{BRONZE}/")

    def _is_bronze(self, each: Input) -> bool:
        return each.store == self._out.where

    def _kept(self, name: str) -> FileEntry | None:
        """Returns what the manifest says of a file, None if it is not there or not Parquet."""
        before: Mapping[str, FileEntry] = self._plan.manifest.files
        if name in self._files:
            return self._files[name]
        if name in self._stored and name in before and before[name].stored == self._stored[name]:
            return before[name]  # nothing is replaced under a name of content
        if name in before and self._trusted:
            return before[name]
        try:
            return entry_of(self._out, name)
        except (FileNotFoundError, pa.ArrowException):
            return None
