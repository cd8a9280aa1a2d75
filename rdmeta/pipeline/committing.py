"""Tables with logs: which files their logs name, and the one commit of a run to each table.

Tasks write files under names of their content, which no reader sees. A commit then takes those that
differ out of a table, and adds the new ones. The logs are the truth; the manifest follows from
them. A run that died before a commit leaves files that the next run finds by their names.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from rdmeta.pipeline.errors import CommitLostError, PipelineError
from rdmeta.pipeline.gold.column_comments import COMMENTS
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.layout import GOLD, SILVER, Parts, StoredName
from rdmeta.pipeline.manifest import FileEntry
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import SCHEMAS

RUN = "rdmeta.run"
"""The word of a commit for its run, in every log."""
_LISTED = 3
_SPECIAL = frozenset("#%?")


class LoggedTable(NamedTuple):
    """A table of silver or a measure of gold."""

    layer: str
    name: str

    @property
    def folder(self) -> str:
        return f"{SILVER if self.layer == 'silver' else GOLD}/{self.name}"

    @property
    def partition_by(self) -> tuple[str, str]:
        return ("cluster_id", "period" if self.layer == "silver" else "month")

    @property
    def schema(self) -> pa.Schema:
        """The columns of its files, and the partition that these do not have.

        Those of gold have what they mean as the comment of Delta, and the doc of Iceberg.
        """
        if self.layer == "silver":
            columns = SCHEMAS[self.name]
        else:
            said = COMMENTS[self.name]
            columns = pa.schema(
                each.with_metadata({"comment": said[each.name], "doc": said[each.name]})
                for each in MEASURES[self.name].schema
            )
        return columns.append(pa.field(self.partition_by[1], pa.string()))

    @property
    def title(self) -> str:
        """The name by which rdmeta knows a table that it has made."""
        return f"rdmeta.{self.layer}.{self.name}"


# In the order of their commits.
EVERY_TABLE = (
    *(LoggedTable("silver", name) for name in SCHEMAS),
    *(LoggedTable("gold", name) for name in MEASURES),
)


@dataclass(frozen=True)
class TableState:
    """A table as its log has it at one version; None if there is no table yet.

    `files` are the names of those that rdmeta wrote, and `foreign` those of others. `run` is the
    run of the last commit, None if another program made it; `by` says who that was.
    """

    version: int | None = None
    files: frozenset[str] = frozenset()
    foreign: tuple[str, ...] = ()
    run: str | None = None
    by: str = ""
    handle: Any = field(default=None, compare=False)

    @classmethod
    def of(
        cls, version: int, names: Iterable[str], run: str | None, by: str, handle: Any
    ) -> TableState:
        """Returns the state of a table with files of these names."""
        every = {*names}
        ours = frozenset(name for name in every if StoredName.parse(name) is not None)
        return cls(version, ours, tuple(sorted(every - ours)), run, by, handle)


@dataclass(frozen=True)
class TableChange:
    """What a commit does to a table: the names of files that it removes, and those it adds."""

    table: LoggedTable
    state: TableState
    removed: tuple[str, ...]
    added: Mapping[str, FileEntry]

    def properties(self, run: str) -> dict[str, str]:
        """Returns what the commit says: its run, and the digest of what each period is made of."""
        made: dict[str, dict[str, str]] = {}
        for name in sorted(self.added):
            about = StoredName.parse(name)
            if about is not None:
                made.setdefault(about.cluster_id, {})[about.period] = about.digest
        return {RUN: run, "rdmeta.made_from": json.dumps(made, sort_keys=True)}


class Unneeded(NamedTuple):
    """Files that only older versions have; and files of rdmeta that no version has."""

    old: frozenset[str] = frozenset()
    unnamed: frozenset[str] = frozenset()


class TableLogs(ABC):
    """The logs of the tables of one folder, by the library of their kind."""

    def __init__(self, out: Store) -> None:
        if found := _SPECIAL & {*os.path.abspath(out.path())} if out.is_local else ():
            raise PipelineError(
                f"{out.where}: tables with a log cannot lie below a path with {min(found)!r}, as"
                " their readers take it for a URL: name another folder"
            )
        self._out = out

    def state(self, table: LoggedTable) -> TableState:
        """Returns a table as it is now; raises PipelineError for one that rdmeta did not make."""
        with self._naming(table):
            opened = self._opened(table)
            return TableState() if opened is None else self._state_of(table, opened)

    def has(self, table: LoggedTable) -> bool:
        """Returns whether there is a table; raises as `state`."""
        with self._naming(table):
            return self._opened(table) is not None

    def commit(self, change: TableChange, properties: Mapping[str, str]) -> None:
        """Commits a change to the state that it was made for; raises CommitLostError."""
        table = change.table
        try:
            with self._naming(table):
                self._commit(change, dict(properties))
        except PipelineError as error:
            with self._naming(table):
                if not self._is_lost(change, error.__cause__):
                    raise
            raise CommitLostError(
                f"{self._out.shown(table.folder)}: another program has committed to it"
            ) from error

    def unneeded(
        self, table: LoggedTable, since_ms: int, there: Collection[str], *, dry_run: bool
    ) -> Unneeded:
        """Returns which of the files that are there no version of that time or later has.

        Unless it is a dry run, versions before that time may be gone afterwards.
        """
        with self._naming(table):
            opened = self._opened(table)
            if opened is None:
                return Unneeded(unnamed=frozenset(filter(StoredName.parse, there)))
            return self._unneeded_of(table, opened, since_ms, there, dry_run)

    @abstractmethod
    def _opened(self, table: LoggedTable) -> Any:
        """Returns a table of rdmeta, None if there is none; raises PipelineError for another."""

    @abstractmethod
    def _state_of(self, table: LoggedTable, opened: Any) -> TableState: ...

    @abstractmethod
    def _commit(self, change: TableChange, properties: dict[str, str]) -> None: ...

    @abstractmethod
    def _is_lost(self, change: TableChange, error: BaseException | None) -> bool:
        """Returns whether a commit failed as another one came before it."""

    @abstractmethod
    def _unneeded_of(
        self, table: LoggedTable, opened: Any, since_ms: int, there: Collection[str], dry_run: bool
    ) -> Unneeded: ...

    @contextmanager
    def _naming(self, table: LoggedTable) -> Iterator[None]:
        """Raises PipelineError, with the table's name, for what the library or a store raises."""
        try:
            yield
        except PipelineError:
            raise
        except Exception as error:  # each store and catalog has errors of its own
            where = self._out.shown(table.folder)
            reason = self._out.hidden(self._reason(error))
            raise PipelineError(f"{where}: {reason}") from error

    def _reason(self, error: Exception) -> str:
        """Returns what went wrong, in one line."""
        return str(error).strip().partition("\n")[0] or type(error).__name__


def names_in_place(
    states: Iterable[TableState], known: Mapping[str, FileEntry]
) -> tuple[dict[str, str], bool]:
    """Returns where each file lies, by its name; and whether logs are ahead of the manifest.

    `known` are the files of the manifest. They count where the last commit is not of rdmeta: what
    another program took away is put back. They also count for a period, or a month of gold, that
    a run has committed to some of its tables only.
    """
    places = {name: each.stored for name, each in known.items() if each.stored}
    active: dict[str, StoredName] = {}
    lying: dict[str, str] = {}
    is_ahead = False
    for state in states:
        for stored in sorted(state.files):
            about = StoredName.parse(stored)
            if about is not None and state.run is not None:
                active[about.logical], lying[about.logical] = about, stored
        if state.run is not None and not state.files <= set(places.values()):
            is_ahead = True
    if is_ahead:
        whole = _whole(active)
        for logical, about in active.items():
            if (about.layer, about.cluster_id, about.period) in whole:
                places[logical] = lying[logical]
    return places, is_ahead


def _whole(active: Mapping[str, StoredName]) -> set[tuple[str, str, str]]:
    """Returns the periods whose tables have all been made of the same."""
    digests: dict[tuple[str, str, str], dict[str, str]] = {}
    for about in active.values():
        if about.bucket == 0:
            key = (about.layer, about.cluster_id, about.period)
            digests.setdefault(key, {})[about.table] = about.digest
    count = {"silver": len(SCHEMAS), "gold": len(MEASURES)}
    return {
        key
        for key, found in digests.items()
        if len(found) == count[key[0]] and len({*found.values()}) == 1
    }


def parts_of_names(places: Iterable[str]) -> dict[str, Parts]:
    """Returns the parts of each cluster, as the names of its files tell them."""
    found = {}
    for stored in places:
        about = StoredName.parse(stored)
        if about is not None and about.layer == "silver":
            found[about.cluster_id] = Parts(
                "month" if len(about.period) == len("2026-11") else "day", about.buckets
            )
    return found


def require_no_foreign(out: Store, states: Mapping[LoggedTable, TableState]) -> None:
    """Raises PipelineError if a table has files that rdmeta did not write."""
    for table, state in states.items():
        if state.foreign:
            shown = ", ".join(state.foreign[:_LISTED])
            raise PipelineError(
                f"{out.shown(table.folder)}: {state.by} wrote {len(state.foreign)} files to it"
                f" that are not of rdmeta: {shown}; take them out, or give --overwrite-foreign"
            )


def changes_of(
    states: Mapping[LoggedTable, TableState],
    wanted: Mapping[str, FileEntry],
    is_there: Callable[[str], bool],
) -> Iterator[TableChange]:
    """Yields what brings each table to the wanted files; one that is not there is not added."""
    by_table: dict[LoggedTable, dict[str, FileEntry]] = {}
    for entry in wanted.values():
        about = StoredName.parse(entry.stored)
        if about is not None:
            by_table.setdefault(LoggedTable(about.layer, about.table), {})[entry.stored] = entry
    for table, state in states.items():
        files = by_table.get(table, {})
        added = {n: files[n] for n in sorted(files) if n not in state.files and is_there(n)}
        removed = (*sorted(state.files - set(files)), *state.foreign)
        if added or removed:
            yield TableChange(table, state, removed, added)
