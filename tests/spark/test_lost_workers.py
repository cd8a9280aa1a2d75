"""After SIGKILL of Spark's driver, an executor or a Python worker the tables become whole.

A worker is stopped after some of the renames, at a random one the driver. RDMETA_KILLS=every stops
each process after every rename. Of executors that are processes of their own one is killed, and two
attempts of a task write the same files at a time.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import commands
import pytest
from kraft_days import LogOfDays
from logged_tables import SILVER, assert_same_rows, rows_by_reader, rows_of_folder
from processes import environment, executor_of, java_of
from readers import assert_each_row_is_seen_once, lasting
from recorded import cluster_day, tree
from spark_cluster import spark_cluster

from rdmeta import pipeline
from rdmeta.pipeline.errors import LockedError
from rdmeta.pipeline.layout import Parts, TableKind, write_layout
from rdmeta.pipeline.store import Store

EVERY = os.environ.get("RDMETA_KILLS") == "every"
_PARTS = {each: Parts("day", 1) for each in ("one", "c")}
HOOK = Path(__file__).parents[1] / "support/renames"

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(3600 if EVERY else 600)]


class Folders:
    """A history, or a metadata log with a restart point for each day, an output folder with a part
    for each day, and the tables it should have."""

    def __init__(self, root: Path, days: int, kind: str = "history") -> None:
        self.source, self.out, self.root = root / "history", root / "out", root
        self.some = 20 if kind == "history" else 4
        if kind == "history":
            for day in range(1, days + 1):
                cluster_day(self.source, "one", day)
        else:
            log = LogOfDays(days)
            log.write(self.source, 1, snapshots=(*range(20, log.end, 24), log.end))
        for out in (root / "whole", self.out):
            write_layout(Store(out), _PARTS)
        pipeline.run(self.plan(root / "whole"), workers=1)
        self.told = root / "told"
        self.told.mkdir()

    def plan(self, out: Path) -> pipeline.Plan:
        return pipeline.plan([self.source], out, in_place=True)

    def words(self, master: str) -> tuple[str, ...]:
        return ("pipeline", "silver", str(self.source), str(self.out), "--master", master)

    def surroundings(self, *conf: str, **values: object) -> dict[str, str]:
        """Returns the environment of a run whose processes tell of their renames."""
        shown = [word for each in conf for word in ("--conf", each)]
        return {
            "PYTHONPATH": f"{HOOK}{os.pathsep}{environment()['PYTHONPATH']}",
            "TEST_RENAMES": str(self.told),
            "PYSPARK_SUBMIT_ARGS": " ".join([*shown, "pyspark-shell"]),
            "SPARK_WORKER_DIR": str(self.root / "work"),
            **{f"TEST_{name.upper()}": str(value) for name, value in values.items()},
        }

    def lines(self, file: str) -> list[tuple[int, int, str]]:
        """Returns number, process and file of each rename, or of those after which one waits."""
        try:
            found = (self.told / file).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [(int(n), int(pid), name) for n, pid, name in (each.split(" ", 2) for each in found)]

    def assert_whole(self) -> None:
        assert lasting(self.out) == lasting(self.root / "whole")
        assert pipeline.check(self.out) == []

    def begin_with_logs(self, kind: str) -> None:
        """Lets the tables of the output folder have logs, of this kind."""
        self.out = self.root / kind
        write_layout(Store(self.out), _PARTS, TableKind(kind))

    def assert_before_or_after(self) -> None:
        """Each reader sees a table with a log without rows, or each row once."""
        for table in SILVER:
            wanted = rows_of_folder(self.root / "whole", table)
            for reader, rows in rows_by_reader(self.out, table).items():
                assert rows in ([], wanted), reader

    def assert_committed(self) -> None:
        """Each row is there once, and another run changes nothing."""
        assert_same_rows(self.out, self.root / "whole", SILVER)
        assert pipeline.check(self.out) == []
        there = tree(self.out)
        pipeline.run(self.plan(self.out), workers=1)
        assert tree(self.out) == there


@pytest.fixture(params=["history", pytest.param("logs", marks=pytest.mark.nightly)])
def folders(tmp_path: Path, request: pytest.FixtureRequest) -> Folders:
    return Folders(tmp_path, 28 if EVERY else 10, request.param)


@pytest.fixture
def random() -> Random:
    seed = time.time_ns() % 10**9
    print(f"seed {seed}")
    return Random(seed)


def wait_for(happens: Callable[[], object], seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.002)


@pytest.mark.nightly
def test_a_process_killed_after_any_rename_is_replaced(folders: Folders, random: Random) -> None:
    """One slot, so that nothing is renamed while the readers read. No other run begins then."""
    step = 1 if EVERY else random.randrange(9, 13)
    env = folders.surroundings(stops=step)
    driver_at = random.randrange(1, 4)  # the driver is killed instead of a worker
    killed: Counter[str] = Counter()
    handled = 0
    while True:
        with commands.started(*folders.words("local[1,1000]"), env=env) as process:
            while process.poll() is None:
                time.sleep(0.01)
                for _, pid, _ in folders.lines("stops")[handled:]:
                    assert_each_row_is_seen_once(folders.out)
                    if pid != process.pid:
                        with pytest.raises(LockedError, match=f"process {process.pid} on"):
                            pipeline.run(folders.plan(folders.out))
                    handled += 1
                    is_driver = pid == process.pid or handled == driver_at
                    killed["driver" if is_driver else "worker"] += 1
                    os.kill(process.pid if is_driver else pid, signal.SIGKILL)
            assert process.stderr is not None
            assert process.returncode in (0, -signal.SIGKILL), process.stderr.read()
        if process.returncode == 0:
            break
        assert (folders.out / "lock").exists() or killed["driver"] > 1
    print(f"killed {dict(killed)}, a stop after each {step} renames")
    assert killed["driver"]
    assert killed["worker"] > (190 if EVERY else 2)
    folders.assert_whole()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("remote", "is_gone"), [(None, False), ("local[2]", False), ("local[2]", True)]
)
def test_ctrl_c_ends_a_run_and_the_next_one_goes_on(
    folders: Folders, remote: str | None, is_gone: bool
) -> None:
    """A terminal sends it to the driver, to Java and to the workers. `remote` is Spark Connect.

    A client whose server is gone would go on trying for ten minutes.
    """
    env: dict[str, str | None] = {**folders.surroundings(slow=0.1), "SPARK_TESTING": "1"}
    words = folders.words("local[2]")
    if remote is not None:
        words, env["SPARK_REMOTE"] = words[:-2], remote
    with commands.Terminal(*words, env=env) as terminal:
        # With a log, this comes while its recordings are made. All output so far fits the terminal.
        wait_for(lambda: len(folders.lines("renames")) > folders.some)
        if is_gone:
            os.kill(java_of(terminal.process.pid), signal.SIGKILL)
            time.sleep(1)
        terminal.type("\x03")
        began = time.monotonic()
        assert terminal.end(60) == 130, terminal.text
        print(f"ended after {time.monotonic() - began:.1f} s")
        assert "Traceback" not in terminal.text
    assert json.loads((folders.out / "lock").read_text()) == {"failed": True}
    pipeline.run(folders.plan(folders.out), workers=1)
    folders.assert_whole()


def kill_an_executor(folders: Folders) -> bool:
    """Kills the executor of the last rename; returns whether it still ran."""
    _, worker, _ = folders.lines("renames")[-1]
    try:
        os.kill(executor_of(worker), signal.SIGKILL)
    except OSError:
        return False
    return True


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [None, "delta", "iceberg"])
def test_executors_that_are_killed_are_replaced(
    folders: Folders, random: Random, kind: str | None
) -> None:
    if kind is not None:
        folders.begin_with_logs(kind)
    env = folders.surroundings("spark.task.maxFailures=100", slow=0.05)
    with commands.started(*folders.words("local-cluster[2,1,1024]"), env=env) as process:
        for kill in range(4 if EVERY else 1):
            count = 10 + 45 * kill + random.randrange(40)
            wait_for(lambda n=count: len(folders.lines("renames")) >= n)  # type: ignore[misc]
            wait_for(lambda: kill_an_executor(folders))
            if kind is None:
                assert_each_row_is_seen_once(folders.out, is_still=False)
            else:
                folders.assert_before_or_after()
        assert process.wait(200) == 0
    if kind is None:
        folders.assert_whole()
    else:
        folders.assert_committed()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables_with_logs_become_whole_after_kills(folders: Folders, kind: str) -> None:
    """A worker is killed among its files, and the driver among them, or in the commits."""
    folders.begin_with_logs(kind)
    looks = 0
    env = folders.surroundings(stops=12)
    killed: list[str] = []
    while True:
        with commands.started(*folders.words("local[1,1000]"), env=env) as process:
            while process.poll() is None:
                time.sleep(0.01)
                for _, pid, _ in folders.lines("stops")[looks:]:
                    folders.assert_before_or_after()
                    looks += 1
                    is_driver = pid == process.pid or looks == 2
                    killed.append("driver" if is_driver else "worker")
                    os.kill(process.pid if is_driver else pid, signal.SIGKILL)
        if process.returncode == 0:
            break
    assert {*killed} == {"driver", "worker"}
    folders.assert_committed()


@pytest.mark.nightly
def test_two_attempts_of_a_task_that_write_at_a_time_make_the_same_bytes(tmp_path: Path) -> None:
    """Spark starts the second attempt on another host while the first one is slow."""
    folders = Folders(tmp_path, 2)
    conf = (
        "spark.speculation=true",
        "spark.speculation.task.duration.threshold=1s",
        "spark.speculation.interval=100ms",
        "spark.driver.host=127.0.0.1",
    )
    env = folders.surroundings(*conf, twice=1)
    with spark_cluster(tmp_path / "cluster", env) as master:
        done = commands.run_process(*folders.words(master), env=env, timeout=250)
    assert done.code == 0, done.err
    pids: dict[str, set[int]] = {}
    for _, pid, name in folders.lines("renames"):
        pids.setdefault(name, set()).add(pid)
    assert any(len(found) == 2 for name, found in pids.items() if "/part-" in name)
    folders.assert_whole()
