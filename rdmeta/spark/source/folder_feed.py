"""The recordings in a folder that grows, as a stream sees them, and how far it has read each.

A folder is seen by footers and the index alone. The offset of a stream is JSON in the checkpoint:

    {"format": 1, "recordings": {CLUSTER: {SESSION: {"version": 7, "rows": 31, "ended": false}}}}

All changes up to `version` have been read, and `rows` rows of the recording, in their order. Rows
of one version may come in several files, such as `config_changed` and `observed_to`. So a version
alone cannot tell which rows have been read. The order of a recording's rows never changes: a
compaction keeps it, and a recorder only adds rows. A recording that is not there is at its begin.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from rdmeta._escaping import escaped
from rdmeta._moments import microseconds
from rdmeta.errors import Error
from rdmeta.history.directory_scan import RecordingFilter
from rdmeta.history.opening import HistoryFile
from rdmeta.history.schema import MOST_NUMBER, FileName, HistoryError
from rdmeta.pipeline.inputs import Lister, Seen, name_of, shown
from rdmeta.pipeline.storage import Storage, current, using
from rdmeta.pipeline.store import Store
from rdmeta.spark.source.recorded import history_place
from rdmeta.spark.source.row_filter import RowFilter

_FORMAT = 1

Key: TypeAlias = "tuple[str, str]"
"""A cluster's id, and the session of a recording of it."""
_log = logging.getLogger(__name__)
# A recorder adds to a recording each few minutes while it lives. One that was killed does not say
# in a footer that the recording has ended.
_OVER = timedelta(days=2) // timedelta(microseconds=1)


class OffsetError(Error):
    """An offset that comes from a checkpoint is none of this source, or is damaged."""


class Position(NamedTuple):
    """How far a recording has been read. `ended` says that it had no more rows behind that."""

    version: int = 0
    rows: int = 0
    ended: bool = False


@dataclass(frozen=True)
class Offset:
    """The positions in all recordings.

    Spark keeps the end of each batch, but not the begin of the first one. It asks for that again
    when it plans the batch once more, and `latest` is elsewhere by then. So the end of the first
    batch has its begin, in `begin`, and an offset that begins a stream is marked by `is_initial`.
    """

    positions: Mapping[Key, Position] = field(default_factory=dict)
    is_initial: bool = False
    begin: Mapping[Key, Position] | None = None

    def position(self, key: Key) -> Position:
        """Returns the position in a recording; its begin if nothing of it has been read."""
        return self.positions.get(key, Position())

    def as_json(self) -> dict[str, Any]:
        """Returns the offset as Spark keeps it."""
        encoded: dict[str, Any] = {"format": _FORMAT, "recordings": _encoded(self.positions)}
        if self.is_initial:
            encoded["initial"] = True
        if self.begin is not None:
            encoded["begin"] = _encoded(self.begin)
        return encoded

    @classmethod
    def parse(cls, encoded: object) -> Offset:
        """Returns the offset that a checkpoint has.

            Offset.parse({"format": 1, "recordings": {}})

        Raises OffsetError, which says what is wrong with it.
        """
        entries = _entries(encoded, "it")
        if entries.get("format") != _FORMAT:
            raise _error(
                f"its format is {_shown(entries.get('format'))}, and this version of rdmeta reads"
                f" format {_FORMAT}"
            )
        unknown = entries.keys() - {"format", "recordings", "initial", "begin"}
        if unknown:
            raise _error(f"it has an unknown entry {_shown(sorted(unknown)[0])}")
        is_initial = entries.get("initial", False)
        if not isinstance(is_initial, bool):
            raise _error(f"initial is {_shown(is_initial)}, not true or false")
        begin = entries.get("begin")
        return cls(
            dict(_positions(entries.get("recordings"), "recordings")),
            is_initial,
            None if begin is None else dict(_positions(begin, "begin")),
        )


def _encoded(positions: Mapping[Key, Position]) -> dict[str, dict[str, dict[str, Any]]]:
    encoded: dict[str, dict[str, dict[str, Any]]] = {}
    for (cluster_id, session), position in sorted(positions.items()):
        encoded.setdefault(cluster_id, {})[session] = position._asdict()
    return encoded


def _positions(encoded: object, name: str) -> Iterator[tuple[Key, Position]]:
    for cluster_id, sessions in _entries(encoded, name).items():
        for session, found in _entries(sessions, f"{name} of cluster {_shown(cluster_id)}").items():
            where = f"recording {_shown(session)}"
            entries = _entries(found, where)
            if entries.keys() != set(Position._fields):
                expected = ", ".join(Position._fields)
                raise _error(f"{where} has {_shown(sorted(entries))}, not {expected}")
            for count in ("version", "rows"):
                _check_count(entries[count], f"{count} of {where}")
            if not isinstance(entries["ended"], bool):
                raise _error(f"ended of {where} is {_shown(entries['ended'])}, not true or false")
            yield (cluster_id, session), Position(**entries)


def _check_count(value: object, name: str) -> None:
    # In Python a truth is a number, too.
    if type(value) is not int or not 0 <= value <= MOST_NUMBER:
        raise _error(f"{name} is {_shown(value)}, not a number from 0 to {MOST_NUMBER}")


def _entries(encoded: object, name: str) -> dict[str, Any]:
    if not isinstance(encoded, dict):
        raise _error(f"{name} is {_shown(encoded)}, not an object")
    return encoded


def _error(problem: str) -> OffsetError:
    return OffsetError(
        f"the checkpoint's offset is damaged, or is one of another source: {problem}; use the"
        " stream's own checkpoint, or a new folder for one"
    )


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


class DataLossError(HistoryError):
    """Rows that a stream has still to read are gone; the text names their recording."""


@dataclass(frozen=True)
class Piece:
    """A file of a recording: its rows are those from `begin` on, counted in the recording.

    `held_back` is how many rows at its end the stream leaves out.
    """

    name: str
    size: int
    begin: int
    rows: int
    until: int
    from_us: int
    to_us: int
    held_back: int = 0

    @property
    def end(self) -> int:
        """The number of the row behind its last one."""
        return self.begin + self.rows


@dataclass(frozen=True)
class Chain:
    """A recording as far as it is there; `is_over` says that no rows will come to it."""

    key: Key
    from_us: int
    pieces: tuple[Piece, ...]
    is_over: bool

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return self.pieces[-1].end

    def position(self, rows: int) -> Position:
        """Returns the position behind so many rows."""
        # A last file without versions may have rows of the version at which the others ended.
        version = max((each.until for each in self.pieces if each.end <= rows), default=0)
        return Position(version, rows, self.is_over and rows >= self.rows)


class FolderFeed:
    """Looks at a folder of recordings, again and again.

        for chain in FolderFeed("history", RowFilter()).chains(Offset()):
            print(chain.key, chain.rows)

    A folder without history, and a cluster that is not there, may come later: they have no rows. A
    folder that is not there is a ConfigError.
    """

    def __init__(
        self,
        where: str,
        filter_: RowFilter,
        *,
        fails_on_loss: bool = True,
        storage: Storage | None = None,
    ) -> None:
        self.where = where
        self._storage = storage
        self._filter = filter_
        self._fails_on_loss = fails_on_loss
        self._warned: set[str] = set()
        self._lister = Lister()

    def chains(self, start: Offset) -> list[Chain]:
        """Returns the recordings as they are now, oldest first.

        Raises HistoryError for a damaged file, and DataLossError if rows behind `start` are gone.
        A recording that `start` has read to its end may be gone or damaged.
        """
        store = self._place()
        seen = self._seen(store, self._filter, None)
        sessions = {key[1]: key for key, each in start.positions.items() if each.ended}
        self._check_faults(store, seen, sessions)
        chains = list(self._chains(store, seen))
        self._check_gone(start, {chain.key: chain for chain in chains})
        return sorted(chains, key=lambda chain: (chain.from_us, chain.key))

    def chain(self, key: Key) -> Chain | None:
        """Returns one recording as it is now, None if it is gone; raises HistoryError."""
        store = self._place()
        seen = self._seen(store, RowFilter(clusters=frozenset(key[:1])), key[1])
        faults = [each for each in seen.faults if each.session == key[1]]
        self._check_faults(store, Seen(seen.files, faults), {})
        return next((chain for chain in self._chains(store, seen) if chain.key == key), None)

    def lose(self, key: Key, problem: str) -> None:
        """Raises DataLossError, or logs one warning if the stream is to go on."""
        text = f"{self.where}: recording {key[1]} of cluster {key[0]}: {problem}"
        if self._fails_on_loss:
            raise DataLossError(
                f"{text}. Put the files back, or go on without these rows with failOnDataLoss=false"
            )
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s; the stream goes on without these rows", escaped(text))

    def _place(self) -> Store:
        """Returns the folder; in a task the credentials are those of the task."""
        with using(self._storage or current()):
            return history_place(Store(self.where))

    def _check_faults(self, store: Store, seen: Seen, ended: dict[str, Key]) -> None:
        """Raises HistoryError for the first fault, but for those of recordings that are read."""
        left = [each for each in seen.faults if each.session is None or each.session not in ended]
        for session in sorted({each.session for each in left if each.session is not None}):
            faults = [each for each in left if each.session == session]
            hole = _hole(
                [(f.since, f.until) for f in seen.files if f.session == session]
                + [FileName.parse(each.path.name)[2:] for each in faults]
            )
            if hole is not None:
                key = faults[0].cluster_id or "", session
                names = ", ".join(sorted(each.path.name for each in faults))
                self.lose(
                    key,
                    f"its versions {hole[0]} to {hole[1]} are gone, and files behind them rest on"
                    f" nothing: {names}",
                )
                left = [each for each in left if each.session != session]
        for fault in left:
            raise HistoryError(f"{shown(store, fault)}: {fault.reason}; move it elsewhere")

    def _check_gone(self, start: Offset, there: dict[Key, Chain]) -> None:
        for key, position in start.positions.items():
            if position.ended:
                continue
            chain = there.get(key)
            if chain is not None:
                if chain.rows < position.rows:
                    self.lose(
                        key,
                        f"it ends at version {chain.pieces[-1].until} with {chain.rows} rows, and"
                        f" the stream has read {position.rows}, up to version {position.version}",
                    )
            elif self.chain(key) is None:
                self.lose(key, f"it is gone, and its versions after {position.version} with it")

    # ---- what lies in the folder ----------------------------------------------------------------

    def _seen(self, store: Store, filter_: RowFilter, session: str | None) -> Seen:
        limits = RecordingFilter(filter_.clusters, session, filter_.since, filter_.until)
        return _of_clusters(self._lister.seen(store, limits), filter_)

    def _chains(self, store: Store, seen: Seen) -> Iterator[Chain]:
        now_us = time.time_ns() // 1000
        for key, group in groupby(seen.files, key=lambda each: (each.cluster_id, each.session)):
            files = list(group)
            pieces = tuple(_pieces(store, files))
            is_over = _is_over(files[-1], now_us)
            yield Chain(key, microseconds(files[0].observed_from), pieces, is_over)


def _of_clusters(seen: Seen, filter_: RowFilter) -> Seen:
    """Returns the files and faults of the wanted clusters, and the faults of no cluster."""
    if filter_.clusters is None:
        return seen
    names = {each.cluster_id: each.name for each in seen.files}
    return Seen(
        [f for f in seen.files if not filter_.clusters.isdisjoint((f.cluster_id, f.name or ""))],
        [
            each
            for each in seen.faults
            if each.cluster_id is None
            or not filter_.clusters.isdisjoint((each.cluster_id, names.get(each.cluster_id) or ""))
        ],
    )


def _is_over(last: HistoryFile, now_us: int) -> bool:
    """Returns whether no rows will come to a recording, by its last file."""
    if _is_open_log(last):
        return False
    return last.ended_by is not None or now_us - microseconds(last.observed_to) > _OVER


def _is_open_log(file: HistoryFile) -> bool:
    """Returns whether a recording of a metadata log may become longer: until its midnight.

    The last row of its file says until when it goes. A longer file has other rows there.
    """
    return file.source == "log" and file.ended_by != "midnight"


def _pieces(store: Store, files: Iterable[HistoryFile]) -> Iterator[Piece]:
    begin = 0
    for file in files:
        times = microseconds(file.observed_from), microseconds(file.observed_to)
        name = name_of(store, file)
        held = int(_is_open_log(file))
        yield Piece(name, file.bytes, begin, file.rows - held, file.until, *times, held)
        begin += file.rows


def _hole(versions: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Returns the first versions that no file has, None if there are none."""
    reached = 0
    for since, until in sorted(versions):
        if since > reached:
            return reached, since
        reached = max(reached, until)
    return None
