"""At midnight in UTC a recording ends without a break, so that each day stands alone."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock, Observed

from rdmeta.history import Recorder, changes, read, recordings
from rdmeta.history.schema import Footer
from rdmeta.model import Change

MIDNIGHT = datetime(2025, 6, 2, tzinfo=timezone.utc)


@pytest.fixture
def clock() -> FakeClock:
    made = FakeClock()
    made.now = MIDNIGHT - timedelta(seconds=10)
    return made


@pytest.fixture
def cache(clock: FakeClock) -> FakeCache:
    cache = FakeCache(clock)
    cache.add_broker(1)
    cache.add_topic("orders", "A" * 22, [1, 2])
    return cache


def footer(path: Path) -> Footer:
    return Footer.parse(pq.read_schema(path).metadata)


def seconds(when: datetime) -> float:
    """Returns a time as seconds after that midnight."""
    return (when - MIDNIGHT).total_seconds()


def test_the_first_observation_of_a_day_begins_a_recording_as_of_midnight(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(8)
        seen.cache.set_leader("orders", 0, 2)
        recorder.observe()
        seen.clock.pass_seconds(5)
        seen.cache.set_leader("orders", 0, 3)
        recorder.observe()
    old, new = recordings(seen.path)
    assert [seconds(old.observed_from), seconds(old.observed_to)] == [-10, 0]
    assert [seconds(new.observed_from), seconds(new.observed_to)] == [0, 3]
    rows = list(changes(seen.path, session=new.session))
    assert [(row.kind, row.partition, seconds(row.observed_at)) for row in rows] == [
        ("observed_from", None, 0),
        ("broker_added", None, 0),
        ("topic_added", None, 0),
        ("topic_added", 0, 0),
        ("topic_added", 1, 0),
        ("leader_changed", 0, 3),
        ("observed_to", None, 3),
    ]
    assert (rows[3].new_leader, rows[5].new_leader) == (2, 3)
    assert [row.kind for row in changes(seen.path, session=old.session)][-1] == "observed_to"


def test_footers_say_which_recording_is_continued_and_that_midnight_ended_it(
    seen: Observed,
) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(15)
        recorder.observe()
    old, new = recordings(seen.path)
    last, first = footer(old.files[-1].path), footer(new.files[0].path)
    assert (last.ended_by, first.continues) == ("midnight", old.session)
    assert (first.ended_by, last.continues) == (None, None)
    assert last.longest_gap_us == first.longest_gap_us == 15_000_000
    assert [each.path.parent.name for each in (*old.files[:1], *new.files[:1])] == [
        "day=2025-06-01",
        "day=2025-06-02",
    ]


def test_a_change_that_is_seen_after_midnight_belongs_to_the_new_day(seen: Observed) -> None:
    """The cache took the answer before midnight; only the observation says that it is whole."""
    with seen.observed() as recorder:
        seen.clock.pass_seconds(9.5)
        seen.cache.set_leader("orders", 0, 2)
        seen.clock.pass_seconds(1)
        recorder.observe()
    old, new = recordings(seen.path)
    (told,) = [row for row in changes(seen.path) if row.kind == "leader_changed"]
    assert (told.session, seconds(told.observed_at)) == (new.session, 0)
    rows = read(seen.path, session=new.session)
    assert max(us for us in rows["unseen_us"].to_pylist() if us is not None) == 10_000_000


def test_each_midnight_that_was_crossed_begins_a_recording(seen: Observed) -> None:
    with seen.observed(max_gap=1e6) as recorder:
        seen.clock.pass_seconds(2 * 86_400)
        seen.cache.set_leader("orders", 0, 2)
        recorder.observe()
    found = recordings(seen.path)
    day = 86_400
    spans = [(seconds(each.observed_from), seconds(each.observed_to)) for each in found]
    assert spans == [(-10, 0), (0, day), (day, 2 * day - 10)]
    firsts = [footer(each.files[0].path).continues for each in found]
    assert firsts == [None, found[0].session, found[1].session]
    (told,) = [row for row in changes(seen.path) if row.kind == "leader_changed"]
    assert told.session == found[2].session


def test_an_observation_exactly_at_midnight_belongs_to_the_new_day(seen: Observed) -> None:
    with seen.observed() as recorder:
        seen.clock.pass_seconds(10)
        recorder.observe()
        seen.clock.pass_seconds(10)
        recorder.observe()
    spans = [(seconds(r.observed_from), seconds(r.observed_to)) for r in recordings(seen.path)]
    assert spans == [(-10, 0), (0, 10)]


def test_a_gap_over_midnight_is_a_gap(cache: FakeCache, clock: FakeClock, tmp_path: Path) -> None:
    with Recorder(cache, tmp_path, clock=clock) as recorder:
        recorder.observe()
        clock.pass_seconds(70)
        recorder.observe()
    old, new = recordings(tmp_path)
    assert [seconds(old.observed_to), seconds(new.observed_from)] == [-10, 60]
    assert footer(old.files[-1].path).ended_by == "gap"
    assert footer(new.files[0].path).continues is None


def test_days_that_no_file_can_take_are_written_later(
    seen: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with seen.observed() as recorder:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            for leader in (2, 3, 1):
                seen.clock.pass_seconds(8)
                seen.cache.set_leader("orders", 0, leader)
                with contextlib.suppress(OSError):
                    recorder.observe()
        assert len(recorder.files) == 1
        seen.clock.pass_seconds(8)
        recorder.observe()
    spans = [(seconds(r.observed_from), seconds(r.observed_to)) for r in recordings(seen.path)]
    assert spans == [(-10, 0), (0, 22)]
    told = [row for row in changes(seen.path) if row.kind == "leader_changed"]
    assert [(row.new_leader, seconds(row.observed_at)) for row in told] == [
        (2, -2),
        (3, 6),
        (1, 14),
    ]


def states(rows: list[Change]) -> dict[tuple[str, int], tuple[object, ...]]:
    """Returns leader and ISR of every partition after these rows of one recording."""
    state: dict[tuple[str, int], tuple[object, ...]] = {}
    for row in rows:
        if row.topic is None:
            continue
        if row.partition is None:
            state = {key: at for key, at in state.items() if key[0] != row.topic}
            continue
        leader, isr = state.get((row.topic, row.partition), (None, None))
        if row.kind != "isr_changed":
            leader = row.new_leader
        if row.kind != "leader_changed":
            isr = row.new_isr
        state[row.topic, row.partition] = (leader, isr)
    return state


def test_any_day_alone_tells_every_state_of_it(seen: Observed) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    chance = random.Random(seed)
    truth: dict[str, dict[tuple[str, int], tuple[object, ...]]] = {}
    with seen.recorder(max_gap=1e6, flush_every=7200) as recorder:
        for _ in range(60):
            seen.clock.pass_seconds(chance.randrange(9000))
            for _ in range(chance.randrange(4)):
                what = chance.choice(("lead", "isr", "come", "go"))
                if what == "lead":
                    seen.cache.set_leader("orders", chance.randrange(2), chance.randrange(4))
                elif what == "isr":
                    seen.cache.set_isr("orders", chance.randrange(2), (chance.randrange(4), 7))
                elif what == "come":
                    seen.cache.add_topic("brief", None, [chance.randrange(4)])
                elif any(topic.name == "brief" for topic in seen.cache.topics()):
                    seen.cache.remove_topic("brief")
            recorder.observe()
            assert recorder.session is not None
            truth[recorder.session] = {
                (p.topic, p.partition): (p.leader, p.isr)
                for topic in seen.cache.topics()
                for p in topic.partitions
            }
    days = recordings(seen.path)
    assert len(days) > 2
    for day in days:
        assert day.observed_from.date() == (day.observed_to - timedelta.resolution).date()
        alone = seen.path / "alone"
        shutil.copytree(day.files[0].path.parent, alone)
        assert states(list(changes(alone))) == truth[day.session]
        shutil.rmtree(alone)
    for before, after in zip(days, days[1:], strict=False):
        assert before.observed_to == after.observed_from
        assert footer(after.files[0].path).continues == before.session
