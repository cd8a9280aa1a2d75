"""When a recording takes over from a metadata log that ended before it did.

The recorder's last answer may be from before the log's end, and must not undo what the log has said
since. So the log's last state stays valid until the recording shows a change, for one polling
interval at most: the longest of that day, as there was an answer by then. It is not carried over a
midnight, nor into a hole: after that, nothing is known until the recording takes over. A change
that the log has, and that the recording saw only after the log's end, is reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.pipeline.days import DAY_US, Stretch

# Yields the rows that a recording has of a day, from a time on.
Read: TypeAlias = Callable[[Stretch, int], Iterator[pa.RecordBatch]]


def handed_over(
    stretches: Sequence[Stretch], before: Sequence[Stretch], read: Read
) -> list[Stretch]:
    """Returns the stretches of a day, of which a log may count for longer than it was seen.

    `before` are those of the day before.
    """
    times, _ = _take_overs(stretches, before, read)
    parts = {(part.origin, part.counts_from_us): part for part in _moved(stretches, times)}
    counting = {origin for origin, begin in parts if begin is not None}
    return [
        part
        for (origin, begin), part in parts.items()
        if begin is not None or origin not in counting
    ]


def _take_overs(
    stretches: Sequence[Stretch], before: Sequence[Stretch], read: Read
) -> tuple[dict[int | None, int], dict[int | None, int]]:
    """Returns when recordings take over, by when they counted from, and where logs have ended.

    The latter has each time up to which a log's end matters, with the time of that end.
    """
    ends = {each.counts_to_us: each.seen_to_us for each in stretches if each.is_of_log}
    begins = {each.counts_from_us: each for each in stretches if _is_behind(each)}
    if any(not (begin or 1) % DAY_US for begin in begins) and any(e.is_of_log for e in before):
        ends = {**_take_overs(before, (), read)[1], **ends}
    times: dict[int | None, int] = {}
    for begin, each in sorted(begins.items(), key=lambda found: found[0] or 0):
        if begin in ends:
            times[begin] = at = _taken_over_at(each, ends[begin], read)
            ends.setdefault(at, ends[begin])  # where it ends without news, and another goes on
    return times, ends


def _is_behind(each: Stretch) -> bool:
    """Returns whether a recording counts from a time at which it knew an earlier answer."""
    begun = each.counts_from_us != each.seen_from_us or each.continues
    return not each.is_of_log and each.counts_from_us is not None and begun


def _moved(stretches: Sequence[Stretch], times: Mapping[int | None, int]) -> Iterator[Stretch]:
    """Yields stretches with the times at which recordings take over."""
    for each in stretches:
        begin, end = each.counts_from_us, each.counts_to_us
        if each.is_of_log:
            while end in times and times[end] != end and each.ended_by != "gap":
                end = times[end]
            yield replace(each, counts_to_us=end)
        elif begin in times and times[begin] == end:
            yield replace(each, counts_from_us=None, counts_to_us=None)
        else:
            yield replace(each, counts_from_us=times.get(begin, begin))


def _taken_over_at(recording: Stretch, log_end: int, read: Read) -> int:
    begin, end = recording.counts_from_us or 0, recording.counts_to_us or 0
    if recording.longest_gap_us is not None:
        end = min(end, max(begin, log_end + recording.longest_gap_us))
    version = None
    for rows in read(recording, begin):
        if not rows.num_rows:
            continue
        times = pc.cast(rows["observed_at"], pa.int64())
        if recording.continues and not recording.earlier:  # its baseline is no answer
            version = rows["version"][0] if version is None else version
            is_later = pc.greater(times, recording.seen_from_us)
            times = times.filter(pc.or_(is_later, pc.greater(rows["version"], version)))
        if len(times):
            return min(end, int(times[0].as_py()))
    return end


_THING = ("kind", "topic", "topic_id", "partition", "broker")


class LateSights:
    """The changes that logs of a day reported as they ended, to find their late sights by."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._gap = max((e.longest_gap_us or 0 for e in stretches if not e.is_of_log), default=0)
        self._reported: dict[int, tuple[int, dict[tuple[Any, ...], Any]]] = {}

    def without(self, stretch: Stretch, rows: pa.Table) -> pa.Table:
        """Returns rows of `change` without those that a log, taken before, reported already."""
        if stretch.is_of_log:
            since = stretch.seen_to_us - self._gap
            reported = self._reported.setdefault(
                stretch.counts_to_us or 0, (stretch.seen_to_us, {})
            )[1]
            late = rows.filter(pc.greater(pc.cast(rows["observed_at"], pa.int64()), since))
            reported.update((_thing(row), _value(row)) for row in late.to_pylist())
            return rows
        ends = [end for end in self._reported if end <= (stretch.counts_from_us or 0)]
        end, reported = self._reported[max(ends)] if ends else (0, {})
        if not reported:
            return rows
        times = pc.cast(rows["observed_at"], pa.int64())
        looked = pc.subtract(times, pc.fill_null(rows["unseen_us"], stretch.longest_gap_us or 0))
        is_late = pc.less(looked, end)
        late = iter(rows.filter(is_late).to_pylist())
        kept = [not each or _is_news(next(late), reported) for each in is_late.to_pylist()]
        return rows.filter(pa.array(kept, pa.bool_()))


def _is_news(row: Mapping[str, Any], reported: Mapping[tuple[Any, ...], Any]) -> bool:
    return reported.get(_thing(row)) != _value(row)


def _thing(row: Mapping[str, Any]) -> tuple[Any, ...]:
    key = (row["detail"] or "").partition("=")[0] if row["kind"] == "config_changed" else None
    return (*(row[name] for name in _THING), key)


def _value(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns what a row says; addresses are left out, as recorders know other ones."""
    about = row["detail"] if row["kind"] == "config_changed" else None
    return about, sorted(row["new_isr"] or ()), row["new_replicas"]
