"""When a recording takes over from a metadata log that ended before it did.

The last answer before the log's end may be older than that, and must undo nothing. So the log's
last state holds until the recording tells of a change. It holds no longer than the longest time
between two answers of that day, as there was an answer by then. No log is carried over a midnight:
from there nothing is known until the recording takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

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
    ends = {each.counts_to_us: each.seen_to_us for each in stretches if each.is_of_log}
    begins = {each.counts_from_us: each for each in stretches if _is_behind(each)}
    if any(not (begin or 1) % DAY_US for begin in begins):
        for each in handed_over(before, (), read) if any(e.is_of_log for e in before) else ():
            if each.is_of_log:
                ends.setdefault(each.counts_to_us, each.seen_to_us)
    times: dict[int | None, int] = {}
    for begin, each in sorted(begins.items(), key=lambda found: found[0] or 0):
        if begin in ends:
            times[begin] = at = _taken_over_at(each, ends[begin], read)
            ends.setdefault(at, ends[begin])  # where it ends without news, and another goes on
    parts = {(part.origin, part.counts_from_us): part for part in _moved(stretches, times)}
    counting = {origin for origin, begin in parts if begin is not None}
    return [
        part
        for (origin, begin), part in parts.items()
        if begin is not None or origin not in counting
    ]


def _is_behind(each: Stretch) -> bool:
    """Returns whether a recording counts from a time at which it knew an earlier answer."""
    begun = each.counts_from_us != each.seen_from_us or each.continues
    return not each.is_of_log and each.counts_from_us is not None and begun


def _moved(stretches: Sequence[Stretch], times: Mapping[int | None, int]) -> Iterator[Stretch]:
    """Yields stretches with the times at which recordings take over."""
    for each in stretches:
        begin, end = each.counts_from_us, each.counts_to_us
        if each.is_of_log:
            while end in times and times[end] != end:
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
