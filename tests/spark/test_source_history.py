"""The data source reads recorded history: changes, and the rows that the pipeline would make."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock
from history_files import rewrite
from history_maker import Plan, make_history
from pyspark.sql import datasource
from recorded import cluster_day, moved
from source_reads import read, reader_of, rows_of, sorted_rows, tasks_of
from spark_releases import since

from rdmeta import history, pipeline
from rdmeta._moments import microseconds
from rdmeta.errors import ConfigError
from rdmeta.history import Recorder, opening
from rdmeta.history.schema import HistoryError
from rdmeta.pipeline.errors import BadFileError
from rdmeta.pipeline.layout import Parts, write_layout
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import SCHEMAS, TABLES
from rdmeta.spark.source import files
from rdmeta.spark.source.batch_reader import PushReader
from rdmeta.spark.source.files import ReadError
from rdmeta.spark.source.row_filter import RowFilter, chosen, times_of
from rdmeta.spark.source.schemas import arrow_schema

PARTS = {"cluster-0": Parts("day", 1), "cluster-1": Parts("day", 3), "cluster-2": Parts("month", 2)}
PLAN = Plan(
    clusters=3, days=3, changes=150, gaps=1, recorders=2, every=300, file_every=40_000, deleted=(1,)
)

# Recordings of polls have no rows of controllers.
POLLED = [each for each in TABLES if each != "controller"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random history of three clusters, and in `out` what the pipeline makes of it.

    The recordings of the cluster `old` go on over midnight, as those of format 1 do.
    """
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    root = tmp_path_factory.mktemp("source")
    make_history(root / "history", seed, PLAN)
    cluster_day(root / "before", "old", 1, (1, 2, 3, 1), at=3600 * 20, every=3600)
    moved(root / "before", root / "history", timedelta(hours=2))
    configured(root / "history")
    write_layout(Store(root / "out"), PARTS)
    pipeline.run(pipeline.plan([root / "history"], root / "out"), workers=1)
    return root


def configured(directory: Path) -> None:
    """Writes recordings, at the begin and the end, in which the min ISR of a topic changes."""
    for begin in bounds(directory):
        clock = FakeClock()
        clock.now = begin
        cache = FakeCache(clock, "configured")
        cache.add_broker(1)
        cache.add_topic("topic-0", "A" * 22, [1])
        with Recorder(cache, directory, clock=clock) as recorder:
            for value in (1, 2, 1):
                recorder.observe()
                recorder.configs({"topic-0": value})
                clock.pass_seconds(5.0)


def silver_of(root: Path, table: str) -> pa.Table:
    """Returns the table that the pipeline made."""
    found = ds.dataset(root / "out/silver/v1" / table, format="parquet", schema=SCHEMAS[table])
    return found.to_table()


def bounds(directory: Path) -> tuple[datetime, datetime]:
    """Returns the first and the last time of a history."""
    times = history.read(directory)["observed_at"]
    return pc.min(times).as_py(), pc.max(times).as_py()


def middle(root: Path) -> str:
    """Returns a moment within the history, in the text of an option."""
    low, high = bounds(root / "history")
    return str((low + (high - low) / 2).isoformat())


@pytest.mark.slow
def test_changes_are_the_rows_of_the_history(root: Path) -> None:
    found = read(path=str(root / "history"))
    assert found.num_rows > 1000
    assert sorted_rows(found) == sorted_rows(history.read(root / "history"))


@pytest.mark.slow
def test_changes_of_an_output_of_the_pipeline_are_those_of_its_copies(root: Path) -> None:
    found = read(path=str(root / "out"))
    assert sorted_rows(found) == sorted_rows(history.read(root / "history"))


@pytest.mark.slow
@pytest.mark.parametrize("table", POLLED)
def test_silver_is_made_on_the_fly_as_the_pipeline_makes_it(root: Path, table: str) -> None:
    wanted = sorted_rows(silver_of(root, table))
    assert wanted
    assert sorted_rows(read(path=str(root / "history"), table=table)) == wanted
    assert sorted_rows(read(path=str(root / "out"), table=table)) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("table", POLLED)
@pytest.mark.parametrize("bound", ["since", "until"])
def test_a_time_chooses_the_same_rows_of_both(root: Path, table: str, bound: str) -> None:
    moment = middle(root)
    us = microseconds(datetime.fromisoformat(moment))
    limits: dict[str, Any] = {f"{bound}_us": us}
    every = silver_of(root, table)
    wanted = chosen(every, table, RowFilter(**limits))
    assert 0 < wanted.num_rows < every.num_rows
    options = {"table": table, bound: moment}
    assert sorted_rows(read(path=str(root / "history"), **options)) == sorted_rows(wanted)
    assert sorted_rows(read(path=str(root / "out"), **options)) == sorted_rows(wanted)


def test_a_recording_that_ended_before_the_time_still_tells_of_its_day(tmp_path: Path) -> None:
    """Of two recordings that overlap, the first one tells; the other one goes on from its end."""
    cluster_day(tmp_path / "history", "one", 1, (1, 2, 3), at=3600)
    cluster_day(tmp_path / "history", "one", 1, (3, 3, 3, 3, 3, 3, 2), at=3610)
    pipeline.run(pipeline.plan([tmp_path / "history"], tmp_path / "out"), workers=1)
    limits = {"table": "partition_interval", "since": "2026-11-01T01:01:00"}
    found = read(path=str(tmp_path / "history"), **limits)
    assert 30 in {each.second for each in found["began_at"].to_pylist()}
    assert sorted_rows(found) == sorted_rows(read(path=str(tmp_path / "out"), **limits))


@pytest.mark.slow
def test_since_is_the_first_moment_and_until_the_first_one_after(root: Path) -> None:
    every = history.read(root / "history")
    moment = every["observed_at"][every.num_rows // 2].as_py()
    for bound, is_in in (("since", pc.greater_equal), ("until", pc.less)):
        found = read(path=str(root / "history"), **{bound: moment.isoformat()})
        wanted = every.filter(is_in(every["observed_at"], moment))
        assert sorted_rows(found) == sorted_rows(wanted)


def test_an_interval_is_of_a_time_if_it_has_a_part_in_it() -> None:
    times = {"began_at": [0, 10, 20, 30, 20], "ended_at": [20, 30, 20, 40, 25]}
    kind = pa.timestamp("us", tz="UTC")
    rows = pa.table({name: pa.array(values, kind) for name, values in times.items()})
    found = chosen(rows, "topic_interval", RowFilter(since_us=20, until_us=30))
    begins = [microseconds(each) for each in found["began_at"].to_pylist()]
    assert begins == [10, 20, 20]


@pytest.mark.slow
def test_clusters_and_topics_choose_rows(root: Path) -> None:
    every = history.read(root / "history")
    topics = sorted(set(every["topic"].to_pylist()) - {None})[:2]
    for store in ("history", "out"):
        found = read(path=str(root / store), cluster="cluster-0,old", topic=",".join(topics))
        assert set(found["cluster_id"].to_pylist()) == {"cluster-0", "old"}
        assert set(found["topic"].to_pylist()) == set(topics)
        intervals = read(
            path=str(root / store), table="partition_interval", cluster="old", topic=topics[0]
        )
        assert set(intervals["cluster_id"].to_pylist()) <= {"old"}


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_an_error_that_names_those_there(root: Path) -> None:
    for store in ("history", "out"):
        for table in ("changes", "change"):
            with pytest.raises(ConfigError, match="option cluster = 'nope'.* has cluster-0, cl"):
                read(path=str(root / store), table=table, cluster="cluster-0,nope")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files of rows that are opened, in their order."""
    names: list[str] = []

    def counted(store: Store, name: str) -> Any:
        names.append(name)
        return store.opened(name)

    monkeypatch.setattr(files, "opened", counted)
    return names


def days_in(names: list[str], key: str) -> set[str]:
    return {part.partition("=")[2] for name in names for part in name.split("/") if key in part}


def test_only_files_of_the_cluster_and_of_the_time_are_opened(
    tmp_path: Path, opened: list[str]
) -> None:
    for cluster in ("one", "two"):
        for day in (1, 2, 3, 4):
            cluster_day(tmp_path / "history", cluster, day)
    write_layout(Store(tmp_path / "out"), {c: Parts("day", 1) for c in ("one", "two")})
    pipeline.run(pipeline.plan([tmp_path / "history"], tmp_path / "out"), workers=1)
    every = sorted(path for path in (tmp_path / "history").rglob("changes-*.parquet"))
    chosen_files = [p for p in every if "cluster=one/day=2026-11-02" in str(p)]
    assert len(chosen_files) == 2
    options = {"cluster": "one", "since": "2026-11-02", "until": "2026-11-03"}
    found = read(path=str(tmp_path / "history"), **options)
    assert found.num_rows > 0
    assert sorted(opened) == [str(p.relative_to(tmp_path / "history")) for p in chosen_files]
    opened.clear()
    assert read(path=str(tmp_path / "out"), table="leader_change", **options).num_rows > 0
    assert days_in(opened, "cluster=") == {"one"}
    assert days_in(opened, "period=") <= {"2026-11-01", "2026-11-02"}
    assert len(opened) == 2


def test_only_footers_of_the_cluster_and_of_the_day_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cluster in ("one", "two"):
        for day in (1, 2, 3):
            cluster_day(tmp_path / "history", cluster, day)
    seen: list[Path] = []
    before = opening.opened

    def counted(path: Path, size: int) -> Any:
        seen.append(path)
        return before(path, size)

    monkeypatch.setattr("rdmeta.history.directory_scan.opened", counted)
    for table in ("changes", "change"):
        reader_of(
            path=str(tmp_path / "history"), table=table, cluster="two", since="2026-11-02T12:00"
        ).partitions()
    assert {path.parent.name for path in seen} == {"day=2026-11-02", "day=2026-11-03"}
    assert {path.parent.parent.name for path in seen} == {"cluster=two"}
    assert len(seen) == 2 * 4


def test_only_row_groups_of_the_time_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path / "history", "one", 1, tuple(range(1, 50)))
    path = max((tmp_path / "history").rglob("changes-*.parquet"), key=lambda p: p.stat().st_size)
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table, path, row_group_size=10)
    read_groups: list[int] = []
    before = pq.ParquetFile.iter_batches

    def counted(file: Any, *args: Any, **named: Any) -> Any:
        read_groups.extend(named["row_groups"])
        return before(file, *args, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    moment = table["observed_at"][table.num_rows // 2].as_py()
    found = read(path=str(tmp_path / "history"), since=moment.isoformat())
    groups = -(-table.num_rows // 10)
    assert found.num_rows > 10
    assert groups > 4
    # The other file has one row group.
    assert sorted(read_groups) == [0, *range(groups // 2, groups)]


@pytest.mark.slow
def test_tasks_are_packs_of_many_files_and_parts_of_large_ones(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(list((root / "history").rglob("changes-*.parquet"))) > 20
    assert len(tasks_of(reader_of(path=str(root / "history")))) == 1
    assert len(tasks_of(reader_of(path=str(root / "history"), table="change"))) == 1
    monkeypatch.setattr(files, "PACK_BYTES", 40_000)
    tasks = tasks_of(reader_of(path=str(root / "history")))
    rows = history.read(root / "history").num_rows
    assert rows * 96 // 40_000 <= len(tasks) <= rows * 96 // 40_000 * 3
    assert sorted_rows(read(path=str(root / "history"))) == sorted_rows(
        history.read(root / "history")
    )
    cluster_day(tmp_path / "history", "one", 1, tuple(range(1, 300)))
    (path, *_) = sorted((tmp_path / "history").rglob("changes-*.parquet"))
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table, path, row_group_size=100)
    assert len(tasks_of(reader_of(path=str(tmp_path / "history")))) > 1
    assert read(path=str(tmp_path / "history")).num_rows >= table.num_rows


def test_a_folder_without_history_is_an_error(tmp_path: Path) -> None:
    for table in ("changes", "partition_interval"):
        with pytest.raises(ConfigError, match="option path = .*there is no such folder"):
            read(path=str(tmp_path / "nope"), table=table)
        with pytest.raises(ConfigError, match="option path = .*there are no history files"):
            read(path=str(tmp_path), table=table)
    write_layout(Store(tmp_path), {})
    with pytest.raises(ConfigError, match="has no silver; run rdmeta pipeline silver"):
        read(path=str(tmp_path), table="change")
    with pytest.raises(ConfigError, match="made with --in-place; give the folder of the recorder"):
        read(path=str(tmp_path))


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    (path, *_) = sorted(tmp_path.rglob("changes-*.parquet"))
    path.write_bytes(path.read_bytes()[:-9])
    for table in ("changes", "change"):
        with pytest.raises(HistoryError, match=f"{path.name}.*move it elsewhere, or read tables"):
            read(path=str(tmp_path), table=table)


def test_a_file_that_is_replaced_after_the_plan_is_an_error(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    reader, other = (reader_of(path=str(tmp_path), table=t) for t in ("changes", "change"))
    (task,), (other_task,) = reader.partitions(), other.partitions()
    (path, *_) = sorted(tmp_path.rglob("changes-*.parquet"))
    rewrite(path, name="another")
    with pytest.raises(ReadError, match=f"{path.name}: it has been replaced; read again"):
        list(reader.read(task))
    path.unlink()
    with pytest.raises(ReadError, match=f"{path.name}: it is gone, or another file has its rows"):
        list(reader.read(task))
    with pytest.raises(BadFileError, match=f"{path.name}: it is gone"):
        list(other.read(other_task))


def test_a_sensitive_configuration_is_masked(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    (path, *_) = sorted(tmp_path.rglob("changes-*.parquet"))
    table = pq.read_table(path, partitioning=None)
    store = table.schema.get_field_index("kind")
    kinds = ["observed_from", *["config_changed"] * (table.num_rows - 1)]
    table = table.set_column(store, "kind", pa.array(kinds))
    store = table.schema.get_field_index("detail")
    details = pa.array([None, *["sasl.jaas.config=hunter2"] * (table.num_rows - 1)])
    pq.write_table(table.set_column(store, "detail", details), path)
    found = read(path=str(tmp_path))["detail"].to_pylist()
    assert "sasl.jaas.config=***" in found
    assert "sasl.jaas.config=hunter2" not in found


def test_columns_of_later_versions_are_null(tmp_path: Path) -> None:
    cluster_day(tmp_path, "one", 1)
    for path in tmp_path.rglob("changes-*.parquet"):
        table = pq.read_table(path, partitioning=None)
        pq.write_table(table.drop_columns(["unseen_us", "old_offline"]), path)
    found = read(path=str(tmp_path))
    assert found.num_rows > 0
    assert found["old_offline"].null_count == found.num_rows


def test_each_table_has_a_begin_and_an_end() -> None:
    assert {times_of(table) for table in ("changes", *TABLES)} == {
        ("observed_at", "observed_at"),
        ("began_at", "ended_at"),
        ("seen_from", "seen_to"),
    }


def test_a_moment_needs_no_offset() -> None:
    wanted = RowFilter(since_us=0)
    assert wanted.since == datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert wanted.until is None


@since("4.1")
@pytest.mark.slow
@pytest.mark.parametrize("store", ["history", "out"])
@pytest.mark.parametrize("table", ["changes", "partition_interval"])
def test_times_at_the_ends_of_the_calendar_are_no_bounds(
    root: Path, table: str, store: str
) -> None:
    given = {"path": str(root / store), "table": table}
    every = read(**given).num_rows
    for until in ("9999-12-31", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-12:00"):
        assert read(**given, until=until).num_rows == every, until
    begin, end = times_of(table)
    first = datetime.min.replace(tzinfo=timezone.utc)
    last = datetime.max.replace(tzinfo=timezone.utc)
    filters = [
        datasource.GreaterThan((begin,), first),
        datasource.LessThan((end,), datetime(9999, 12, 31, tzinfo=timezone.utc)),
        datasource.LessThan((end,), last),
    ]
    for each in filters:
        reader = reader_of(**given, pushdown="true")
        assert isinstance(reader, PushReader)
        assert list(reader.pushFilters([each])) == [each]
        assert rows_of(reader, arrow_schema(table)).num_rows == every, each
    nothing = reader_of(**given, pushdown="true")
    assert isinstance(nothing, PushReader)
    nothing.pushFilters([datasource.EqualTo((begin,), last)])
    assert rows_of(nothing, arrow_schema(table)).num_rows == 0
