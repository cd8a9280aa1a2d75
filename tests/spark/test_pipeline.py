"""The job writes each cluster's tables once and completely, and skips unchanged clusters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock
from pyspark.sql import SparkSession

from rdmeta.errors import Error
from rdmeta.history import HistoryError, Recorder
from rdmeta.spark import NoJavaError, find_java
from rdmeta.spark.pipeline import TABLES, make, plan, table_path

ODD = "_odd/./id%2F.{with}[everything]*"


def no_session() -> NoReturn:
    raise AssertionError("Spark was started")


def record(directory: Path, cluster_id: str, leaders: tuple[int, ...]) -> None:
    """Writes a recording in which these brokers lead the only partition, 10 s each."""
    clock = FakeClock()
    cache = FakeCache(clock, cluster_id)
    cache.add_topic("orders", None, [leaders[0]])
    with Recorder(cache, directory, clock=clock) as recorder:
        recorder.observe()
        for leader in leaders[1:]:
            clock.pass_seconds(10)
            cache.set_leader("orders", 0, leader)
            recorder.observe()
        clock.pass_seconds(10)
        recorder.observe()


def files(directory: Path) -> dict[str, tuple[int, int]]:
    """Returns every file below a directory, with values that change when it is written again."""
    return {
        str(path.relative_to(directory)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """The directories of history and tables, with names that are patterns for Hadoop."""
    source = tmp_path / "history {a,b} [1]*"
    source.mkdir()
    return source, tmp_path / "tables {c} [2]"


def test_only_new_history_makes_tables(spark: SparkSession, places: tuple[Path, Path]) -> None:
    source, out = places
    record(source, ODD, (1, 2, 3))
    record(source, "quiet", (1,))
    made = make(plan(source, out), lambda: spark)
    assert (made.made, made.unchanged) == ((ODD, "quiet"), ())
    assert made.rows == {"partition_interval": 4, "leader_change": 2, "leader_minutes": 4}
    before = files(out)
    assert not [name for name in before if Path(name).name.startswith(".")]

    again = make(plan(source, out), no_session)
    assert (again.made, again.unchanged) == ((), (ODD, "quiet"))
    assert again.rows == made.rows
    assert files(out) == before

    record(source, "quiet", (1, 2))
    newer = make(plan(source, out), lambda: spark)
    assert (newer.made, newer.unchanged) == (("quiet",), (ODD,))
    after = files(out)
    assert {name for name in after if after[name] != before.get(name)} == {
        *(f"{table}/cluster-quiet.parquet" for table in TABLES),
        "_made_from/cluster-quiet.json",
    }
    for table in TABLES:
        assert spark.read.parquet(str(out / table).translate(ESCAPED)).count() == newer.rows[table]


ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "{}[]*?"})


def test_a_missing_table_is_made_again(spark: SparkSession, places: tuple[Path, Path]) -> None:
    source, out = places
    record(source, "one", (1, 2))
    make(plan(source, out), lambda: spark)
    table_path(out, "leader_change", "one").unlink()
    assert make(plan(source, out), lambda: spark).made == ("one",)
    assert pq.read_table(table_path(out, "leader_change", "one")).num_rows == 1


def test_a_job_that_fails_leaves_the_tables_as_they_were(
    spark: SparkSession, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = places
    record(source, "one", (1, 2))
    make(plan(source, out), lambda: spark)
    record(source, "one", (2, 3))
    before = files(out)

    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            make(plan(source, out), lambda: spark)
    assert files(out) == before
    assert plan(source, out).stale.keys() == {"one"}


def test_a_directory_without_history_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no history files"):
        plan(tmp_path, tmp_path / "out")


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rdmeta.spark", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_command_prints_its_result_as_json(places: tuple[Path, Path]) -> None:
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(str(error))
    source, out = places
    record(source, "one", (1, 2))
    done = run(source, out, "--master", "local[1]", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["made"] == ["one"]
    assert result["tables"]["partition_interval"] == {
        "path": str(out / "partition_interval"),
        "rows": 2,
    }
    again = run(source, out, "--json")
    assert json.loads(again.stdout)["unchanged"] == ["one"]
    assert "starting Spark" not in again.stderr


def test_the_command_names_the_fault_of_its_input(tmp_path: Path) -> None:
    done = run(tmp_path / "nowhere", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr == f"python -m rdmeta.spark: {tmp_path / 'nowhere'}: not a directory\n"


def test_the_command_says_that_there_is_no_java(places: tuple[Path, Path]) -> None:
    source, out = places
    record(source, "one", (1,))
    done = run(source, out, JAVA_HOME=str(source))
    assert done.returncode == 2
    assert "Spark needs Java 17 or later: JAVA_HOME" in done.stderr
    assert not out.exists()


def test_java_is_looked_for_as_spark_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == str(java)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(NoJavaError, match="no java on the PATH") as caught:
        find_java()
    assert isinstance(caught.value, Error)
