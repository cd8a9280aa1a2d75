"""Runs tasks of rdmeta.pipeline on Spark's executors.

The executors run the same tasks as processes of this machine do, and write the files themselves.
Spark moves nothing but the tasks and their results. Each executor needs this version of rdmeta, and
reaches the folders of the plan by the same paths or URIs. The session is a Classic one or one of
Spark Connect: nothing here needs Java.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from rdmeta.errors import MissingExtraError

try:
    from pyspark.sql import SparkSession
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark", "spark") from error

from rdmeta.pipeline.errors import BadFileError, PipelineError
from rdmeta.pipeline.running import Engine
from rdmeta.pipeline.work import AnyTask, Result
from rdmeta.spark.remote import SCHEMA, shipped
from rdmeta.spark.spark_session import build_session, reason_of, spark_errors

# A task of Spark takes tasks until they have that many rows, as each one of its own costs 10 ms.
_ROWS = 1_000_000
_FEWEST = 4
# So many jobs run at a time. Results come when a job ends, so these are the steps of the progress.
_JOBS = 16


def spark_engine(session: SparkSession) -> Engine:
    """Returns an engine that runs tasks on the executors of a session.

    When its iterator ends early, the jobs are cancelled.
    """

    def run_tasks(tasks: Sequence[AnyTask]) -> Iterator[Result | BadFileError]:
        packs = [pickle.dumps(pack) for pack in _packed(tasks)]
        size = -(-len(packs) // _JOBS)
        groups = [packs[begin : begin + size] for begin in range(0, len(packs), size)]
        tag = f"rdmeta-{uuid4().hex}"
        with ThreadPoolExecutor(len(groups), "rdmeta-spark") as pool:
            jobs = [pool.submit(_collected, session, group, tag) for group in groups]
            try:
                for job in as_completed(jobs):
                    for row in job.result():
                        yield _result_of(row)
            except spark_errors() as error:
                raise PipelineError(f"the Spark job has failed: {reason_of(error)}") from error
            finally:
                if not all(job.done() for job in jobs):
                    pool.shutdown(wait=False, cancel_futures=True)
                    with contextlib.suppress(Exception):  # the session may be gone
                        session.interruptTag(tag)

    return run_tasks


@contextmanager
def session_engine(master: str | None = None) -> Iterator[Engine]:
    """Yields an engine whose session starts with its first task and ends with the block.

    Raises NoJavaError, NoSparkError and MissingExtraError when it starts.
    """
    sessions: list[SparkSession] = []

    def run_tasks(tasks: Sequence[AnyTask]) -> Iterator[Result | BadFileError]:
        if not sessions:
            sessions.append(build_session(master))
        yield from spark_engine(sessions[0])(tasks)

    try:
        yield run_tasks
    finally:
        for session in sessions:
            session.stop()


def _collected(session: SparkSession, packs: Sequence[bytes], tag: str) -> list[Any]:
    """Runs a job that makes the packs, one in each partition; returns its rows."""
    session.addTag(tag)
    numbers = session.range(0, len(packs), 1, len(packs))
    return numbers.mapInArrow(shipped(packs, os.getcwd()), SCHEMA).collect()


def _result_of(row: Any) -> Result | BadFileError:
    """Returns the result that a row has; raises the error that it has."""
    if row.refusal is not None:
        raise PipelineError(row.refusal)
    result: Any = pickle.loads(row.result)
    if isinstance(result, MemoryError):
        raise PipelineError("an executor has too little memory for a task") from result
    if isinstance(result, Exception) and not isinstance(result, BadFileError):
        raise result
    return result  # type: ignore[no-any-return]


def _packed(tasks: Sequence[AnyTask]) -> list[list[AnyTask]]:
    """Returns the tasks in packs of about the same number of rows, the largest first."""
    ordered = sorted(tasks, key=lambda task: (-task.rows, task.cluster_id, task.name))
    count = max(min(_FEWEST, len(tasks)), sum(task.rows for task in tasks) // _ROWS)
    count = min(count, len(tasks))
    packs: list[tuple[int, list[AnyTask]]] = [(0, []) for _ in range(count)]
    for task in ordered:
        number = min(range(count), key=lambda n: packs[n][0])
        rows, pack = packs[number]
        packs[number] = (rows + task.rows + 1, [*pack, task])
    return [pack for _, pack in packs]
