"""Tables of Delta Lake: their logs by delta-rs, without Java.

A commit is made for the version that the run has read. If that is not the last one any more, it
fails, and the run plans again.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from rdmeta.errors import MissingExtraError
from rdmeta.pipeline.committing import (
    Change,
    CommitLostError,
    LoggedTable,
    TableState,
    Unneeded,
)
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.layout import StoredName
from rdmeta.pipeline.storage import OPTIONS
from rdmeta.pipeline.store import Store

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

# Old versions stay readable until `rdmeta pipeline vacuum`.
_FOR_EVER = "interval 36500 days"
_SETTINGS = {
    "delta.logRetentionDuration": _FOR_EVER,
    "delta.deletedFileRetentionDuration": _FOR_EVER,
}
_HOUR_MS = 3_600_000
_COLOUR = re.compile(r"\x1b\[\d*m")


class DeltaLogs:
    """The logs of the tables of a folder; raises MissingExtraError without delta-rs."""

    def __init__(self, out: Store) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise MissingExtraError.of("--tables delta", "delta") from error
        self._out = out
        self._options = None if out.is_local else _storage_options(out)

    def state(self, table: LoggedTable) -> TableState:
        """Returns a table as it is now; raises PipelineError for one that rdmeta did not make."""
        opened = self._opened(table)
        if opened is None:
            return TableState()
        with self._naming(table):
            self._require_ours(table, opened)
            names = [f"{table.folder}/{each['path']}" for each in _files(opened)]
            last = opened.history(1)[0]
        ours = frozenset(name for name in names if StoredName.parse(name) is not None)
        by = f"version {opened.version()} ({last.get('operation')} by {last.get('engineInfo')})"
        foreign = tuple(sorted({*names} - ours))
        return TableState(
            opened.version(), ours, foreign, last.get("rdmeta.run"), by, handle=opened
        )

    def commit(self, change: Change, properties: Mapping[str, str]) -> None:
        """Commits a change to the state that it was made for; raises CommitLostError."""
        from deltalake import Schema
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import create_table_with_add_actions

        table, opened = change.table, change.state.handle
        come, now = _added(change), int(time.time() * 1000)
        about = _properties(properties)
        schema, by = Schema.from_arrow(table.schema), list(table.partition_by)
        try:
            with self._naming(table):
                if opened is None:
                    create_table_with_add_actions(
                        self._uri(table),
                        schema,
                        come,
                        partition_by=by,
                        name=table.title,
                        description=f"{table.name} of rdmeta pipeline",
                        configuration=_SETTINGS,
                        storage_options=self._options,
                        commit_properties=about,
                    )
                else:
                    actions = [*_removed(change, opened, now), *come]
                    opened.create_write_transaction(
                        actions, "append", schema, by, commit_properties=about
                    )
        except PipelineError as error:
            if (
                isinstance(error.__cause__, DeltaError)
                and self._version(table) != change.state.version
            ):
                raise CommitLostError(
                    f"{self._out.shown(table.folder)}: another program has committed to it"
                ) from error
            raise

    def unneeded(
        self, table: LoggedTable, since_ms: int, there: Collection[str], *, dry_run: bool
    ) -> Unneeded:
        """Returns which of the files that are there no version of that time or later has."""
        opened = self._opened(table)
        if opened is None:
            return Unneeded(unnamed=frozenset(filter(StoredName.parse, there)))
        self._require_ours(table, opened)
        hours = max(0, round((time.time() * 1000 - since_ms) / _HOUR_MS))

        def listed(*, full: bool) -> set[str]:
            found = opened.vacuum(hours, True, enforce_retention_duration=False, full=full)
            return {f"{table.folder}/{name}" for name in found}.intersection(there)

        with self._naming(table):
            old = listed(full=False)
            unnamed = filter(StoredName.parse, listed(full=True) - old)
        return Unneeded(frozenset(old), frozenset(unnamed))

    def _uri(self, table: LoggedTable) -> str:
        if self._out.is_local:
            return os.path.abspath(self._out.path(table.folder))
        return self._out.shown(table.folder)

    def _opened(self, table: LoggedTable) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with self._naming(table):
            try:
                return DeltaTable(self._uri(table), storage_options=self._options)
            except TableNotFoundError:
                return None

    def _version(self, table: LoggedTable) -> int | None:
        opened = self._opened(table)
        return None if opened is None else opened.version()

    def _require_ours(self, table: LoggedTable, opened: DeltaTable) -> None:
        where = self._out.shown(table.folder)
        if opened.metadata().name != table.title:
            raise PipelineError(
                f"{where}: rdmeta did not make the Delta table that is there: name a new folder"
            )
        found = pa.schema(opened.schema().to_arrow())
        if found.names != table.schema.names:
            raise PipelineError(
                f"{where}: another program has changed its columns: RESTORE it to a version"
                " before that, or name a new folder"
            )

    @contextmanager
    def _naming(self, table: LoggedTable) -> Iterator[None]:
        """Raises PipelineError, with the table's name, for what delta-rs raises."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError, ValueError) as error:
            if isinstance(error, PipelineError):
                raise
            # An error of a store is a tree of lines in colours; the last ones say what went wrong.
            lines = [line.strip(" \u21b3") for line in _COLOUR.sub("", str(error)).splitlines()]
            reason = self._out.hidden(": ".join(line for line in lines if line))
            raise PipelineError(f"{self._out.shown(table.folder)}: {reason}") from error


def _files(opened: DeltaTable) -> list[dict[str, Any]]:
    """Returns the files of a table as its log has them, with paths as they are on the disk."""
    found = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    return [{**each, "path": unquote(each["path"])} for each in found]


def _added(change: Change) -> list[Any]:
    from deltalake.transaction import AddAction

    found = []
    for name, entry in change.come.items():
        about = StoredName.parse(name)
        assert about is not None
        path = name.removeprefix(f"{change.table.folder}/")
        stats = json.dumps({"numRecords": entry.rows})
        now = int(time.time() * 1000)
        found.append(AddAction(path, entry.bytes, about.partition, now, True, stats))
    return found


def _removed(change: Change, opened: DeltaTable, now: int) -> list[Any]:
    from deltalake.transaction import RemoveAction

    leave = set(change.leave)
    return [
        RemoveAction(
            each["path"],
            True,
            now,
            each["size_bytes"],
            {name: each[f"partition.{name}"] for name in change.table.partition_by},
        )
        for each in _files(opened)
        if f"{change.table.folder}/{each['path']}" in leave
    ]


def _properties(values: Mapping[str, str]) -> CommitProperties:
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata=dict(values), max_commit_retries=0)


def _storage_options(out: Store) -> dict[str, str]:
    """Returns what delta-rs needs of a store; the rest comes from the environment.

    Raises PipelineError for a credential that delta-rs does not take.
    """
    query = dict(parse_qsl(urlsplit(out.where).query))
    found = {"region": query["region"]} if "region" in query else {}
    if "endpoint_override" in query:
        found["endpoint"] = f"{query.get('scheme', 'https')}://{query['endpoint_override']}"
    named = {}
    for name, value in {**found, **out.options}.items():
        key = OPTIONS[name].delta
        if key is None:
            raise PipelineError(
                f"{out.where}: delta-rs takes no option storage.{name}: give its credentials by the"
                " environment"
            )
        named[key] = value
    if named.get("aws_endpoint_url", "").startswith("http:"):
        named["aws_allow_http"] = "true"
    return named
