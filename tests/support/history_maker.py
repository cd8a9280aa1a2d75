"""Makes large histories from a seed, column by column, through the recorder's own writer.

A cluster's changes are drawn first. Then each recorder sees them at its own polls, by its own
clock, and writes what `rdmeta.history.Recorder` would write: baselines, midnights, gaps, files.
A partition's state follows from how often each kind of change has hit it. So old and new values
are right without a cache.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from rdmeta.history.columns import single
from rdmeta.history.pace import Sight
from rdmeta.history.recorder import OpenRecording
from rdmeta.history.schema import CHANGE_SCHEMA, day_folder
from rdmeta.history.writing import write_whole

__all__ = ["Plan", "make_history"]

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DAY_US = 86_400_000_000
KINDS = ("leader_changed", "isr_changed", "replicas_changed", "offline_changed")
SHARES = (0.5, 0.4, 0.05, 0.05)
# The lists that a partition with the brokers a, b, c, and sometimes d, goes through in turn.
ISRS = ((0, 1, 2), (0, 1), (0, 1, 2), (0, 2))
REPLICAS = ((0, 1, 2), (0, 1, 2, 3))
OFFLINE = ((), (2,))


class Plan(NamedTuple):
    """What to make. `changes`, `toggles` and `gaps` are per cluster and day; times in seconds.

    A toggle removes a topic, or adds it again with another id. Changes that would hit a topic while
    it is gone are left out. The second recorder begins half a
    poll later, and its clock is `skew` ahead; each further one likewise. `deleted` are days whose
    folders are removed afterwards, counted from 0.
    """

    clusters: int = 1
    topics: int = 20
    partitions: int = 10
    brokers: int = 6
    days: int = 2
    changes: int = 10_000
    toggles: int = 4
    gaps: int = 0
    gap: float = 900.0
    recorders: int = 1
    skew: float = 0.2
    every: float = 10.0
    file_every: float = 3600.0
    deleted: tuple[int, ...] = ()


def make_history(directory: Path, seed: int, plan: Plan | None = None) -> int:
    """Writes a history; returns its number of rows. The same seed makes the same bytes."""
    plan = plan or Plan()
    random = np.random.default_rng(seed)
    rows = 0
    for number in range(plan.clusters):
        cluster_id = f"cluster-{number}"
        cluster = _Cluster(plan, random)
        watchers = [_Watcher(cluster_id, which, plan, random) for which in range(plan.recorders)]
        for day in range(plan.days):
            drawn = cluster.day(day)
            rows += sum(watcher.watch(directory, day, drawn) for watcher in watchers)
        for day in plan.deleted:
            begin = START + timedelta(days=day)
            shutil.rmtree(directory / day_folder(cluster_id, begin), ignore_errors=True)
    return rows


class _State(NamedTuple):
    """How often each kind hit each partition, and how often each topic was toggled."""

    counts: Any  # by kind and partition
    toggles: Any  # by topic


class _Day(NamedTuple):
    """A day's changes: their times in microseconds, the row after each, and the rows."""

    cluster: _Cluster
    times: Any
    table: pa.Table
    states: list[tuple[int, _State, Any, Any]]

    def state(self, count: int) -> pa.Table:
        """Returns the whole state after the first `count` rows."""
        begin, state, kinds, places = next(s for s in reversed(self.states) if s[0] <= count)
        counts = state.counts.copy()
        np.add.at(counts, (kinds[: count - begin], places[: count - begin]), 1)
        return self.cluster.whole(_State(counts, state.toggles))


class _Cluster:
    """A cluster whose changes are drawn day by day."""

    def __init__(self, plan: Plan, random: np.random.Generator) -> None:
        self.plan, self.random = plan, random
        self.number = plan.topics * plan.partitions
        first = random.integers(0, plan.brokers, self.number)
        self.brokers = (first[:, None] + np.arange(4)) % plan.brokers + 1
        self.state = _State(np.zeros((4, self.number), np.int64), np.zeros(plan.topics, np.int64))
        self.names = [f"topic-{topic}" for topic in range(plan.topics)]
        self.lists = [None, *(self._lists(each) for each in (ISRS, REPLICAS, OFFLINE))]

    def day(self, day: int) -> _Day:
        """Draws the changes of a day."""
        plan, random = self.plan, self.random
        begin = (START + timedelta(days=day) - EPOCH) // timedelta(microseconds=1)
        drawn = np.sort(random.integers(begin + 1, begin + DAY_US, plan.changes))
        cuts = np.sort(random.integers(0, plan.changes + 1, plan.toggles))
        tables, times, states, count, last = [], [], [], 0, 0
        for cut in [*cuts, plan.changes]:
            table, kinds, places = self._changes(drawn[last:cut])
            states.append((count, self.state, kinds, places))
            self.state = _State(self.state.counts.copy(), self.state.toggles)
            np.add.at(self.state.counts, (kinds, places), 1)
            tables.append(table)
            times.append(table["observed_at"].cast(pa.int64()).to_numpy())
            count += len(table)
            if cut < plan.changes:
                toggled = self._toggle(int(random.integers(plan.topics)))
                at = np.full(len(toggled), drawn[cut])
                states.append((count + len(toggled), self.state, kinds[:0], places[:0]))
                tables.append(toggled)
                times.append(at)
                count += len(toggled)
            last = cut
        return _Day(self, np.concatenate(times), pa.concat_tables(tables), states)

    def whole(self, state: _State) -> pa.Table:
        """Returns the rows of a whole state: brokers, then each topic and its partitions."""
        brokers = [
            {
                "kind": "broker_added",
                "source": "poll",
                "broker": n,
                "detail": f"b{n}:9092 rack=r{n % 3}",
            }
            for n in range(1, self.plan.brokers + 1)
        ]
        live = np.flatnonzero(state.toggles % 2 == 0)
        return pa.concat_tables([single(brokers), self._topics(state, live)])

    def _toggle(self, topic: int) -> pa.Table:
        toggles = self.state.toggles.copy()
        toggles[topic] += 1
        if toggles[topic] % 2:
            row = {"kind": "topic_removed", "source": "poll", "topic": self.names[topic]}
            rows = single([row | {"topic_id": _id(topic, toggles[topic] - 1)}])
        else:
            rows = self._topics(_State(self.state.counts, toggles), np.array([topic]))
        self.state = _State(self.state.counts, toggles)
        return rows

    def _topics(self, state: _State, topics: Any) -> pa.Table:
        """Returns a row per topic, and one per partition behind it."""
        size = self.plan.partitions
        topic = np.repeat(topics, size + 1)
        partition = np.tile(np.arange(-1, size), len(topics))
        head = partition < 0
        place = np.where(head, 0, topic * size + partition)
        leader, epoch = self._leader(place, state.counts[0][place])
        columns: dict[str, Any] = {
            **self._keys(state.toggles, topic),
            "kind": pa.repeat("topic_added", len(topic)),
            "partition": pa.array(partition, pa.int32(), mask=head),
            "new_leader": pa.array(leader, pa.int32(), mask=head | (leader < 0)),
            "new_leader_epoch": pa.array(epoch, pa.int32(), mask=head),
        }
        for number, name in enumerate(("isr", "replicas", "offline"), 1):
            columns[f"new_{name}"] = self._list(number, place, state.counts[number][place], head)
        return _table(columns, len(topic))

    def _changes(self, times: Any) -> tuple[pa.Table, Any, Any]:
        """Returns rows that change live partitions, with their kinds and places."""
        plan = self.plan
        places = self.random.integers(0, self.number, len(times))
        kinds = self.random.choice(4, len(times), p=SHARES)
        live = self.state.toggles[places // plan.partitions] % 2 == 0
        places, kinds, times = places[live], kinds[live], times[live]
        before = self.state.counts[kinds, places] + _ranks(kinds * self.number + places)
        topics = places // plan.partitions
        columns: dict[str, Any] = {
            **self._keys(self.state.toggles, topics),
            "kind": pa.array(np.array(KINDS, object)[kinds], pa.string()),
            "observed_at": pa.array(times).cast(CHANGE_SCHEMA.field("observed_at").type),
            "partition": pa.array(places % plan.partitions, pa.int32()),
        }
        for word, count in (("old", before), ("new", before + 1)):
            leader, epoch = self._leader(places, count)
            other = kinds != 0
            columns[f"{word}_leader"] = pa.array(leader, pa.int32(), mask=other | (leader < 0))
            columns[f"{word}_leader_epoch"] = pa.array(epoch, pa.int32(), mask=other)
            for number, name in enumerate(("isr", "replicas", "offline"), 1):
                columns[f"{word}_{name}"] = self._list(number, places, count, kinds != number)
        return _table(columns, len(times)), kinds, places

    def _keys(self, toggles: Any, topics: Any) -> dict[str, Any]:
        ids = pa.array([_id(topic, count) for topic, count in enumerate(toggles)])
        places = pa.array(topics)
        return {
            "topic": pa.array(self.names).take(places),
            "topic_id": ids.take(places),
            "source": pa.repeat("poll", len(topics)),
            "source_broker": pa.repeat(pa.scalar(1, pa.int32()), len(topics)),
        }

    def _leader(self, places: Any, count: Any) -> tuple[Any, Any]:
        """Returns leaders and epochs; -1: there is no leader."""
        leader = self.brokers[places, count % 3]
        return np.where(count % 11 == 5, -1, leader), count

    def _lists(self, variants: tuple[tuple[int, ...], ...]) -> pa.Array:
        rows = [[b[i] for i in each] for b in self.brokers.tolist() for each in variants]
        return pa.array(rows, pa.list_(pa.int32()))

    def _list(self, number: int, places: Any, count: Any, mask: Any) -> pa.Array:
        size = len((ISRS, REPLICAS, OFFLINE)[number - 1])
        lists: Any = self.lists[number]
        return lists.take(pa.array(places * size + count % size, mask=mask))


class _Watcher:
    """A recorder of one cluster, with its own polls and its own clock."""

    def __init__(
        self, cluster_id: str, which: int, plan: Plan, random: np.random.Generator
    ) -> None:
        self.cluster_id, self.plan, self.random = cluster_id, plan, random
        self.every = round(1e6 * plan.every)
        self.phase = which * self.every // 2
        self.skew = round(1e6 * plan.skew) * which
        self.recording: OpenRecording | None = None
        # Rows of the day before that no poll of it saw.
        self.late: tuple[Any, pa.Table] | None = None
        self.version = 1
        self.last = 0

    def watch(self, directory: Path, day: int, drawn: _Day) -> int:
        """Writes one day; returns the number of its rows."""
        begin = (START + timedelta(days=day) - EPOCH) // timedelta(microseconds=1)
        times, table = drawn.times, drawn.table
        shift = 0
        if self.late is not None:
            shift = len(self.late[1])
            times = np.concatenate([self.late[0], times])
            table = pa.concat_tables([self.late[1], table])
        rows = 0
        if self.recording is None:
            self.last = begin + self.phase
            seen = int(np.searchsorted(times, self.last, "right"))
            rows += self._begin(drawn.state(seen), self.last + self.skew)
        else:
            seen = 0
        assert self.recording is not None
        stops = self._stops(begin)
        for stop, resumes in stops:
            upto = int(np.searchsorted(times, stop, "right"))
            rows += self._see(times[seen:upto], table.slice(seen, upto - seen), stop)
            seen = upto
            if resumes is not None:
                self._end("gap")
                self._write(directory)
                seen = int(np.searchsorted(times, resumes, "right"))
                self.last = resumes
                state = drawn.state(max(seen - shift, 0))
                reason = f"no observation for {self.plan.gap} s"
                rows += 1 + self._begin(state, resumes + self.skew, reason)
            self._write(directory)
        self.late = times[seen:], table.slice(seen)
        midnight = begin + DAY_US
        if day + 1 == self.plan.days:
            self._end("closed")
            self._write(directory)
            return rows + 1
        old = self.recording
        old.end("midnight", _when(midnight))
        self._write(directory)
        state = drawn.state(max(seen - shift, 0))
        return rows + 1 + self._begin(state, midnight, continues=old.session)

    def _stops(self, begin: int) -> Iterator[tuple[int, int | None]]:
        """Yields the polls after which a file is written, with the first poll behind a gap."""
        plan, random = self.plan, self.random
        polls = (DAY_US - 1 - self.phase - self.skew) // self.every
        per_file = max(1, round(plan.file_every / plan.every))
        behind = max(2, round(plan.gap / plan.every))
        gaps = sorted(int(each) for each in random.integers(1, polls, plan.gaps))
        stops = dict.fromkeys(range(per_file, polls, per_file)) | {polls: None}
        at = 0
        for each in gaps:
            if each > at and each + behind < polls:
                stops = {s: r for s, r in stops.items() if not each <= s <= each + behind}
                stops[each] = each + behind
                at = each + behind
        for stop, resumes in sorted(stops.items()):
            to = None if resumes is None else begin + self.phase + resumes * self.every
            yield begin + self.phase + stop * self.every, to

    def _see(self, times: Any, table: pa.Table, stop: int) -> int:
        """Adds the rows that the polls up to `stop` see."""
        assert self.recording is not None
        passed = -(-np.maximum(times - self.last, 1) // self.every)
        polls = self.last + passed * self.every
        unseen = np.full(len(times), self.every)
        versions = self.version + 1 + np.arange(len(times))
        kind = CHANGE_SCHEMA.field("observed_at").type
        table = _replaced(
            table,
            version=pa.array(versions),
            observed_at=pa.array(polls + self.skew).cast(kind),
            unseen_us=pa.array(unseen),
        )
        self.version += len(times)
        now = _when(stop + self.skew)
        self.recording.note(Sight(now, self.plan.every, 0.0, 6 * self.plan.every))
        self.recording.add(table, self.version, now)
        self.last = stop
        return len(table)

    def _begin(
        self, state: pa.Table, at: int, reason: str | None = None, continues: str | None = None
    ) -> int:
        self.recording = OpenRecording(self.cluster_id, _when(at), continues)
        self.recording.session = str(UUID(bytes=self.random.bytes(16), version=4))
        versions = pa.repeat(self.version, len(state))
        return self.recording.begin_with(_replaced(state, version=versions), self.version, reason)

    def _end(self, ended_by: str) -> None:
        assert self.recording is not None
        self.recording.end(ended_by)

    def _write(self, directory: Path) -> None:
        assert self.recording is not None
        gap = round(6e6 * self.plan.every)
        path, table = self.recording.file(directory, max_gap_us=gap, min_isr="unsupported")
        write_whole(path, table)
        self.recording.written()


def _ranks(keys: Any) -> Any:
    """Returns for each key how often it came before."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else keys
    sizes = np.diff(np.r_[starts, len(keys)])
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - np.repeat(starts, sizes)
    return ranks


def _id(topic: int, toggles: int) -> str:
    return f"{topic:011d}{toggles:011d}"


def _when(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(us))


def _table(columns: dict[str, Any], size: int) -> pa.Table:
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(size, field.type)
        for field in CHANGE_SCHEMA
    ]
    return pa.table(arrays, schema=CHANGE_SCHEMA)


def _replaced(table: pa.Table, **columns: Any) -> pa.Table:
    return pa.table(
        [columns.get(name, table[name]) for name in CHANGE_SCHEMA.names], schema=CHANGE_SCHEMA
    )
