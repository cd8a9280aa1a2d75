"""Runs tasks of rdmeta.pipeline on Spark's executors.

The executors run the same tasks as processes of this machine do, and write the files themselves.
Spark moves nothing but the tasks and their results. Each executor needs this version of rdmeta, and
reaches the folders of the plan by the same paths or URIs.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rdmeta.errors import Error, MissingExtraError

try:
    import pyarrow as pa
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark", "spark") from error

from rdmeta.pipeline.errors import BadFileError, PipelineError
from rdmeta.pipeline.running import Engine
from rdmeta.pipeline.task import attempt
from rdmeta.pipeline.work import Result, Task
from rdmeta.spark.session import build_session

__all__ = ["session_engine", "spark_engine"]

# A task of Spark takes tasks until they have that many rows, as each one of its own costs 10 ms.
_ROWS = 1_000_000
_FEWEST = 4


def spark_engine(session: SparkSession) -> Engine:
    """Returns an engine that runs tasks on the executors of a session."""

    def run_tasks(tasks: Sequence[Task]) -> Iterator[Result | BadFileError]:
        packs = _packed(tasks)
        rows = [(number, pickle.dumps(pack)) for number, pack in enumerate(packs)]
        frame = session.createDataFrame(rows, "number int, tasks binary")
        # A range puts one pack into each partition; a hash would put several into some.
        spread = frame.repartitionByRange(len(packs), "number")
        results = spread.mapInArrow(_attempted, "result binary").toLocalIterator(True)
        try:
            for row in results:
                result = pickle.loads(row.result)
                if isinstance(result, Exception) and not isinstance(result, BadFileError):
                    raise result
                yield result
        except (PySparkException, Py4JError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise PipelineError(f"the Spark job has failed: {reason}") from error

    return run_tasks


@contextmanager
def session_engine(master: str | None = None) -> Iterator[Engine]:
    """Yields an engine whose session starts with its first task and ends with the block.

    Raises NoJavaError and MissingExtraError when it starts.
    """
    sessions: list[SparkSession] = []

    def run_tasks(tasks: Sequence[Task]) -> Iterator[Result | BadFileError]:
        if not sessions:
            sessions.append(build_session(master))
        yield from spark_engine(sessions[0])(tasks)

    try:
        yield run_tasks
    finally:
        for session in sessions:
            session.stop()


def _attempted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes the tasks of a partition, and yields their results."""
    for batch in batches:
        for pack in batch.column("tasks").to_pylist():
            for task in pickle.loads(pack):
                result = pickle.dumps(_outcome(task))
                yield pa.record_batch({"result": pa.array([result], pa.binary())})


def _outcome(task: Task) -> Result | Exception:
    """Makes a task; returns the error if it fails, as Spark would make a text of it."""
    try:
        return attempt(task)
    except (OSError, Error) as error:
        return error


def _packed(tasks: Sequence[Task]) -> list[list[Task]]:
    """Returns the tasks in packs of about the same number of rows, the largest first."""
    ordered = sorted(tasks, key=lambda task: (-task.rows, task.cluster_id, task.periods[0].name))
    count = max(min(_FEWEST, len(tasks)), sum(task.rows for task in tasks) // _ROWS)
    count = min(count, len(tasks))
    packs: list[tuple[int, list[Task]]] = [(0, []) for _ in range(count)]
    for task in ordered:
        number = min(range(count), key=lambda n: packs[n][0])
        rows, pack = packs[number]
        packs[number] = (rows + task.rows + 1, [*pack, task])
    return [pack for _, pack in packs]
