"""A plan that routes rows reads one image, whatever is shared while it runs or runs again.

An executor is killed between map and reduce three times, or 20 times with RDMETA_KILLS=every.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pinned_job
import pyarrow as pa
import pyspark
import pytest
from processes import environment
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from spark_functions import cache_of
from spark_releases import since

from rdmeta.spark import functions as F
from rdmeta.spark.functions import worker_state
from rdmeta.spark.functions.row_routes import routes
from rdmeta.spark.functions.sharing import pinned
from rdmeta.spark.functions.worker_state import NoStateError

EVERY = os.environ.get("RDMETA_KILLS") == "every"
TASKS = 4

pytestmark = since("4.1")


@pytest.mark.slow
def test_a_plan_gives_the_same_rows_after_many_shares(spark: SparkSession) -> None:
    state = F.share(spark, cache_of({"orders": [1, 2, 3, 4] * 3}), name="again")
    rows = pinned_job.placed(spark, 300, TASKS, state)
    before = pinned_job.told(rows)
    others = [cache_of({"orders": [leader] * 12}).image() for leader in (3, 4)]
    for turn in range(1000 if EVERY else 50):
        F.share(spark, others[turn % 2], name="again")
    assert pinned_job.told(rows) == before
    assert pinned_job.told(pinned_job.placed(spark, 300, TASKS, state)) != before


@pytest.mark.slow
def test_tasks_of_one_plan_read_one_image_while_others_are_shared(spark: SparkSession) -> None:
    state = F.share(spark, cache_of({"orders": [1, 2, 3, 4] * 3}), name="while")
    rows = pinned_job.placed(spark, 3000, TASKS, state)
    before = pinned_job.told(rows)
    with pinned_job.sharing(spark, "while"):
        for _ in range(5):
            assert pinned_job.told(rows) == before


@pytest.mark.slow
def test_a_task_that_finds_no_such_image_names_it(spark: SparkSession) -> None:
    state = F.share(spark, cache_of({"orders": [1]}), name="gone")
    rows = pinned_job.placed(spark, 10, TASKS, state)
    spark.range(0, 4, 1, 4).foreach(print)  # Spark copies the file before a task, and only once
    name, number = pinned(spark, state)
    file = Path(pyspark.SparkFiles.get(f"rdmeta-{name}-{number:020d}.image"))
    file.unlink()
    with pytest.raises(PySparkException, match=f"not have the image 'gone' of number {number}"):
        pinned_job.told(rows)


def test_a_worker_that_lives_on_keeps_few_images_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_state, "_folder", lambda: str(tmp_path))
    rows = (pa.array(["orders"]), pa.array([b"k"]), pa.array([0], pa.int32()), pa.array([1]))
    for number in range(1, 21):
        cache_of({"orders": [1, 2]}).image().save(tmp_path / worker_state.file_name("many", number))
        for tasks in (3, 4):
            (route,) = routes(*rows, "many", number, "murmur2", tasks).to_pylist()
            assert route["partition"] == 0
    assert Path("/proc/self/maps").read_text().count(str(tmp_path)) <= 8


@pytest.mark.slow
def test_a_plan_that_routes_takes_no_state_that_changes(spark: SparkSession) -> None:
    rows = spark.range(1).select(sf.lit("orders").alias("topic"))
    with pytest.raises(ValueError, match="reads one image, and /run/state changes: pass a state"):
        F.repartition_by_leader(rows, 2, state=F.Shared("default", "/run/state"))
    with pytest.raises(NoStateError, match="this session has no image 'never': call"):
        F.repartition_by_leader(rows, 2, state=F.Shared("never"))


@pytest.mark.slow
def test_a_batch_of_a_stream_reads_the_newest_image_of_its_begin(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Each file is a batch of several tasks; images come before, between and in batches."""
    state = F.share(spark, cache_of({"orders": [1, 2, 3, 4] * 3}), name="stream")
    for number in range(4):
        keys = spark.range(number * 1000, number * 1000 + 1000, 1, 1)
        keys.write.mode("append").parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    keys = stream.parquet(str(tmp_path / "in")).repartition(8).selectExpr("string(id) AS key")
    rows = F.repartition_by_leader(keys, TASKS, topic=sf.lit("orders"), state=state)
    placed = rows.withColumn("task", sf.spark_partition_id())
    out = placed.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "mark"))
    with pinned_job.sharing(spark, "stream"):
        query = out.trigger(availableNow=True).start(str(tmp_path / "out"))
        query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert len({row.key for row in found}) == len(found) == 4000
    for batch in range(4):
        pairs = {(row.partition, row.task) for row in found if int(row.key) // 1000 == batch}
        assert len(pairs) == 12  # no partition is in two tasks


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(1200 if EVERY else 300)
def test_rows_are_the_same_when_an_executor_is_killed_while_images_change(tmp_path: Path) -> None:
    base = environment()
    base["PYTHONPATH"] += f"{os.pathsep}{Path(pyspark.__file__).parents[1]}"
    kills = 20 if EVERY else 3
    done = subprocess.run(
        [sys.executable, str(pinned_job.__file__), str(tmp_path), str(kills)],
        capture_output=True, text=True, timeout=1100 if EVERY else 280, check=False,
        env={**base, "SPARK_WORKER_DIR": str(tmp_path / "work")}, cwd=tmp_path,
    )  # fmt: skip
    print(done.stdout, done.stderr[-5000:])
    assert done.returncode == 0
    assert f"killed {kills}, the same rows each time" in done.stdout
