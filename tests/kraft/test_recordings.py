"""Recordings of a log: a file for each day, which follows from the log alone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import run
from kraft_cluster import Cluster, random_node, snapshot_of
from kraft_logs import GOLDEN, LOGS, Made

import rdmeta
from rdmeta.generate.logs import Given, Log, uuid_text
from rdmeta.history import HistoryError, HistoryFile, look, recordings, verify
from rdmeta.history.columns import rows_of
from rdmeta.kraft import KraftError, KraftLog

NOON = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
MIDNIGHT = NOON + timedelta(hours=12)
TOPIC: Given = ("TOPIC_RECORD", 0, {"name": "orders", "topicId": uuid_text(7)})


def partition(leader: int) -> Given:
    lists = {"replicas": [1, 2], "isr": [leader], "removingReplicas": [], "addingReplicas": []}
    data = {"partitionId": 0, "topicId": uuid_text(7), "leader": leader, **lists}
    return ("PARTITION_RECORD", 0, {**data, "leaderEpoch": leader, "partitionEpoch": leader})


def leads(leader: int) -> Given:
    about = {"partitionId": 0, "topicId": uuid_text(7), "leader": leader}
    return ("PARTITION_CHANGE_RECORD", 0, about)


def ms(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


class Written:
    """A log, of which each batch has a time that the test chooses; all of it is proven."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = Log()

    def add(self, time: datetime, *records: Given) -> None:
        self.log.time_ms = ms(time)
        self.log.append(*records)

    def opened(self) -> KraftLog:
        self.directory.mkdir(exist_ok=True)
        for file in self.directory.glob("*"):
            file.unlink()
        (self.directory / self.log.name).write_bytes(bytes(self.log.data))
        name, data = snapshot_of(self.log)
        (self.directory / name).write_bytes(data)
        return KraftLog(self.directory, cluster_id="a/b")


def recorded(log: KraftLog, directory: Path) -> list[HistoryFile]:
    """Records a log; returns the verified files."""
    return [verify(path).file for path in rdmeta.kraft.record(log, directory)]


def kinds(file: HistoryFile) -> list[tuple[str, datetime, int | None]]:
    rows = pq.read_table(file.path).to_pylist()
    return [(row["kind"], row["observed_at"], row["offset"]) for row in rows]


@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_a_recording_has_the_changes_of_its_log(made: Made, tmp_path: Path) -> None:
    log = KraftLog(GOLDEN / made.name)
    (file,) = recorded(log, tmp_path)
    rows = pq.read_table(file.path).to_pylist()
    wanted = [
        (change.version, change.observed_at, change.kind, change.offset, change.source_broker)
        for change in log.changes()
    ]
    names = ("version", "observed_at", "kind", "offset", "source_broker")
    assert [tuple(row[name] for name in names) for row in rows[1:-1]] == wanted
    assert (rows[0]["kind"], rows[-1]["kind"]) == ("observed_from", "observed_to")
    assert (file.source, file.ended_by, file.until) == ("log", "closed", log.proven)
    assert (file.observed_from, file.observed_to) == (log.epochs[0].began, log.epochs[-1].ended)
    unseen = [row["unseen_us"] for row in rows if row["kind"] == "controller_changed"]
    assert unseen == [epoch.leaderless_us for epoch in log.epochs]
    elections = [each for each in log.changes() if each.kind == "controller_changed"]
    assert [each.unseen_us for each in elections] == unseen
    assert [us for us in rows_of(log.changes())["unseen_us"].to_pylist() if us] == unseen[1:]
    assert b"m4rked" not in file.path.read_bytes()
    before = file.path.read_bytes()
    assert recorded(KraftLog(GOLDEN / made.name, show_secrets=True), tmp_path) == [file]
    assert file.path.read_bytes() == before


def test_each_day_begins_with_the_whole_state(tmp_path: Path) -> None:
    made = Written(tmp_path / "log")
    made.add(NOON, TOPIC, partition(1))
    made.add(MIDNIGHT - timedelta(milliseconds=1), leads(2))
    made.add(MIDNIGHT, leads(1))
    made.add(MIDNIGHT + timedelta(days=2, hours=1), leads(2))
    files = recorded(made.opened(), tmp_path / "out")
    days = [MIDNIGHT + timedelta(days=day) for day in range(3)]
    assert [file.observed_from for file in files] == [NOON, *days]
    assert [file.observed_to for file in files] == [*days, days[-1] + timedelta(hours=1)]
    assert [file.ended_by for file in files] == ["midnight"] * 3 + ["closed"]
    assert [file.continues for file in files] == [None, *(file.session for file in files[:-1])]
    assert [str(file.path.parent.name) for file in files] == [
        f"day=2026-11-{day}" for day in (25, 26, 27, 28)
    ]
    whole = [("topic_added", None), ("topic_added", None)]  # as a snapshot would tell it
    assert [(kind, offset) for kind, _, offset in kinds(files[1])] == [
        ("observed_from", None), *whole, ("leader_changed", 3), ("observed_to", None),
    ]  # fmt: skip
    assert kinds(files[1])[3][1] == MIDNIGHT
    assert [(kind, offset) for kind, _, offset in kinds(files[2])[1:-1]] == [
        ("topic_added", None), ("topic_added", None),
    ]  # fmt: skip
    assert [each.files for each in recordings(tmp_path / "out")] == [(file,) for file in files]


def test_a_month_without_a_record_is_a_gap(tmp_path: Path) -> None:
    made = Written(tmp_path / "log")
    made.add(NOON, TOPIC, partition(1))
    made.add(NOON + timedelta(days=40), leads(2))
    files = recorded(made.opened(), tmp_path / "out")
    assert [(file.ended_by, file.observed_to) for file in files] == [
        ("gap", NOON), ("closed", NOON + timedelta(days=40)),
    ]  # fmt: skip
    assert [kind for kind, *_ in kinds(files[1])][:3] == ["observed_from", "resync", "topic_added"]


def test_a_longer_file_covers_the_one_of_a_log_that_went_on(tmp_path: Path) -> None:
    made = Written(tmp_path / "log")
    made.add(NOON, TOPIC, partition(1))
    out = tmp_path / "out"
    (first,) = recorded(made.opened(), out)
    made.add(NOON + timedelta(hours=1), leads(2))
    (second,) = recorded(made.opened(), out)
    assert second.session == first.session
    assert (look(out).files, look(out).covered) == ([second], [first])
    made.add(MIDNIGHT + timedelta(hours=1), leads(1))
    recorded(made.opened(), out)
    assert [each.ended_by for each in recordings(out)] == ["midnight", "closed"]


@pytest.mark.parametrize("seed", range(3))
def test_random_logs_make_whole_recordings(tmp_path: Path, seed: int) -> None:
    (tmp_path / "log").mkdir()
    random_node(tmp_path / "log", seed, cut=seed % 2)
    log = KraftLog(tmp_path / "log", cluster_id="c")
    files = recorded(log, tmp_path / "out")
    assert files[-1].until == log.proven
    versions = {change.version for change in log.changes(log.first_state, log.proven)}
    found = {
        version for file in files for version in pq.read_table(file.path)["version"].to_pylist()
    }
    assert versions <= found


def test_what_is_not_proven_is_not_recorded(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "nodes", 0)
    cluster.append(1)
    cluster.looked_at()
    (file,) = recorded(KraftLog(tmp_path / "nodes"), tmp_path / "out")
    assert file.until == 1
    assert rdmeta.kraft.record(KraftLog(tmp_path / "nodes/n1"), tmp_path / "none") == []


def test_a_log_without_a_name_or_a_begin_is_an_error(tmp_path: Path) -> None:
    made = Written(tmp_path / "log")
    made.add(NOON, TOPIC)
    log = made.opened()
    with pytest.raises(HistoryError, match="cluster_id="):
        rdmeta.kraft.record(KraftLog(tmp_path / "log"), tmp_path / "out")
    log.segments[0].path.write_bytes(log.segments[0].path.read_bytes()[:-1] + b"\1")
    with pytest.raises(KraftError, match="CRC"):
        rdmeta.kraft.record(KraftLog(tmp_path / "log", cluster_id="c"), tmp_path / "out")
    log.segments[0].path.write_bytes(b"")
    assert rdmeta.kraft.record(KraftLog(tmp_path / "log", cluster_id="c"), tmp_path / "out") == []


@pytest.mark.slow
@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_the_pipeline_makes_intervals_with_exact_times_and_offsets(
    made: Made, tmp_path: Path
) -> None:
    source = GOLDEN / made.name
    done = run("log", "changes", str(source), "--recordings", str(tmp_path / "in"))
    assert (done.code, done.err) == (0, "")
    assert run("pipeline", "all", str(tmp_path / "in"), str(tmp_path / "out")).code == 0
    (part,) = (tmp_path / "out/silver").glob("v*/partition_interval/**/*.parquet")
    rows = pq.read_table(part).to_pylist()
    log = KraftLog(source)
    changes = [change for change in log.changes() if change.partition is not None]
    versions = {change.offset: change.version for change in changes}
    times = {change.offset: change.observed_at for change in changes}
    moments = {record.time for record in log.records()}
    assert len(rows) > 40
    assert {row["offset"] for row in rows} == {
        change.offset for change in changes if change.kind != "elr_changed"
    } - {None}
    for row in rows:
        assert row["began_at"] == times[row["offset"]]
        assert row["ended_by"] == "open" or row["ended_at"] in moments
        found = log.state(versions[row["offset"]]).partition(row["topic"], row["partition"])
        assert found is not None
        assert (row["leader"], row["leader_epoch"]) == (found.leader, found.leader_epoch)
        assert (row["isr"], row["replicas"]) == (sorted(found.isr), [*found.replicas])
