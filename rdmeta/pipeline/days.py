"""Which origin tells of a cluster at a moment, and what each day is made from.

An origin is a recording. At each moment one counts: that of a metadata log, which tells all, else
the one that began first. So times of a cluster never overlap. That follows from footers alone. A
day takes from each origin the part of it that lies in the day. An origin that spans a midnight is
carried over it by its state.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, TypeAlias

from rdmeta._moments import microseconds, moment
from rdmeta.pipeline.inputs import Input, InputRecording

DAY_US = 86_400_000_000

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class File:
    """A file as a task reads it: a folder, the name in it, and what it must hold.

    Its versions are those after `since` up to `until`.
    """

    store: str
    name: str
    sha256: str
    rows: int
    since: int
    until: int
    from_us: int
    to_us: int
    longest_gap_us: int | None
    is_partial: bool


@dataclass(frozen=True)
class Stretch:
    """The part of one origin that lies in one day.

    `files` are those of that day, `earlier` those of the origin's days before. The origin counts
    from `counts_from_us` to `counts_to_us`; both are None if other origins tell of all its time. If
    it counts several times, around holes of a log, there is a stretch for each.
    `goes_on` says that the origin goes on after midnight.
    """

    origin: str
    files: tuple[File, ...]
    earlier: tuple[File, ...]
    seen_from_us: int
    seen_to_us: int
    counts_from_us: int | None
    counts_to_us: int | None
    ended_by: str
    goes_on: bool
    continues: bool
    longest_gap_us: int | None
    is_partial: bool
    is_of_log: bool = False


@dataclass(frozen=True)
class Day:
    """One day of a cluster, such as 2026-11-22, and the digest of all that it is made from.

    A day without stretches is kept: its input is gone, and what was made of it stays. `before` are
    those of the day before, if one recording may have seen late what another one saw on that day.
    """

    day: str
    stretches: tuple[Stretch, ...]
    digest: str
    before: tuple[Stretch, ...] = ()

    @property
    def is_kept(self) -> bool:
        return not self.stretches

    @property
    def is_carried(self) -> bool:
        """Whether it needs the state of the day before."""
        return any(each.earlier for each in self.stretches)


def day_at(us: int) -> str:
    """Returns the day of a moment."""
    return moment(us).strftime("%Y-%m-%d")


def begin_of(day: str) -> int:
    """Returns the moment at which a day begins."""
    begun = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=timezone.utc)
    return microseconds(begun)


def is_day(text: str) -> bool:
    """Returns whether a text is a day such as 2026-11-22."""
    try:
        return day_at(begin_of(text)) == text
    except ValueError:
        return False


def digest_of(value: object) -> str:
    """Returns the SHA-256 of a value that JSON can hold, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def days_of(recordings: Sequence[InputRecording], versions: object) -> list[Day]:
    """Returns the days of one cluster; `versions` are a part of each digest."""
    found: dict[str, list[Stretch]] = {}
    for recording, counts in _first_begun_counts(recordings):
        for day, stretch in _by_day(recording, counts):
            found.setdefault(day, []).append(stretch)
    return [_day(day, found, versions) for day in sorted(found)]


def _day(day: str, found: Mapping[str, Sequence[Stretch]], versions: object) -> Day:
    before = found.get(day_at(begin_of(day) - 1), ())
    if len(found[day]) == 1 and not any(_is_overlapped(each) for each in before):
        before = ()
    essence: list[Any] = [versions, day, *map(_essence, found[day])]
    if before:
        essence.append([_essence(each) for each in before])
    return Day(day, tuple(found[day]), digest_of(essence), tuple(before))


def _is_overlapped(stretch: Stretch) -> bool:
    """Returns whether another recording tells of a part of a stretch."""
    counts = (stretch.counts_from_us, stretch.counts_to_us)
    return counts != (stretch.seen_from_us, stretch.seen_to_us)


def _essence(stretch: Stretch) -> dict[str, Any]:
    """Returns what a day's tables follow from: contents, and not where they lie."""
    values = dict(vars(stretch))
    for name in ("files", "earlier"):
        values[name] = [each.sha256 for each in getattr(stretch, name)]
    if not stretch.is_of_log:  # so that a day without logs stays as it was made
        del values["is_of_log"]
    return values


def _first_begun_counts(
    recordings: Iterable[InputRecording],
) -> Iterator[tuple[InputRecording, list[Span]]]:
    """Yields each recording with the times in which it counts.

    If several cover the same time, a metadata log is used, or else the one that began first.
    """
    covered: list[Span] = []  # apart from each other, in their order
    for each in sorted(recordings, key=lambda r: (not r.is_of_log, r.from_us, r.origin)):
        begin, end = each.from_us, _end(each)
        first = bisect_left(covered, begin, key=lambda span: span[1])
        behind = bisect_right(covered, end, key=lambda span: span[0])
        touched = covered[first:behind]
        yield each, free_parts(touched, begin, end)
        if begin < end:
            low = min([begin, *(span[0] for span in touched[:1])])
            high = max([end, *(span[1] for span in touched[-1:])])
            covered[first:behind] = [(low, high)]


def free_parts(covered: Iterable[Span], begin: int, end: int) -> list[Span]:
    """Returns the parts of a time that no other origin tells; a moment may be one."""
    left, at = list[Span](), begin
    for low, high in covered:
        if at < low:
            left.append((at, min(low, end)))
        at = max(at, high)
    if at < end or at == begin:
        left.append((at, end))
    return left


def _end(recording: InputRecording) -> int:
    """Returns the end of what a recording tells.

    One that ended at midnight tells of the time until then, as the next one begins with its state.
    """
    if recording.ended_by != "midnight":
        return recording.to_us
    return max(recording.to_us, (recording.from_us // DAY_US + 1) * DAY_US)


def _by_day(recording: InputRecording, counts: Sequence[Span]) -> Iterator[tuple[str, Stretch]]:
    first, end = recording.from_us, _end(recording)
    # A moment at midnight belongs to the day that ends, unless the recording begins there.
    last = max(first, end - 1)
    for number in range(first // DAY_US, last // DAY_US + 1):
        begin, after = number * DAY_US, (number + 1) * DAY_US
        goes_on = last >= after
        files, earlier = _files_of(recording.files, begin, after, goes_on)
        ended_by = "midnight" if goes_on else recording.ended_by or "open"
        seen = (max(first, begin), min(end, after))
        whole = Stretch(
            recording.origin,
            files,
            earlier if first < begin else (),
            *seen,
            None,
            None,
            ended_by,
            goes_on,
            first < begin or recording.continues is not None,
            max((f.longest_gap_us for f in files if f.longest_gap_us is not None), default=None),
            any(each.is_partial for each in (*earlier, *files)),
            recording.is_of_log,
        )
        parts = [part for span in counts if (part := _overlap(span, *seen)) is not None]
        for low, high in parts:
            yield day_at(begin), replace(whole, counts_from_us=low, counts_to_us=high)
        if not parts:
            yield day_at(begin), whole


def _overlap(counts: Span, begin: int, end: int) -> Span | None:
    """Returns the part of `counts` from `begin` to `end`; a part without length only at a begin."""
    low, high = max(counts[0], begin), min(counts[1], end)
    return (low, high) if low < high or low == high == begin == counts[0] else None


def _files_of(
    files: tuple[Input, ...], begin: int, after: int, goes_on: bool
) -> tuple[tuple[File, ...], tuple[File, ...]]:
    """Returns the files with rows of one day, and those with rows of days before.

    A file across a midnight is among both.
    """
    shown = [
        File(
            each.store,
            each.name,
            each.sha256,
            each.rows,
            each.since,
            each.until,
            each.from_us,
            each.to_us,
            each.longest_gap_us,
            bool(each.unknown_columns or each.unknown_records),
        )
        for each in files
    ]
    today = [
        file for file in shown if file.to_us >= begin and (file.from_us < after or not goes_on)
    ]
    return tuple(today), tuple(file for file in shown if file.from_us < begin)
