"""Writes a metadata log as recordings, as `rdmeta.history.Recorder` writes those of a cache.

There is one for each day in UTC, which begins with the whole state at midnight. Its rows follow
from the log alone: the same log gives the same bytes, and a log that went on gives a longer file,
which covers the shorter one. This module needs pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from rdmeta._moments import microseconds, nearest_moment
from rdmeta.history.columns import followed_by, has_kind, rows_of, with_unseen
from rdmeta.history.recorder import OpenRecording, midnight_after
from rdmeta.history.schema import LONGEST, HistoryError
from rdmeta.history.writing import write_whole
from rdmeta.kraft.log_reader import KraftLog
from rdmeta.model import Changes


def record(log: KraftLog, directory: str | os.PathLike[str]) -> list[Path]:
    """Writes recordings of the part of a log that is proven; returns the files, oldest first.

        rdmeta.kraft.record(rdmeta.KraftLog("/var/kafka/metadata"), "history")

    A file has the rows of one day: `observed_from`, the whole state, changes with the times and
    offsets of their records, `observed_to`. Sensitive configurations are "***". A corrupt batch
    ends it, also with `skip_corrupt`: the files before it are written. Raises KraftError, OSError,
    MissingExtraError, and HistoryError if the cluster has no name.
    """
    if log.cluster_id is None:
        raise HistoryError("no meta.properties names the cluster: name it with cluster_id=")
    made = _Days(log, log.cluster_id)
    return [_written(each, Path(directory)) for each in made.recordings()]


def _written(recording: OpenRecording, directory: Path) -> Path:
    path, table = recording.file(directory)
    write_whole(path, table)
    return path


class _Days:
    """The recordings of a log, made one after the other."""

    def __init__(self, log: KraftLog, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._end = min(log.proven, log.end)
        self._unseen = {each.epoch: each.leaderless_us for each in log.epochs}
        self._replay = log.replay(log.first_state, self._end, session="log", skip=False)

    def recordings(self) -> Iterator[OpenRecording]:
        """Yields one for each day, and another one behind a month without a record."""
        if self._replay.next >= self._end:
            return
        latest = self._replay.replay.info()["latest_us"]
        recording = self._begun(
            self._replay.upcoming() if latest is None else nearest_moment(latest)
        )
        while True:
            midnight = midnight_after(recording.observed_to)
            for _ in self._replay.steps(self._end, microseconds(midnight) - 1):
                self._take(recording)
            if self._replay.next >= self._end or self._replay.fault != "reached":
                break
            following = self._replay.upcoming()
            if following - recording.observed_to > LONGEST:
                recording.end("gap")
                yield recording
                recording = self._begun(following, "no record for more than a month")
            else:
                recording.end("midnight", midnight)
                yield recording
                recording = self._begun(midnight, continues=recording.session)
        recording.end("closed")
        yield recording

    def _begun(
        self, begin: datetime, reason: str | None = None, continues: str | None = None
    ) -> OpenRecording:
        """Returns a recording with the whole state, and the controller that leads."""
        version, us = self._replay.next, microseconds(begin)
        named = f"{self._cluster_id} {begin:%Y-%m-%d} {version}"
        session = str(uuid5(NAMESPACE_OID, named))
        recording = OpenRecording(self._cluster_id, begin, continues, session, "log")
        state = Changes(self._replay.replay.whole(us, session), version, False)
        recording.begin_with(followed_by(rows_of(state), self._term()), version, reason)
        return recording

    def _term(self) -> list[dict[str, Any]]:
        """Returns the fields of a row with the controller that leads, if one is known."""
        info = self._replay.replay.info()
        leader = info["leader"]
        row = {
            "version": self._replay.next,
            "source": "log",
            "source_broker": leader,
            "kind": "controller_changed",
            "broker": leader,
            "new_leader_epoch": info["epoch"],
        }
        return [] if leader is None else [row]

    def _take(self, recording: OpenRecording) -> None:
        """Adds the changes of a piece of the log."""
        info = self._replay.replay.info()
        rows = rows_of(Changes(self._replay.replay.changes(), info["next"], False))
        if has_kind(rows, "controller_changed"):
            rows = with_unseen(rows, self._unseen)
        latest = info["latest_us"]
        now = recording.observed_to if latest is None else nearest_moment(latest)
        recording.add(rows, info["next"], now)
