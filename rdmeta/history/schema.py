"""The format of change records in Parquet: the columns, the file names and the footer's entries.

A file is called `changes-<cluster>.<recording>.<since>-<until>.parquet`. It lies in the folder
`cluster=<cluster>/day=YYYY-MM-DD/`, by the day in UTC on which its recording began. It holds one
recording's changes of one cluster after version `since`, up to and including `until`. The first
file of a recording begins at 0, with the whole state. Each later file begins where the one before
it ends. A file with two equal versions only extends the time without changes of the cache. The next
file begins where it began, and has its rows, of which there are few: such as config_changed.

The footer gives the time in which the recorder observed the cluster. The rows cannot give it, as
an hour without changes has no rows. Columns and entries may come without another format number,
which rises only when a meaning changes: a reader takes what is missing as null.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa

from rdmeta._change_table import COLUMNS
from rdmeta._moments import microseconds, moment
from rdmeta.errors import Error

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
# The largest version, offset or number of rows.
MOST_NUMBER = (1 << 63) - 1
# The rows of a group of a Parquet file.
GROUP_ROWS = 122_880
# The longest time of one file, and between two files of a recording. A recorder writes a file each
# few minutes. Each day of a recording makes a row of each partition, so years would make millions.
LONGEST = timedelta(days=32)


def day_folder(cluster_id: str, begin: datetime) -> Path:
    """Returns the folder of a recording's files: its cluster, and the day in UTC of its begin."""
    day = begin.astimezone(timezone.utc).date()
    return Path(f"cluster={quote(cluster_id, safe='')}", f"day={day.isoformat()}")


class HistoryError(Error):
    """A file or a directory of history does not match its name, or is not complete."""


class FileName(NamedTuple):
    """The parts of a file's name; `str()` returns the name."""

    cluster_id: str
    session: str
    since: int
    until: int

    def __str__(self) -> str:
        cluster = quote(self.cluster_id, safe="")
        return f"{_PREFIX}{cluster}.{self.session}.{self.since:020d}-{self.until:020d}.parquet"

    @classmethod
    def parse(cls, name: str) -> FileName:
        """Returns the parts of a file's name; raises HistoryError for other names."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise HistoryError(
                "not a history file: the name is not"
                " changes-<cluster>.<recording>.<since>-<until>.parquet; move it elsewhere"
            )
        parsed = cls(
            unquote(match["cluster"]), match["session"], int(match["since"]), int(match["until"])
        )
        if parsed.since > parsed.until:
            raise HistoryError("its name has an end version below its begin version")
        if parsed.until > MOST_NUMBER:
            raise HistoryError(f"its name has a version above {MOST_NUMBER}")
        return parsed


class Footer(NamedTuple):
    """A file's own description in its Parquet metadata.

    Files of earlier versions have none of the entries that have a default.
    """

    file: FileName
    # The time that the file covers.
    observed_from: datetime
    observed_to: datetime
    # The session of the recording that ended at midnight, where this one begins.
    continues: str | None = None
    # Why the recording ended, in its last file. closed: the recorder was closed; midnight: the
    # next recording continues it; gap: no observation for longer than max_gap_us; clock: the wall
    # clock was set; lost: the cache no longer held all changes; cluster: another cluster answered.
    ended_by: str | None = None
    # The name by which people call the cluster.
    name: str | None = None
    # The longest time between two observations, of which the file has the later one.
    longest_gap_us: int | None = None
    # The time without an observation after which the recorder would have ended the recording.
    max_gap_us: int | None = None
    # The brokers' answer to a question for min.insync.replicas: known, denied or unsupported. None:
    # there was no question.
    min_isr: str | None = None
    # The number of files that a compaction made this one of, None for a recorder's own file.
    compacted: int | None = None
    # Where the rows come from: "log" is a metadata log, None are polls.
    source: str | None = None
    # Of a recording that the pipeline made of a log: the first offset, the epoch of the batch
    # before it, and the digest of the day's batches.
    made_from: str | None = None
    # The number of records of a log of which rdmeta does not know the type or version.
    unknown_records: int | None = None

    def metadata(self) -> dict[bytes, bytes]:
        """Returns the footer as Parquet keeps it; times are microseconds since 1970 in UTC."""
        entries = {
            "format": FORMAT,
            "cluster_id": self.file.cluster_id,
            "session": self.file.session,
            "since": self.file.since,
            "until": self.file.until,
            "observed_from_us": microseconds(self.observed_from),
            "observed_to_us": microseconds(self.observed_to),
            "continues": self.continues,
            "ended_by": self.ended_by,
            "name": self.name,
            "longest_gap_us": self.longest_gap_us,
            "max_gap_us": self.max_gap_us,
            "min_isr": self.min_isr,
            "compacted": self.compacted,
            "source": self.source,
            "made_from": self.made_from,
            "unknown_records": self.unknown_records,
        }
        return {
            f"rdmeta.{key}".encode(): str(value).encode()
            for key, value in entries.items()
            if value is not None
        }

    @classmethod
    def parse(cls, metadata: dict[bytes, bytes] | None) -> Footer:
        """Returns the footer in Parquet's metadata; raises HistoryError if it is damaged."""
        entries = {
            k.decode(errors="replace"): v.decode(errors="replace")
            for k, v in (metadata or {}).items()
            if k[:7] == b"rdmeta."
        }
        found = entries.get("rdmeta.format")
        if found != FORMAT:
            raise HistoryError(
                f"its format is {found}, this version of rdmeta reads format {FORMAT}"
                if found
                else "its metadata does not say that rdmeta wrote it"
            )
        try:
            return cls(
                FileName(
                    entries["rdmeta.cluster_id"],
                    entries["rdmeta.session"],
                    int(entries["rdmeta.since"]),
                    int(entries["rdmeta.until"]),
                ),
                moment(int(entries["rdmeta.observed_from_us"])),
                moment(int(entries["rdmeta.observed_to_us"])),
                entries.get("rdmeta.continues"),
                entries.get("rdmeta.ended_by"),
                entries.get("rdmeta.name"),
                _number(entries.get("rdmeta.longest_gap_us")),
                _number(entries.get("rdmeta.max_gap_us")),
                entries.get("rdmeta.min_isr"),
                _number(entries.get("rdmeta.compacted")),
                entries.get("rdmeta.source"),
                entries.get("rdmeta.made_from"),
                _number(entries.get("rdmeta.unknown_records")),
            )
        except (KeyError, ValueError, OverflowError) as error:
            raise HistoryError(f"its metadata is damaged: {error}") from error


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    number = int(text)
    if not 0 <= number <= MOST_NUMBER:
        raise ValueError(f"{number} is no number of microseconds or files")
    return number
