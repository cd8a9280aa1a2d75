"""How change records lie in Parquet: the columns, the file names and the footer's own words.

A file is called `changes-<cluster>.<recording>.<since>-<until>.parquet`: it holds what one
recording saw of one cluster after version `since`, up to and including `until`. The first file of
a recording begins at 0, with the whole state; the next one begins where the last one ended. A
file whose two versions are equal holds no rows: it only says until when nothing changed, and the
next such file takes its place.

The footer says from when to when the file's recorder was observing. Rows alone cannot say that: a
quiet hour has none.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa

from rdmeta._change_table import COLUMNS
from rdmeta.errors import Error

__all__ = [
    "CHANGE_SCHEMA",
    "FileName",
    "Footer",
    "HistoryError",
]

_TYPES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "time": pa.timestamp("us", tz="UTC"),
    "ids": pa.list_(pa.int32()),
}
CHANGE_SCHEMA: pa.Schema = pa.schema([(column.name, _TYPES[column.type]) for column in COLUMNS])

FORMAT = "1"
_PREFIX = "changes-"
_NAME = re.compile(
    r"changes-(?P<cluster>.+)\.(?P<session>[0-9a-f-]{36})"
    r"\.(?P<since>\d{20})-(?P<until>\d{20})\.parquet"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class HistoryError(Error):
    """A file or a directory of history that is not what its name says, or is not whole."""


class FileName(NamedTuple):
    """What a file's name says it holds; `str()` of it is the name."""

    cluster_id: str
    session: str
    since: int
    until: int

    def __str__(self) -> str:
        cluster = quote(self.cluster_id, safe="")
        return f"{_PREFIX}{cluster}.{self.session}.{self.since:020d}-{self.until:020d}.parquet"

    @classmethod
    def parse(cls, name: str) -> FileName:
        """The parts of a file's name; HistoryError if it is none of ours."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise HistoryError(
                "not a history file; they are called"
                " changes-<cluster>.<recording>.<since>-<until>.parquet"
            )
        parsed = cls(
            unquote(match["cluster"]), match["session"], int(match["since"]), int(match["until"])
        )
        if parsed.since > parsed.until:
            raise HistoryError("it ends at a version before the one it begins at")
        return parsed


class Footer(NamedTuple):
    """What a file says of itself in its Parquet metadata."""

    name: FileName
    observed_from: datetime
    observed_to: datetime

    def metadata(self) -> dict[bytes, bytes]:
        """The footer as Parquet keeps it; times are microseconds since 1970 in UTC."""
        words = {
            "rdmeta.format": FORMAT,
            "rdmeta.cluster_id": self.name.cluster_id,
            "rdmeta.session": self.name.session,
            "rdmeta.since": self.name.since,
            "rdmeta.until": self.name.until,
            "rdmeta.observed_from_us": (self.observed_from - _EPOCH) // timedelta(microseconds=1),
            "rdmeta.observed_to_us": (self.observed_to - _EPOCH) // timedelta(microseconds=1),
        }
        return {key.encode(): str(value).encode() for key, value in words.items()}

    @classmethod
    def parse(cls, metadata: dict[bytes, bytes] | None) -> Footer:
        """The footer out of Parquet's metadata; HistoryError says what is missing or wrong."""
        words = {k.decode(): v.decode() for k, v in (metadata or {}).items() if k[:7] == b"rdmeta."}
        found = words.get("rdmeta.format")
        if found != FORMAT:
            raise HistoryError(
                f"format {found} is not one this version reads ({FORMAT})"
                if found
                else "its metadata does not say that rdmeta wrote it"
            )
        try:
            return cls(
                FileName(
                    words["rdmeta.cluster_id"],
                    words["rdmeta.session"],
                    int(words["rdmeta.since"]),
                    int(words["rdmeta.until"]),
                ),
                _EPOCH + timedelta(microseconds=int(words["rdmeta.observed_from_us"])),
                _EPOCH + timedelta(microseconds=int(words["rdmeta.observed_to_us"])),
            )
        except (KeyError, ValueError) as error:
            raise HistoryError(f"its metadata is damaged: {error}") from error
