"""The origin that began first counts, and a day has just what it is made from."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from rdmeta.pipeline.days import DAY_US, Day, begin_of, day_at, days_of
from rdmeta.pipeline.inputs import Input, InputRecording

DAY = begin_of("2026-11-02")
HOUR = DAY_US // 24


def recording(origin: str, begin: int, *ends: int, **values: Any) -> InputRecording:
    """Returns a recording whose files end at these times after the begin of November 2nd."""
    files = []
    since = begin
    for number, end in enumerate(ends):
        name = f"{origin}-{number}"
        span = (DAY + since, DAY + end)
        files.append(Input("p", name, 1, 1, name, from_us=span[0], to_us=span[1], until=number))
        since = end
    plain = {"continues": None, "ended_by": None, **values}
    return InputRecording("c", origin, tuple(files), DAY + begin, DAY + ends[-1], **plain)


def hour(us: int | None) -> int | None:
    return None if us is None else (us - DAY) // HOUR


def counts(days: list[Day]) -> list[tuple[str, str, int | None, int | None]]:
    """Returns day, origin and the counting hours of each stretch."""
    return [
        (day.day, each.origin, hour(each.counts_from_us), hour(each.counts_to_us))
        for day in days
        for each in day.stretches
    ]


def test_the_recording_that_began_first_counts() -> None:
    found = days_of(
        [
            recording("b", 2 * HOUR, 6 * HOUR),
            recording("a", 1 * HOUR, 4 * HOUR),
            recording("c", 3 * HOUR, 5 * HOUR),
            recording("d", 8 * HOUR, 9 * HOUR),
        ],
        1,
    )
    assert counts(found) == [
        ("2026-11-02", "a", 1, 4),
        ("2026-11-02", "b", 4, 6),
        ("2026-11-02", "c", None, None),
        ("2026-11-02", "d", 8, 9),
    ]


def log(origin: str, begin: int, end: int) -> InputRecording:
    return replace(recording(origin, begin * HOUR, end * HOUR), is_of_log=True)


def test_a_log_comes_before_recordings_which_count_around_its_holes() -> None:
    found = days_of(
        [
            recording("a", 1 * HOUR, 12 * HOUR),
            recording("b", 4 * HOUR, 14 * HOUR),
            log("one", 3, 5),
            log("two", 7, 10),
            log("three", 10, 11),
        ],
        1,
    )
    assert counts(found) == [
        ("2026-11-02", "one", 3, 5),
        ("2026-11-02", "two", 7, 10),
        ("2026-11-02", "three", 10, 11),
        ("2026-11-02", "a", 1, 3),
        ("2026-11-02", "a", 5, 7),
        ("2026-11-02", "a", 11, 12),
        ("2026-11-02", "b", 12, 14),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_each_moment_is_told_by_the_first_in_rank(seed: int) -> None:
    random, every = Random(seed), list[InputRecording]()
    for number in range(12):
        begin = random.randrange(20)
        end = begin + random.randrange(1, 10)
        made = log if random.random() < 0.4 else lambda o, b, e: recording(o, b * HOUR, e * HOUR)
        every.append(made(f"{number:02}", begin, end))
    told: dict[int, str] = {}
    for each in sorted(every, key=lambda e: (not e.is_of_log, e.from_us, e.origin)):
        for at in range((each.from_us - DAY) // HOUR, (each.to_us - DAY) // HOUR):
            told.setdefault(at, each.origin)
    found: dict[int, str] = {}
    for day in days_of(every, 1):
        for part in day.stretches:
            low, high = hour(part.counts_from_us), hour(part.counts_to_us)
            for at in range(low or 0, high or 0) if low is not None else ():
                assert found.setdefault(at + 0, part.origin) == part.origin
    assert found == told


def test_a_recording_over_midnight_is_carried_from_day_to_day() -> None:
    days = days_of([recording("a", 23 * HOUR, 24 * HOUR, 30 * HOUR, 50 * HOUR)], 1)
    assert counts(days) == [
        ("2026-11-02", "a", 23, 24),
        ("2026-11-03", "a", 24, 48),
        ("2026-11-04", "a", 48, 50),
    ]
    assert [day.is_carried for day in days] == [False, True, True]
    assert [[f.name for f in day.stretches[0].files] for day in days] == [
        ["a-0"],
        ["a-0", "a-1", "a-2"],
        ["a-2"],
    ]
    assert [[f.name for f in day.stretches[0].earlier] for day in days] == [
        [],
        ["a-0"],
        ["a-0", "a-1", "a-2"],
    ]
    assert [day.stretches[0].ended_by for day in days] == ["midnight", "midnight", "open"]


def test_a_recording_that_ended_at_midnight_tells_of_the_time_until_then() -> None:
    first = recording("a", 23 * HOUR, 24 * HOUR - 5, ended_by="midnight")
    second = recording("b", 24 * HOUR, 25 * HOUR, continues="a")
    days = days_of([first, second], 1)
    assert counts(days) == [("2026-11-02", "a", 23, 24), ("2026-11-03", "b", 24, 25)]
    assert not any(day.is_carried for day in days)


def test_a_recording_that_ends_at_midnight_has_no_part_in_the_next_day() -> None:
    days = days_of([recording("a", 23 * HOUR, 24 * HOUR)], 1)
    assert counts(days) == [("2026-11-02", "a", 23, 24)]
    at_midnight = days_of([recording("a", 24 * HOUR, 24 * HOUR)], 1)
    assert counts(at_midnight) == [("2026-11-03", "a", 24, 24)]


def test_a_digest_differs_if_the_input_of_its_day_differs() -> None:
    def digests(*ends: int, versions: int = 1) -> list[str]:
        return [day.digest for day in days_of([recording("a", 1, *ends)], versions)]

    one = digests(HOUR, 30 * HOUR)
    longer = digests(HOUR, 30 * HOUR, 31 * HOUR)
    assert one[0] == longer[0]
    assert one[1] != longer[1]
    assert digests(HOUR, 30 * HOUR, versions=2)[0] != one[0]


def test_a_day_rests_on_the_day_before_where_a_recording_may_be_late() -> None:
    def before(*recordings: InputRecording) -> list[list[str]]:
        return [[each.origin for each in day.before] for day in days_of(list(recordings), 1)]

    alone = recording("a", 1 * HOUR, 24 * HOUR, 30 * HOUR)
    assert before(alone) == [[], []]
    assert before(recording("b", 0, HOUR), recording("a", 2 * HOUR, 24 * HOUR, 30 * HOUR)) == [
        [],
        [],
    ]
    assert before(alone, recording("b", 2 * HOUR, 3 * HOUR)) == [[], ["a", "b"]]
    assert before(alone, recording("b", 31 * HOUR, 32 * HOUR)) == [[], ["a"]]
    other = [days_of([alone, recording("b", 2 * HOUR, at * HOUR)], 1)[1].digest for at in (3, 4)]
    assert other[0] != other[1]


def test_a_digest_does_not_say_where_the_input_lies() -> None:
    one = recording("a", 1, HOUR)
    moved = InputRecording(
        **{
            **one.__dict__,
            "files": tuple(Input(**{**f.__dict__, "store": "elsewhere"}) for f in one.files),
        }
    )
    assert days_of([one], 1)[0].digest == days_of([moved], 1)[0].digest


def test_a_day_is_one_of_utc() -> None:
    assert day_at(DAY) == "2026-11-02"
    assert day_at(DAY - 1) == "2026-11-01"
    assert begin_of("1970-01-02") == DAY_US


def test_a_microsecond_of_the_next_day_belongs_to_it() -> None:
    one, two = days_of([recording("a", 23 * HOUR, 24 * HOUR + 1)], 1)
    assert [each.stretches[0].ended_by for each in (one, two)] == ["midnight", "open"]
    assert two.stretches[0].counts_to_us == DAY + 24 * HOUR + 1
