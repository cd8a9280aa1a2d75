"""The limit of a gap follows the usual distance of observations. A clock that was set is seen."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from fake_cache import FakeClock

from rdmeta.history.pace import Pace, Sight


def seen(distances: Iterable[float], max_gap: float | None = None) -> list[Sight]:
    """Returns observations that lie so many seconds apart."""
    clock = FakeClock()
    pace = Pace(clock, lambda: clock.now.timestamp(), max_gap)
    found = [pace.look()]
    for seconds in distances:
        clock.pass_seconds(seconds)
        found.append(pace.look())
    return found


def test_a_gap_is_3_times_the_usual_distance_and_at_least_a_minute() -> None:
    for usual, limit in ((1, 60), (20, 60), (21, 63), (300, 900)):
        *_, last = seen([usual] * 5)
        assert last.max_gap == pytest.approx(limit)
        assert [each.is_gap for each in seen([*[usual] * 5, limit])][2:] == [False] * 5
        assert seen([*[usual] * 5, limit + 1])[-1].is_gap


def judged(distances: Iterable[float]) -> list[bool]:
    """Returns which distances are gaps, once the next one has told what an open one is."""
    sights = seen(distances)
    after: list[Sight | None] = [*sights[1:], None]
    return [
        (each.judged(then) if each.is_open and then is not None else each).is_gap
        for each, then in zip(sights, after, strict=True)
    ][1:]


def test_a_slow_poller_has_no_gap_at_its_begin() -> None:
    assert judged([300, 300, 900, 901]) == [False, False, False, True]
    assert judged([300, 900, 900]) == [False, False, False]
    assert judged([70, 24]) == [False, False]


def test_a_hole_after_the_first_look_of_a_fast_poller_is_a_gap_at_any_length() -> None:
    for hole in (61, 600, 3600, 86400):
        for usual in (0.1, 5, 20):
            assert judged([hole, *[usual] * 3]) == [True, False, False, False]


def test_a_gap_tells_nothing_of_the_pace() -> None:
    assert judged([600, 100, 5, 5]) == [True, True, False, False]
    assert judged([3600, 300, 300, 300]) == [True, False, False, False]


def test_a_distance_that_nothing_follows_is_a_gap_if_it_is_longer_than_a_minute() -> None:
    assert judged([60]) == [False]
    assert judged([61]) == [True]


def test_only_a_majority_of_long_distances_raises_the_limit() -> None:
    assert judged([5, 600, 600, 600]) == [False, True, True, False]


def test_only_a_first_distance_that_may_be_a_pace_is_open() -> None:
    assert [each.is_open for each in seen([300, 300, 3600])] == [False, True, False, False]
    assert [each.is_open for each in seen([5, 300])] == [False, False, False]
    assert not any(each.is_open for each in seen([300, 300], max_gap=10))


def test_one_long_gap_does_not_make_the_next_one_pass() -> None:
    assert [each.is_gap for each in seen([5, 5, 5, 3600, 5, 3600])] == [
        *[False] * 4,
        True,
        False,
        True,
    ]


def test_a_limit_that_is_given_does_not_follow() -> None:
    assert [each.is_gap for each in seen([300, 300, 5], max_gap=10)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("wall", "monotonic", "is_step"),
    [
        (5, 5, False),
        (5.9, 5, False),
        (4.1, 5, False),
        (6.1, 5, True),
        (3.9, 5, True),
        (-3600, 5, True),
        (3605, 5, True),
        (3603, 3600, False),
        (3604, 3600, True),
    ],
)
def test_a_step_is_a_difference_of_the_clocks_that_no_slow_correction_explains(
    wall: float, monotonic: float, is_step: bool
) -> None:
    clock, ticks = FakeClock(), [0.0]
    pace = Pace(clock, lambda: ticks[0], None)
    assert not pace.look().is_step
    clock.pass_seconds(wall)
    ticks[0] += monotonic
    sight = pace.look()
    assert sight.is_step == is_step
    assert sight.passed == monotonic
    assert sight.stepped == pytest.approx(wall - monotonic)
    clock.pass_seconds(5)
    ticks[0] += 5
    assert not pace.look().is_step
