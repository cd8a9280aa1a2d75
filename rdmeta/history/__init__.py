"""What changed in a cluster, kept in Parquet: a recorder of a cache's changes, and a reader."""

from __future__ import annotations

from rdmeta.errors import MissingExtraError

# Before the modules that use it, so that none of them has to ask.
try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("rdmeta.history", "arrow") from error

from rdmeta.history.reader import HistoryFile, Recording, changes, files, read, recordings
from rdmeta.history.recorder import Recorder
from rdmeta.history.schema import CHANGE_SCHEMA, HistoryError

__all__ = [
    "CHANGE_SCHEMA",
    "HistoryError",
    "HistoryFile",
    "Recorder",
    "Recording",
    "changes",
    "files",
    "read",
    "recordings",
]
