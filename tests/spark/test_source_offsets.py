"""The offsets of a stream, and the rows of its batches, as Spark would ask for them."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fake_cache import FakeCache, FakeClock
from history_files import record
from history_maker import Plan, make_history
from spark_releases import since
from stream_plans import Stream, stream_reader

from rdmeta import history
from rdmeta.errors import ConfigError
from rdmeta.history import Recorder
from rdmeta.spark.source import files, streaming


class Cluster:
    """A recorder at work: each `change` is a file more."""

    def __init__(self, root: Path, cluster_id: str = "one") -> None:
        self.clock = FakeClock()
        self.cache = FakeCache(self.clock, cluster_id)
        self.cache.add_broker(1)
        self.cache.add_topic("orders", None, [1])
        self.cache.add_topic("payments", None, [1])
        self.recorder = Recorder(self.cache, root, clock=self.clock, max_gap=86_400.0, name="name")
        self._leaders = itertools.count(2)
        self.recorder.observe()

    def change(self, seconds: float = 1.0) -> None:
        self.clock.pass_seconds(seconds)
        self.cache.set_leader("orders", 0, next(self._leaders))
        self.recorder.observe()
        self.recorder.flush()

    def configure(self, least: int) -> None:
        """Writes a file that has rows and no new version; the next file has its rows, too."""
        self.clock.pass_seconds(1)
        self.recorder.configs({"orders": least})
        self.recorder.observe()
        self.recorder.flush()

    def close(self) -> None:
        self.recorder.close()


@pytest.fixture
def random() -> Random:
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    return Random(seed)


def all_rows(root: Path) -> list[str]:
    return sorted(map(repr, history.read(root).to_pylist()))


def shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def options(root: Path, **more: str) -> dict[str, str]:
    return {"path": str(root), **more}


# ---- what comes ---------------------------------------------------------------------------------


def test_new_files_and_recordings_come_once_and_in_their_order(tmp_path: Path) -> None:
    one = Cluster(tmp_path)
    stream = Stream(options(tmp_path))
    assert stream.drain() == [history.read(tmp_path).num_rows]
    assert stream.batch() is None
    one.change()
    two = Cluster(tmp_path, "two")
    stream.drain()
    two.change()
    one.close()
    two.close()
    assert len(stream.drain()) == 1
    assert shown(stream.rows) == all_rows(tmp_path)
    for cluster in ("one", "two"):
        versions = [row["version"] for row in stream.rows if row["cluster_id"] == cluster]
        assert versions == sorted(versions)


def test_rows_without_a_new_version_come_once(tmp_path: Path) -> None:
    """A file of them is replaced by the next one, and both have these rows."""
    cluster = Cluster(tmp_path)
    stream = Stream(options(tmp_path))
    stream.drain()
    for least in (1, 2, 1):
        cluster.configure(least)
        assert stream.drain() == [1]
    cluster.change()
    assert stream.drain() == [1]
    cluster.close()
    assert stream.drain() == [1]
    assert [row["kind"] for row in stream.rows[-5:]] == [
        *["config_changed"] * 3,
        "leader_changed",
        "observed_to",
    ]
    assert shown(stream.rows) == all_rows(tmp_path)


@since("4.2")
def test_an_empty_folder_and_an_unknown_cluster_may_get_history_later(tmp_path: Path) -> None:
    root = tmp_path / "history"
    root.mkdir()
    stream = Stream(options(root, cluster="name"))
    assert stream.batch() is None
    Cluster(root).close()
    assert len(stream.drain()) == 1
    assert shown(stream.rows) == all_rows(root)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "history"
    with pytest.raises(ConfigError, match="there is no such folder"):
        Stream(options(root)).batch()


@pytest.mark.parametrize("table", ["partition_interval", "observation"])
def test_only_changes_are_a_stream(tmp_path: Path, table: str) -> None:
    with pytest.raises(ConfigError, match=f"table = '{table}': only the table changes"):
        stream_reader(path=str(tmp_path), table=table)


def test_a_stream_of_a_live_cluster_is_refused() -> None:
    with pytest.raises(ConfigError, match="use spark.read"):
        stream_reader(table="topics", **{"bootstrap.servers": "localhost:1"})


# ---- where it begins and how far a batch goes ---------------------------------------------------


@since("4.2")
def test_latest_gives_what_comes_after_the_begin(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    stream = Stream(options(tmp_path, startingOffsets="latest"))
    assert stream.batch() is None
    cluster.change()
    Cluster(tmp_path, "two").close()
    stream.drain()
    kinds = [row["kind"] for row in stream.rows if row["cluster_id"] == "one"]
    assert kinds == ["leader_changed"]
    assert {"observed_from", "observed_to"} <= {row["kind"] for row in stream.rows}


@since("4.2")
def test_the_first_batch_from_latest_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """Spark does not keep where the first batch begins. It asks again, and more is there then."""
    cluster = Cluster(tmp_path)
    stream = Stream(options(tmp_path, startingOffsets="latest"))
    stream.begin_of(0)
    cluster.change()
    assert stream.plan()
    before = stream.read(stream.tasks())
    cluster.change()
    stream.restart(options(tmp_path, startingOffsets="latest"))
    assert stream.read(stream.tasks()) == before
    assert len(before) == 1
    assert stream.drain() == [1, 1]


@since("4.2")
def test_a_batch_before_the_first_rows_stays_empty_after_a_restart(tmp_path: Path) -> None:
    """Spark makes a batch of the begin alone, and asks for the begin again after a kill."""
    cluster = Cluster(tmp_path)
    reader = stream_reader(path=str(tmp_path), startingOffsets="latest")
    begin = reader.initialOffset()
    assert reader.latestOffset(begin, reader.getDefaultReadLimit()) == begin
    cluster.change()
    reader = stream_reader(path=str(tmp_path), startingOffsets="latest")
    assert reader.initialOffset() != begin
    assert reader.partitions(reader.initialOffset(), begin) == []
    end = reader.latestOffset(begin, reader.getDefaultReadLimit())
    assert len(reader.partitions(begin, end)) == 1


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_a_batch_has_at_most_the_rows_of_the_option(tmp_path: Path, rows: int) -> None:
    record(tmp_path, "one", changes=5)
    record(tmp_path, "two", changes=2)
    stream = Stream(options(tmp_path, maxRowsPerTrigger=str(rows)))
    counts = stream.drain()
    assert counts[:-1] == [rows] * (len(counts) - 1)
    assert 0 < counts[-1] <= rows
    assert shown(stream.rows) == all_rows(tmp_path)


@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_has_at_most_the_files_of_the_option(tmp_path: Path, count: int) -> None:
    record(tmp_path, "one", changes=5)
    sizes = [each.rows for each in history.files(tmp_path) if each.rows]
    stream = Stream(options(tmp_path, maxFilesPerTrigger=str(count)))
    wanted = [sum(sizes[n : n + count]) for n in range(0, len(sizes), count)]
    assert stream.drain() == wanted
    assert shown(stream.rows) == all_rows(tmp_path)


def test_both_limits_hold_together(tmp_path: Path) -> None:
    record(tmp_path, "one", changes=5)
    limits = {"maxFilesPerTrigger": "2", "maxRowsPerTrigger": "3"}
    stream = Stream(options(tmp_path, **limits))
    first, *others = stream.drain()
    assert first == 3
    assert max(others) == 2 or 3 in others
    assert shown(stream.rows) == all_rows(tmp_path)


def test_a_trigger_of_what_is_available_ends_where_the_history_was(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.change()
    count = history.read(tmp_path).num_rows
    stream = Stream(options(tmp_path, maxRowsPerTrigger="1"), available_now=True)
    stream.batch()
    cluster.change()
    Cluster(tmp_path, "two").close()
    assert 1 + sum(stream.drain()) == count
    stream.restart(options(tmp_path), available_now=True)
    stream.drain()
    assert shown(stream.rows) == all_rows(tmp_path)


# ---- compaction, and batches that are read again ------------------------------------------------


def test_a_compaction_between_any_two_steps_changes_no_batch(tmp_path: Path) -> None:
    for step in ("plan", "tasks", "read", "commit"):
        root = tmp_path / step
        record(root, "one", changes=5)
        rows = all_rows(root)
        stream = Stream(options(root, maxRowsPerTrigger="4"))
        stream.batch()
        if step == "plan":
            history.compact(root)
        stream.plan()
        if step == "tasks":
            history.compact(root)
        tasks = stream.tasks()
        before = None if step != "read" else stream.read(tasks)
        if step == "read":
            history.compact(root)
        found = stream.read(tasks)
        assert before in (None, found)
        assert len(found) == 4
        stream.rows += found
        stream.committed += 1
        if step == "commit":
            history.compact(root)
        stream.restart(options(root))
        stream.drain()
        assert shown(stream.rows) == rows
        assert len(history.files(root)) == 1


def test_a_compaction_while_a_task_reads_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, "one", changes=5)
    rows = all_rows(tmp_path)
    opened, count = files.opened, itertools.count(1)

    def compacting(*arguments: Any) -> Any:
        if next(count) == 3:
            history.compact(tmp_path)
        return opened(*arguments)

    monkeypatch.setattr(streaming, "opened", compacting)
    stream = Stream(options(tmp_path))
    stream.drain()
    assert len(history.files(tmp_path)) == 1
    assert shown(stream.rows) == rows


@pytest.mark.slow
def test_random_streams_give_each_row_once(tmp_path: Path, random: Random) -> None:
    """A history grows, is compacted, and the process dies between any two steps of a batch."""
    for number in range(2):
        whole, root = tmp_path / f"whole-{number}", tmp_path / f"part-{number}"
        plan = Plan(days=2, changes=40, gaps=1, recorders=2, every=300, file_every=16_000)
        make_history(whole, random.randrange(10**9), plan)
        paths = sorted(whole.rglob("*.parquet"), key=lambda path: path.name.rpartition(".")[0])
        stream = Stream(options(grown(root, whole, paths[:1])))
        limits = [("maxRowsPerTrigger", "50"), ("maxFilesPerTrigger", "2"), None]
        waiting = [list(g) for _, g in itertools.groupby(paths[1:], lambda p: p.name.split(".")[1])]
        while any(waiting):
            grown(root, whole, [random.choice([each for each in waiting if each]).pop(0)])
            step = random.randrange(6)
            if step == 0:
                history.compact(root)
            elif step == 1:
                stream.batch()
            elif step == 2 and stream.plan():
                before = stream.read(stream.tasks())
                restarted(stream, root, random.choice(limits))
                assert stream.read(stream.tasks()) == before
            elif step == 3:
                restarted(stream, root, random.choice(limits))
        stream.drain()
        assert shown(stream.rows) == all_rows(whole)


def grown(root: Path, whole: Path, paths: list[Path]) -> Path:
    """Copies files as a recorder makes them: by rename."""
    for path in paths:
        target = root / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target.with_suffix(".tmp"))
        os.replace(target.with_suffix(".tmp"), target)
    return root


def restarted(stream: Stream, root: Path, limit: tuple[str, str] | None) -> None:
    stream.restart(options(root, **dict([limit] if limit else [])))
