"""Writes a metadata log as recordings, as `rdmeta.history.Recorder` writes those of a cache.

There is one for each day in UTC, which begins with the whole state at midnight. Its rows follow
from the log alone: the same log gives the same bytes, and a log that went on gives a longer file,
which covers the shorter one. This module needs pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from rdmeta._moments import microseconds, nearest_moment
from rdmeta.history.columns import rows_of, single, without_offsets
from rdmeta.history.recorder import OpenRecording, midnight_after
from rdmeta.history.schema import LONGEST, HistoryError
from rdmeta.history.writing import write_whole
from rdmeta.kraft.log_reader import KraftLog
from rdmeta.kraft.replaying import LogReplay
from rdmeta.model import Changes

AFTER_A_MONTH = "no record for more than a month"


def record(log: KraftLog, directory: str | os.PathLike[str]) -> list[Path]:
    """Writes recordings of the part of a log that is proven; returns the files, oldest first.

        rdmeta.kraft.record(rdmeta.KraftLog("/var/kafka/metadata"), "history")

    A file has the rows of one day: `observed_from`, the whole state, changes with the times and
    offsets of their records, `observed_to`. Sensitive configurations are "***". A corrupt batch
    that no other copy has whole ends it, also with `skip_corrupt`: the files before it are written.
    Raises KraftError, OSError, MissingExtraError, and HistoryError if the cluster has no name.
    """
    if log.cluster_id is None:
        raise HistoryError("no meta.properties names the cluster: name it with cluster_id=")
    cluster_id = log.cluster_id

    def written() -> list[Path]:
        end = min(log.proven, log.end)
        replay = log.replay(log.first_state, end, session="log", skip=False)
        if replay.next >= end:
            return []
        latest = replay.replay.info()["latest_us"]
        begin = replay.upcoming() if latest is None else nearest_moment(latest)
        made = LogDays(replay, cluster_id, end, begin)
        return [_written(*each, Path(directory)) for each in made.recordings()]

    return log.again(written)


def _written(recording: OpenRecording, unknown: int | None, directory: Path) -> Path:
    path, table = recording.file(directory, unknown_records=unknown)
    write_whole(path, table)
    return path


def session_of(cluster_id: str, begin: datetime, offset: int) -> str:
    """Returns the recording of a day that begins with the state before an offset."""
    return str(uuid5(NAMESPACE_OID, f"{cluster_id} {begin:%Y-%m-%d} {offset}"))


class LogDays:
    """The recordings of a log, made one after the other, from where its replay stands.

    The first one begins at `begin`. If that is a midnight, it may continue a recording; otherwise
    `reason` says why the state before it is not known. They end before the offset `end`, and at the
    midnight `until` if one is given: days without a record may come before that. `ended_by` says
    how the last one ends. `taken` is called when a recording has more rows, and may take them.
    """

    def __init__(
        self,
        replay: LogReplay,
        cluster_id: str,
        end: int,
        begin: datetime,
        *,
        continues: str | None = None,
        reason: str | None = None,
        until: datetime | None = None,
        ended_by: str = "closed",
        taken: Callable[[OpenRecording], None] | None = None,
    ) -> None:
        self._replay, self._cluster_id, self._end = replay, cluster_id, end
        self._first = (begin, reason, continues)
        self._until, self._ended_by, self._on_changes = until, ended_by, taken
        self._known_unknown: int = replay.replay.info()["unknown"]

    def recordings(self) -> Iterator[tuple[OpenRecording, int | None]]:
        """Yields one for each day, and another one behind a month without a record.

        With each comes its number of unknown records, None for none.
        """
        recording = self._begun(*self._first)
        while True:
            midnight = midnight_after(recording.observed_to)
            for _ in self._replay.steps(self._end, microseconds(midnight) - 1):
                self._take(recording)
            is_over = self._replay.next >= self._end or self._replay.fault != "reached"
            if is_over and (self._until is None or midnight >= self._until):
                break
            following = midnight if is_over else self._replay.upcoming()
            if following - recording.observed_to > LONGEST:
                recording.end("gap")
                yield recording, self._unknown()
                recording = self._begun(following, AFTER_A_MONTH)
            else:
                recording.end("midnight", midnight)
                yield recording, self._unknown()
                recording = self._begun(midnight, continues=recording.session)
        recording.end(self._ended_by, midnight if self._ended_by == "midnight" else None)
        yield recording, self._unknown()

    def _unknown(self) -> int | None:
        """Returns how many unknown records came since the last call."""
        before, self._known_unknown = self._known_unknown, self._replay.replay.info()["unknown"]
        return (self._known_unknown - before) or None

    def _begun(
        self, begin: datetime, reason: str | None = None, continues: str | None = None
    ) -> OpenRecording:
        """Returns a recording with the whole state, and the controller that leads."""
        version, us = self._replay.next, microseconds(begin)
        session = session_of(self._cluster_id, begin, version)
        recording = OpenRecording(self._cluster_id, begin, continues, session, "log")
        state = Changes(self._replay.replay.whole(us, session), version, False)
        recording.begin_with(without_offsets(rows_of(state)), version, reason)
        info = self._replay.replay.info()
        if (leader := info["leader"]) is not None:
            term = {
                "version": version,
                "observed_at": begin,
                "source": "log",
                "source_broker": leader,
                "kind": "controller_changed",
                "broker": leader,
                "new_leader_epoch": info["epoch"],
            }
            recording.add(single([term]), version, begin)
        return recording

    def _take(self, recording: OpenRecording) -> None:
        """Adds the changes of a piece of the log."""
        info = self._replay.replay.info()
        rows = rows_of(Changes(self._replay.replay.changes(), info["next"], False))
        latest = info["latest_us"]
        now = recording.observed_to if latest is None else nearest_moment(latest)
        recording.add(rows, info["next"], now)
        if self._on_changes is not None:
            self._on_changes(recording)
