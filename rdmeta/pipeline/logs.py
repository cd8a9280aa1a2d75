"""The logs that a folder's tables have, by the kind of the folder."""

from __future__ import annotations

from rdmeta.pipeline.committing import TableLogs
from rdmeta.pipeline.layout import TableKind
from rdmeta.pipeline.store import Store


def logs_of(out: Store, kind: TableKind) -> TableLogs | None:
    """Returns the logs of a folder, None if its tables have none; raises MissingExtraError."""
    if kind.name == "delta":
        from rdmeta.pipeline.delta import DeltaLogs

        return DeltaLogs(out)
    if kind.name == "iceberg":
        from rdmeta.pipeline.iceberg import IcebergLogs

        return IcebergLogs(out, kind.catalog)
    return None
