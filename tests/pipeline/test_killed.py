"""After SIGKILL at any moment each reader sees each row once, and the next run repairs all.

RDMETA_KILLS=every kills a run after each rename, otherwise after every fifth.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import commands
import pytest
from kraft_days import LogOfDays
from processes import environment
from readers import assert_each_row_is_seen_once, lasting
from recorded import cluster_day, contents

from rdmeta import pipeline

SUPPORT = Path(__file__).parents[1] / "support"
PROGRAM = str(SUPPORT / "killed_run.py")
HOOK = SUPPORT / "renames"


@pytest.fixture(scope="module", params=["history", "logs"])
def before(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, Path]:
    """A history, or a metadata log, that is longer than tables of it; those that it should have."""
    days = LogOfDays(5)
    root = tmp_path_factory.mktemp("killed")
    source, out, whole = root / "history", root / "out", root / "whole"
    if request.param == "history":
        for day in (1, 2):
            cluster_day(source, "one", day)
            cluster_day(source, "two", day)
    else:
        days.write(source / "n1", 1, end=60, snapshots=(60,))
    pipeline.run(pipeline.plan([source], out), workers=1)
    if request.param == "history":
        cluster_day(source, "one", 3)
        cluster_day(source, "two", 2, at=50_000)
        cluster_day(source, "three", 1)
    else:  # an open day goes on, others follow, and another node has a part of them
        days.write(source / "n1", 1, cuts=(70,), snapshots=(60, 80))
        days.write(source / "n2", 2, first=40, snapshots=(40, days.end))
    shutil.copytree(out, whole)
    pipeline.run(pipeline.plan([source], whole), workers=1)
    return source, out, whole


@contextmanager
def running(source: Path, out: Path, count: int) -> Iterator[subprocess.Popen[str]]:
    """Yields a run that waits after its rename number `count`; it is killed with the block."""
    words = [sys.executable, PROGRAM, str(source), str(out), str(count)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def reached(process: subprocess.Popen[str], what: object) -> bool:
    """Returns whether the run says that, when it does; it may end before."""
    assert process.stdout is not None
    return any(line.strip() == str(what) for line in process.stdout)


def repeated(out: Path, tmp: Path) -> Path:
    shutil.rmtree(tmp, ignore_errors=True)
    shutil.copytree(out, tmp)
    return tmp


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_killed_after_any_rename_is_repaired_by_the_next(
    before: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    source, out, whole = before
    wanted = lasting(whole)
    step = 1 if os.environ.get("RDMETA_KILLS") == "every" else 5
    count = 1 + time.time_ns() % step
    print(f"begins with rename {count}")
    while True:
        work = repeated(out, tmp_path / "out")
        with running(source, work, count) as process:
            is_killed = reached(process, count)
        assert_each_row_is_seen_once(work)
        pipeline.run(pipeline.plan([source], work), workers=1)
        assert lasting(work) == wanted
        assert pipeline.check(work) == []
        if not is_killed:
            break
        count += step
    assert count > 15


@pytest.mark.parametrize(
    "rounds", [pytest.param(1, marks=pytest.mark.proof), pytest.param(5, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(300)
def test_a_run_killed_at_a_random_moment_is_repaired_by_the_next(
    before: tuple[Path, Path, Path], tmp_path: Path, rounds: int
) -> None:
    source, out, whole = before
    wanted = lasting(whole)
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    random = Random(seed)
    for _ in range(rounds):
        work = repeated(out, tmp_path / "out")
        with running(source, work, -1) as process:
            assert reached(process, "begun")
            time.sleep(random.random() * 0.3)
        assert_each_row_is_seen_once(work)
        pipeline.run(pipeline.plan([source], work), workers=1)
        assert lasting(work) == wanted


@pytest.mark.slow
def test_all_readers_see_each_row_once_while_a_run_works(
    before: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """The run goes on after each rename when the readers have ended a look, and begin another."""
    source, _, whole = before
    out, told = tmp_path / "out", tmp_path / "told"
    told.mkdir()
    paths = os.pathsep.join((str(HOOK), environment()["PYTHONPATH"]))
    env = {"PYTHONPATH": paths, "TEST_RENAMES": str(told), "TEST_LOOKS": "1"}
    words = ("pipeline", "all", str(source), str(out), "--engine", "local")
    seen = set()
    with commands.started(*words, env=env) as process:
        while process.poll() is None:
            seen.add(len(list(out.glob("silver/v1/*/*/*/*.parquet"))))
            assert_each_row_is_seen_once(out, is_still=False)
            with (told / "looks").open("a") as looks:
                looks.write("one\n")
    assert process.returncode == 0
    assert len(seen) > 2
    assert_each_row_is_seen_once(out)
    assert silver(out) == silver(whole)


def silver(out: Path) -> dict[str, bytes]:
    return {name: c for name, c in lasting(out).items() if name.startswith("silver")}


@pytest.mark.slow
def test_a_second_run_is_refused_while_the_first_one_works(
    before: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    source, out, _ = before
    work = repeated(out, tmp_path / "out")
    with running(source, work, 3) as process:
        assert reached(process, 3)
        seen = contents(work)
        with pytest.raises(pipeline.LockedError, match=f"process {process.pid} on"):
            pipeline.run(pipeline.plan([source], work))
        assert contents(work) == seen
