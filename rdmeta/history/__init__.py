"""A cluster's changes in Parquet: a recorder of a cache's changes, and a reader."""

from __future__ import annotations

from rdmeta.errors import MissingExtraError

# This check comes before the modules that use pyarrow, so that they need none.
try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("rdmeta.history", "arrow") from error

from rdmeta.history.compaction import compact
from rdmeta.history.directory_scan import Found, Quarantined, Recording, look
from rdmeta.history.opening import HistoryFile, Verified, verify
from rdmeta.history.reader import changes, files, read, recordings
from rdmeta.history.recorder import Recorder
from rdmeta.history.schema import CHANGE_SCHEMA, HistoryError

__all__ = [
    "CHANGE_SCHEMA",
    "Found",
    "HistoryError",
    "HistoryFile",
    "Quarantined",
    "Recorder",
    "Recording",
    "Verified",
    "changes",
    "compact",
    "files",
    "look",
    "read",
    "recordings",
    "verify",
]
