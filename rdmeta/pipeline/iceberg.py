"""Tables of Apache Iceberg: their snapshots by pyiceberg, without Java.

A commit is one snapshot: whole files leave, whole files come, and none is rewritten. It is made for
the snapshot that the run has read. If that is not the current one any more, the run plans again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

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
from rdmeta.pipeline.layout import CATALOG, StoredName
from rdmeta.pipeline.storage import OPTIONS
from rdmeta.pipeline.store import Store

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot

_TITLE = "rdmeta.table"
_LOCAL = re.compile("^file:/+")


class IcebergLogs(TableLogs):
    """The snapshots of the tables of a folder, in a catalog; without a name it is one in OUT.

    Raises MissingExtraError without pyiceberg, and PipelineError for a store without a catalog.
    """

    def __init__(self, out: Store, catalog: str) -> None:
        try:
            import pyiceberg  # noqa: F401
            import sqlalchemy  # noqa: F401
        except ImportError as error:
            raise MissingExtraError.of("--tables iceberg", "iceberg") from error
        if not catalog and not out.is_local:
            raise PipelineError(
                f"{out.where}: tables of Iceberg on an object store need a catalog: give --catalog"
            )
        super().__init__(out)
        self._name = catalog
        self._root = _root(out)
        self._known: Catalog | None = None

    def _state_of(self, table: LoggedTable, opened: Table) -> TableState:
        snapshot = opened.current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return TableState(None, handle=opened)
        files = list(_files(opened))
        if deletes := sum(each.content.name != "DATA" for each in files):
            # pyiceberg takes no such file out of a table.
            raise PipelineError(
                f"{self._out.shown(table.folder)}: another program has deleted rows by"
                f" {deletes} delete files: roll the table back to a snapshot before that, or name a"
                " new folder"
            )
        names = [self._inside(each.file_path) for each in files]
        run = snapshot.summary.additional_properties.get(RUN)
        by = f"snapshot {snapshot.snapshot_id} ({snapshot.summary.operation.value})"
        return TableState.of(snapshot.snapshot_id, names, run, by, opened)

    def _commit(self, change: TableChange, properties: dict[str, str]) -> None:
        begun = self._begun(change)
        removed = {*change.removed}
        with begun.update_snapshot(snapshot_properties=properties).overwrite() as new:
            for file in _files(change.state.handle) if removed else ():
                if self._inside(file.file_path) in removed:
                    new.delete_data_file(file)
            for file in self._added(change, begun):
                new.append_data_file(file)
        begun.commit_transaction()

    def _is_lost(self, change: TableChange, error: BaseException | None) -> bool:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        return isinstance(error, (CommitFailedException, TableAlreadyExistsError))

    def _unneeded_of(
        self,
        table: LoggedTable,
        opened: Table,
        since_ms: int,
        there: Collection[str],
        dry_run: bool,
    ) -> Unneeded:
        snapshots = sorted(opened.snapshots(), key=lambda each: each.timestamp_ms)
        before = [each for each in snapshots if each.timestamp_ms < since_ms][:-1]
        heads = {each.snapshot_id for each in opened.refs().values()}
        expired = [each for each in before if each.snapshot_id not in heads]
        needed = self._names(opened, [each for each in snapshots if each not in expired])
        ended = {each.snapshot_id for each in expired}
        for about in (*opened.metadata.statistics, *opened.metadata.partition_statistics):
            if about.snapshot_id not in ended:
                needed.add(self._inside(about.statistics_path))
        old = self._names(opened, expired) - needed
        for entry in opened.metadata.metadata_log:
            if entry.timestamp_ms < since_ms:
                old.add(self._inside(entry.metadata_file))
        if expired and not dry_run:
            expiring = opened.maintenance.expire_snapshots()
            expiring.by_ids([*ended]).commit()
        needed |= {self._inside(entry.metadata_file) for entry in opened.metadata.metadata_log}
        needed.add(self._inside(opened.metadata_location))
        unnamed = filter(_is_of_iceberg, set(there) - needed - old)
        return Unneeded(frozenset(old.intersection(there)), frozenset(unnamed))

    def _catalog(self) -> Catalog:
        if self._known is None:
            if self._name:
                from pyiceberg.catalog import load_catalog

                given = {OPTIONS[n].iceberg: value for n, value in self._out.options.items()}
                self._known = load_catalog(self._name, **given)
            else:
                from pyiceberg.catalog.sql import SqlCatalog

                path = os.path.abspath(self._out.path(CATALOG))
                self._known = SqlCatalog("rdmeta", uri=f"sqlite:///{path}", warehouse=self._root)
        return self._known

    def _opened(self, table: LoggedTable) -> Table | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if not self._name and not self._out.has(CATALOG):
            return None
        try:
            opened = self._catalog().load_table(_identifier(table))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        self._require_ours(table, opened)
        return opened

    def _begun(self, change: TableChange) -> Transaction:
        """Returns a transaction on the table of a change; a new table comes with its commit."""
        table, loaded = change.table, change.state.handle
        if loaded is not None:
            # A commit that comes second is not to be repeated: the run plans again.
            loaded.metadata.properties["commit.retry.num-retries"] = "0"
            begun: Transaction = loaded.transaction()
            return begun
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(_identifier(table)[0])
        begun = catalog.create_table_transaction(
            _identifier(table),
            table.schema,
            location=f"{self._root}/{table.folder}",
            properties={_TITLE: table.title, "format-version": "2"},
        )
        with begun.update_spec() as spec:
            for name in table.partition_by:
                spec.add_identity(name)
        # Files have no ids of fields: readers find columns by name.
        names = begun.table_metadata.schema().name_mapping.model_dump_json()
        return begun.set_properties({"schema.name-mapping.default": names})

    def _added(self, change: TableChange, begun: Transaction) -> Iterator[DataFile]:
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        spec = begun.table_metadata.spec()  # each look at it makes a copy
        fields = [each.name for each in spec.fields]
        for name, entry in change.added.items():
            about = StoredName.parse(name)
            assert about is not None
            yield DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{self._root}/{name}",
                file_format=FileFormat.PARQUET,
                partition=Record(*(about.partition[field] for field in fields)),
                record_count=entry.rows,
                file_size_in_bytes=entry.bytes,
                spec_id=spec.spec_id,
            )

    def _names(self, loaded: Table, snapshots: Collection[Snapshot]) -> set[str]:
        """Returns the names of all files that these snapshots need."""
        found: set[str] = set()
        for snapshot in snapshots:
            found.add(self._inside(snapshot.manifest_list))
            for manifest in snapshot.manifests(loaded.io):
                found.add(self._inside(manifest.manifest_path))
                for entry in manifest.fetch_manifest_entry(loaded.io, discard_deleted=True):
                    found.add(self._inside(entry.data_file.file_path))
        return found

    def _inside(self, location: str) -> str:
        """Returns the name in OUT of what lies at a location; that of another place stays.

        Spark writes `file:/` where pyiceberg writes `file:///`.
        """
        if self._out.is_local:
            location = _LOCAL.sub("file:///", location)
        return location.removeprefix(f"{self._root}/")

    def _require_ours(self, table: LoggedTable, loaded: Table) -> None:
        name = ".".join(_identifier(table))
        if loaded.properties.get(_TITLE) != table.title:
            raise PipelineError(
                f"{self._out.where}: rdmeta did not make the Iceberg table {name} of the catalog:"
                " name another catalog"
            )
        if loaded.location() != f"{self._root}/{table.folder}":
            raise PipelineError(
                f"{self._out.where}: the Iceberg table {name} of the catalog lies in"
                f" {loaded.location()}: name OUT as there, or another catalog"
            )
        columns = [each.name for each in loaded.schema().fields]
        # A field that was dropped and added again comes last.
        partitions = {each.name for each in loaded.spec().fields}
        for what, is_same in (
            ("columns", columns == table.schema.names),
            ("partition fields", partitions == {*table.partition_by}),
        ):
            if not is_same:
                raise PipelineError(
                    f"{self._out.where}: another program has changed the {what} of the Iceberg"
                    f" table {name}: undo that, or name a new folder"
                )


def _identifier(table: LoggedTable) -> tuple[str, str]:
    return (f"rdmeta_{table.layer}", table.name)


def _is_of_iceberg(name: str) -> bool:
    """Returns whether rdmeta or pyiceberg gives a file such a name."""
    return StoredName.parse(name) is not None or "/metadata/" in name


def _root(out: Store) -> str:
    """Returns the location of a folder, as Iceberg's readers need it."""
    if out.is_local:
        return f"file://{os.path.abspath(out.path())}"
    return out.where.partition("?")[0].rstrip("/")


def _files(loaded: Table) -> Iterator[DataFile]:
    """Yields the files of a table's current snapshot."""
    snapshot = loaded.current_snapshot()
    for manifest in snapshot.manifests(loaded.io) if snapshot is not None else ():
        for entry in manifest.fetch_manifest_entry(loaded.io, discard_deleted=True):
            yield entry.data_file
