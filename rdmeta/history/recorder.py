"""Appends a cache's changes to Parquet files as the recorder observes them.

A recording has these rows in this order:

    observed_from    the recording begins
    resync           why the recording before it ended, if observation was interrupted
    whole state      everything in the cache, as if all of it had been added at that version
    changes          with higher versions
    observed_to      the recording ends

A recording never covers time without observations, and it lies within one day in UTC. It ends at
its last observation if the cache no longer holds all changes, or if observations are too far apart.
It also ends there if the wall clock was set, or if another cluster answers. At midnight it ends
without a break. The next one begins at 00:00:00 with the state of the observation before, and its
footer names the one that it continues. So each day can be read, and deleted, alone. A process that
dies writes no `observed_to`; its observations end at the last file's `observed_to_us`.

The recorder makes each file by rename: a file is complete and on disk, or it is not there. Its
parts are `MinIsrs`, the min.insync.replicas that brokers have reported, and `OpenRecording`, the
rows that are not in a file yet.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import UUID, uuid4

import pyarrow as pa

from rdmeta._escaping import escaped
from rdmeta._moments import microseconds
from rdmeta.errors import Error
from rdmeta.history.columns import (
    ChangeRows,
    config,
    has_kind,
    rows_of,
    rows_until,
    single,
    stamped,
    topics_gone,
    topics_of,
    with_min_isr,
)
from rdmeta.history.pace import Pace, Sight
from rdmeta.history.schema import CHANGE_SCHEMA, FileName, Footer, HistoryError, day_folder
from rdmeta.history.writing import write_whole
from rdmeta.model import Topic

_log = logging.getLogger(__name__)


class ObservedImage(Protocol):
    """The part of `rdmeta.Image` that a recorder needs."""

    @property
    def version(self) -> int: ...

    @property
    def cluster_id(self) -> str | None: ...

    def topic(self, name: str, /) -> Topic: ...

    def changes(self) -> ChangeRows: ...


class ObservedCache(Protocol):
    """The part of `MetadataCache` that a recorder needs."""

    def image(self) -> ObservedImage: ...

    def changes(self, since: int = 0, *, whole: bool = False) -> ChangeRows: ...


class MinIsrs:
    """The min ISR of topics, as the brokers reported them. `known` is what rows say already."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        # The ids of the topics in `known`.
        self._ids: dict[str, str | None] = {}
        self._new: dict[str, int | None] = {}
        self._asked: dict[str, datetime] = {}
        # For each topic in _new: when it was asked for before, so that no row has the new value.
        self._before: dict[str, datetime | None] = {}

    def tell(self, values: Mapping[str, int | None], now: datetime) -> None:
        """Takes values that the brokers just reported; None: a value is not known any more."""
        for topic, value in values.items():
            if value == self.known.get(topic):
                self._new.pop(topic, None)
            else:
                if topic not in self._new:
                    self._before[topic] = self._asked.get(topic)
                self._new[topic] = value
            self._asked[topic] = now

    def forget(self, topics: Iterable[str]) -> None:
        """Drops what rows said of topics that ended; a later topic of that name is another one."""
        for topic in topics:
            for each in (self.known, self._ids, self._new, self._asked, self._before):
                each.pop(topic, None)

    def confirm(self, topics: Mapping[str, str | None]) -> None:
        """Takes the values of these topics as reported, and drops what rows said of other ones.

        A baseline of these topics, names with ids, is about to be written. Before it nothing was
        observed for a while, so that only an equal id says that a name is still the same topic.
        """
        reported = {topic: self._new[topic] for topic in self._new if topic in topics}
        same = {topic for topic, id in self._ids.items() & topics.items() if id is not None}
        self.forget(self._ids.keys() - same - reported.keys())
        for topic, value in reported.items():
            del self._new[topic], self._before[topic]
            self._keep(topic, topics[topic], value)

    def rows(self, state: ObservedImage, version: int, now: datetime) -> pa.Table:
        """Returns the rows of new values, and takes these as reported.

        The value of a topic that `state` does not have yet waits for the topic.
        """
        rows = []
        for topic, value in list(self._new.items()):
            try:
                topic_id = state.topic(topic).topic_id
            except Error:
                continue
            before = self._before.pop(topic)
            del self._new[topic]
            self._keep(topic, topic_id, value)
            rows.append(
                config(topic, topic_id, version, value)
                | {"observed_at": now, "unseen_us": _us_between(before, now)}
            )
        return single(rows)

    def _keep(self, topic: str, topic_id: str | None, value: int | None) -> None:
        if value is None:
            self.known.pop(topic, None)
            self._ids.pop(topic, None)
        else:
            self.known[topic], self._ids[topic] = value, topic_id


def _us_between(before: datetime | None, now: datetime) -> Any:
    return None if before is None else max(0, microseconds(now) - microseconds(before))


class OpenRecording:
    """A recording from its baseline on. Its rows go through `add`; times never run backwards.

    `until` is the version that the rows reach, `observed_to` the time until which they tell all.
    """

    def __init__(
        self,
        cluster_id: str,
        begin: datetime,
        continues: str | None = None,
        session: str | None = None,
        source: str = "poll",
    ) -> None:
        self.cluster_id = cluster_id
        self.session = session or str(uuid4())
        self._source = source
        self.until = 0
        self.begin = self.observed_to = self.flushed_at = begin
        self.has_file = False
        self._continues = continues
        self._ended_by: str | None = None
        self._rows: list[pa.Table] = []
        self._since = 0
        self._from = begin
        self._longest: float | None = None

    @property
    def row_count(self) -> int:
        """The number of rows that are not in a file yet."""
        return sum(map(len, self._rows))

    def begin_with(self, state: pa.Table, version: int, reason: str | None = None) -> int:
        """Adds the whole state at `version`; returns the number of rows.

        `reason` says why observation was interrupted before, None if it was not.
        """
        mark = {"version": version, "source": self._source, "observed_at": self.begin}
        marks = [{**mark, "kind": "observed_from"}]
        if reason is not None:
            marks.append({**mark, "kind": "resync", "detail": reason})
        place = CHANGE_SCHEMA.get_field_index("observed_at")
        field = CHANGE_SCHEMA.field(place)
        begin = pa.repeat(pa.scalar(self.begin, field.type), len(state))
        rows = pa.concat_tables([single(marks), state.set_column(place, field, begin)])
        self.add(rows, version, self.begin)
        return len(rows)

    def add(
        self,
        rows: pa.Table,
        until: int,
        now: datetime,
        before: datetime | None = None,
    ) -> None:
        """Adds rows that lead up to version `until`, and that an observation at `now` saw.

        `before` is the time of the observation before it, None for rows that tell themselves.
        """
        span = self.observed_to, max(self.observed_to, now)
        if len(rows):
            self._rows.append(stamped(rows, self.cluster_id, self.session, span, before))
        self.until = until
        self.observed_to = span[1]

    def note(self, sight: Sight) -> None:
        """Notes how far an observation lies behind the one before."""
        if sight.passed is not None:
            self._longest = max(self._longest or 0.0, sight.passed)

    def end(self, ended_by: str, at: datetime | None = None) -> None:
        """Adds the last row; `at` is a time up to which all is known, None: `observed_to`."""
        self._ended_by = ended_by
        self.observed_to = at or self.observed_to
        row: dict[str, Any] = {"version": self.until, "source": self._source, "kind": "observed_to"}
        self.add(single([row | {"observed_at": self.observed_to}]), self.until, self.observed_to)

    def take_rows(self) -> list[pa.Table]:
        """Returns the rows that are not in a file yet, and drops them: the caller keeps them."""
        rows, self._rows = self._rows, []
        return rows

    def footer(self, **about: Any) -> Footer:
        """Returns the footer of the next file; `about` are more entries of it."""
        return Footer(
            FileName(self.cluster_id, self.session, self._since, self.until),
            self._from,
            self.observed_to,
            continues=self._continues,
            ended_by=self._ended_by,
            longest_gap_us=None if self._longest is None else round(1e6 * self._longest),
            source=None if self._source == "poll" else self._source,
            **about,
        )

    def file(self, directory: Path, **about: Any) -> tuple[Path, pa.Table]:
        """Returns the path and the table of the next file; `about` are more entries of a footer."""
        footer = self.footer(**about)
        rows = pa.concat_tables(self._rows) if self._rows else CHANGE_SCHEMA.empty_table()
        path = directory / day_folder(self.cluster_id, self.begin) / str(footer.file)
        return path, rows.replace_schema_metadata(footer.metadata())

    def written(self) -> None:
        """Drops the rows, which are in a file now.

        The next file replaces one that reached no later version: it begins where that one began.
        So it needs that one's rows and time.
        """
        self.has_file = True
        self.flushed_at = self.observed_to
        if self._since == self.until:
            return
        self._from = self.observed_to
        self._since = self.until
        self._longest = None
        self._rows.clear()


class _End(NamedTuple):
    """Why the present state does not continue the recording: for its footer, and in words."""

    ended_by: str
    reason: str


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Recorder:
    """Appends a cache's changes to Parquet files in a directory.

        with Recorder(cache, "history") as recorder:
            while refresh(cache):
                recorder.observe()

    The caller calls `observe()` after each successful refresh, and only then: the call states that
    an answer has just confirmed the whole cache. A recorder is meant for a cache whose refreshes
    ask one broker, always the same, for all topics. Brokers that lag behind each other would flip
    an ISR back and forth.

    `flush_every` limits, in seconds, the time that a crash loses. `flush_rows` limits the rows in
    memory. Observations more than `max_gap` seconds apart belong to two recordings. Without it the
    limit is 3 times the usual distance, at least 60 s. `rdmeta.history.pace` has the whole rule.
    The first recording that ends for that is a warning in the log `rdmeta.history`. `cluster_id`
    names the cluster if its brokers do not (Metadata v0 and v1); `name` is what people call it, for
    the footers.

    Times are wall-clock time in UTC; within a recording they never run backwards. Between two
    observations, `clock` and `monotonic` (seconds) may differ by a second. Otherwise somebody set
    the clock or the machine slept, and another recording begins. A `clock` without `monotonic`
    counts as one that is never set. `uuids` makes the UUIDs of recordings. One thread at a time may
    use a recorder, while others may write to the cache. Other recorders, also of the same cluster,
    may write to the same directory.

    Raises HistoryError if the cluster has no name, and OSError if a file cannot be written. Then
    the recorder keeps its rows, and the next call tries again.
    """

    def __init__(
        self,
        cache: ObservedCache,
        directory: str | os.PathLike[str],
        *,
        cluster_id: str | None = None,
        name: str | None = None,
        flush_every: float = 300.0,
        flush_rows: int = 100_000,
        max_gap: float | None = None,
        clock: Callable[[], datetime] | None = None,
        monotonic: Callable[[], float] | None = None,
        uuids: Callable[[], UUID] = uuid4,
    ) -> None:
        self._cache = cache
        self._uuids = uuids
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._cluster_id = cluster_id
        self._name = name
        self._flush_every = timedelta(seconds=flush_every)
        self._flush_rows = flush_rows
        wall = clock or _utc_now
        if monotonic is None:
            monotonic = time.monotonic if clock is None else lambda: wall().timestamp()
        self._pace = Pace(wall, monotonic, max_gap)
        self._min_isrs = MinIsrs()
        self._min_isr: str | None = None
        self._recording: OpenRecording | None = None
        # The cache as the last observation saw it that was taken.
        self._image: ObservedImage | None = None
        # The last observation, if only the next one tells whether there was a gap before it.
        self._waiting: tuple[ObservedImage, Sight] | None = None
        # The recordings that ended, and whose last rows are not in a file yet.
        self._ended: list[OpenRecording] = []
        self._has_warned = False
        self._files: list[Path] = []

    @property
    def session(self) -> str | None:
        """The UUID of the current recording, None if there is none."""
        return self._recording.session if self._recording else None

    @property
    def version(self) -> int:
        """The version of the cache that the last observation saw; 0 before the first."""
        image = self._waiting[0] if self._waiting else self._image
        return image.version if image else 0

    @property
    def files(self) -> tuple[Path, ...]:
        """The files written so far, oldest first."""
        return tuple(self._files)

    def observe(self) -> int:
        """Takes the changes since the last call; returns the number of rows that they make.

        An empty cache makes no rows. While the pace is not known, an observation may wait for the
        next one, which then counts the rows of both.
        """
        sight, image = self._pace.look(), self._cache.image()
        taken = self._take_waiting(sight)
        if sight.is_open and not sight.is_step and self._recording is not None:
            self._waiting = image, sight
            return taken
        taken += self._take(image, sight) + self._tell_configs(image)
        self._write_due()
        return taken

    def configs(self, min_isr: Mapping[str, int | None], answer: str = "known") -> None:
        """Takes topics' min.insync.replicas, as the brokers reported them between two observations.

            recorder.configs({"orders": 2, "clicks": None})

        None: the value is not known, or not any more. The next observation writes the values that
        are new, as `config_changed` rows, and each baseline has all of them. `answer` says how the
        brokers answered, for the footers: known, denied or unsupported.
        """
        self._min_isrs.tell(min_isr, self._pace.now())
        self._min_isr = answer

    def flush(self) -> None:
        """Writes the rows in memory to a file now."""
        self._write_ended()
        if self._recording is not None:
            self._write(self._recording)

    def close(self) -> None:
        """Ends the recording at the last observation; a second call does nothing."""
        self._take_waiting(None)
        self._end("closed")
        self._write_ended()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _take_waiting(self, after: Sight | None) -> int:
        """Takes the observation that waits for the one after it; returns the number of rows.

        None: no other observation follows.
        """
        if self._waiting is None:
            return 0
        (image, sight), self._waiting = self._waiting, None
        return self._take(image, sight.judged(after) if after is not None else sight)

    def _take(self, image: ObservedImage, sight: Sight) -> int:
        """Takes the changes up to `image`; returns the number of rows that they make."""
        taken = self._continue(image, sight)
        if isinstance(taken, _End):
            self._end(taken.ended_by)
            taken = self._begin(image, sight, taken.reason)
        self._image = image
        return taken

    def _tell_configs(self, image: ObservedImage) -> int:
        """Adds the min ISRs that are new; returns the number of rows that they make."""
        recording = self._recording
        if recording is None:
            return 0
        rows = self._min_isrs.rows(image, image.version, recording.observed_to)
        recording.add(rows, image.version, recording.observed_to)
        return len(rows)

    def _continue(self, image: ObservedImage, sight: Sight) -> int | _End:
        """Adds the changes up to `image` to the recording; returns the number of rows.

        If they do not continue the recording, it returns why.
        """
        recording = self._recording
        if recording is None:
            return self._begin(image, sight)
        if (end := self._interruption(sight)) is not None:
            return end
        changes = self._cache.changes(recording.until, whole=True)
        if changes.resync:
            since = recording.until
            return _End("lost", f"the cache no longer holds the changes after version {since}")
        rows = rows_until(changes, image.version)
        if has_kind(rows, "cluster_changed"):
            return _End("cluster", "another cluster answered")
        return self._add(recording, rows, image, sight)

    def _interruption(self, sight: Sight) -> _End | None:
        """Returns why the time until an observation was not observed, None if it was."""
        if sight.is_step:
            where = "forward" if sight.stepped > 0 else "back"
            return _End("clock", f"the wall clock was set {where} by {abs(sight.stepped):.1f} s")
        if not sight.is_gap:
            return None
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "cluster %s: no observation for %.1f s, more than %.1f s, so that another recording"
                " begins: what happens in such a time is not recorded",
                self._recording and escaped(self._recording.cluster_id),
                sight.passed,
                sight.max_gap,
            )
        return _End("gap", f"no observation for {sight.passed:.1f} s")

    def _add(
        self, recording: OpenRecording, rows: pa.Table, image: ObservedImage, sight: Sight
    ) -> int:
        """Adds an observation; each midnight before it begins another recording."""
        before, taken = recording.observed_to, len(rows)
        now = max(sight.now, before)
        recording.note(sight)
        while (midnight := midnight_after(recording.observed_to)) <= now:
            taken += self._roll(recording, midnight)
            assert self._recording is not None
            recording = self._recording
            recording.note(sight)
        self._min_isrs.forget(topics_gone(rows))
        recording.add(rows, image.version, now, before)
        return taken

    def _roll(self, old: OpenRecording, midnight: datetime) -> int:
        """Ends a recording at midnight, and begins the next one with the state before."""
        assert self._image is not None
        old.end("midnight", midnight)
        self._ended.append(old)
        self._recording = OpenRecording(old.cluster_id, midnight, old.session, str(self._uuids()))
        version = self._image.version
        state = with_min_isr(rows_of(self._image.changes()), version, self._min_isrs.known)
        return self._recording.begin_with(state, version)

    def _begin(self, image: ObservedImage, sight: Sight, reason: str | None = None) -> int:
        """Begins a recording with the whole state; returns the number of its rows.

        `reason` says why the previous recording ended, None if there is none.
        """
        state = rows_of(image.changes())
        # As in the rows, bytes that are not UTF-8 are U+FFFD.
        said = (image.cluster_id or "").encode("utf-8", "surrogateescape")
        cluster_id = said.decode("utf-8", "replace") or self._cluster_id
        if not len(state):
            return 0
        if cluster_id is None:
            self._write_ended()
            raise HistoryError(
                "the brokers did not name their cluster (Metadata v0 and v1 cannot):"
                " name it with cluster_id="
            )
        self._min_isrs.confirm(topics_of(state))
        self._recording = OpenRecording(cluster_id, sight.now, session=str(self._uuids()))
        state = with_min_isr(state, image.version, self._min_isrs.known)
        return self._recording.begin_with(state, image.version, reason)

    def _end(self, ended_by: str) -> None:
        if self._recording is not None:
            self._recording.end(ended_by)
            self._ended.append(self._recording)
            self._recording = None

    def _write_due(self) -> None:
        """Writes what ended, a baseline, and rows that are many or have waited long enough."""
        self._write_ended()
        recording = self._recording
        if recording is not None and (
            not recording.has_file
            or recording.observed_to - recording.flushed_at >= self._flush_every
            or recording.row_count >= self._flush_rows
        ):
            self._write(recording)

    def _write_ended(self) -> None:
        while self._ended:
            self._write(self._ended[0])
            del self._ended[0]

    def _write(self, recording: OpenRecording) -> None:
        path, table = recording.file(
            self._directory,
            name=self._name,
            max_gap_us=round(1e6 * self._pace.max_gap),
            min_isr=self._min_isr,
        )
        write_whole(path, table)
        recording.written()
        if path not in self._files[-1:]:
            self._files.append(path)


def midnight_after(when: datetime) -> datetime:
    """Returns the first midnight in UTC after a time."""
    day = when.astimezone(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    return day + timedelta(days=1)
