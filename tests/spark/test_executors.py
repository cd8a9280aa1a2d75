"""Spark's executors make the same bytes as processes of this machine, and start when needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commands
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from readers import lasting
from recorded import cluster_day, large_days

from rdmeta import pipeline
from rdmeta.cli.messages import NO_ANSWER, Messages
from rdmeta.pipeline import planning
from rdmeta.pipeline.gold.query import Room
from rdmeta.pipeline.lock import Lock
from rdmeta.pipeline.store import Store
from rdmeta.spark import SparkJobError, executors, remote, run
from rdmeta.spark.executors import spark_engine
from rdmeta.spark.large_months import is_large
from rdmeta.spark.remote import make_pack


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history of names that are patterns for Hadoop, with several tasks."""
    large_days(monkeypatch)
    source = tmp_path / "history {a,b} [1]*"
    for day in range(1, 6):
        cluster_day(source, "one", day)
        cluster_day(source, "_odd/./id%2F.{with}[everything]*", day)
    return source


@pytest.mark.proof
def test_executors_make_the_bytes_that_local_processes_make(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_FEW_FILES", 0)
    done = run(pipeline.plan([source], tmp_path / "a", engine=spark_engine(spark)), spark)
    assert len(done.plan.tasks) == 10
    pipeline.run(pipeline.plan([source], tmp_path / "b"), workers=1)
    assert lasting(tmp_path / "a") == lasting(tmp_path / "b")
    assert pipeline.check(tmp_path / "a") == []
    # They open and copy files, too, and Spark's page says what each job is for.
    jobs = spark._jsc.sc().statusStore().jobsList(None)
    shown = {jobs.apply(number).description().toString() for number in range(jobs.size())}
    files = len(done.copied)
    wanted = [f"footers: {files} files", f"bronze: 2 clusters, {files} files"]
    wanted.append("silver: 2 clusters, 10 days")
    assert {f"Some({each})" for each in wanted} <= shown
    queries = spark._jsparkSession.sharedState().statusStore().executionsList()
    last = queries.apply(queries.size() - 1)
    assert "Arguments: rdmeta, [sum(rows_read" in last.physicalPlanDescription()
    assert spark.conf.get("spark.job.description", None) is None
    assert spark.read.parquet(f"file://{tmp_path}/a/silver/v1/observation").count() == 10


@pytest.mark.slow
def test_a_damaged_input_is_quarantined_by_an_executor(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    bad = sorted(source.rglob("changes-one.*.00000000000000000000-*"))[0]
    content = bytearray(bad.read_bytes())
    content[4:600] = b"\xff" * 596
    bad.write_bytes(content)
    done = run(pipeline.plan([source], tmp_path / "out", in_place=True), spark)
    assert str(bad) in {each.path for each in done.plan.quarantined}
    assert spark.read.parquet(f"file://{tmp_path}/out/silver/v1/observation").count() == 9


@pytest.mark.parametrize("action", ["all", "bronze"])
def test_the_command_says_that_there_is_no_java(source: Path, tmp_path: Path, action: str) -> None:
    words = ("pipeline", action, str(source), str(tmp_path / "out"), "--engine", "spark")
    done = commands.run(*words, env={"JAVA_HOME": str(tmp_path)})
    assert done.code == 2
    assert "Spark needs Java 17 or later: JAVA_HOME" in done.err
    assert "--engine local" in done.err


@pytest.mark.slow
def test_an_error_of_an_executor_is_raised_as_it_is(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    plan = pipeline.plan([source], out, in_place=True)
    lost = [replace(task, token="of a dead run") for task in plan.tasks]
    another = pytest.raises(pipeline.LockedError, match="another run has taken it over")
    with Lock(Store(out)), another:
        list(spark_engine(spark)(lost))


@pytest.mark.slow
def test_relative_paths_are_those_of_the_driver(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors began in the folder in which Spark was started."""
    monkeypatch.chdir(tmp_path)
    done = run(pipeline.plan([source.name], "out"), spark)
    assert len(done.made) == 80
    assert pipeline.check("out") == []


def test_packs_follow_the_cores_and_none_is_very_small() -> None:
    tasks: Any = [SimpleNamespace(cost=10_000) for _ in range(100)]
    counts = [len(executors._packed(tasks, fewest)) for fewest in (1, 4, 16, 1000)]
    assert counts == [1, 4, 16, 20]
    packs = executors._packed(tasks, 16)
    assert {len(pack) for pack in packs} == {6, 7}
    assert sorted(id(task) for pack in packs for task in pack) == sorted(map(id, tasks))
    large: Any = [SimpleNamespace(cost=3_000_000), *tasks]
    assert sorted(map(len, executors._packed(large, 2))) == [1, 33, 33, 34]


class Conf(dict[str, str]):
    """Stands for the settings of a session."""

    set = dict.__setitem__
    unset = dict.pop


class Session:
    """Stands for a session: its settings, its tags and the jobs that were cancelled."""

    def __init__(self) -> None:
        self.conf = Conf({"spark.job.description": "ours"})
        self.tags: list[str] = []
        self.cancelled: list[str] = []
        self.addTag, self.removeTag = self.tags.append, self.tags.remove

    def interruptTag(self, tag: str) -> None:
        self.cancelled.append(tag)


class Jobs(Session):
    """Stands for Spark, whose jobs wait for each other."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self._barrier = threading.Barrier(jobs, timeout=30)
        self.packs = 0

    def collected(self, session: object, packs: Sequence[bytes], tag: str) -> list[Any]:
        self.packs += len(packs)
        self._barrier.wait()
        return [SimpleNamespace(refusal="executor a has no rdmeta", result=None)]


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each task be a pack, however small it is."""
    monkeypatch.setattr(executors, "_cores", lambda session: 100)
    monkeypatch.setattr(executors, "_FEWEST_ROWS", 1)


@pytest.mark.usefixtures("many_cores")
def test_all_packs_are_in_jobs_that_run_at_a_time(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster has many slots, and each pack needs one."""
    for number in range(15):
        cluster_day(source, f"cluster-{number}", 1)
    plan = pipeline.plan([source], tmp_path / "out", in_place=True)
    jobs = Jobs(13)
    monkeypatch.setattr(executors, "require_executors", lambda session: None)
    monkeypatch.setattr(executors, "_collected", jobs.collected)
    with pytest.raises(pipeline.PipelineError, match="executor a has no rdmeta"):
        list(spark_engine(jobs)(plan.tasks))  # type: ignore[arg-type]
    assert jobs.packs == len(plan.tasks) == 25
    assert jobs.conf == {"spark.job.description": "ours"}


@pytest.mark.usefixtures("many_cores")
def test_the_other_jobs_are_cancelled_when_one_fails(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = pipeline.plan([source], tmp_path / "out", in_place=True)
    let_go, first = threading.Event(), threading.Lock()

    def collected(session: object, packs: Sequence[bytes], tag: str) -> list[Any]:
        if first.acquire(blocking=False):  # a thread that is done takes another job
            return [SimpleNamespace(refusal="it fails", result=None)]
        let_go.wait(30)
        return []

    class Stubborn(Session):
        def interruptTag(self, tag: str) -> None:
            super().interruptTag(tag)
            if len(self.cancelled) > 1:  # it was between two jobs of a month the first time
                let_go.set()

    monkeypatch.setattr(executors, "require_executors", lambda session: None)
    monkeypatch.setattr(executors, "_collected", collected)
    session: Any = Stubborn()
    with pytest.raises(pipeline.PipelineError, match="it fails"):
        list(spark_engine(session)(plan.tasks))
    assert len(session.cancelled) >= 2
    assert len({*session.cancelled}) == 1


def test_an_error_of_spark_is_told_by_its_kind_and_the_probe_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = pipeline.plan([source], tmp_path / "out", in_place=True)
    seen: list[tuple[str, ...]] = []

    def failing(session: Session) -> None:
        seen.append((*session.tags, session.conf["spark.job.description"]))
        raise PySparkException("the server is gone")

    monkeypatch.setattr(executors, "require_executors", failing)
    session: Any = Session()
    with pytest.raises(SparkJobError, match="the Spark job has failed: the server is gone") as told:
        list(spark_engine(session)(plan.tasks))
    ((tag, description),) = seen
    assert session.tags == []
    assert tag.startswith("rdmeta-")
    assert description == "silver: 2 clusters, 10 days"
    assert session.conf == {"spark.job.description": "ours"}
    assert Messages().failure(told.value) == NO_ANSWER


@pytest.mark.usefixtures("many_cores")
def test_a_task_that_needs_more_memory_fails_the_run_with_that_reason(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would try it again on the same executor, and then show a trace."""

    def failing(task: object) -> None:
        raise MemoryError

    def collected(session: object, packs: Sequence[bytes], tag: str) -> list[Any]:
        here = os.getcwd()  # threads do this beside each other
        found = [result for pack in packs for result, _ in make_pack(pack, here)]
        return [SimpleNamespace(refusal=None, result=result) for result in found]

    monkeypatch.setattr(remote, "attempt", failing)
    monkeypatch.setattr(executors, "require_executors", lambda session: None)
    monkeypatch.setattr(executors, "_collected", collected)
    plan = pipeline.plan([source], tmp_path / "out", in_place=True)
    session: Any = Session()
    with pytest.raises(pipeline.PipelineError, match="an executor has too little memory"):
        list(spark_engine(session)(plan.tasks))


def test_a_month_is_sparks_if_duckdb_has_too_little_memory_for_it(
    source: Path, tmp_path: Path
) -> None:
    pipeline.run(pipeline.plan([source], tmp_path / "out", in_place=True), workers=1)
    task, *_ = pipeline.plan([source], tmp_path / "out", in_place=True, gold=True).months
    for memory, cpus, beside, rows, expected in (
        (1 << 30, 2, 1, 3_000_000, False),
        (1 << 30, 2, 1, 3_100_000, True),
        (1 << 30, 2, 9, 1_600_000, True),  # two tasks share it at a time
        (1 << 40, 2, 9, 20_000_000, False),
        (1 << 40, 2, 9, 20_000_001, True),
    ):
        month = replace(task, rows=rows, beside=beside)
        assert is_large(month, Room(memory, cpus)) == expected
