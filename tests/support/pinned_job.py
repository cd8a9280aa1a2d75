"""Routes rows by leader while images change and executors are killed.

python pinned_job.py FOLDER KILLS
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from processes import executor_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from spark_functions import cache_of

from rdmeta.spark import build_session
from rdmeta.spark import functions as F

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["placed", "sharing", "told"]

ROWS, TASKS = 30_000, 6


def placed(spark: SparkSession, rows: int, tasks: int, state: F.Shared) -> DataFrame:
    """Returns rows with keys by leader, from two tasks for each one that gets them."""
    keys = spark.range(0, rows, 1, 2 * tasks).select(
        sf.lit("orders").alias("topic"), sf.col("id").cast("string").alias("key")
    )
    return F.repartition_by_leader(keys, tasks, state=state)


def told(rows: DataFrame) -> list[tuple[int, int, str]]:
    """Returns the task, the partition and the key of each row."""
    found = rows.select(sf.spark_partition_id(), "partition", "key").collect()
    return sorted(tuple(row) for row in found)


@contextmanager
def sharing(spark: SparkSession, name: str) -> Iterator[None]:
    """Shares an image with other leaders again and again."""
    over = threading.Event()

    def share() -> None:
        turn = 0
        while not over.is_set():
            turn += 1
            leaders = [1 + (turn + each // 2) % 4 for each in range(12)]
            F.share(spark, cache_of({"orders": leaders}), name=name)
            over.wait(0.2)  # a new executor copies all files

    thread = threading.Thread(target=share)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main(folder: str, kills: int) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.task.maxFailures=100 pyspark-shell"
    session = build_session("local-cluster[2,1,1024]", short=True)
    print(f"Spark {session.version}")
    state = F.share(session, cache_of({"orders": [1, 2, 3, 4] * 3}), name="pinned")
    rows = placed(session, ROWS, TASKS, state)
    expected = told(rows)
    assert len({key for *_, key in expected}) == len(expected) == ROWS
    for kill in range(kills):
        begun = Path(folder, f"begun-{kill}")
        thread = threading.Thread(target=_kill_one, args=(begun,))
        thread.start()
        with sharing(session, "pinned"):
            found = rows.mapInArrow(_slow(str(begun)), "task int, partition int, key string")
            same = sorted(tuple(row) for row in found.collect())
        thread.join()
        assert Path(f"{begun}.killed").exists(), kill
        assert same == expected, kill
    print(f"killed {kills}, the same rows each time")
    sys.stdout.flush()
    session.stop()


def _slow(begun: str):  # type: ignore[no-untyped-def]
    """Returns what reads the rows of a task, once an executor has been killed."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        own = Path(f"{begun}.{os.getpid()}")
        own.write_text(str(os.getpid()))
        own.rename(begun)
        until = time.monotonic() + 60
        while not Path(f"{begun}.killed").exists() and time.monotonic() < until:
            time.sleep(0.01)
        for batch in batches:
            task = pa.array([context.partitionId()] * len(batch), pa.int32())
            named = [task, batch.column("partition"), batch.column("key")]
            yield pa.record_batch(named, ["task", "partition", "key"])

    return read


def _kill_one(begun: Path) -> None:
    """Kills an executor when the first task reads what the map has written."""
    while not begun.exists():
        time.sleep(0.01)
    os.kill(executor_of(int(begun.read_text())), signal.SIGKILL)
    Path(f"{begun}.killed").touch()


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main(sys.argv[1], int(sys.argv[2]))
