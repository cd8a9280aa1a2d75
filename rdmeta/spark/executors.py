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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed, wait
from contextlib import contextmanager
from functools import partial
from heapq import heapreplace
from threading import Thread
from typing import Any
from uuid import uuid4

from rdmeta.errors import MissingExtraError

try:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sf
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark", "spark") from error

from rdmeta.pipeline.errors import BadFileError, PipelineError
from rdmeta.pipeline.gold.query import Room
from rdmeta.pipeline.store import ASKING
from rdmeta.pipeline.work import (
    AnyTask,
    CopyTask,
    Engine,
    LogTask,
    LookTask,
    MonthTask,
    Result,
    Task,
)
from rdmeta.spark.large_months import SETTINGS, is_large, made_by_spark
from rdmeta.spark.probing import require_executors
from rdmeta.spark.remote import COUNTS, SCHEMA, outcome_of, shipped
from rdmeta.spark.spark_session import SparkJobError, build_session, reason_of, spark_errors

# A task of Spark takes tasks until they cost that many rows: each one of its own takes 10 ms. There
# are more of them, with fewer rows, until each core has some; but none for very few rows.
_ROWS = 1_000_000
_FEWEST_ROWS = 50_000
_FOR_A_CORE = 2
# So many jobs run at a time. Results come when a job ends, so these are the steps of the progress.
_JOBS = 16
_BETWEEN_INTERRUPTS = 0.5
# A Connect server that is gone lets each call of its client wait for ten minutes.
_PATIENCE = 10.0


def spark_engine(session: SparkSession) -> Engine:
    """Returns an engine that runs tasks on the executors of a session.

        rdmeta.pipeline.plan(["history"], "tables", engine=rdmeta.spark.spark_engine(session))

    Given to `plan()`, it also opens new files in tasks, if there are many. If a caller stops
    iterating, the jobs are cancelled. Before its first tasks it asks the executors what they have.
    It raises SparkJobError, and PipelineError for an executor that differs.
    """
    asked: list[Room] = []

    def run_tasks(tasks: Sequence[AnyTask]) -> Iterator[Result | BadFileError]:
        tag = f"rdmeta-{uuid4().hex}"
        small: list[AnyTask] = []
        large: list[MonthTask] = []
        try:
            with _configured(session, {"spark.job.description": _description(tasks)}):
                with _tagged(session, tag):
                    if not asked:
                        asked.append(require_executors(session))
                    for task in tasks:
                        if is_large(task, asked[0]):
                            large.append(task)
                        else:
                            small.append(task)
                    cores = _cores(session) if len(small) > 1 else 1
                with _configured(session, SETTINGS if large else {}):
                    yield from _outcomes(session, small, large, cores, tag)
        except spark_errors() as error:
            raise SparkJobError(f"the Spark job has failed: {reason_of(error)}") from error

    return run_tasks


def _outcomes(
    session: SparkSession,
    small: Sequence[AnyTask],
    large: Sequence[MonthTask],
    cores: int,
    tag: str,
) -> Iterator[Result | BadFileError]:
    """Yields the outcomes of tasks as their jobs end; cancels the other jobs if one fails."""
    packs = [pickle.dumps(pack) for pack in _packed(small, _FOR_A_CORE * cores)]
    size = max(1, -(-len(packs) // _JOBS))
    groups = [packs[begin : begin + size] for begin in range(0, len(packs), size)]
    jobs = [job for group in groups for job in _started(partial(_collected, session, group, tag))]
    jobs += _started(*(partial(_large, session, task, tag) for task in large))
    try:
        for job in as_completed(jobs):
            for found in job.result():
                yield found if isinstance(found, Result) else _result_of(found)
    finally:
        for job in jobs:
            job.cancel()
        # A large month starts one job after the other.
        while not all(job.done() for job in jobs) and _soon(partial(session.interruptTag, tag)):
            wait(jobs, _BETWEEN_INTERRUPTS)


def _started(*calls: Callable[[], Any]) -> list[Future[Any]]:
    """Makes calls, one after the other, in a thread that does not hold up the exit."""
    made: list[Future[Any]] = [Future() for _ in calls]

    def make() -> None:
        for future, call in zip(made, calls, strict=True):
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)

    Thread(target=make, name=ASKING, daemon=True).start()
    return made


def _soon(call: Callable[[], object]) -> bool:
    """Makes a call to a session that may be gone; returns whether it ended, or failed, soon."""
    return bool(wait(_started(call), _PATIENCE).done)


@contextmanager
def _tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Gives the jobs of this thread a tag, and cancels them if the block ends early."""
    session.addTag(tag)
    try:
        yield
    except spark_errors():
        raise
    except BaseException:
        _soon(partial(session.interruptTag, tag))
        raise
    finally:
        with contextlib.suppress(Exception):  # the session may be gone
            session.removeTag(tag)


@contextmanager
def _configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Lets a session have settings for a while."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)

    def restore() -> None:
        for name, old in before.items():
            session.conf.unset(name) if old is None else session.conf.set(name, old)

    try:
        yield
    finally:
        _soon(restore)


def _description(tasks: Sequence[AnyTask]) -> str:
    """Returns what Spark's page shows of the jobs, such as `silver: 12 clusters, 340 days`."""
    looks = sum(len(each.inputs) for each in tasks if isinstance(each, LookTask))
    if looks:
        return f"footers: {_counted(looks, 'file')}"
    clusters = len({task.cluster_id for task in tasks})
    files = sum(len(each.copies) for each in tasks if isinstance(each, CopyTask))
    if files:
        return f"bronze: {_counted(clusters, 'cluster')}, {_counted(files, 'file')}"
    recordings = sum(len(each.todo) for each in tasks if isinstance(each, LogTask))
    if recordings:
        return f"logs: {_counted(clusters, 'cluster')}, {_counted(recordings, 'day')}"
    days = {(t.cluster_id, day) for t in tasks if isinstance(t, Task) for day in _days_of(t)}
    table, what, count = "silver", "day", len(days)
    if not days:  # a run makes all silver before it makes gold
        table, what, count = "gold", "month", len(tasks)
    return f"{table}: {_counted(clusters, 'cluster')}, {_counted(count, what)}"


def _days_of(task: Task) -> Iterator[str]:
    for period in task.periods:
        for day in period.days:
            yield day.day


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


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
            _soon(session.stop)


def _cores(session: SparkSession) -> int:
    """Returns how many tasks run at a time: so many partitions Spark makes if nobody says more."""
    return session.range(1 << 16).select(sf.spark_partition_id()).distinct().count()


def _collected(session: SparkSession, packs: Sequence[bytes], tag: str) -> list[Any]:
    """Runs a job that makes the packs, one in each partition; returns its rows.

    Spark's page and `observe()` of the job have the sums of what its tasks count.
    """
    session.addTag(tag)
    numbers = pa.array(range(len(packs)), pa.int32())
    rows = pa.table({"pack": numbers, "tasks": pa.array(packs, pa.binary())})
    frame = session.createDataFrame(rows).repartitionByRange(len(packs), "pack")
    results = frame.mapInArrow(shipped(os.getcwd()), SCHEMA)
    return results.observe("rdmeta", *(sf.sum(name).alias(name) for name in COUNTS)).collect()


def _large(session: SparkSession, task: MonthTask, tag: str) -> list[Any]:
    """Runs the jobs that make a month by Spark SQL."""
    session.addTag(tag)
    return [made_by_spark(session, task)]


def _result_of(row: Any) -> Result | BadFileError:
    """Returns the result that a row has; raises the error that it has."""
    if row.refusal is not None:
        raise PipelineError(row.refusal)
    result: Result | BadFileError = outcome_of(row.result)
    return result


def _packed(tasks: Sequence[AnyTask], fewest: int) -> list[list[AnyTask]]:
    """Returns the tasks in packs of about the same cost, the largest first.

    There are at least `fewest` packs, unless they were too small.
    """
    costs = sorted(((task.cost, number) for number, task in enumerate(tasks)), reverse=True)
    rows = sum(cost for cost, _ in costs)
    count = max(1, rows // _ROWS, min(fewest, rows // _FEWEST_ROWS))
    packs: list[list[AnyTask]] = [[] for _ in range(min(count, len(tasks)))]
    heap = [(0, number) for number in range(len(packs))]
    for cost, number in costs:
        size, pack = heap[0]
        packs[pack].append(tasks[number])
        heapreplace(heap, (size + cost, pack))
    return packs
