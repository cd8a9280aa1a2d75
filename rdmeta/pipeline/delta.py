"""Tables of Delta Lake: their logs by delta-rs, without Java.

A commit is made for the version that the run has read. If that is not the last one any more, it
fails, and the run plans again.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from rdmeta.errors import MissingExtraError
from rdmeta.pipeline.committing import (
    RUN,
    LoggedTable,
    TableChange,
    TableLogs,
    TableState,
    Unneeded,
)
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.layout import StoredName
from rdmeta.pipeline.storage import OPTIONS
from rdmeta.pipeline.store import Store

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Old versions stay readable until `rdmeta pipeline vacuum`.
_FOR_EVER = "interval 36500 days"
_SETTINGS = {
    "delta.logRetentionDuration": _FOR_EVER,
    "delta.deletedFileRetentionDuration": _FOR_EVER,
}
_HOUR_MS = 3_600_000
_STORED_NAME = "delta.columnMapping.physicalName"
_APPEND_ONLY = "delta.appendOnly"
# Features of a table to which delta-rs makes no commit.
_NOT_BY_DELTA_RS = frozenset(("domainMetadata", "inCommitTimestamp", "rowTracking", "typeWidening"))
_COLOUR = re.compile(r"\x1b\[\d*m")


class DeltaLogs(TableLogs):
    """The logs of the tables of a folder; raises MissingExtraError without delta-rs."""

    def __init__(self, out: Store) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise MissingExtraError.of("--tables delta", "delta") from error
        super().__init__(out)
        self._options = None if out.is_local else _storage_options(out)

    def _state_of(self, table: LoggedTable, opened: DeltaTable) -> TableState:
        names = [f"{table.folder}/{each['path']}" for each in _files(opened)]
        last = opened.history(1)[0]
        by = f"version {opened.version()} ({last.get('operation')} by {last.get('engineInfo')})"
        return TableState.of(opened.version(), names, last.get(RUN), by, opened)

    def _commit(self, change: TableChange, properties: dict[str, str]) -> None:
        from deltalake import CommitProperties, Schema
        from deltalake.transaction import create_table_with_add_actions

        table, opened = change.table, change.state.handle
        now = int(time.time() * 1000)
        added = _added(change, now)
        # Spark's DESCRIBE HISTORY shows no other word of ours.
        properties = {**properties, "userMetadata": properties[RUN]}
        about = CommitProperties(custom_metadata=properties, max_commit_retries=0)
        schema, by = Schema.from_arrow(table.schema), list(table.partition_by)
        if opened is None:
            create_table_with_add_actions(
                self._uri(table),
                schema,
                added,
                partition_by=by,
                name=table.title,
                description=f"{table.name} of rdmeta pipeline",
                configuration=_SETTINGS,
                storage_options=self._options,
                commit_properties=about,
            )
        else:
            actions = [*_removed(change, opened, now), *added]
            opened.create_write_transaction(actions, "append", schema, by, commit_properties=about)

    def _is_lost(self, change: TableChange, error: BaseException | None) -> bool:
        from deltalake.exceptions import DeltaError

        if not isinstance(error, DeltaError):
            return False
        opened = self._opened(change.table)
        return (None if opened is None else opened.version()) != change.state.version

    def _unneeded_of(
        self,
        table: LoggedTable,
        opened: DeltaTable,
        since_ms: int,
        there: Collection[str],
        dry_run: bool,
    ) -> Unneeded:
        hours = max(0, round((time.time() * 1000 - since_ms) / _HOUR_MS))

        def listed(*, full: bool) -> set[str]:
            found = opened.vacuum(hours, True, enforce_retention_duration=False, full=full)
            return {f"{table.folder}/{name}" for name in found}.intersection(there)

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

        try:
            opened = DeltaTable(self._uri(table), storage_options=self._options)
        except TableNotFoundError:
            return None
        self._require_ours(table, opened)
        return opened

    def _require_ours(self, table: LoggedTable, opened: DeltaTable) -> None:
        from deltalake import Schema

        where, protocol = self._out.shown(table.folder), opened.protocol()
        if opened.metadata().name != table.title:
            raise PipelineError(
                f"{where}: rdmeta did not make the Delta table that is there: name a new folder"
            )
        fields = opened.schema().fields
        stored = [(each.metadata.get(_STORED_NAME, each.name), each.type) for each in fields]
        if stored != [(each.name, each.type) for each in Schema.from_arrow(table.schema).fields]:
            raise PipelineError(
                f"{where}: another program has changed its columns: RESTORE it to a version"
                " before that, or name a new folder"
            )
        given = _NOT_BY_DELTA_RS.intersection(protocol.writer_features or ())
        if opened.metadata().configuration.get(_APPEND_ONLY) == "true":
            given |= {_APPEND_ONLY}
        if given:
            raise PipelineError(
                f"{where}: another program has given it {', '.join(sorted(given))}, and delta-rs"
                " cannot commit to it: take that away, or name a new folder"
            )
        if "deletionVectors" in (protocol.reader_features or ()):
            # A removal without the vector, as delta-rs makes it, is not one of such a file.
            rows = pa.table(opened.deletion_vectors())
            if len(rows):
                raise PipelineError(
                    f"{where}: another program has deleted rows of {len(rows)} files by deletion"
                    " vectors: RESTORE it to a version before that, or name a new folder"
                )

    def _reason(self, error: Exception) -> str:
        # An error of a store is a tree of lines in colours; the last ones say what went wrong.
        lines = [line.strip(" \u21b3") for line in _COLOUR.sub("", str(error)).splitlines()]
        return ": ".join(line for line in lines if line)


def _files(opened: DeltaTable) -> list[dict[str, Any]]:
    """Returns the files of a table as its log has them, with paths as they are on the disk."""
    found = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    return [{**each, "path": unquote(each["path"])} for each in found]


def _added(change: TableChange, now: int) -> list[Any]:
    from deltalake.transaction import AddAction

    found = []
    for name, entry in change.added.items():
        about = StoredName.parse(name)
        assert about is not None
        path = name.removeprefix(f"{change.table.folder}/")
        stats = json.dumps({"numRecords": entry.rows})
        found.append(AddAction(path, entry.bytes, about.partition, now, True, stats))
    return found


def _removed(change: TableChange, opened: DeltaTable, now: int) -> list[Any]:
    from deltalake.transaction import RemoveAction

    removed = set(change.removed)
    return [
        RemoveAction(
            each["path"],
            True,
            now,
            each["size_bytes"],
            {name: each[f"partition.{name}"] for name in change.table.partition_by},
        )
        for each in _files(opened)
        if f"{change.table.folder}/{each['path']}" in removed
    ]


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
