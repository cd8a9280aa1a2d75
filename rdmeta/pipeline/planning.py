"""The plan of a run: files to copy, tasks with their reasons, and parts that stay as they are.

A plan reads names, sizes and footers, and writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from rdmeta._atomic import is_leftover
from rdmeta._html import html_table
from rdmeta.pipeline import lock
from rdmeta.pipeline.attempting import local_engine
from rdmeta.pipeline.committing import (
    EVERY_TABLE,
    LoggedTable,
    TableChange,
    TableState,
    changes_of,
    names_in_place,
    parts_of_names,
    require_no_foreign,
)
from rdmeta.pipeline.days import Day, day_at, days_of, is_day
from rdmeta.pipeline.errors import BadFileError, PipelineError
from rdmeta.pipeline.gold.months import aside_of, month_tasks, names_of_month
from rdmeta.pipeline.gold.query import require_duckdb
from rdmeta.pipeline.inputs import (
    Input,
    InputRecording,
    arrange,
    look,
    opened_here,
    read_inputs,
)
from rdmeta.pipeline.layout import (
    BRONZE,
    KINDS,
    MANIFEST,
    SILVER,
    Parts,
    TableKind,
    bronze_file,
    choose_parts,
    is_of_logs,
    period_of,
    read_kind,
    read_layout,
    table_file,
)
from rdmeta.pipeline.log_inputs import is_raw
from rdmeta.pipeline.log_joining import JoinedLog
from rdmeta.pipeline.log_planning import Known, LogStage, stage_of
from rdmeta.pipeline.logs import logs_of
from rdmeta.pipeline.manifest import DayRecord, FileEntry, Manifest, days_of_parts, read_manifest
from rdmeta.pipeline.storage import Storage, using
from rdmeta.pipeline.store import Store, StoredFile, contacted
from rdmeta.pipeline.transcribing import is_of_log
from rdmeta.pipeline.work import (
    VERSIONS,
    Copy,
    Engine,
    LogTask,
    LookTask,
    MadeMonth,
    MonthTask,
    Period,
    Settings,
    Task,
    tables_of,
)

_MOST = (1 << 31) - 1  # of a setting, in the queries of gold
_USABLE = ("good", "copied", "duplicate")
# So many new files are looked at here; tasks look at more, each at so many.
_FEW_FILES = 2_000
_OF_TASK = 500

# Days and states of inputs that were set aside, by cluster and month.
Aside = Mapping[str, Mapping[str, Sequence[tuple[str, str]]]]


@dataclass(frozen=True)
class PipelineOptions:
    """The user's wishes.

    `clusters` are ids or names, `since` and `until` are days: `until` is the first one that is left
    alone. `names` are what people call cluster ids. `tables` is the kind of the tables, by default
    that of the folder. `storage` has credentials: `inputs` and `out` have none.
    """

    inputs: tuple[str, ...]
    out: str
    clusters: frozenset[str] | None = None
    since: str | None = None
    until: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    in_place: bool = False
    silver: bool = True
    gold: bool = False
    settings: Settings = field(default_factory=Settings)
    tables: str | None = None
    catalog: str | None = None
    overwrite_foreign: bool = False
    storage: Storage = field(default_factory=Storage, repr=False)

    @property
    def is_gold_alone(self) -> bool:
        """Whether a run makes gold from the silver that is there, and looks at no input."""
        return self.gold and not self.silver


@dataclass(frozen=True)
class Plan:
    """The steps of a run.

    `unchanged_silver` are the parts of its tables that stay as they are. `files` are all inputs
    with their states, `manifest` is the one that is there, and `days` are those that the next one
    will have. `leftovers` are unfinished files of a run that died. `gold` are the months whose
    files are in place, by chosen cluster, and `aside` what was set aside, by cluster and month.
    `is_news` says that a file has another state than in OUT/input.parquet. `states` are the tables
    that have logs, and `stored` says where their files lie.

    `log_tasks` make recordings of metadata logs, of which `logs` tells by cluster. Silver is
    planned anew once they are there. `notes` lie beside the copies of logs. `superseded` are
    recordings of logs, by name, of which others have all offsets.
    """

    options: PipelineOptions
    copies: tuple[Copy, ...]
    tasks: tuple[Task, ...]
    unchanged_silver: tuple[str, ...]
    files: tuple[Input, ...]
    parts: Mapping[str, Parts]
    days: Mapping[str, Mapping[str, DayRecord]]
    made_days: Mapping[str, tuple[Day, ...]]
    names: Mapping[str, str]
    manifest: Manifest
    is_marked: bool
    leftovers: tuple[str, ...]
    gold: Mapping[str, Mapping[str, MadeMonth]]
    aside: Aside
    is_news: bool
    kind: TableKind = TableKind()
    states: Mapping[LoggedTable, TableState] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)
    log_tasks: tuple[LogTask, ...] = ()
    logs: Mapping[str, JoinedLog] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()

    def gold_after(
        self,
        digest: Callable[[str], str | None],
        rows: Callable[[str], int],
        gold: Mapping[str, Mapping[str, MadeMonth]] | None = None,
    ) -> tuple[MonthTask, ...]:
        """Returns the months of gold that differ from silver, whose parts have these digests.

        `month_tasks` explains `digest` and `rows`. `gold` are the months in place, if not the
        manifest tells them.
        """
        made = self.gold if gold is None else gold
        return tuple(
            task
            for cluster_id in self.gold
            for task in month_tasks(
                self.options.out,
                cluster_id,
                self.days.get(cluster_id, {}),
                self.parts[cluster_id],
                self.options.settings,
                digest,
                made.get(cluster_id, {}),
                self.aside.get(cluster_id, {}),
                rows,
            )
        )

    @cached_property
    def months(self) -> tuple[MonthTask, ...]:
        """The months of gold that differ from silver, or will once the tasks are done."""
        before = self.manifest.files
        will_be = {
            name
            for task in self.tasks
            for period in task.periods
            for name in files_of_period(task.cluster_id, period.name, self.parts[task.cluster_id])
        }

        def digest(name: str) -> str | None:
            return None if name in will_be or name not in before else before[name].sha256

        return self.gold_after(digest, lambda name: before[name].rows if name in before else 0)

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The parts of tables, and files of measures, that stay as they are."""
        stale = {(month.cluster_id, month.month) for month in self.months}
        return self.unchanged_silver + tuple(
            name
            for cluster_id, months in self.gold.items()
            for month in sorted(months)
            if (cluster_id, month) not in stale
            for name in names_of_month(cluster_id, month)
        )

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The tasks, then the months of gold, each with what it makes and why.

        Tasks of logs come first: silver will have their days, too.
        """
        logs = [
            {
                "cluster_id": task.cluster_id,
                "periods": [each.day for each in task.todo],
                "part": "log",
                "rows": task.rows,
                "reason": task.reason,
            }
            for task in self.log_tasks
        ]
        tasks = [
            {
                "cluster_id": task.cluster_id,
                "periods": [period.name for period in task.periods],
                "part": f"{task.bucket} of {task.buckets}",
                "rows": task.rows,
                "reason": task.reason,
            }
            for task in self.tasks
        ]
        months = [
            {
                "cluster_id": month.cluster_id,
                "periods": [month.month],
                "part": "gold",
                "rows": month.rows,
                "reason": month.reason,
            }
            for month in self.months
        ]
        return logs + tasks + months

    def _repr_html_(self) -> str:
        """Returns the first steps as HTML, for notebooks."""
        rows = [list(each.values()) for each in self.steps]
        return html_table(("cluster", "periods", "part", "rows", "reason"), rows, len(rows))

    @property
    def quarantined(self) -> tuple[Input, ...]:
        """The files that are damaged, foreign, or rest on one that is."""
        return tuple(each for each in self.files if each.state in ("quarantined", "set aside"))

    @property
    def gone(self) -> tuple[tuple[str, str], ...]:
        """The days, by cluster, whose tables stay although input of them is gone."""
        return tuple(
            (cluster, day)
            for cluster, days in self.days.items()
            for day, made in days.items()
            if made.is_gone
        )

    @property
    def holes(self) -> tuple[int, int]:
        """The number of holes between observations that count, and their microseconds."""
        found = [size for days in self.made_days.values() for size in _holes(days)]
        return len(found), sum(found)


def checked_settings(min_isr: int | None, flap_seconds: int) -> Settings:
    """Returns the settings of gold; raises ValueError for a number that is out of its range."""
    for name, number in (("min_isr", min_isr), ("flap_seconds", flap_seconds)):
        if number is None and name == "min_isr":
            continue
        if type(number) is not int or not 1 <= number <= _MOST:
            raise ValueError(f"{name} must be a whole number from 1 to {_MOST}, not {number!r}")
    return Settings(min_isr, flap_seconds)


def plan(
    inputs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    clusters: Iterable[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    names: Mapping[str, str] | None = None,
    in_place: bool = False,
    silver: bool = True,
    gold: bool = False,
    min_isr: int | None = None,
    flap_seconds: int = 600,
    timeout: float = 30.0,
    tables: str | None = None,
    catalog: str | None = None,
    overwrite_foreign: bool = False,
    storage: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> Plan:
    """Returns what a run would do for these folders, or URIs of pyarrow.fs.

    Without `inputs` it is made from the copies in OUT/bronze. `in_place` copies nothing. Without
    `silver` no tables of silver are made. `gold` makes the measures, too; without `silver` it makes
    them of the silver that is there. `min_isr` counts for partitions whose min ISR silver does not
    know. A broker that is back in an ISR after at most `flap_seconds` has flapped. `since` and
    `until` are days such as 2026-11-22; days before `since`, and from `until` on, are left alone.
    `clusters` are ids or names, and `names` gives names by id, which win over those that recordings
    have. An object store gets `timeout` seconds for its first answer. `tables` is folder, delta or
    iceberg: a folder keeps the kind that it began with. `catalog` is the name of Iceberg's.
    `overwrite_foreign` takes files out that another program has added to a table. `engine` opens
    new files, if there are many; by default processes of this machine do. `storage` has
    credentials of object stores, such as {"access_key": ..., "secret_key": ...}: docs/pipeline.md.

        made = rdmeta.pipeline.run(rdmeta.pipeline.plan(["history"], "tables"))

    Raises PipelineError if there is nothing to read or no file of the input can be read, for an
    input that lies in OUT, and for an OUT of another version; TypeError for one text in the place
    of several, ValueError for `since` and `until` that are no days, and for numbers that are
    not from 1 to 2147483647; ConfigError for an unknown name in `storage`; MissingExtraError for
    gold without DuckDB; and OSError.
    """
    for name, values in (("inputs", inputs), ("clusters", clusters)):
        if isinstance(values, (str, os.PathLike)):
            raise TypeError(f"{name} must be a list, such as [{os.fspath(values)!r}]")
        if values is not None and not isinstance(values, Iterable):
            raise TypeError(f"{name} must be a list of texts, not {values!r}")
    for name, day in (("since", since), ("until", until)):
        if day is not None and not (isinstance(day, str) and is_day(day)):
            raise ValueError(f"{name} must be a day such as 2026-11-22, not {day!r}")
    settings = checked_settings(min_isr, flap_seconds)
    if tables not in (None, *KINDS):
        raise ValueError(f"tables must be one of {', '.join(KINDS)}, not {tables!r}")
    if gold:
        require_duckdb()
    known, places = Storage.parse(storage), []
    for where in (*inputs, out):
        known, place = known.without(os.fspath(where))
        places.append(place)
    options = PipelineOptions(
        tuple(places[:-1]),
        places[-1],
        None if clusters is None else frozenset(clusters),
        since,
        until,
        dict(names or {}),
        in_place,
        silver,
        gold,
        settings,
        tables,
        catalog,
        overwrite_foreign,
        known,
    )
    with using(known):
        for place in places:
            contacted(place, timeout)
        found = plan_of(options, engine=engine)
    bad = found.quarantined
    if bad and not found.days and not any(each.state in _USABLE for each in found.files):
        raise PipelineError(
            f"{bad[0].path}: {bad[0].reason}; none of {len(bad)} files can be read"
            " as history: give a folder that rdmeta record wrote to"
        )
    return found


def plan_of(
    options: PipelineOptions,
    known: Known | None = None,
    is_marked: bool | None = None,
    engine: Engine | None = None,
) -> Plan:
    """Returns the plan for these options; `known` are inputs that need no look. Raises as plan.

    `is_marked` says whether files may be newer than the manifest; by default the lock says it.
    """
    out = Store(options.out)
    _refuse_nested(options)
    marked = lock.is_marked(out) if is_marked is None else is_marked
    return _Planner(options, out, known, marked, engine or local_engine()).plan()


def _kind_of(options: PipelineOptions, out: Store) -> TableKind:
    """Returns the kind of the tables; raises PipelineError if the folder has another one."""
    found = read_kind(out)
    wanted = TableKind(options.tables or "folder", options.catalog or "")
    if found is not None and options.tables not in (None, found.name):
        raise PipelineError(
            f"{out.where}: its tables are of the kind {found.name}, not {options.tables}:"
            " leave --tables out, or name a new folder"
        )
    if wanted.catalog and (found or wanted).name != "iceberg":
        raise PipelineError(f"the catalog {wanted.catalog!r} is for tables of Iceberg alone")
    if found is not None and options.catalog not in (None, found.catalog):
        raise PipelineError(
            f"{out.where}: its tables are in the catalog {found.catalog or 'of the folder'!r},"
            f" not {options.catalog!r}: leave --catalog out, or name a new folder"
        )
    return found or wanted


def files_in_place(out: Store, stored: Mapping[str, str]) -> dict[str, StoredFile]:
    """Returns the files of a folder by their names, without those that only logs tell of."""
    there = {each.name: each for each in out.files()}
    found = {name: each for name, each in there.items() if not is_of_logs(name)}
    return {**found, **{name: there[file] for name, file in stored.items() if file in there}}


def changes_of_plan(
    plan: Plan, files: Mapping[str, FileEntry], is_there: Callable[[str], bool] | None = None
) -> Iterator[TableChange]:
    """Yields what brings the tables of a plan to these files; none if they have no logs."""
    return changes_of(plan.states, files, is_there or Store(plan.options.out).has)


def files_of_period(cluster_id: str, period: str, parts: Parts) -> Iterator[str]:
    """Yields the names of all parts of a period."""
    for bucket in range(parts.buckets):
        for table in tables_of(bucket):
            yield table_file(table, cluster_id, period, bucket, parts.buckets)


class _Planner:
    def __init__(
        self,
        options: PipelineOptions,
        out: Store,
        known: Known | None,
        is_marked: bool,
        engine: Engine,
    ) -> None:
        self._options, self._engine = options, engine
        self._is_again = known is not None
        self._last_run = read_inputs(out)
        self._known: Known = {**self._last_run, **(known or {})}
        self._logs = LogStage()
        self._replaced: set[str] = set()
        self._kind = _kind_of(options, out)
        self._manifest = read_manifest(out)
        self._before: Mapping[str, Mapping[str, DayRecord]] = self._manifest.days
        self._logged: dict[LoggedTable, TableState] = {}
        self._stored: dict[str, str] = {}
        logs = logs_of(out, self._kind)
        if logs is not None:
            self._logged = {table: logs.state(table) for table in EVERY_TABLE}
            if not options.overwrite_foreign:
                require_no_foreign(out, self._logged)
            known_files = self._manifest.files
            self._stored, is_ahead = names_in_place(self._logged.values(), known_files)
            is_marked = is_marked or is_ahead
        self._out = Store(out.where, self._stored)
        self._parts = {**read_layout(out), **parts_of_names(self._stored.values())}
        self._there = files_in_place(out, self._stored)
        # Without a manifest only the parts tell of days whose input is gone.
        has_lost_it = MANIFEST not in self._there and any(
            name.startswith(f"{SILVER}/") for name in self._there
        )
        self._is_marked = is_marked or has_lost_it
        self._aside: list[Input] = []
        self._unchanged: list[str] = []
        self._used_files: dict[tuple[str, str], Input] = {}

    def plan(self) -> Plan:
        used, copies = ([], []) if self._options.is_gold_alone else self._used()
        self._used_files = {(each.store, each.name): each for each in used}
        recordings, states = arrange(used)
        self._aside += states
        if self._is_marked:
            self._before = self._adopted()
        if self._options.is_gold_alone:
            if not any(self._before.values()):
                raise PipelineError(f"{self._out.where}: it has no silver; make that first")
        elif not (used or self._aside or self._logs.copies):
            where = " ".join(self._options.inputs) or f"{self._out.where}/{BRONZE}"
            raise PipelineError(f"{where}: there are no history files; record some first")
        names = {**self._manifest.names, **_labels(recordings), **self._options.names}
        days = {c: dict(made) for c, made in self._before.items()}
        made_days: dict[str, tuple[Day, ...]] = {}
        tasks: list[Task] = []
        if self._options.silver:
            for cluster_id, found in self._by_cluster(recordings, names):
                self._choose(cluster_id, found)
                now = days_of(found, VERSIONS)
                made_days[cluster_id] = tuple(now)
                wanted, days[cluster_id] = self._merged(cluster_id, now)
                tasks += self._tasks(cluster_id, wanted)
        files = () if self._options.is_gold_alone else tuple(self._states(recordings, copies))
        has_gold = self._options.gold
        chosen = [c for c, _ in self._by_cluster(recordings, names)] if has_gold else []
        present = {c for c, made in days.items() if made} | {r.cluster_id for r in recordings}
        return Plan(
            self._options,
            tuple(copies),
            tuple(tasks),
            tuple(self._unchanged),
            files,
            self._parts,
            {c: made for c, made in days.items() if made},
            made_days,
            {c: name for c, name in names.items() if c in present},
            self._manifest,
            self._is_marked,
            tuple(name for name in self._there if is_leftover(name.rpartition("/")[2])),
            {cluster_id: self._whole_months(cluster_id) for cluster_id in chosen},
            aside_of(files or self._known.values()) if has_gold else {},
            any(self._known.get((each.store, each.name)) != each for each in files),
            self._kind,
            self._logged,
            self._stored,
            tuple(self._logs.tasks),
            self._logs.logs,
            tuple(self._logs.notes),
            tuple(self._logs.superseded),
        )

    def _used(self) -> tuple[list[Input], list[Copy]]:
        """Returns the files that tell of the clusters, and those of them that are to be copied."""
        bronze = look(self._out, self._known, BRONZE, self._opened)
        bronze = [self._unrotten(each) for each in bronze]
        found: list[Input] = []
        for where in self._options.inputs:
            store = Store(where)
            if not store.exists():
                raise PipelineError(f"{where}: there is no such folder")
            found += look(store, self._known, opened=self._opened)
        self._look_at_logs([each for each in bronze if each.state == "good"])
        bronze = [each for each in bronze if each.name not in self._logs.superseded]
        if self._options.in_place:
            return bronze + found, []
        held = {each.key: each for each in bronze if each.state == "good"}
        bad = {each.sha256: each for each in bronze if each.state == "quarantined"}
        whole = {(r.cluster_id, r.origin): r for r in arrange(bronze)[0]}
        copies: dict[str, Copy] = {}
        used = {each.name: each for each in bronze}
        others = _contradictions(found)
        for each in sorted(found, key=lambda f: (*f.key, -f.to_us, f.path)):
            if each.state == "good" and each.sha256 in bad:  # a task could not read its copy
                each = replace(each, state="quarantined", reason=bad[each.sha256].reason)
            elif each.path in others and each.key not in held:
                each = replace(each, state="set aside", reason=f"contradicts {others[each.path]}")
            if each.state != "good":
                self._aside.append(each)
                continue
            name = bronze_file(each.key[0], day_at(each.from_us), each.file_name)
            reason = _not_copied(each, held.get(each.key), whole.get(each.key[:2]))
            if reason is not None:
                self._aside.append(replace(each, state=reason[0], reason=reason[1]))
                continue
            before = held.get(each.key)
            if before is not None:  # its successor takes its name
                name = before.name
            copy = replace(each, store=self._out.where, name=name)
            copies[name] = Copy(each, name)
            used[name] = held[each.key] = copy
        return list(used.values()), [*copies.values(), *self._logs.copies]

    def _look_at_logs(self, recordings: Sequence[Input]) -> None:
        """Plans what to make of metadata logs; `recordings` are those in OUT."""
        options = self._options
        self._logs = stage_of(
            self._out,
            options.inputs,
            self._known,
            self._last_run,
            [each for each in recordings if is_of_log(each)],
            in_place=options.in_place,
            is_again=self._is_again,
        )
        self._aside += self._logs.files
        gone = self._logs.superseded
        self._replaced = {each.session or "" for each in recordings if each.name in gone}

    def _opened(self, store: Store, new: Sequence[Input]) -> Iterator[Input]:
        """Yields new files with what their footers say; tasks open many of them."""
        if len(new) <= _FEW_FILES:
            yield from opened_here(store, new)
            return
        packs = (new[begin : begin + _OF_TASK] for begin in range(0, len(new), _OF_TASK))
        storage = self._options.storage
        tasks = [LookTask(self._out.where, tuple(pack), storage=storage) for pack in packs]
        for result in self._engine(tasks):
            if isinstance(result, BadFileError):
                raise result
            yield from result.seen

    def _unrotten(self, copy: Input) -> Input:
        """Returns a copy, quarantined if it is not the one that was made; a later one may be."""
        if copy.state != "good" or not self._has_changed(copy):
            return copy
        reason = "it has changed since it was copied: give its source as an input, or restore it"
        return replace(copy, state="quarantined", reason=reason)

    def _has_changed(self, copy: Input) -> bool:
        """Returns whether a copy differs from what a run put there."""
        made = self._manifest.files.get(copy.name)
        if is_of_log(copy):  # a longer one may have taken its name
            made = None
        # The manifest knows the digest of a copy with versions, however the user spells the folder.
        # Other copies may get more time, and a run that died may have put a better one there.
        if made is not None and copy.since < copy.until and not self._is_marked:
            return made.sha256 != copy.sha256
        before = self._known.get((copy.store, copy.name))
        if before is None or before.state == "quarantined" or copy.to_us > before.to_us:
            return False
        return before.sha256 not in ("", copy.sha256)

    def _by_cluster(
        self, recordings: Sequence[InputRecording], names: Mapping[str, str]
    ) -> Iterator[tuple[str, list[InputRecording]]]:
        """Yields the clusters that the user chose, with their recordings, also if all are gone."""
        found = {c: list(g) for c, g in groupby(recordings, key=lambda r: r.cluster_id)}
        chosen = self._options.clusters
        every = sorted({*found, *self._before})
        if chosen is not None:
            unknown = (
                chosen - set(every) - set(self._logs.logs) - {names[c] for c in every if c in names}
            )
            if unknown:
                raise PipelineError(
                    f"there is no cluster {sorted(unknown)[0]!r} in the input;"
                    f" it has {', '.join(every) or 'none'}"
                )
        for cluster_id in every:
            if chosen is None or cluster_id in chosen or names.get(cluster_id) in chosen:
                yield cluster_id, found.get(cluster_id, [])

    def _adopted(self) -> Mapping[str, Mapping[str, DayRecord]]:
        """Returns the days of the manifest, and those that only the parts of a dead run have.

        A day that rests on a file which turned out to be damaged is none of them.
        """
        bad = {each.session for each in self._aside if each.state == "quarantined"}
        before = {c: dict(days) for c, days in self._manifest.days.items()}
        for cluster_id, days in days_of_parts(self._out, self._there, self._parts).items():
            known = before.setdefault(cluster_id, {})
            for day, made in days.items():
                has_more = day not in known or any(
                    known[day].origins.get(origin, -1) < us for origin, us in made.origins.items()
                )
                if has_more and bad.isdisjoint(made.origins):
                    known[day] = made
        return before

    def _choose(self, cluster_id: str, recordings: Sequence[InputRecording]) -> None:
        """Chooses a new cluster's period and parts by its rows of each day."""
        if cluster_id in self._parts:
            return
        rows: dict[str, int] = {}
        for recording in recordings:
            for each in recording.files:
                day = day_at(each.from_us)
                rows[day] = rows.get(day, 0) + each.rows
        self._parts[cluster_id] = choose_parts(rows.values())

    def _merged(
        self, cluster_id: str, now: Sequence[Day]
    ) -> tuple[list[Day], dict[str, DayRecord]]:
        """Returns the days to have, and what the manifest will say of them.

        A day that has lost an input stays as it was made.
        """
        before = self._before.get(cluster_id, {})
        present = {each.day: each for each in now}
        wanted, made = [], {}
        for day in sorted({*present, *before}):
            there, was = present.get(day), before.get(day)
            if was is not None and not self._is_chosen(day):
                made[day] = was
                wanted.append(Day(day, (), was.digest))
            elif was is not None and _has_lost(was, there, self._replaced):
                made[day] = replace(was, is_gone=True)
                wanted.append(Day(day, (), was.digest))
                self._set_aside_late(was, there)
            elif there is not None and self._is_chosen(day):
                origins = {each.origin: each.seen_to_us for each in there.stretches}
                made[day] = DayRecord(there.digest, origins)
                wanted.append(there)
        return wanted, made

    def _is_chosen(self, day: str) -> bool:
        """Returns whether the user asked for the day."""
        since, until = self._options.since, self._options.until
        return (since is None or day >= since) and (until is None or day < until)

    def _set_aside_late(self, was: DayRecord, there: Day | None) -> None:
        """Names the inputs that came for a day after others of it had gone."""
        for stretch in there.stretches if there else ():
            if stretch.seen_to_us > was.origins.get(stretch.origin, -1):
                reason = f"it came after other input of {day_at(stretch.seen_from_us)} had gone"
                for file in stretch.files:
                    late = self._used_files[file.store, file.name]
                    self._aside.append(replace(late, state="set aside", reason=reason))

    def _tasks(self, cluster_id: str, days: Sequence[Day]) -> Iterator[Task]:
        """Yields the tasks for the periods that differ; those that carry a state are one task."""
        parts = self._parts[cluster_id]
        chain: list[Period] = []
        reason = ""
        for name, group in groupby(days, key=lambda day: period_of(day.day, parts)):
            period = Period(name, tuple(group))
            why = self._reason(cluster_id, period, parts)
            if chain and (why is None or not period.days[0].is_carried):
                yield from self._of_chain(cluster_id, chain, parts, reason)
                chain = []
            if why is None:
                self._unchanged += files_of_period(cluster_id, name, parts)
            else:
                reason = reason if chain else why
                chain.append(period)
        if chain:
            yield from self._of_chain(cluster_id, chain, parts, reason)

    def _of_chain(
        self, cluster_id: str, chain: Sequence[Period], parts: Parts, reason: str
    ) -> Iterator[Task]:
        digests = {
            name: self._manifest.files[name].sha256
            for period in chain
            if len(period.days) > 1  # the days that have not changed are copied from these
            for name in files_of_period(cluster_id, period.name, parts)
            if name in self._manifest.files
        }
        for bucket in range(parts.buckets):
            yield Task(
                self._out.where,
                cluster_id,
                bucket,
                parts.buckets,
                tuple(chain),
                reason,
                digests=digests,
            )

    def _reason(self, cluster_id: str, period: Period, parts: Parts) -> str | None:
        """Returns why a period is to be made, None if it stays as it is."""
        before = self._before.get(cluster_id, {})
        days = [day for day in period.days if self._is_chosen(day.day)]
        if not days or all(day.is_kept for day in period.days):
            return None
        new = [day.day for day in days if day.day not in before]
        if new:
            return f"{new[0]} is new" if len(new) == 1 else f"{new[0]} to {new[-1]} are new"
        changed = [day.day for day in days if day.digest != before[day.day].digest]
        if changed:
            return f"the input of {changed[0]} differs"
        for name in files_of_period(cluster_id, period.name, parts):
            if name not in self._there:
                return f"{name} is missing"
            if name not in self._manifest.files or self._is_lost(name):
                return f"{name} is not the file that was made"
        return "the run before did not end well" if self._is_marked else None

    def _whole_months(self, cluster_id: str) -> Mapping[str, MadeMonth]:
        """Returns the months of gold whose files are all in place."""
        files = self._manifest.files
        return {
            month: made
            for month, made in self._manifest.months.get(cluster_id, {}).items()
            if not any(
                name not in files or self._is_lost(name)
                for name in names_of_month(cluster_id, month)
            )
        }

    def _is_lost(self, name: str) -> bool:
        """Returns whether a file that a run made is missing, or has another size."""
        there, made = self._there.get(name), self._manifest.files.get(name)
        return made is not None and (there is None or there.size != made.bytes)

    def _states(
        self, recordings: Sequence[InputRecording], copies: Sequence[Copy]
    ) -> Iterator[Input]:
        """Yields every input once, with its state."""
        planned = {(self._out.where, copy.name) for copy in copies}
        states = {(each.store, each.name): each for each in self._aside}
        for recording in recordings:
            for each in recording.files:
                states.setdefault((each.store, each.name), each)
        for key in sorted(states):
            if key not in planned:
                yield states[key]
        for copy in copies:
            if copy.source.kind == "history" or is_raw(copy.source):
                yield replace(copy.source, state="copied", reason=copy.name)
        there = {*states, *((copy.source.store, copy.source.name) for copy in copies)}
        places = {self._out.where, *self._options.inputs}
        for key in sorted(set(self._known) - there):
            known = self._known[key]
            if key[0] in places and known.kind != "note" and not is_of_log(known):
                yield replace(self._known[key], state="gone", reason="it is not there any more")


def _contradictions(found: Iterable[Input]) -> dict[str, str]:
    """Returns the files that another one of the same versions contradicts, with that one's path.

    A file without versions only extends the time, and a compaction has the rows of its files.
    """
    same: dict[tuple[str, str, int, int], list[Input]] = {}
    for each in found:
        if each.state == "good" and each.since < each.until and not each.compacted:
            same.setdefault(each.key, []).append(each)
    return {
        each.path: other.path
        for files in same.values()
        for each in files
        for other in files
        if other.sha256 != each.sha256
    }


def _not_copied(
    each: Input, before: Input | None, whole: InputRecording | None
) -> tuple[str, str] | None:
    """Returns the state of a file that is not copied, and why; None for one that is."""
    if before is not None and before.sha256 == each.sha256:
        return "copied", before.name
    if (
        (before is None or each.compacted is not None)
        and whole is not None
        and whole.files[-1].until >= each.until
        and whole.to_us >= each.to_us
    ):
        return "copied", f"{whole.files[-1].name} and those before have its rows"
    if before is not None and each.since != each.until:
        return "set aside", f"it contradicts {before.path}"
    if before is not None and before.to_us >= each.to_us:
        return "copied", f"{before.name} is a later one"
    return None


def _labels(recordings: Iterable[InputRecording]) -> dict[str, str]:
    """Returns the names that the recordings give to clusters; the last one wins."""
    return {
        recording.cluster_id: each.label
        for recording in recordings
        for each in recording.files
        if each.label is not None
    }


def _has_lost(was: DayRecord, there: Day | None, replaced: Container[str]) -> bool:
    """Returns whether a day was made from an input that is not there any more.

    Of `replaced` recordings others have all rows.
    """
    seen = {each.origin: each.seen_to_us for each in there.stretches} if there else {}
    return any(
        seen.get(origin, -1) < us
        for origin, us in was.origins.items()
        if there is None or origin not in replaced
    )


def _holes(days: Iterable[Day]) -> Iterator[int]:
    """Yields the microseconds of each hole between what counts of one cluster."""
    until = None
    for day in days:
        for each in sorted(day.stretches, key=lambda each: each.counts_from_us or 0):
            if each.counts_from_us is None or each.counts_to_us is None:
                continue
            if until is not None and each.counts_from_us > until:
                yield each.counts_from_us - until
            until = each.counts_to_us  # what counts never overlaps


def _local_path(where: str) -> Path | None:
    """Returns the path of a folder of this machine, None for an object store."""
    store = Store(where)
    return Path(store.path()).resolve() if store.is_local else None


def _refuse_nested(options: PipelineOptions) -> None:
    """Raises PipelineError if an input lies in the output folder, or the other way round."""
    out = _local_path(options.out)
    for where in options.inputs:
        source = _local_path(where)
        if out is None or source is None:
            continue
        if source == out or source in out.parents or out in source.parents:
            raise PipelineError(f"{where}: an input and the output folder cannot share files")
