"""Records of metadata logs, and states at an offset or a time, by the reader and its tasks."""

from __future__ import annotations

import base64
import json
import shutil
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kraft_days import FIRST, LogOfDays
from kraft_logs import GOLDEN, LOG, LOGS, Made
from source_reads import read, reader_of, rows_of, tasks_of
from spark_releases import since
from stream_plans import Stream

from rdmeta import pipeline
from rdmeta.errors import ConfigError
from rdmeta.generate.logs import batch_of, snapshot
from rdmeta.kraft import KraftLog
from rdmeta.spark.source import logged
from rdmeta.spark.source.batch_reader import PushReader
from rdmeta.spark.source.files import ReadError
from rdmeta.spark.source.schemas import arrow_schema

filters: Any = pytest.importorskip("pyspark.sql.datasource")


def hours(count: float) -> str:
    return (FIRST + timedelta(hours=count)).isoformat()


def offsets(**given: str) -> list[int]:
    found: list[int] = sorted(read(table="records", **given)["offset"].to_pylist())
    return found


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """A log with an election per hour from offset 5 on; its first 30 offsets are on one node."""
    made = LogOfDays(4)
    made.write(tmp_path / "n1", 1, cuts=(30,), snapshots=(40, 60))
    made.write(tmp_path / "n2", 2, first=40, cuts=(70,), snapshots=(40, made.end))
    return tmp_path


# ---- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log.name))
@pytest.mark.parametrize("is_out", [False, True])
def test_records_are_those_that_the_log_proves(log: Made, is_out: bool, tmp_path: Path) -> None:
    source = GOLDEN / log.name
    wanted = KraftLog(source, proven=True).records().to_arrow()
    if is_out:
        pipeline.run(pipeline.plan([source], tmp_path), workers=1)
    found = read(path=str(tmp_path if is_out else source), table="records").sort_by("offset")
    assert found["offset"].to_pylist() == sorted({*found["offset"].to_pylist()})
    later = found.slice(found.num_rows - wanted.num_rows)
    for name in wanted.column_names:
        if name not in ("data", "broker"):
            assert later[name].to_pylist() == wanted[name].to_pylist(), name
    brokers = zip(*(each["broker"].to_pylist() for each in (later, wanted)), strict=True)
    for type, (ours, theirs) in zip(later["type"].to_pylist(), brokers, strict=True):
        # What a broker's configuration is about; a record of ids that one took is about none.
        assert ours == theirs or type in ("CONFIG_RECORD", "PRODUCER_IDS_RECORD")
    ours, theirs = (map(json.loads, each["data"].to_pylist()) for each in (later, wanted))
    assert list(ours) == list(theirs)
    assert all(Path(name).is_file() for name in set(found["file"].to_pylist()))


def test_pieces_are_cut_at_batches_and_packed(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(path=str(days), table="records")
    monkeypatch.setattr(logged, "_PIECE", 100)
    monkeypatch.setattr("rdmeta.spark.source.files.PACK_BYTES", 2_000)
    assert len(tasks_of(reader_of(path=str(days), table="records"))) > 5
    assert read(path=str(days), table="records") == whole
    assert {*whole["topic"].to_pylist()} == {None, "orders"}


def test_options_choose_records_and_pieces(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "_PIECE", 200)
    read_bytes: list[int] = []
    content = logged._content

    def counted(*about: Any) -> bytes:
        data = content(*about)
        read_bytes.append(len(data))
        return data

    monkeypatch.setattr(logged, "_content", counted)
    path = str(days)
    assert offsets(path=path, cluster="c", since=hours(10), until=hours(12)) == [14, 15]
    chosen = read_bytes[:]
    read_bytes.clear()
    assert len(offsets(path=path)) == 88
    assert sum(chosen) < 0.6 * sum(read_bytes)
    assert offsets(path=path, topic="orders")[:3] == [3, 4, 5]
    assert offsets(path=path, topic="others") == []
    with pytest.raises(ConfigError, match="option cluster = 'd': .* has c"):
        offsets(path=path, cluster="d")


@since("4.1")
def test_filters_choose_pieces(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "_PIECE", 200)
    monkeypatch.setattr("rdmeta.spark.source.files.PACK_BYTES", 1)

    def tasks(*each: Any) -> int:
        reader = reader_of(path=str(days), table="records", pushdown="true")
        assert isinstance(reader, PushReader)
        assert list(reader.pushFilters(list(each))) == list(each)
        return len(tasks_of(reader))

    every = tasks()
    assert every > 20
    assert tasks(filters.EqualTo(("cluster_id",), "d")) == 0
    assert tasks(filters.EqualTo(("topic",), "others")) == 0
    assert tasks(filters.EqualTo(("offset",), 20)) == 1
    assert tasks(filters.GreaterThan(("offset",), 80)) < 5
    assert tasks(filters.LessThan(("offset",), 20)) <= 10
    assert tasks(filters.LessThan(("time",), FIRST + timedelta(hours=10))) < 10


def test_columns_may_be_left_out(days: Path) -> None:
    reader = reader_of(path=str(days), table="records")
    schema = pa.schema([arrow_schema("records").field(name) for name in ("topic", "offset")])
    reader._columns = schema
    assert rows_of(reader, schema).num_rows == 88


def test_an_unknown_record_has_its_number_and_its_value(tmp_path: Path) -> None:
    made = LogOfDays(1)
    made.log.data += batch_of([(None, b"\1\x3c\0xyz")], made.end, made.log.epoch, made.log.time_ms)
    end = made.end
    made.write(tmp_path, 1)
    path = tmp_path / LOG / f"{0:020d}.log"
    path.write_bytes(bytes(made.log.data))
    about = (tmp_path / "meta.properties").read_text().replace("node.id=1", "node.id=2")
    shutil.copytree(tmp_path / LOG, tmp_path / "n2" / LOG)
    (tmp_path / "n2/meta.properties").write_text(about.partition("directory.id")[0])
    last = read(path=str(tmp_path), table="records", since=hours(11)).to_pylist()[-1]
    assert (last["offset"], last["type"], last["topic"]) == (end, "60", None)
    assert base64.b64decode(json.loads(last["data"])["raw"]) == b"\1\x3c\0xyz"


def test_secrets_are_hidden() -> None:
    found = read(path=str(GOLDEN / LOGS[0].name), table="records")
    texts = "".join(found["data"].to_pylist())
    assert '"***"' in texts
    shown = KraftLog(GOLDEN / LOGS[0].name, show_secrets=True).records(types=["config"])
    hidden = [each.data["value"] for each in shown if f'"{each.data["value"]}"' not in texts]
    assert hidden


# ---- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["brokers", "topics", "partitions", "replicas"])
def test_a_state_has_the_columns_and_rows_of_an_image(table: str) -> None:
    source = GOLDEN / "4.3.0"
    log = KraftLog(source, proven=True)
    points: list[tuple[dict[str, str], int | datetime]] = [({}, log.end)]
    for offset in (log.first_state + 40, log.end - 3):
        points.append(({"at": str(offset)}, offset))
        time = next(each.time for each in log.records(offset))
        points.append(({"at": time.isoformat()}, time))
    for given, at in points:
        image = log.state(at).image()
        wanted = pa.RecordBatchReader.from_stream(image.to_arrow(table)).read_all()  # type: ignore[arg-type]
        found = read(path=str(source), table=table, **given)
        shared = [name for name in found.column_names if name in wanted.column_names]
        assert len(shared) >= found.num_columns - 1
        assert found.num_rows == wanted.num_rows
        for name in shared:
            assert found[name].to_pylist() == wanted[name].to_pylist(), (name, given)
        assert {*found["cluster_id"].to_pylist()} == {log.cluster_id}


def test_configs_are_those_of_topics_without_secrets(tmp_path: Path) -> None:
    log = KraftLog(GOLDEN / "4.3.0", proven=True)
    wanted = sorted(
        (fact.data["resourceName"], fact.data["name"], fact.data["value"])
        for fact in log.state().facts("configs")
        if fact.data["resourceType"] == 2
    )
    found = read(path=str(GOLDEN / "4.3.0"), table="configs")
    assert wanted
    assert [tuple(row.values())[1:4] for row in found.to_pylist()] == wanted
    topic = wanted[0][0]
    some = read(path=str(GOLDEN / "4.3.0"), table="configs", topic=topic)
    assert {*some["topic"].to_pylist()} == {topic}


def test_a_state_follows_from_the_files_of_several_nodes(days: Path) -> None:
    for at, epoch in (("5", 0), ("6", 1), ("35", 30), ("88", 83), (hours(29.5), 29)):
        (row,) = read(path=str(days), table="partitions", at=at).to_pylist()
        assert row["leader_epoch"] == epoch
    (row,) = read(path=str(days), table="partitions", at="2030-01-01", topic="orders").to_pylist()
    assert row["leader_epoch"] == 83
    assert read(path=str(days), table="partitions", at="40", topic="others").num_rows == 0


def test_a_snapshot_that_a_replay_contradicts_is_passed_over(tmp_path: Path) -> None:
    days = LogOfDays(2)
    days.write(tmp_path, 1, snapshots=(10, days.end))
    path = tmp_path / LOG / "00000000000000000020-0000000001.checkpoint"
    ((time_ms, epoch),) = (each[2:] for each in days.log.ends if each[1] == 20)
    path.write_bytes(snapshot([], epoch, time_ms))  # it lacks the topic
    (row,) = read(path=str(tmp_path), table="partitions", at="25").to_pylist()
    assert row["leader_epoch"] == 20


def test_a_point_without_a_state_names_those_that_have_one(tmp_path: Path) -> None:
    days = LogOfDays(4)
    days.write(tmp_path / "n1", 1, first=20, end=40, snapshots=(30,))
    days.write(tmp_path / "n2", 2, first=60, snapshots=(60, days.end))
    there = "30 to 40 .2026-11-23 13:00.* UTC to .* UTC., 60 to 88"
    points = ["0", "29", "41", "59", "89", hours(-1), hours(24), hours(40), hours(54)]
    for at in points:
        with pytest.raises(ConfigError, match=f"option at = {at[:4]}.* has no state.*{there}"):
            read(path=str(tmp_path), table="topics", at=at)
    for at, epoch in (("30", 25), (hours(25), 25), (hours(34), 34), (hours(55), 55)):
        (row,) = read(path=str(tmp_path), table="partitions", at=at).to_pylist()
        assert row["leader_epoch"] == epoch, at


def test_a_snapshot_alone_gives_the_state_at_its_end(tmp_path: Path) -> None:
    days = LogOfDays(2)
    directory = days.write(tmp_path, 1, first=30, snapshots=(10, 39, days.end))
    for has_segment in (True, False):
        later = {"at": "2030-01-01"}
        ends = {"10": 5, "39": 34, str(days.end): 35}
        for given, epoch in (*(({"at": at}, ends[at]) for at in ends), ({}, 35), (later, 35)):
            (row,) = read(path=str(tmp_path), table="partitions", **given).to_pylist()
            assert row["leader_epoch"] == epoch, (has_segment, given)
        for at in ("9", "11", "38", "41", hours(10)):
            with pytest.raises(ConfigError, match="has no state there.* 10 .2026-11-22 17:00"):
                read(path=str(tmp_path), table="partitions", at=at)
        for path in directory.glob("*.log"):
            path.unlink()


def test_an_unproven_tail_has_neither_records_nor_states(tmp_path: Path) -> None:
    LogOfDays(2).write(tmp_path, 1, snapshots=(20,))
    assert offsets(path=str(tmp_path))[-1] == 19
    with pytest.raises(ConfigError, match="0 to 20 .*; offsets 20 to 39 are not proven"):
        read(path=str(tmp_path), table="topics", at="21")


# ---- what cannot be read ------------------------------------------------------------------------


def test_a_folder_without_logs_says_so(tmp_path: Path) -> None:
    for table in ("records", "topics"):
        with pytest.raises(ConfigError, match="there are no metadata logs"):
            read(path=str(tmp_path), table=table)
    with pytest.raises(ConfigError, match="there is no such folder"):
        read(path=str(tmp_path / "none"), table="records")


def test_an_out_without_copies_says_where_to_look(days: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.run(pipeline.plan([days / "n1"], out, in_place=True), workers=1)
    with pytest.raises(ConfigError, match="none were copied to its bronze; give the folder"):
        offsets(path=str(out))


def test_damage_names_the_file_and_what_to_do(days: Path, tmp_path: Path) -> None:
    path = days / "n1" / LOG / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    with pytest.raises(ReadError, match=f"{path}: .*CRC is wrong.*which sets it aside"):
        offsets(path=str(days))
    shutil.copytree(days, tmp_path / "in", ignore=shutil.ignore_patterns("in", "out"))
    pipeline.run(pipeline.plan([tmp_path / "in"], tmp_path / "out"), workers=1)
    assert len(offsets(path=str(tmp_path / "out"))) > 50


def test_a_file_that_changes_before_its_task_is_an_error(days: Path) -> None:
    reader = reader_of(path=str(days), table="records")
    tasks = tasks_of(reader)
    for path in days.rglob("*.log"):
        path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ReadError, match="read again"):
        list(chain.from_iterable(reader.read(task) for task in tasks))


# ---- changes and streams ------------------------------------------------------------------------


def test_a_recording_that_becomes_longer_is_a_stream_that_goes_on(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    days = LogOfDays(3)

    def grown(end: int) -> None:
        days.write(source, 1, end=end, snapshots=(end,))
        pipeline.run(pipeline.plan([source], out), workers=1)

    grown(20)
    stream = Stream({"path": str(out)})
    stream.drain()
    for end in (30, days.end):
        grown(end - 1)
        assert stream.plan()
        grown(end)  # the planned rows lie in another file now
        stream.restart({"path": str(out)})
        stream.drain()
        rows = read(path=str(out)).to_pylist()
        # The stream leaves out until when an open day has been seen.
        wanted = [r for r in rows if r["kind"] != "observed_to" or r["observed_at"].hour == 0]
        assert sorted(map(repr, stream.rows)) == sorted(map(repr, wanted))
    found = sorted(row["offset"] for row in stream.rows if row["kind"] == "leader_changed")
    assert found == [*range(5, days.end)]


def test_controllers_are_a_table_of_silver_as_any_other(days: Path, tmp_path: Path) -> None:
    out = tmp_path / "tables"
    pipeline.run(pipeline.plan([days / "n1", days / "n2"], out), workers=1)
    for path in (out, out / "bronze"):
        rows = read(path=str(path), table="controller").to_pylist()
        assert {(row["broker"], row["epoch"]) for row in rows} == {(1, 1)}
    assert read(path=str(out / "bronze")).num_rows == read(path=str(out)).num_rows > 88
