"""A cluster's changes in Parquet: a recorder of a cache's changes, and a reader."""

from __future__ import annotations

from rdmeta.errors import MissingExtraError

# This check comes before the modules that use pyarrow, so that they need none.
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
