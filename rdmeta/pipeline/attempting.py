"""Makes tasks of any kind: looks, copies, parts of silver, months of gold; here or elsewhere.

Such a process is a Python of its own that reads tasks from its stdin and writes results to its
stdout. Unlike the workers of multiprocessing it does not run the caller's program again.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import IO, Any

from rdmeta.pipeline.copying import copy_files
from rdmeta.pipeline.errors import BadFileError, PipelineError
from rdmeta.pipeline.gold.making import make_month
from rdmeta.pipeline.inputs import opened_here
from rdmeta.pipeline.storage import using
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.task import make
from rdmeta.pipeline.transcribing import transcribe
from rdmeta.pipeline.work import AnyTask, CopyTask, Engine, LogTask, LookTask, MonthTask, Result

# A run in one process is faster than to start others, for fewer tasks with fewer rows.
_FEW_ROWS = 200_000
_FEW_TASKS = 50
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import serve; serve()"


def attempt(task: AnyTask) -> Result | BadFileError:
    """Makes a task; returns the error of an input that it cannot read.

    Raises the other errors of `make`, `make_month`, `copy_files` and `transcribe`.
    """
    with using(task.storage):
        try:
            if isinstance(task, CopyTask):
                return copy_files(task)
            if isinstance(task, LookTask):
                return Result("", seen=[*opened_here(Store(task.inputs[0].store), task.inputs)])
            if isinstance(task, LogTask):
                return transcribe(task)
            return make_month(task) if isinstance(task, MonthTask) else make(task)
        except BadFileError as error:
            return error


def local_engine(workers: int | None = None) -> Engine:
    """Returns an engine that runs tasks in processes of this machine; few rows need no process."""

    def run_tasks(tasks: Sequence[AnyTask]) -> Iterator[Result | BadFileError]:
        count = min(workers or os.cpu_count() or 1, len(tasks))
        rows = sum(task.rows for task in tasks)
        if count <= 1 or (rows < _FEW_ROWS and len(tasks) < _FEW_TASKS):
            yield from map(attempt, tasks)
            return
        yield from made_by_processes(tasks, count)

    return run_tasks


def made_by_processes(tasks: Sequence[AnyTask], count: int) -> Iterator[Result | BadFileError]:
    """Yields what `count` processes make of the tasks, as it comes; the largest task is first.

    Raises the error of a task, and PipelineError if a process dies. The processes end with the
    iterator.
    """
    todo: SimpleQueue[AnyTask] = SimpleQueue()
    for task in sorted(tasks, key=lambda each: -each.rows):
        todo.put(task)
    done: SimpleQueue[Any] = SimpleQueue()
    workers = [_started() for _ in range(count)]
    threads = [threading.Thread(target=_feed, args=(each, todo, done)) for each in workers]
    try:
        for thread in threads:
            thread.start()
        for _ in tasks:
            result = done.get()
            if isinstance(result, Exception) and not isinstance(result, BadFileError):
                raise result
            yield result
    finally:
        for worker in workers:
            worker.kill()
        for thread, worker in zip(threads, workers, strict=True):
            thread.join()
            with worker:
                pass


def serve() -> None:
    """Makes the tasks that come by stdin until it ends: what a worker runs."""
    tasks = sys.stdin.buffer
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as results:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no result
        while True:
            try:
                task: AnyTask = pickle.load(tasks)
            except EOFError:
                return
            _write(results, _outcome(task))


def _outcome(task: AnyTask) -> Result | Exception:
    try:
        return attempt(task)
    except Exception as error:
        return error


def _started() -> subprocess.Popen[bytes]:
    program = _PROGRAM.format(path=sys.path, module=__name__)
    # Ctrl-C is the first process's to heed: a worker has this mask before it imports anything.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        return subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _feed(
    worker: subprocess.Popen[bytes], todo: SimpleQueue[AnyTask], done: SimpleQueue[Any]
) -> None:
    """Gives tasks to a worker, one after the other, and passes its results on."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    while True:
        try:
            task = todo.get_nowait()
        except Empty:
            return
        try:
            _write(worker.stdin, task)
            done.put(pickle.load(worker.stdout))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            done.put(PipelineError("a worker process has died; run the command again"))
            return


def _write(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream)
    stream.flush()
