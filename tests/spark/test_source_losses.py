"""What a stream does about files that are gone or damaged, and about offsets of somebody else."""

from __future__ import annotations

import json
import logging
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from history_files import record
from recorded import cluster_day
from stream_plans import Stream

from rdmeta import history, pipeline
from rdmeta.history import HistoryError
from rdmeta.history import opening as history_opening
from rdmeta.pipeline.store import Store
from rdmeta.spark.source import files, folder_feed, streaming
from rdmeta.spark.source.folder_feed import DataLossError, Offset, OffsetError, Position


def options(root: Path, **more: str) -> dict[str, str]:
    return {"path": str(root), **more}


def session_of(root: Path) -> str:
    (recording,) = history.recordings(root)
    return recording.session


def unended(root: Path, changes: int = 3) -> list[Path]:
    """Writes a recording of which the last file is not there yet; returns the others' paths."""
    *paths, last = record(root, "one", changes=changes)
    last.unlink()
    return paths


@pytest.fixture
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets recordings of the past be ones that may go on."""
    monkeypatch.setattr(folder_feed, "_OVER", 1 << 62)


# ---- what is gone -------------------------------------------------------------------------------


def test_a_recording_that_is_read_to_its_end_may_be_deleted(tmp_path: Path) -> None:
    record(tmp_path, "one", changes=3)
    stream = Stream(options(tmp_path))
    stream.drain()
    for path in sorted(tmp_path.rglob("*.parquet")):
        path.unlink()
        assert stream.batch() is None
    record(tmp_path, "two")
    assert stream.drain() == [history.read(tmp_path).num_rows]


def test_a_recorder_that_was_killed_leaves_a_recording_that_may_be_deleted(tmp_path: Path) -> None:
    unended(tmp_path)
    stream = Stream(options(tmp_path))
    stream.drain()
    shutil.rmtree(tmp_path / "cluster=one")
    assert stream.batch() is None


@pytest.mark.usefixtures("young")
def test_a_recording_that_is_gone_before_its_end_is_an_error(tmp_path: Path) -> None:
    unended(tmp_path)
    session = session_of(tmp_path)
    stream = Stream(options(tmp_path))
    stream.drain()
    version = history.files(tmp_path)[-1].until
    shutil.rmtree(tmp_path / "cluster=one")
    with pytest.raises(DataLossError) as caught:
        stream.batch()
    assert f"recording {session} of cluster one: it is gone, and its versions after" in str(
        caught.value
    )
    assert f"after {version} with it. Put the files back, or" in str(caught.value)
    assert "failOnDataLoss=false" in str(caught.value)


@pytest.mark.usefixtures("young")
def test_a_stream_that_may_lose_data_warns_once_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unended(tmp_path)
    session = session_of(tmp_path)
    stream = Stream(options(tmp_path, failOnDataLoss="false"))
    stream.drain()
    shutil.rmtree(tmp_path / "cluster=one")
    record(tmp_path, "two")
    with caplog.at_level(logging.WARNING):
        assert stream.drain() == [history.read(tmp_path).num_rows]
        assert stream.batch() is None
    (told,) = (each.getMessage() for each in caplog.records)
    assert f"recording {session} of cluster one: it is gone" in told
    assert told.endswith("the stream goes on without these rows")


@pytest.mark.usefixtures("young")
@pytest.mark.parametrize("number", [0, 1])
def test_a_file_that_is_gone_below_others_is_an_error_with_its_versions(
    tmp_path: Path, number: int
) -> None:
    paths = unended(tmp_path, 4)
    session = session_of(tmp_path)
    gone = history.files(tmp_path)[number]
    stream = Stream(options(tmp_path, maxFilesPerTrigger="2"))
    stream.batch()
    paths[number].unlink()
    versions = f"its versions {gone.since} to {gone.until} are gone"
    with pytest.raises(DataLossError, match=f"recording {session} of cluster one: {versions}"):
        stream.batch()
    stream.restart(options(tmp_path, failOnDataLoss="false"))
    assert stream.batch() is None


@pytest.mark.usefixtures("young")
def test_a_recording_that_has_become_shorter_is_an_error(tmp_path: Path) -> None:
    paths = unended(tmp_path)
    stream = Stream(options(tmp_path))
    count = sum(stream.drain())
    paths[-1].unlink()
    with pytest.raises(DataLossError, match=f"the stream has read {count}, up to version"):
        stream.batch()


@pytest.mark.parametrize("step", ["tasks", "read"])
def test_rows_of_a_batch_in_the_checkpoint_that_are_gone_are_an_error(
    tmp_path: Path, step: str
) -> None:
    """Also where the recording has ended."""
    record(tmp_path, "one", changes=3)
    session = session_of(tmp_path)
    stream = Stream(options(tmp_path))
    stream.plan()
    if step == "tasks":
        stream.restart(options(tmp_path))
        shutil.rmtree(tmp_path / "cluster=one")
        with pytest.raises(DataLossError, match=f"recording {session} of cluster one"):
            stream.tasks()
        return
    tasks = stream.tasks()
    shutil.rmtree(tmp_path / "cluster=one")
    with pytest.raises(DataLossError, match=f"recording {session} of cluster one: its rows"):
        stream.read(tasks)


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """It may be a disk that is not mounted, so no option lets the stream go on."""
    record(tmp_path / "history", "one")
    stream = Stream(options(tmp_path / "history", failOnDataLoss="false"))
    stream.drain()
    (tmp_path / "history").rename(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="there is no such folder"):
        stream.batch()


# ---- what is damaged ----------------------------------------------------------------------------


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_damaged_file_ends_the_stream_with_its_name(tmp_path: Path, fails: str) -> None:
    paths = record(tmp_path, "one", changes=3)
    stream = Stream(options(tmp_path, maxRowsPerTrigger="2", failOnDataLoss=fails))
    stream.batch()
    paths[2].write_bytes(paths[2].read_bytes()[:-1])
    with pytest.raises(HistoryError, match=f"{paths[2].name}: not a whole Parquet file"):
        stream.batch()


def test_a_file_with_damaged_pages_ends_the_stream_with_its_name(tmp_path: Path) -> None:
    """Plans read footers alone, so the task finds it."""
    paths = record(tmp_path, "one", changes=3)
    content = bytearray(paths[1].read_bytes())
    content[4:400] = bytes(396)
    paths[1].write_bytes(content)
    with pytest.raises(HistoryError, match=paths[1].name):
        Stream(options(tmp_path)).batch()


def test_a_damaged_file_of_another_cluster_does_not_matter(tmp_path: Path) -> None:
    record(tmp_path, "one")
    rows = history.read(tmp_path).num_rows
    path = record(tmp_path, "two")[1]
    path.write_bytes(b"PAR1")
    assert Stream(options(tmp_path, cluster="one")).drain() == [rows]


# ---- offsets ------------------------------------------------------------------------------------


def test_an_offset_is_the_same_after_json() -> None:
    positions = {("a/b", "s"): Position(7, 31, True), ("ä", "t"): Position()}
    for offset in (
        Offset(positions),
        Offset(positions, is_initial=True),
        Offset(positions, begin={("a/b", "s"): Position(1, 2)}),
    ):
        assert Offset.parse(json.loads(json.dumps(offset.as_json()))) == offset


GOOD = {"version": 1, "rows": 2, "ended": False}


def one(**changed: Any) -> dict[str, Any]:
    return {"format": 1, "recordings": {"c": {"s": {**GOOD, **changed}}}}


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (None, "it is null, not an object"),
        ([], r"it is \[\], not an object"),
        ({}, "its format is null"),
        ({"format": 2, "recordings": {}}, "its format is 2, and this version of rdmeta reads"),
        ({"topic": {"0": 17}}, "its format is null"),
        ({"format": 1}, "recordings is null, not an object"),
        ({"format": 1, "recordings": {}, "more": 1}, 'it has an unknown entry "more"'),
        ({"format": 1, "recordings": {}, "initial": 1}, "initial is 1, not true or false"),
        ({"format": 1, "recordings": {}, "begin": 3}, "begin is 3, not an object"),
        ({"format": 1, "recordings": {"c": 5}}, 'recordings of cluster "c" is 5, not an object'),
        ({"format": 1, "recordings": {"c": {"s": 5}}}, 'recording "s" is 5, not an object'),
        (one(more=1), "not version, rows, ended"),
        (one(rows=-1), 'rows of recording "s" is -1, not a number from 0'),
        (one(rows=1 << 63), "not a number from 0"),
        (one(rows=True), "is true, not a number"),
        (one(rows=1.5), "is 1.5, not a number"),
        (one(version="7"), 'version of recording "s" is "7", not a number'),
        (one(ended=0), 'ended of recording "s" is 0, not true or false'),
        (one(version="7" * 999), "7[.]{3}, not a number"),
    ],
)
def test_a_damaged_offset_is_an_error_that_says_what_is_wrong(told: Any, problem: str) -> None:
    with pytest.raises(OffsetError, match=f"offset is damaged, .*: .*{problem}"):
        Offset.parse(told)


def test_an_offset_that_runs_backwards_is_an_error(tmp_path: Path) -> None:
    record(tmp_path, "one", changes=3)
    stream = Stream(options(tmp_path, maxRowsPerTrigger="2"))
    stream.drain()
    with pytest.raises(OffsetError, match="runs backwards: recording .* goes from row 4 to 2"):
        stream.reader.partitions(json.loads(stream.log[1]), json.loads(stream.log[0]))


# ---- what is not read ---------------------------------------------------------------------------


def test_cluster_topic_and_time_choose_rows(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        for cluster in ("one", "two"):
            cluster_day(tmp_path, cluster, day)
    since = datetime(2026, 11, 2, 1, 0, 5, tzinfo=timezone.utc)
    until = since + timedelta(days=1)
    limits = {"since": since.isoformat(), "until": until.isoformat(), "cluster": "two"}
    stream = Stream(options(tmp_path, topic="topic-1", maxRowsPerTrigger="3", **limits))
    stream.drain()
    wanted = history.read(tmp_path, cluster_id="two", since=since, until=until).to_pylist()
    assert stream.rows == [row for row in wanted if row["topic"] == "topic-1"]
    assert len(stream.rows) > 3


def test_files_that_cannot_match_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (1, 2, 3):
        for cluster in ("one", "two"):
            cluster_day(tmp_path, cluster, day)
    seen: list[str] = []
    opened = history_opening._opened

    def noted(path: Path, source: Any, size: int) -> Any:
        seen.append(str(path))
        return opened(path, source, size)

    monkeypatch.setattr(history_opening, "_opened", noted)
    Stream(options(tmp_path, cluster="two", since="2026-11-02T00:01Z", until="2026-11-03")).drain()
    assert seen
    assert {Path(each).parent for each in seen} == {tmp_path / "cluster=two/day=2026-11-02"}


def test_files_of_a_recording_without_a_part_in_the_time_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [path.name for path in record(tmp_path, "one", changes=5)]
    last = history.files(tmp_path)[-2].observed_to
    seen: list[str] = []
    opened = files.opened

    def noted(store: Store, name: str) -> Any:
        seen.append(name.rpartition("/")[2])
        return opened(store, name)

    monkeypatch.setattr(streaming, "opened", noted)
    stream = Stream(options(tmp_path, since=last.isoformat(), maxFilesPerTrigger="2"))
    assert len(stream.drain()) == 1
    assert seen == every[-2:]
    assert stream.rows == history.read(tmp_path, since=last).to_pylist()


def test_a_plan_reads_footers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, "one", changes=3)

    def refused(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the plan reads rows")

    for name in ("iter_batches", "read", "read_row_group", "read_row_groups"):
        monkeypatch.setattr(pq.ParquetFile, name, refused)
    stream = Stream(options(tmp_path, maxRowsPerTrigger="4"))
    stream.plan()
    assert len(stream.tasks()) == 1


def test_tasks_are_packs_of_small_files_and_parts_of_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, "one", changes=20)
    rows = history.read(tmp_path).num_rows
    for compacted in (False, True):
        if compacted:
            history.compact(tmp_path)
        monkeypatch.setattr(files, "PACK_BYTES", 32 << 20)
        assert len(tasks_of(tmp_path)) == 1
        for module in (files, streaming):
            monkeypatch.setattr(module, "PACK_BYTES", 5 * files.ROW_BYTES)
        assert len(tasks_of(tmp_path)) == -(-rows // 5)
        stream = Stream(options(tmp_path))
        stream.drain()
        assert stream.rows == history.read(tmp_path).to_pylist()


def tasks_of(root: Path) -> list[Any]:
    stream = Stream(options(root))
    stream.plan()
    return stream.tasks()


def test_an_output_of_the_pipeline_is_a_stream_of_its_copies(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    pipeline.run(pipeline.plan([source], out), workers=1)
    stream = Stream(options(out))
    stream.drain()
    cluster_day(source, "one", 2)
    pipeline.run(pipeline.plan([source], out), workers=1)
    stream.drain()
    wanted = history.read(source).to_pylist()
    assert sorted(map(repr, stream.rows)) == sorted(map(repr, wanted))
