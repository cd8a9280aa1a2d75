"""After SIGKILL of Spark's driver or of a Python worker the tables become whole."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import commands
import pytest
from readers import lasting
from recorded import cluster_day

from rdmeta import pipeline
from rdmeta.pipeline.layout import Parts, write_layout
from rdmeta.pipeline.place import Place
from rdmeta.spark import NoJavaError, find_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(str(error))
    for day in range(1, 29):
        cluster_day(tmp_path / "history", "one", day)
    return tmp_path / "history"


def by_day(out: Path) -> Path:
    """Returns an output folder in which the cluster has a part for each day."""
    write_layout(Place(out), {"one": Parts("day", 1)})
    return out


def wait_for(happens: Callable[[], object], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.002)


def workers() -> list[int]:
    """Returns the Python workers of Spark below this process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = entry.joinpath("cmdline").read_bytes().split(b"\0")
            if b"pyspark.daemon" in words and _is_below(int(entry.name), os.getpid()):
                found.append(int(entry.name))
        except OSError:
            continue
    # The first one is the daemon, from which the others are forked.
    return sorted(found)[1:]


def _is_below(pid: int, ancestor: int) -> bool:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid == ancestor:
            return True
    return False


def test_the_driver_is_killed_and_the_next_run_repairs_the_tables(
    source: Path, tmp_path: Path
) -> None:
    out = by_day(tmp_path / "out")
    words = ("pipeline", "all", str(source), str(out), "--master", "local[2]")
    with commands.started(*words) as process:
        wait_for(lambda: list(out.glob("silver/v1/*/*/*/part-*.parquet")))
        process.kill()
        process.wait()
    assert (out / "lock").exists()
    pipeline.run(pipeline.plan([source], out))
    whole = by_day(tmp_path / "whole")
    pipeline.run(pipeline.plan([source], whole))
    assert lasting(out) == lasting(whole)
    assert pipeline.check(out) == []


def test_a_python_worker_is_killed_and_its_task_is_made_again(source: Path, tmp_path: Path) -> None:
    out = by_day(tmp_path / "out")
    words = ("pipeline", "all", str(source), str(out), "--master", "local[2,4]")
    with commands.started(*words) as process:
        wait_for(lambda: list(out.glob("silver/v1/*/*/*/part-*.parquet")))
        killed = workers()[:1]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert process.wait(120) == 0
    assert killed
    whole = by_day(tmp_path / "whole")
    pipeline.run(pipeline.plan([source], whole))
    assert lasting(out) == lasting(whole)
