"""The min ISRs that recorders beside a metadata log have seen, as rows for the fold of that log.

Static settings of brokers are in no log, so it may not know the min ISR of a topic. A recorder asks
the brokers. Its rows come into the log's fold at their time, with the log's version then; the fold
passes over those of topics whose min ISR the log knows. If several recorders were there, the one
that began first counts. Where a recording ends, its values are no longer known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta._change_table import END_KINDS
from rdmeta.health import MIN_ISR
from rdmeta.history.schema import CHANGE_SCHEMA
from rdmeta.pipeline.days import Stretch, free_parts

_NAMES = ("version", "observed_at", "source", "kind", "topic", "topic_id", "detail", "unseen_us")
_SCHEMA = pa.schema([CHANGE_SCHEMA.field(name) for name in _NAMES])
_UNKNOWN = MIN_ISR  # a key alone
ConfigRow: TypeAlias = dict[str, Any]


def min_isrs_beside(
    log: Stretch, stretches: Iterable[Stretch], read: Callable[[Stretch], Iterator[pa.RecordBatch]]
) -> MinIsrRows | None:
    """Returns the rows for a stretch of a log, None if there are none.

    `stretches` are all of the day, and `read` yields the rows of one, from its origin's begin on.
    """
    known: dict[str, ConfigRow] = {}
    made: list[ConfigRow] = []

    def tell(row: ConfigRow, at: int) -> None:
        made.append({**row, "observed_at": at})
        known[row["topic"]] = row

    def forget(topics: Iterable[str], at: int) -> None:
        for topic in [*topics]:
            made.append({**known.pop(topic), "observed_at": at, "detail": _UNKNOWN})

    reached = 0
    for begin, end, recording in _spans(log, stretches):
        if begin > reached:
            forget(known, reached)
        reported, later = _known_at(_rows(read(recording)), begin, end)
        forget(known.keys() - reported.keys(), begin)
        for topic, row in reported.items():
            if topic not in known or known[topic]["detail"] != row["detail"]:
                tell(row, begin)
        for row in later:
            if row["kind"] != "config_changed":
                known.pop(row["topic"], None)  # the log tells that the topic ended
            else:
                tell(row, row["observed_at"])
        reached = end
    if reached < (log.counts_to_us or 0):
        forget(known, reached)
    return MinIsrRows(made) if made else None


def _spans(log: Stretch, stretches: Iterable[Stretch]) -> list[tuple[int, int, Stretch]]:
    """Returns the times of a log's stretch in which a recording tells, each with the recording."""
    found: list[tuple[int, int, Stretch]] = []
    low, high = log.counts_from_us or 0, log.counts_to_us or 0
    origins = {each.origin: each for each in stretches if not each.is_of_log}
    for each in sorted(origins.values(), key=lambda e: (_begin_of(e), e.origin)):
        begin, end = max(low, each.seen_from_us), min(high, each.seen_to_us)
        covered = sorted(span[:2] for span in found)
        found += [(*part, each) for part in free_parts(covered, begin, end) if part[0] < part[1]]
    return sorted(found, key=lambda span: span[:2])


def _begin_of(stretch: Stretch) -> int:
    """Returns when an origin began, which may be days before the stretch."""
    return min(file.from_us for file in (*stretch.earlier, *stretch.files))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[ConfigRow]:
    """Yields the rows with a min ISR of a topic, and those that end topics."""
    for batch in batches:
        is_config = pc.and_(
            pc.equal(batch["kind"], "config_changed"),
            pc.starts_with(pc.cast(batch["detail"], pa.string()), MIN_ISR),
        )
        is_end = pc.is_in(pc.cast(batch["kind"], pa.string()), pa.array(END_KINDS))
        is_end = pc.and_(is_end, pc.is_null(batch["partition"]))
        is_wanted = pc.and_(pc.or_kleene(is_config, is_end), pc.is_valid(batch["topic"]))
        rows = pa.Table.from_batches([batch.filter(is_wanted)])
        if not rows.num_rows:
            continue
        names = [name for name in _NAMES if name in rows.schema.names]
        times = pc.cast(rows["observed_at"], pa.int64())
        place = names.index("observed_at")
        rows = rows.select(names).set_column(place, "observed_at", times)
        for row in rows.to_pylist():
            if row["kind"] != "config_changed" or row["detail"].partition("=")[0] == MIN_ISR:
                yield row


def _known_at(
    rows: Iterable[ConfigRow], begin: int, end: int
) -> tuple[dict[str, ConfigRow], list[ConfigRow]]:
    """Returns what was known of each topic at `begin`, and the rows from there to before `end`."""
    reported: dict[str, ConfigRow] = {}
    later: list[ConfigRow] = []
    for row in rows:
        if row["observed_at"] > begin:
            later += [row] if row["observed_at"] < end else []
        elif row["kind"] == "config_changed" and row["detail"] != _UNKNOWN:
            reported[row["topic"]] = row
        else:
            reported.pop(row["topic"], None)
    return reported, later


class MinIsrRows:
    """Rows that come between those of a log."""

    def __init__(self, rows: Sequence[ConfigRow]) -> None:
        """Takes rows in the order of their times."""
        self._times = [2 * row["observed_at"] for row in rows]  # in halves of a microsecond
        self._rows = pa.RecordBatch.from_pylist([*rows], schema=_SCHEMA)
        self._place = 0
        self._version = 0
        self._baseline: tuple[int, int] | None = None  # its time and version

    def between(self, log: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yields the next rows of the log in parts, and what comes between; True: a log's part."""
        at = 0
        if log.num_rows and self._place < len(self._times):
            times = self._times_of(log)
            while self._place < len(self._times) and self._times[self._place] < times[-1]:
                behind = max(bisect_right(times, self._times[self._place]), at)
                yield log.slice(at, behind - at), True
                self._version = log["version"][behind - 1].as_py() if behind else self._version
                yield self._before(times[behind]), False
                at = behind
        if log.num_rows:
            self._version = log["version"][-1].as_py()
        yield log.slice(at), True

    def _times_of(self, log: pa.RecordBatch) -> list[int]:
        """Returns the times of rows; a change in the moment of the baseline is half a step later.

        The values that a recording had at that moment belong to the baseline.
        """
        times = pc.cast(log["observed_at"], pa.int64())
        if self._baseline is None:
            self._baseline = times[0].as_py(), log["version"][0].as_py()
        begin, first = self._baseline
        is_later = pc.and_(pc.equal(times, begin), pc.not_equal(log["version"], first))
        halves: list[int] = pc.add(pc.multiply(times, 2), pc.cast(is_later, pa.int64())).to_pylist()
        return halves

    def _before(self, time: int) -> pa.RecordBatch:
        """Returns the rows before a time, with the log's version."""
        first = self._place
        while self._place < len(self._times) and self._times[self._place] < time:
            self._place += 1
        rows = self._rows.slice(first, self._place - first)
        versions = pa.array([self._version] * rows.num_rows, pa.int64())
        return rows.set_column(0, _SCHEMA.field(0), versions)
