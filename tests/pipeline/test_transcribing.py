"""A log becomes one recording for each day, whatever files its batches lie in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import run
from fake_cache import FakeCache, FakeClock
from kraft_days import FIRST, LogOfDays
from kraft_logs import GOLDEN, LOG, LOGS, Made
from processes import environment
from recorded import contents, tree

from rdmeta import pipeline
from rdmeta.generate.logs import snapshot, uuid_text
from rdmeta.history import Recorder, look
from rdmeta.kraft import KraftLog
from rdmeta.pipeline import PipelineError, attempting, transcribing
from rdmeta.pipeline.work import AnyTask

# RDMETA_KILLS=every kills a run after each rename, otherwise after every fifth.
EVERY_RENAME = os.environ.get("RDMETA_KILLS") == "every"
KILLED = Path(__file__).parents[1] / "support" / "killed_run.py"


def made(source: Path, out: Path, **options: Any) -> pipeline.Made:
    return pipeline.run(pipeline.plan([source], out, **options), workers=1)


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    paths = sorted(out.glob(f"silver/v1/{table}/**/*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def recordings(out: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(out / "bronze").items() if "/day=" in name}


def silver(out: Path) -> dict[str, bytes]:
    return {n: data for n, data in contents(out / "silver").items() if "_state" not in n}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log.name))
def test_changes_of_leader_have_the_times_and_offsets_of_records(log: Made, tmp_path: Path) -> None:
    made(GOLDEN / log.name, tmp_path)
    read = KraftLog(GOLDEN / log.name, proven=True)
    wanted = [
        (each.offset, each.observed_at, each.topic, each.partition, each.new_leader)
        for each in read.changes(read.first_state)
        if each.kind == "leader_changed"
    ]
    found = [
        tuple(row[n] for n in ("offset", "observed_at", "topic", "partition", "new_leader"))
        for row in rows(tmp_path, "leader_change")
    ]
    assert found == wanted
    assert pipeline.check(tmp_path) == []


def test_a_second_run_writes_nothing(tmp_path: Path) -> None:
    LogOfDays(3).write(tmp_path / "in", 1, snapshots=(30, 60))
    made(tmp_path / "in", tmp_path / "out")
    before = tree(tmp_path / "out")
    assert made(tmp_path / "in", tmp_path / "out").made == []
    assert tree(tmp_path / "out") == before


@pytest.mark.parametrize("seed", [28, 29, 30])
def test_any_files_in_any_order_give_the_same_recordings_and_tables(
    tmp_path: Path, seed: int
) -> None:
    days = LogOfDays(4)
    days.write(tmp_path / "whole", 1, snapshots=(days.end,))
    made(tmp_path / "whole", tmp_path / "wanted")
    assert len(recordings(tmp_path / "wanted")) == 4
    days.write(tmp_path / "in/n1", 1, cuts=(10, 40), snapshots=(20, 50, 70))
    days.write(tmp_path / "in/n2", 2, cuts=(25, 60), snapshots=(days.end, 33))
    days.write(tmp_path / "in/n3", 3, cuts=(11, 12, 80), snapshots=(45,))
    random = Random(seed)
    source, out = tmp_path / "come", tmp_path / "out"
    paths = [path for path in sorted((tmp_path / "in").rglob("*")) if path.is_file()]
    random.shuffle(paths)
    paths.sort(key=lambda path: path.name != "meta.properties")
    for path in paths:
        target = source / path.relative_to(tmp_path / "in")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        if path.suffix in (".log", ".checkpoint") and random.random() < 0.4:
            made(source, out)
    made(source, out)
    assert recordings(out) == recordings(tmp_path / "wanted")
    assert silver(out) == silver(tmp_path / "wanted")


def test_a_day_more_makes_one_recording_and_one_longer_one(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    days = LogOfDays(5)
    days.write(source, 1, end=60, snapshots=(60,))
    made(source, out)
    before = tree(out / "bronze/cluster=c")
    days.write(source, 1, end=90, snapshots=(90,))
    plan = pipeline.plan([source], out)
    steps = [(step["periods"], step["reason"]) for step in plan.steps if step["part"] == "log"]
    assert steps == [
        (["2026-11-24"], "the log has more of 2026-11-24"),
        (["2026-11-25", "2026-11-26"], "2026-11-25 of the log is new"),
    ]
    made(source, out)
    after = tree(out / "bronze/cluster=c")
    kept = {name for name in before if "/day=" in f"/{name}" and "11-24" not in name}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert len(recordings(out)) == 5  # the shorter one has gone
    assert pipeline.check(out) == []


def test_what_is_not_proven_waits(tmp_path: Path) -> None:
    days = LogOfDays(2)
    days.write(tmp_path / "in", 1, snapshots=(20,))
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert plan.logs["c"].proof.end == 20
    assert "offsets 20 to" in str(plan.logs["c"].waits)
    assert max(row["offset"] for row in rows(tmp_path / "out", "leader_change")) == 19
    days.write(tmp_path / "in2", 2)  # a majority of the voters
    made(tmp_path / "in2", tmp_path / "out")
    assert max(row["offset"] for row in rows(tmp_path / "out", "leader_change")) == days.end - 1


def test_no_interval_spans_a_hole(tmp_path: Path) -> None:
    days = LogOfDays(3)
    directory = days.write(tmp_path / "in", 1, cuts=(20, 30), snapshots=(35, days.end))
    (directory / f"{20:020d}.log").unlink()
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert [hole[:2] for hole in plan.logs["c"].holes] == [(20, 30), (30, 35)]
    left, came = FIRST + timedelta(hours=15), FIRST + timedelta(hours=30)
    found = rows(tmp_path / "out", "partition_interval")
    assert not [row for row in found if row["began_at"] < came and row["ended_at"] > left]
    assert "gap" in {row["ended_by"] for row in found if row["ended_at"] == left}
    assert min(row["began_at"] for row in found if row["began_at"] > left) == came
    days.write(tmp_path / "late", 2, cuts=(10, 50))  # another node has it
    out = made(tmp_path / "late", tmp_path / "out")
    assert out.plan.logs["c"].holes == ()
    days.write(tmp_path / "whole", 1, snapshots=(days.end,))
    made(tmp_path / "whole", tmp_path / "wanted")
    assert recordings(tmp_path / "out") == recordings(tmp_path / "wanted")
    assert silver(tmp_path / "out") == silver(tmp_path / "wanted")


def test_a_begin_above_0_needs_a_snapshot(tmp_path: Path) -> None:
    days = LogOfDays(2)
    days.write(tmp_path / "in", 1, first=10)
    plan = pipeline.plan([tmp_path / "in"], tmp_path / "out")
    assert (plan.log_tasks, plan.logs["c"].proof.end) == ((), 0)
    days.write(tmp_path / "in", 1, first=10, snapshots=(20, days.end))
    assert made(tmp_path / "in", tmp_path / "out").plan.logs["c"].holes[1][:2] == (10, 20)
    first = rows(tmp_path / "out", "partition_interval")[0]
    assert (first["began_at"], first["began_by"]) == (FIRST + timedelta(hours=15), "baseline")


def test_a_large_day_is_written_in_row_groups_as_its_rows_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LogOfDays(3).write(tmp_path / "in", 1, snapshots=(49,))
    made(tmp_path / "in", tmp_path / "wanted")
    monkeypatch.setattr(transcribing, "GROUP_ROWS", 10)
    made(tmp_path / "in", tmp_path / "out")
    for name in recordings(tmp_path / "wanted"):
        files = [pq.ParquetFile(tmp_path / out / "bronze" / name) for out in ("wanted", "out")]
        assert files[0].read() == files[1].read()
        assert files[0].schema_arrow.equals(files[1].schema_arrow, check_metadata=True)
        groups = files[1].metadata.num_row_groups
        assert groups == -(-files[1].metadata.num_rows // 10)


def test_in_place_copies_no_raw_file(tmp_path: Path) -> None:
    LogOfDays(2).write(tmp_path / "in", 1, snapshots=(30,))
    made(tmp_path / "in", tmp_path / "out", in_place=True)
    made(tmp_path / "in", tmp_path / "copied")
    assert not list((tmp_path / "out").rglob("*.log"))
    assert silver(tmp_path / "out") == silver(tmp_path / "copied")
    before = tree(tmp_path / "out")
    made(tmp_path / "in", tmp_path / "out", in_place=True)
    assert tree(tmp_path / "out") == before


@pytest.mark.parametrize("in_place", [False, True])
def test_a_corrupt_batch_is_set_aside_with_what_follows_it(tmp_path: Path, in_place: bool) -> None:
    days = LogOfDays(2)
    directory = days.write(tmp_path / "in", 1, snapshots=(days.end, 25))
    path = directory / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    at = len(days.segment(0, 15))
    data[at + 70] ^= 1
    path.write_bytes(bytes(data))
    plan = made(tmp_path / "in", tmp_path / "out", in_place=in_place).plan
    (bad,) = plan.quarantined
    assert f"byte {at}, offset 15" in str(bad.reason)
    assert "offsets 0 to 14 count" in str(bad.reason)
    assert max(row["offset"] for row in rows(tmp_path / "out", "leader_change")) == 14
    path.write_bytes(days.segment())
    made(tmp_path / "in", tmp_path / "out", in_place=in_place)
    assert max(row["offset"] for row in rows(tmp_path / "out", "leader_change")) == days.end - 1


def test_copies_that_contradict_each_other_are_set_aside(tmp_path: Path) -> None:
    days, other = LogOfDays(2), LogOfDays(2, first=FIRST + timedelta(minutes=1))
    days.write(tmp_path / "in/n1", 1, snapshots=(30,))
    other.write(tmp_path / "in/n2", 2, end=20)
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert len(plan.quarantined) == 2
    for each in plan.quarantined:
        assert "offset 0 is the first that differs, so offsets 0 to 19 of both" in str(each.reason)
    before = tree(tmp_path / "out")
    assert len(made(tmp_path / "in", tmp_path / "out").plan.quarantined) == 2
    assert tree(tmp_path / "out") == before


@pytest.mark.parametrize("lacking", ["meta.properties", "everything"])
def test_a_log_without_a_cluster_is_quarantined(lacking: str, tmp_path: Path) -> None:
    days = LogOfDays(1)
    source = tmp_path / "in" / ("" if lacking == "everything" else "cluster=a%2Fb/node=4")
    days.write(source, 1, snapshots=(days.end,))
    (source / "meta.properties").unlink()
    if lacking == "everything":
        with pytest.raises(PipelineError, match="put the node's meta.properties beside"):
            pipeline.plan([tmp_path / "in"], tmp_path / "out")
        return
    made(tmp_path / "in", tmp_path / "out")
    assert list((tmp_path / "out/bronze/cluster=a%2Fb/log/node=4").glob("*.log"))
    assert rows(tmp_path / "out", "leader_change")[0]["cluster_id"] == "a/b"


def test_another_topics_log_and_a_foreign_snapshot_are_not_used(tmp_path: Path) -> None:
    days = LogOfDays(2)
    directory = days.write(tmp_path / "in", 1, snapshots=(20,))
    foreign = LogOfDays(2, first=FIRST + timedelta(minutes=7)).snapshot(25)
    (directory / f"{25:020d}-{1:010d}.checkpoint").write_bytes(foreign)
    (directory / f"{22:020d}-{1:010d}.checkpoint").write_bytes(days.snapshot(22)[:-9])
    other = days.write(tmp_path / "in/other", 2)
    (other / "partition.metadata").write_text("version: 0\ntopic_id: abc\n")
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert plan.logs["c"].proof.end == 20
    reasons = " ".join(str(each.reason) for each in plan.quarantined)
    assert len(plan.quarantined) == 3
    for what in ("another log (its id is abc)", "it is of another log", "cut short"):
        assert what in reasons


def polled(directory: Path, hours: range) -> None:
    """Writes what a recorder saw that polled each hour, three seconds late."""
    clock = FakeClock()
    clock.now = FIRST + timedelta(hours=hours[0], seconds=3)
    cache = FakeCache(clock, "c")
    cache.add_broker(1)
    cache.add_topic("orders", uuid_text(7), [1 + hours[0] % 2])
    cache.set_leader("orders", 0, 1 + hours[0] % 2, epoch=hours[0])
    with Recorder(cache, directory, clock=clock, max_gap=7200.0) as recorder:
        recorder.observe()
        for hour in hours[1:]:
            clock.pass_seconds(3600)
            cache.set_leader("orders", 0, 1 + hour % 2)
            recorder.observe()


def test_recordings_tell_of_what_the_log_lacks(tmp_path: Path) -> None:
    days = LogOfDays(3)
    directory = days.write(tmp_path / "in/n1", 1, cuts=(14, 20), snapshots=(20, 40, 50))
    (directory / f"{14:020d}.log").unlink()  # the hours 10 to 15
    polled(tmp_path / "in/polled", range(5, 31))
    made(tmp_path / "in", tmp_path / "out")
    changes = {row["new_leader_epoch"]: row for row in rows(tmp_path / "out", "leader_change")}
    assert sorted(changes) == list(range(1, 46))
    for epoch, row in changes.items():
        is_in_log, is_polled = not 10 <= epoch <= 15, 6 <= epoch <= 30
        assert row["offset"] == (4 + epoch if is_in_log else None)
        late = timedelta(seconds=0 if is_in_log else 3)
        assert row["observed_at"] == FIRST + timedelta(hours=epoch) + late
        assert (row["elections"], row["recordings"]) == (1, is_in_log + is_polled)
        assert row["spread_us"] == (3_000_000 if is_in_log and is_polled else None)
    found = sorted(rows(tmp_path / "out", "partition_interval"), key=lambda row: row["began_at"])
    for before, after in pairwise(found):
        assert before["ended_at"] <= after["began_at"]
    until_told = 3_000_000  # from the hole on, nothing is known until the recording has news
    assert sum(row["us"] for row in found) == 45 * 3_600_000_000 - until_told


def test_unknown_records_and_clocks_that_go_back_are_counted(tmp_path: Path) -> None:
    days = LogOfDays(1)
    unknown = (None, b"\1\x7f\0\0")
    days.log._add([unknown], False)
    days.elect(FIRST + timedelta(hours=13), 12)  # the next day, which the clock leaves again
    days.elect(FIRST + timedelta(hours=1), 13)
    source = days.write(tmp_path / "in", 1).parent
    name = f"{days.end:020d}-{1:010d}.checkpoint"
    (source / LOG / name).write_bytes(snapshot([], 1, days.log.time_ms - 1000))
    answer = json.loads(run("pipeline", "silver", str(source), str(tmp_path / "out"), "--json").out)
    (log,) = answer["logs"]
    assert (log["nodes"], log["clocks_back"], log["proven_to"]) == ([1], 1, days.end)
    assert (log["waits"], log["holes"]) == (None, [])
    found = {row["offset"]: row for row in rows(tmp_path / "out", "leader_change")}
    assert [found[offset]["observed_at"] for offset in (17, 18)] == [
        FIRST + timedelta(hours=13)
    ] * 2
    files = sorted(look(tmp_path / "out").files, key=lambda each: each.observed_from)
    assert [each.unknown_records for each in files] == [1, None]
    assert rows(tmp_path / "out", "partition_interval")[0]["partial"]
    done = run("pipeline", "silver", str(source), str(tmp_path / "new"))
    assert "the types of 1 records" in done.err


def test_a_dry_run_names_copies_and_days(tmp_path: Path) -> None:
    days = LogOfDays(2)
    days.write(tmp_path / "in", 1, cuts=(20,), snapshots=(30,))
    shown = run("pipeline", "all", str(tmp_path / "in"), str(tmp_path / "out"), "--dry-run").out
    assert "bronze/cluster=c/log/node=1/quorum-state" in shown
    assert "2026-11-22,2026-11-23\tlog" in shown
    assert not (tmp_path / "out").exists()


def test_a_record_that_contradicts_the_state_ends_what_counts(tmp_path: Path) -> None:
    days = LogOfDays(2)
    about = {"partitionId": 7, "topicId": uuid_text(7), "leader": 1}
    days.log.append(("PARTITION_CHANGE_RECORD", 0, about))
    bad = days.end - 1
    days.elect(FIRST + timedelta(hours=37), 37)
    source = days.write(tmp_path / "in", 1).parent
    name = f"{days.end:020d}-{1:010d}.checkpoint"
    (source / LOG / name).write_bytes(snapshot([], 1, days.log.time_ms - 1000))
    plan = made(source, tmp_path / "out").plan
    (fault,) = plan.quarantined
    assert f"offset {bad}" in str(fault.reason)
    assert [hole[:2] for hole in plan.logs["c"].holes] == [(bad, days.end)]
    assert max(row["offset"] for row in rows(tmp_path / "out", "leader_change")) == bad - 1
    before = tree(tmp_path / "out")
    assert made(source, tmp_path / "out").plan.log_tasks == ()
    assert tree(tmp_path / "out") == before


def test_a_snapshot_of_a_leader_proves_and_restarts_as_any_other(tmp_path: Path) -> None:
    """Its header has the time of the append, which is behind that of the batch."""
    made_by = {"in": 47, "wanted": 0}
    for name, late_ms in made_by.items():
        days = LogOfDays(3)
        directory = days.write(tmp_path / name, 1, cuts=(14,), snapshots=(30, days.end))
        (directory / f"{0:020d}.log").unlink()
        days.log.ends = [(*each[:2], each[2] + late_ms, each[3]) for each in days.log.ends]
        for end in (30, days.end):
            (directory / f"{end:020d}-{1:010d}.checkpoint").write_bytes(days.snapshot(end))
        log = made(tmp_path / name, tmp_path / f"out-{name}").plan.logs["c"]
        assert log.proof.end == KraftLog(tmp_path / name).proven == days.end
    assert pipeline.check(tmp_path / "out-in") == []
    found, wanted = (rows(tmp_path / f"out-{name}", "leader_change") for name in made_by)
    assert found == wanted != []


def test_a_snapshot_that_the_log_contradicts_is_not_used(tmp_path: Path) -> None:
    days = LogOfDays(3)
    directory = days.write(tmp_path / "in", 1, snapshots=(20, days.end))
    time_ms = next(each[2] for each in days.log.ends if each[1] == 30)
    (directory / f"{30:020d}-{1:010d}.checkpoint").write_bytes(snapshot([], 1, time_ms))
    plan = made(tmp_path / "in", tmp_path / "out").plan
    (bad,) = plan.quarantined
    assert "a replay from it fails" in str(bad.reason)
    assert bad.name.endswith(f"{30:020d}-{1:010d}.checkpoint")
    days.write(tmp_path / "whole", 1, snapshots=(days.end,))
    made(tmp_path / "whole", tmp_path / "wanted")
    assert recordings(tmp_path / "out") == recordings(tmp_path / "wanted")
    before = tree(tmp_path / "out")
    made(tmp_path / "in", tmp_path / "out")
    assert tree(tmp_path / "out") == before


def test_a_live_log_that_goes_on_is_copied_once_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = LogOfDays(2)
    directory = days.write(tmp_path / "in", 1, end=20, snapshots=(20,))
    attempt = attempting.attempt

    def while_it_grows(task: AnyTask) -> Any:
        days.write(tmp_path / "in", 1, end=30, snapshots=(30,))
        return attempt(task)

    monkeypatch.setattr(attempting, "attempt", while_it_grows)
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert plan.logs["c"].proof.end == 20
    copy = tmp_path / f"out/bronze/cluster=c/log/node=1/{0:020d}.log"
    assert (directory / copy.name).read_bytes().startswith(copy.read_bytes())
    made(tmp_path / "in", tmp_path / "out")
    assert max(row["offset"] for row in rows(tmp_path / "out", "leader_change")) == 29
    assert pipeline.check(tmp_path / "out") == []


def test_a_longer_copy_must_agree_with_the_shorter_one(tmp_path: Path) -> None:
    days, other = LogOfDays(2), LogOfDays(2, first=FIRST + timedelta(minutes=1))
    days.write(tmp_path / "in", 1, end=20, snapshots=(20,))
    made(tmp_path / "in", tmp_path / "out")
    shutil.rmtree(tmp_path / "in")
    other.write(tmp_path / "in", 1, end=30)
    (bad,) = made(tmp_path / "in", tmp_path / "out").plan.quarantined
    assert "the batch at offset 0 differs" in str(bad.reason)
    copy = tmp_path / f"out/bronze/cluster=c/log/node=1/{0:020d}.log"
    assert copy.read_bytes() == days.segment(0, 20)


def test_a_tail_that_a_node_cut_off_is_replaced(tmp_path: Path) -> None:
    days, later = LogOfDays(2), LogOfDays(1)
    days.write(tmp_path / "in", 1, snapshots=(15,))
    made(tmp_path / "in", tmp_path / "out")
    later.log.lead(2, 1)
    later.elect(FIRST + timedelta(hours=14), 12)
    source = later.write(tmp_path / "in", 1)
    (source / f"{later.end:020d}-{2:010d}.checkpoint").write_bytes(later.snapshot(later.end))
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert (plan.quarantined, plan.logs["c"].proof.end) == ((), later.end)
    found = rows(tmp_path / "out", "leader_change")
    assert (found[-1]["offset"], found[-1]["observed_at"]) == (17, FIRST + timedelta(hours=14))


def test_a_tail_of_a_node_that_began_anew_with_a_snapshot_does_not_count(tmp_path: Path) -> None:
    """Its copies go on behind a hole, and what proves those proves nothing before it."""
    days, later = LogOfDays(2), LogOfDays(1)
    source = days.write(tmp_path / "in/n1", 1, cuts=(14,), end=20, snapshots=(10,))
    made(tmp_path / "in", tmp_path / "out")
    later.log.lead(2, 2)
    for hour in range(14, 50):
        later.elect(FIRST + timedelta(hours=hour), hour)
    shutil.rmtree(source)
    later.write(tmp_path / "in/n1", 1, first=40, snapshots=(40, later.end))
    log = made(tmp_path / "in", tmp_path / "out").plan.logs["c"]
    assert log.proof.end == later.end
    assert log.holes == (
        (10, 40, "offsets 10 to 19 of node 1 are not proven, and it began anew at 40"),
    )
    found = [row["offset"] for row in rows(tmp_path / "out", "leader_change")]
    assert found == [*range(5, 10), *range(40, later.end)]
    later.write(tmp_path / "in/n2", 2)
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert (plan.quarantined, plan.logs["c"].holes, plan.logs["c"].aside) == ((), (), ())
    found = [row["offset"] for row in rows(tmp_path / "out", "leader_change")]
    assert found == [each for each in range(5, later.end) if each != 16]
    assert pipeline.check(tmp_path / "out") == []


def test_a_quorum_state_proves_only_copies_that_are_older(tmp_path: Path) -> None:
    days = LogOfDays(2)
    for node in (1, 2):
        days.write(tmp_path / f"old/n{node}", node, end=20)
    made(tmp_path / "old", tmp_path / "out")
    for node in (1, 2):
        (days.write(tmp_path / f"new/n{node}", node) / "quorum-state").unlink()
    proof = made(tmp_path / "new", tmp_path / "out").plan.logs["c"].proof
    assert (proof.end, "made of it before" in proof.by) == (20, True)
    plan = made(tmp_path / "old", tmp_path / "out").plan  # which was read before those
    assert (plan.copies, plan.logs["c"].proof.end) == ((), 20)
    for node in (1, 2):
        days.write(tmp_path / f"new/n{node}", node)
    assert made(tmp_path / "new", tmp_path / "out").plan.logs["c"].proof.end == days.end


def test_a_segment_whose_batches_others_have_is_a_duplicate(tmp_path: Path) -> None:
    days, source, out = LogOfDays(3), tmp_path / "in", tmp_path / "out"
    days.write(source / "n1", 1, cuts=(10, 40))
    days.write(source / "n2", 2, cuts=(25, 45))
    days.write(source / "n3", 3, cuts=(10, 50), end=55)
    plan = made(source, out).plan
    assert plan.logs["c"].proof.end == days.end
    found = {each.name: each.reason for each in plan.files if each.state == "duplicate"}
    # Bronze keeps the longest segment of each first offset, and the newest one of each node.
    names = [
        f"{node}/{LOG}/{first:020d}.log" for node, first in (("n1", 0), ("n1", 10), ("n2", 25))
    ]
    assert sorted(found) == [*names, f"n3/{LOG}/{0:020d}.log"]
    assert found[names[2]] == f"its batches are in bronze/cluster=c/log/node=3/{10:020d}.log"
    before = tree(out)
    assert made(source, out).made == []
    assert tree(out) == before
    shutil.rmtree(source)
    days.write(tmp_path / "whole", 1, snapshots=(days.end,))
    made(tmp_path / "whole", tmp_path / "wanted")
    assert recordings(out) == recordings(tmp_path / "wanted")


def test_copies_of_logs_are_read_by_no_more_people_than_the_logs(tmp_path: Path) -> None:
    directory = LogOfDays(1).write(tmp_path / "in", 1)
    (directory / f"{0:020d}.log").chmod(0o600)
    made(tmp_path / "in", tmp_path / "out")
    (copy,) = (tmp_path / "out").rglob("*.log")
    assert copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 30))]
)
def test_random_files_of_three_nodes_give_what_they_prove(seed: int, tmp_path: Path) -> None:
    random, days = Random(seed), LogOfDays(3)
    batches = [0, 1, *range(5, days.end)]
    known: set[int] = set()
    ends: list[int] = []
    snapshots: set[int] = set()
    for node in (1, 2, 3):
        end = random.randrange(20, days.end + 1)
        cuts = sorted(random.sample(range(6, end), 4))
        made_at = set(random.sample(range(6, end + 1), random.randrange(3)))
        directory = days.write(
            tmp_path / f"in/n{node}", node, cuts=cuts, snapshots=made_at, end=end
        )
        reached = 0
        for first, behind in pairwise([0, *cuts, end]):
            path, last = directory / f"{first:020d}.log", behind
            if random.random() < 0.3:
                path.unlink()
                continue
            if random.random() < 0.2:
                last = random.choice([each for each in batches if first <= each < behind])
                data = bytearray(path.read_bytes())
                data[len(days.segment(first, last)) + 70] ^= 1
                path.write_bytes(bytes(data))
            known |= set(range(first, last))
            reached = max(reached, last) if last > first else reached
        snapshots |= made_at
        ends.append(max([reached, *made_at]) if reached else 0)
    held = sorted((each for each in ends if each), reverse=True)
    # The record at offset 0 names the voters.
    proven = max([0, *snapshots, *(held[1:2] if 0 in known else [])])
    wanted, has_state = [], False
    for offset in range(proven):
        has_state = offset in known and (has_state or offset == 0 or offset in snapshots)
        if has_state and offset >= 5:
            wanted.append(offset)
    if not any(path.suffix == ".log" for path in (tmp_path / "in").rglob("*")):
        return
    plan = made(tmp_path / "in", tmp_path / "out").plan
    assert plan.logs["c"].proof.end == proven
    found = rows(tmp_path / "out", "leader_change") if plan.days else []
    assert [row["offset"] for row in found] == wanted
    assert pipeline.check(tmp_path / "out") == []


@pytest.mark.slow
@pytest.mark.parametrize("count", range(1, 40, 1 if EVERY_RENAME else 5))
def test_a_run_that_was_killed_goes_on(count: int, tmp_path: Path) -> None:
    days = LogOfDays(3)
    source, out = tmp_path / "in", tmp_path / "out"
    days.write(source, 1, end=30, snapshots=(30,))
    made(source, out)
    days.write(source, 1, snapshots=(days.end,))
    words = [sys.executable, str(KILLED), str(source), str(out), str(count)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == str(count):
                break
        process.kill()
    made(source, out)
    days.write(tmp_path / "whole", 1, snapshots=(days.end,))
    made(tmp_path / "whole", tmp_path / "wanted")
    assert recordings(out) == recordings(tmp_path / "wanted")
    assert silver(out) == silver(tmp_path / "wanted")
    assert pipeline.check(out) == []
