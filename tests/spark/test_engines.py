"""Every engine makes the same bytes of a random history and of a metadata log beside it:
processes, and Spark's ways to run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import commands
import pytest
from fake_cache import START
from history_maker import Plan, make_history
from kraft_days import LogOfDays
from pyspark.sql import SparkSession
from readers import assert_each_row_is_seen_once, lasting
from recorded import moved
from simulated_history import Simulation, Step, history

from rdmeta import pipeline
from rdmeta.pipeline.layout import Parts, write_layout
from rdmeta.pipeline.store import Store
from rdmeta.spark import run

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(300)]

PARTS = {
    "cluster-0": Parts("day", 1),
    "cluster-1": Parts("day", 3),
    "cluster-2": Parts("month", 2),
    "old": Parts("day", 2),
    "c": Parts("day", 1),  # of a log
}
PLAN = Plan(
    clusters=3, days=3, changes=400, gaps=1, recorders=2, every=300, file_every=40_000, deleted=(1,)
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a history, and in `whole` the tables that processes of this machine make.

    One recording is of the first format and goes on over midnight, so a state is carried over it.
    """
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    root = tmp_path_factory.mktemp("engines")
    make_history(root / "history", seed, PLAN)
    old_recording(root, seed)
    write_log(root / "history/logs")
    pipeline.run(plan(root, "whole"), workers=1)
    made = lasting(root / "whole")
    assert any(name.startswith("silver/v1/_state/") for name in made)
    assert sum(name.startswith("bronze/cluster=c/day=") for name in made) == 6
    return root


def old_recording(root: Path, seed: int) -> None:
    """Writes a recording that does not end, and goes on over midnight."""
    ends = ("crash", "close", "forget")
    steps: list[Step] = [("observe", 0)]
    for step in history(seed):
        if step[0] not in ends and step != ("pass", 30):
            steps += [step, ("observe", 0)]
    seen = Simulation("old", root / "before", [*steps, ("flush", 0)]).seen
    length = max(each.end for each in seen) - START
    moved(root / "before", root / "history", timedelta(hours=12) - length / 2)


def write_log(folder: Path) -> None:
    """Writes the logs of three nodes: several restart points, a task for the days of each."""
    days = LogOfDays(6)
    days.write(folder / "n1", 1, cuts=(30, 90), snapshots=(40, 100))
    days.write(folder / "n2", 2, first=30, cuts=(70,), snapshots=(30, 70, days.end))
    days.write(folder / "n3", 3, end=80)


def plan(root: Path, name: str) -> pipeline.Plan:
    prepared(root, name)
    return pipeline.plan([root / "history"], root / name, gold=True)


def prepared(root: Path, name: str) -> None:
    write_layout(Store(root / name), PARTS)


def assert_is_whole(root: Path, name: str) -> None:
    assert lasting(root / name) == lasting(root / "whole")
    assert pipeline.check(root / name) == []
    assert_each_row_is_seen_once(root / name)


def made_by_command(
    root: Path, name: str, *words: str, env: Mapping[str, str | None]
) -> commands.Done:
    """Runs the command in the folder, with relative paths."""
    prepared(root, name)
    done = commands.run_process(
        *("pipeline", "all", "history", name, *words), env=env, cwd=root, timeout=250
    )
    assert done.code == 0, done.err
    return done


def test_a_classic_session_makes_them(root: Path, spark: SparkSession) -> None:
    made = run(plan(root, "classic"), spark)
    assert len(made.plan.tasks) > 10
    assert_is_whole(root, "classic")


def test_spark_connect_makes_them(root: Path) -> None:
    """The session starts its own server, which SPARK_TESTING lets choose its port."""
    env = {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"}
    done = made_by_command(root, "connect", env=env)
    assert "rows_in\t" in done.out
    assert_is_whole(root, "connect")


@pytest.mark.nightly
def test_executors_that_are_processes_of_their_own_make_them(root: Path) -> None:
    """They begin in other folders than the driver."""
    env = {"SPARK_WORKER_DIR": str(root / "work")}
    try:
        made_by_command(root, "cluster", "--master", "local-cluster[2,1,1024]", env=env)
    finally:
        shutil.rmtree(root / "work", ignore_errors=True)
    assert_is_whole(root, "cluster")
