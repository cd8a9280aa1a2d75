"""A stream into a Parquet sink, killed between plan and commit, has each row once after a restart.

Two points are tried. RDMETA_KILLS=every stops at each point of each of three batches.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from history_files import record
from kraft_days import LogOfDays
from processes import environment
from pyspark.sql import SparkSession
from source_reads import read
from spark_releases import since
from stopped_streams import POINTS

from rdmeta import history, pipeline

EVERY = os.environ.get("RDMETA_KILLS") == "every"
SCRIPT = Path(__file__).parents[1] / "support/stopped_streams.py"
# Spark counts a batch from 0. The second one has a begin in the checkpoint, the first one has none.
ROUNDS = (
    [[f"{point}:{batch}" for point in POINTS] for batch in range(3)]
    if EVERY
    else [["plans:0", "reads:1"]]
)

pytestmark = since("4.2")


@pytest.mark.nightly
@pytest.mark.timeout(1800 if EVERY else 300)
@pytest.mark.parametrize("points", ROUNDS, ids=lambda each: each[0])
@pytest.mark.parametrize("is_log", [False, True], ids=["recorders", "log"])
def test_a_killed_stream_gives_each_row_once(
    points: list[str], is_log: bool, spark: SparkSession, tmp_path: Path
) -> None:
    folders = {point: tmp_path / point.replace(":", "-") for point in points}
    for folder in folders.values():
        # The third batch has rows for two tasks, too.
        if is_log:
            write_log(folder, 36)
        else:
            record(folder / "history", "one", changes=30)
    killed_at(tmp_path, points)
    for point, folder in folders.items():
        assert_stopped_there(folder, point)
        if is_log:
            write_log(folder, 60)  # its last recording is a longer file then
        else:
            history.compact(folder / "history")
            record(folder / "history", "two", changes=3)
        drain(spark, folder)
        assert_each_row_is_there_once(spark, folder, is_log)


def write_log(folder: Path, end: int) -> None:
    """Makes an OUT of a log up to an offset, within a day that is open."""
    LogOfDays(3).write(folder / "log", 1, end=end, snapshots=(end,))
    pipeline.run(pipeline.plan([folder / "log"], folder / "history"), workers=1)


@pytest.mark.slow
def test_a_batch_that_the_sink_has_and_the_checkpoint_does_not_know_comes_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A kill between the commit of the sink and the one of the checkpoint leaves that."""
    record(tmp_path / "history", "one", changes=20)
    drain(spark, tmp_path)
    last = max(batches(tmp_path, "commits"))
    for path in (tmp_path / "checkpoint/commits").iterdir():
        if path.name.strip(".").removesuffix(".crc") == str(last):
            path.unlink()
    history.compact(tmp_path / "history")
    record(tmp_path / "history", "two", changes=3)
    drain(spark, tmp_path)
    assert_each_row_is_there_once(spark, tmp_path)


def killed_at(root: Path, points: list[str]) -> None:
    """Runs the streams until all have stopped, and kills the driver with all that it started."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(root), *points],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            assert process.stdout.readline() == "stopped\n"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def assert_stopped_there(folder: Path, point: str) -> None:
    """Checks that the checkpoint has the plan of the batch, and no commit of it."""
    name, _, batch = point.partition(":")
    planned = range(int(batch) + (name != "ends"))
    assert batches(folder, "offsets") == set(planned)
    assert batches(folder, "commits") == set(range(int(batch)))


def batches(folder: Path, log: str) -> set[int]:
    """Returns the numbers of the batches in a log of the checkpoint."""
    paths = (folder / "checkpoint" / log).glob("*")
    return {int(path.name) for path in paths if path.name.isdecimal()}


def drain(spark: SparkSession, folder: Path) -> None:
    """Reads what is available from the checkpoint on."""
    reader = spark.readStream.format("rdmeta").option("path", str(folder / "history"))
    writer = reader.load().writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.start(str(folder / "out"))
    assert query.awaitTermination(120)


def assert_each_row_is_there_once(spark: SparkSession, folder: Path, is_log: bool = False) -> None:
    wanted = read(path=str(folder / "history")) if is_log else history.read(folder / "history")
    found = spark.read.parquet(str(folder / "out")).toArrow().select(wanted.column_names)
    # A stream leaves out until when the open day of a log has been seen.
    rows = [row for row in wanted.to_pylist() if not (is_log and row["kind"] == "observed_to")]
    seen = [row for row in found.to_pylist() if not (is_log and row["kind"] == "observed_to")]
    assert sorted(map(repr, seen)) == sorted(map(repr, rows))
    assert len(rows) > 20


@pytest.mark.slow
def test_a_stream_from_latest_that_is_killed_in_its_first_batch_goes_on_from_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark then asks again where the stream begins, and the history has grown."""
    record(tmp_path / "history", "one", changes=2)
    reader = spark.readStream.format("rdmeta").option("path", str(tmp_path / "history"))
    writer = reader.option("startingOffsets", "latest").load().writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    # A kill before the commit of the batch leaves a checkpoint that knows its end alone.
    assert batches(tmp_path, "offsets") == {0}
    shutil.rmtree(tmp_path / "checkpoint/commits")
    shutil.rmtree(tmp_path / "out")
    record(tmp_path / "history", "two", changes=2)
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    found = spark.read.parquet(str(tmp_path / "out")).toArrow().select(history.CHANGE_SCHEMA.names)
    wanted = history.read(tmp_path / "history", cluster_id="two")
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
