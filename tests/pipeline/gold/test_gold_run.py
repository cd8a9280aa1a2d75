"""Runs that make gold: which months they make, and what they leave as it is."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock
from gold_model import with_times
from gold_tables import gold_in, gold_of, same, silver_of
from recorded import cluster_day, contents, large_days, tree

from rdmeta import pipeline
from rdmeta._atomic import AtomicFile
from rdmeta.history import Recorder
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.layout import gold_file
from rdmeta.pipeline.lock import NAME as LOCK

UTC = timezone.utc


def made(source: Path, out: Path, **options: Any) -> pipeline.Made:
    return pipeline.run(pipeline.plan([source], out, gold=True, **options), workers=1)


def gold(out: Path) -> dict[str, bytes]:
    return {name: c for name, c in contents(out).items() if name.startswith("gold/")}


def incidents(out: Path, month: str) -> list[dict[str, Any]]:
    path = out / gold_file("incident", "one", month)
    rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return [row for row in rows if row["kind"] == "under_replicated"]


def assert_follows_from_silver(out: Path) -> None:
    """Compares what a folder says of observation with its whole silver."""
    silver = silver_of(out)
    for name in ("coverage_hour", "data_quality"):
        same(gold_in(out, name), with_times(gold_of(silver, name)))


def months(found: pipeline.Made) -> set[str]:
    names = [each.name for each in found.made if each.name.startswith("gold/")]
    return {name.rpartition("=")[2].removesuffix(".parquet") for name in names}


def outage(source: Path, begin: datetime, end: datetime, until: datetime) -> None:
    """Records a partition that misses a replica from `begin` to `end`, from an hour before on."""
    clock = FakeClock()
    clock.now = begin - timedelta(hours=1)
    cache = FakeCache(clock, "one")
    for broker in (1, 2, 3):
        cache.add_broker(broker)
    cache.add_topic("orders", "A" * 22, [1])
    moments = {begin: (1, 2), end: (1, 2, 3)}
    with Recorder(cache, source, clock=clock, max_gap=86400.0) as recorder:
        recorder.observe()
        while clock.now < until:
            following = min([*(each for each in moments if each > clock.now), until])
            step = min(3600.0, (following - clock.now).total_seconds())
            clock.pass_seconds(step)
            if clock.now in moments:
                cache.set_isr("orders", 0, moments[clock.now])
            recorder.observe()


@pytest.mark.slow
def test_a_second_run_makes_nothing_and_one_more_day_makes_its_month(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    cluster_day(source, "two", 1)
    first = made(source, out)
    assert months(first) == {"2026-11"}
    assert len(gold(out)) == 2 * len(MEASURES)
    assert pipeline.check(out) == []
    before = tree(out)
    assert made(source, out).made == []
    assert tree(out) == before
    cluster_day(source, "one", 2)
    again = made(source, out)
    clusters = {each.name.split("/")[3] for each in again.made if "gold" in each.name}
    assert clusters == {"cluster=one"}
    fresh = tmp_path / "fresh"
    made(source, fresh)
    assert gold(out) == gold(fresh)
    assert pipeline.check(out) == []


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_lost_file_of_gold_is_made_again(tmp_path: Path, damage: str) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    made(source, out)
    before = contents(out)
    lost = out / gold_file("incident", "one", "2026-11")
    lost.unlink() if damage == "missing" else lost.write_bytes(b"PAR1")
    assert "lost" in pipeline.plan([source], out, gold=True).months[0].reason
    made(source, out)
    assert contents(out) == before


@pytest.mark.slow
def test_gold_alone_is_made_of_the_silver_that_is_there(tmp_path: Path) -> None:
    source, out, whole = tmp_path / "history", tmp_path / "out", tmp_path / "whole"
    cluster_day(source, "one", 1)
    pipeline.run(pipeline.plan([source], out), workers=1)
    assert gold(out) == {}
    source.rename(tmp_path / "elsewhere")
    alone = pipeline.plan([], out, silver=False, gold=True)
    assert [task.month for task in alone.months] == ["2026-11"]
    pipeline.run(alone, workers=1)
    assert pipeline.check(out) == []
    assert not pipeline.plan([], out, silver=False, gold=True).months
    (tmp_path / "elsewhere").rename(source)
    made(source, whole)
    assert gold(out) == gold(whole)
    with pytest.raises(pipeline.PipelineError, match="it has no silver"):
        pipeline.plan([], tmp_path / "none", silver=False, gold=True)


@pytest.mark.slow
def test_silver_that_changes_without_gold_makes_the_months_differ(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    made(source, out)
    cluster_day(source, "one", 2)
    pipeline.run(pipeline.plan([source], out), workers=1)
    assert pipeline.check(out) == []
    (task,) = pipeline.plan([], out, silver=False, gold=True).months
    assert "silver of 2026-11, what follows it, or the settings differ" in task.reason


@pytest.mark.slow
def test_other_settings_make_all_months_again(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    made(source, out)
    assert months(made(source, out, min_isr=2)) == {"2026-11"}
    assert months(made(source, out, min_isr=2)) == set()
    assert months(made(source, out, min_isr=2, flap_seconds=60)) == {"2026-11"}
    for name in ("min_isr", "flap_seconds"):
        with pytest.raises(ValueError, match="whole number from 1 to 2147483647, not"):
            made(source, out, **{name: 0})
        with pytest.raises(ValueError, match="whole number from 1 to 2147483647, not"):
            made(source, out, **{name: 1 << 31})
    assert months(made(source, out, min_isr=(1 << 31) - 1, flap_seconds=(1 << 31) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("period", ["day", "month"])
def test_an_incident_over_a_months_end_is_in_the_month_in_which_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, period: str
) -> None:
    if period == "day":
        large_days(monkeypatch)
    source, out = tmp_path / "history", tmp_path / "out"
    begin, end = datetime(2026, 10, 31, 22, tzinfo=UTC), datetime(2026, 11, 3, 5, tzinfo=UTC)
    outage(source, begin, end, datetime(2026, 11, 5, tzinfo=UTC))
    made(source, out)
    (incident,) = incidents(out, "2026-10")
    assert (incident["began_at"], incident["ended_at"]) == (begin, end)
    assert incident["minutes"] == (end - begin).total_seconds() / 60
    assert incidents(out, "2026-11") == []
    assert pipeline.check(out) == []


@pytest.mark.slow
def test_an_incident_that_goes_on_gets_its_end_when_later_days_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_days(monkeypatch)
    source, out = tmp_path / "history", tmp_path / "out"
    begin, end = datetime(2026, 10, 31, 22, tzinfo=UTC), datetime(2026, 11, 2, 5, tzinfo=UTC)
    whole = tmp_path / "recorded"
    outage(whole, begin, end, datetime(2026, 11, 4, tzinfo=UTC))
    for day in ("10-31", "11-01", "11-02", "11-03"):
        name = f"cluster=one/day=2026-{day}"
        shutil.copytree(whole / name, source / name)
        made(source, out)
        (incident,) = incidents(out, "2026-10")
        midnight = datetime.fromisoformat(f"2026-{day}T00:00:00+00:00") + timedelta(days=1)
        assert incident["ended_at"] == min(midnight, end), day
    fresh = tmp_path / "fresh"
    made(source, fresh)
    assert gold(out) == gold(fresh)


@pytest.mark.slow
def test_a_month_that_was_not_observed_has_its_hole(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    begins = [datetime(2026, month, 10, tzinfo=UTC) for month in (9, 12)]
    for begin in begins:
        outage(source, begin, begin + timedelta(hours=1), begin + timedelta(hours=2))
    assert months(made(source, out)) == {f"2026-{month:02d}" for month in (9, 10, 11, 12)}
    assert pipeline.check(out) == []
    assert made(source, out).made == []
    path = out / gold_file("coverage_hour", "one", "2026-10")
    hours = pq.ParquetFile(path).read().to_pylist()
    assert len(hours) == 31 * 24
    assert {(hour["observed"], hour["hole"]) for hour in hours} == {(0.0, 60.0)}
    assert_follows_from_silver(out)


@pytest.mark.slow
def test_an_observation_of_no_time_hides_no_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder that is killed at once sees a moment. The hole goes on around it."""
    large_days(monkeypatch)
    source, out = tmp_path / "history", tmp_path / "out"
    for begin, hours in (((10, 28), 10), ((10, 30), 0), ((11, 2), 0), ((11, 5), 1)):
        clock = FakeClock()
        clock.now = datetime(2026, *begin, tzinfo=UTC)
        cache = FakeCache(clock, "one")
        cache.add_broker(1)
        cache.add_topic("orders", "A" * 22, [1])
        with Recorder(cache, source, clock=clock, max_gap=86400.0) as recorder:
            recorder.observe()
            for _ in range(hours):
                clock.pass_seconds(3600)
                recorder.observe()
        made(source, out)
        fresh = tmp_path / "fresh"
        made(source, fresh)
        assert gold(out) == gold(fresh)
        shutil.rmtree(fresh)
        assert_follows_from_silver(out)


@pytest.mark.slow
def test_a_run_that_was_killed_between_files_of_gold_goes_on(tmp_path: Path) -> None:
    source, out, newer = tmp_path / "history", tmp_path / "out", tmp_path / "newer"
    cluster_day(source, "one", 1)
    made(source, out)
    cluster_day(source, "one", 2)
    made(source, newer)
    # After a kill one file is newer than the manifest, and the mark is there.
    name = gold_file(next(iter(MEASURES)), "one", "2026-11")
    shutil.copy(newer / name, out / name)
    (out / LOCK).touch()
    made(source, out)
    assert gold(out) == gold(newer)
    assert pipeline.check(out) == []
    # All files were there when the process was killed, and the manifest was not.
    (out / LOCK).touch()
    stamps = {name: found[:2] for name, found in tree(out).items() if name.startswith("gold/")}
    made(source, out)
    assert stamps == {n: found[:2] for n, found in tree(out).items() if n.startswith("gold/")}
    assert pipeline.check(out) == []


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.slow
@pytest.mark.parametrize("renames", [1, 6, len(MEASURES) - 1, len(MEASURES)])
def test_a_run_killed_after_some_renames_of_gold_is_made_whole_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    source, out, whole = tmp_path / "history", tmp_path / "out", tmp_path / "whole"
    cluster_day(source, "one", 1)
    made(source, out)
    cluster_day(source, "one", 2)
    made(source, whole)
    left, name_it = [renames], AtomicFile.name_it

    def counted(draft: AtomicFile) -> None:
        if "/gold/" in str(draft.path):
            if left[0] == 0:
                raise KilledError
            left[0] -= 1
        name_it(draft)

    with monkeypatch.context() as patch:
        patch.setattr(AtomicFile, "name_it", counted)
        patch.setattr(AtomicFile, "drop", lambda draft: None)
        patch.setattr("rdmeta.pipeline.running.write_manifest", raising_killed)
        with pytest.raises(KilledError):
            made(source, out)
    assert (out / LOCK).exists()
    made(source, out)
    assert gold(out) == gold(whole)
    assert pipeline.check(out) == []
    assert not list(out.rglob(".*.tmp"))


def raising_killed(*_: object) -> None:
    raise KilledError


@pytest.mark.slow
def test_a_damaged_part_of_silver_is_named_and_gold_stays(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    made(source, out)
    before = gold(out)
    (part,) = (out / "silver/v1/partition_interval").rglob("*.parquet")
    part.write_bytes(b"x" * part.stat().st_size)
    again = pipeline.plan([], out, silver=False, gold=True, min_isr=2)
    with pytest.raises(pipeline.PipelineError, match="rdmeta pipeline check"):
        pipeline.run(again, workers=1)
    assert gold(out) == before


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_silver_of_an_older_version_is_named_with_what_to_make_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    large_days(monkeypatch)
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2):
        cluster_day(source, "one", day)
    made(source, out)
    part = sorted((out / "silver/v1/partition_interval").rglob("*.parquet"))[number]
    pq.write_table(pq.read_table(part, partitioning=None).drop_columns(["racks"]), part)
    period = part.parent.name.partition("=")[2]
    again = pipeline.plan([], out, silver=False, gold=True, min_isr=2)
    text = f"no column racks, .*: make the period {period} again, with rdmeta pipeline silver"
    with pytest.raises(pipeline.PipelineError, match=text):
        pipeline.run(again, workers=1)


@pytest.mark.slow
def test_processes_make_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdmeta.pipeline.attempting._FEW_TASKS", 0)
    monkeypatch.setattr("rdmeta.pipeline.attempting._FEW_ROWS", 0)
    source = tmp_path / "history"
    for cluster in ("one", "two"):
        cluster_day(source, cluster, 1)
    made(source, tmp_path / "one")
    pipeline.run(pipeline.plan([source], tmp_path / "two", gold=True), workers=2)
    assert gold(tmp_path / "one") == gold(tmp_path / "two")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_query_ends_the_command_without_a_traceback(
    out: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """A view that never ends stands for a large month; the command says when it reads it."""
    copy = shutil.copytree(out, tmp_path / "out")
    shutil.rmtree(copy / "gold")
    program = f"""if True:
        import sys, threading, os
        from rdmeta.pipeline.gold import query
        from rdmeta.cli.app import run
        endless = "SELECT count(*) FROM range(100000000) a, range(10000) b WHERE a.range < -b.range"
        def prepare(connection, **settings):
            print("querying", flush=True)
            connection.execute(endless)
        query.prepare = prepare
        sys.exit(run(["pipeline", "gold", {str(copy)!r}, "--engine", "local"]))
    """
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "querying\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert said == ""
