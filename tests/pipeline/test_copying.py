"""Copies of history files: what a task copies, what it refuses, and when files get their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kraft_days import LogOfDays
from recorded import cluster_day, contents

from rdmeta import _atomic, pipeline
from rdmeta.pipeline import copying, planning
from rdmeta.pipeline.attempting import attempt
from rdmeta.pipeline.copying import copy_files, copy_tasks
from rdmeta.pipeline.errors import CommitLostError
from rdmeta.pipeline.work import AnyTask, CopyTask, Result


@pytest.fixture
def plan(tmp_path: Path) -> pipeline.Plan:
    """Returns the plan of two clusters and two days, which copies their files."""
    for cluster in ("one", "two"):
        for day in (1, 2):
            cluster_day(tmp_path / "history", cluster, day)
    return pipeline.plan([tmp_path / "history"], tmp_path / "out")


def tasks_of(plan: pipeline.Plan) -> list[CopyTask]:
    return list(copy_tasks(plan.options.out, plan.copies, ""))


def test_a_task_has_files_of_one_cluster_and_few_of_them(
    plan: pipeline.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [{c.source.cluster_id for c in t.copies} for t in tasks_of(plan)] == [{"one"}, {"two"}]
    monkeypatch.setattr(copying, "_MOST_FILES", 1)
    assert [t.copies for t in tasks_of(plan)] == [(copy,) for copy in plan.copies]
    monkeypatch.setattr(copying, "_MOST_FILES", 256)
    monkeypatch.setattr(copying, "_MOST_BYTES", 1)
    assert [t.copies for t in tasks_of(plan)] == [(copy,) for copy in plan.copies]


def test_a_damaged_file_is_refused_and_the_others_are_copied_whole(
    plan: pipeline.Plan, tmp_path: Path
) -> None:
    (task, _) = tasks_of(plan)
    bad, changed, *good = task.copies
    path = Path(bad.source.path)
    path.write_bytes(path.read_bytes()[:-1])
    Path(changed.source.path).write_bytes(Path(good[0].source.path).read_bytes())
    result = copy_files(task)
    reasons = {each.name: (each.state, each.reason) for each in result.refused}
    assert reasons.keys() == {bad.source.name, changed.source.name}
    assert {state for state, _ in reasons.values()} == {"quarantined"}
    assert "not a whole Parquet file" in str(reasons[bad.source.name][1])
    assert [source for source, _ in result.copied] == [each.source for each in good]
    wanted = {each.name: Path(each.source.path).read_bytes() for each in good}
    assert contents(tmp_path / "out") == wanted


def test_a_folder_is_synced_once_for_all_files_of_a_task(
    plan: pipeline.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(_atomic, "sync_path", synced.append)
    (task, _) = tasks_of(plan)
    copy_files(task)
    folders = {Path(task.out, each.name).parent for each in task.copies}
    assert len(synced) == len(task.copies) + len(folders)
    assert folders <= set(synced)


def test_a_task_whose_run_has_lost_the_lock_copies_nothing(
    plan: pipeline.Plan, tmp_path: Path
) -> None:
    task = replace(tasks_of(plan)[0], token="of a dead run")
    with pytest.raises(pipeline.LockedError, match="another run has taken it over"):
        attempt(task)
    assert contents(tmp_path / "out") == {}


def test_many_new_files_are_opened_by_tasks_of_the_engine(
    plan: pipeline.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "history/changes-x.parquet"
    bad.write_bytes(b"PAR1")
    looks: list[AnyTask] = []

    def engine(tasks: Sequence[AnyTask]) -> Iterator[Result | pipeline.BadFileError]:
        looks.extend(tasks)
        return map(attempt, reversed(tasks))  # in any order

    monkeypatch.setattr(planning, "_FEW_FILES", 2)
    monkeypatch.setattr(planning, "_OF_TASK", 3)
    found = pipeline.plan([tmp_path / "history"], tmp_path / "out", engine=engine)
    assert [len(list(each.files())) for each in looks] == [3, 3, len(plan.files) + 1 - 6]
    assert found.copies == plan.copies
    assert [each.path for each in found.quarantined] == [str(bad)]
    pipeline.run(found)
    assert pipeline.plan([tmp_path / "history"], tmp_path / "out", engine=None).copies == ()


def test_the_engine_of_a_run_makes_its_copies(plan: pipeline.Plan, tmp_path: Path) -> None:
    kinds: list[str] = []

    def engine(tasks: Sequence[AnyTask]) -> Iterator[Result | pipeline.BadFileError]:
        kinds.append(type(tasks[0]).__name__)
        return map(attempt, tasks)

    made = pipeline.run(plan, engine=engine)
    assert kinds == ["CopyTask", "Task"]
    assert sorted(made.copied) == sorted(each.name for each in plan.copies)
    assert pipeline.check(tmp_path / "out") == []


def test_a_run_without_a_lock_puts_no_shorter_segment_over_a_longer_one(tmp_path: Path) -> None:
    """A slower run plans again then. A segment that its node has cut off comes in any length."""
    LogOfDays(2).write(tmp_path / "logs", 1)
    out = tmp_path / "out"
    copies = pipeline.plan([tmp_path / "logs"], out).copies
    (segment,) = (each for each in copies if each.name.endswith(".log"))
    (task,) = copy_tasks(str(out), [segment], "")
    whole = Path(segment.source.path).read_bytes()
    there = out / segment.name
    there.parent.mkdir(parents=True)
    there.write_bytes(whole + b"more")
    with pytest.raises(CommitLostError, match="another run has copied more of it"):
        copy_files(task)
    assert there.read_bytes() == whole + b"more"
    there.write_bytes(b"x" + whole)
    copy_files(task)
    assert there.read_bytes() == whole
