"""Makes packs of tasks on an executor of Spark: a pack is a row of a DataFrame.

`shipped` returns a function whose code Spark sends along. So an executor without rdmeta, or with
another version, can say so. All else is imported on the executor.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from rdmeta.errors import Error
from rdmeta.pipeline import lock
from rdmeta.pipeline.attempting import attempt
from rdmeta.pipeline.errors import BadFileError, PipelineError
from rdmeta.pipeline.storage import using
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.work import AnyTask, Result
from rdmeta.spark.probing import refusing, versions_here

if TYPE_CHECKING:
    import pyarrow as pa

# What Spark's page has the sums of.
COUNTS = tuple(Result("").counts)
SCHEMA = f"result binary, refusal string, {', '.join(f'{name} bigint' for name in COUNTS)}"

# A task sends them to the driver, which raises them.
FAILURES = (OSError, Error, MemoryError)

Batches: TypeAlias = "Iterable[pa.RecordBatch]"


def shipped(folder: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Returns what makes the packs of a partition: the column `tasks` of its rows.

    `folder` is where relative paths begin. Each row that it yields has a pickled result with its
    counts, or says why this executor makes none.
    """
    refused, counts = refusing(versions_here()), COUNTS

    def attempted(batches: Batches) -> Iterator[pa.RecordBatch]:
        # The executor has nothing of this module: names of its top level would need rdmeta.
        import pyarrow as pa

        def row(result: bytes | None, refusal: str | None, *counted: int) -> pa.RecordBatch:
            values = {"result": pa.array([result], pa.binary())}
            values["refusal"] = pa.array([refusal], pa.string())
            for name, number in zip(counts, counted or [0] * len(counts), strict=True):
                values[name] = pa.array([number], pa.int64())
            return pa.record_batch(values)

        if (text := refused()) is not None:
            yield row(None, text)
            return
        from rdmeta.spark.remote import make_pack

        for batch in batches:
            for pack in batch.column("tasks").to_pylist():
                for result, counted in make_pack(pack, folder):
                    yield row(result, None, *counted)

    return attempted


def make_pack(pack: bytes, folder: str) -> Iterator[tuple[bytes, Iterable[int]]]:
    """Makes the tasks of a pack; yields what each one gives or raises, and the counts of it."""
    tasks: list[AnyTask] = pickle.loads(pack)
    for task in tasks:
        with _inside(folder):
            outcome = _outcome(task)
        counts = outcome.counts.values() if isinstance(outcome, Result) else ()
        yield pickle.dumps(outcome), counts


def _outcome(task: AnyTask) -> Result | Exception:
    """Makes a task; returns the error if it fails, as Spark would make a text of it."""
    try:
        with using(task.storage):
            _require_folders(task)
        return attempt(task)
    except FAILURES as error:
        return error


def outcome_of(pickled: bytes) -> Any:
    """Returns what a task has sent to the driver; raises an error, unless a file is damaged."""
    outcome = pickle.loads(pickled)
    if isinstance(outcome, MemoryError):
        raise PipelineError("an executor has too little memory for a task") from outcome
    if isinstance(outcome, Exception) and not isinstance(outcome, BadFileError):
        raise outcome
    return outcome


def _require_folders(task: AnyTask) -> None:
    """Raises PipelineError if this executor does not see the folders that the driver sees."""
    places = {file.store for file in task.files()}
    unseen = [where for where in sorted(places) if not Store(where).exists()]
    out = Store(task.out)
    if task.token and out.read(lock.NAME) is None:
        unseen.append(out.shown(lock.NAME))
    if unseen:
        raise PipelineError(
            f"executor {socket.gethostname()} does not see {unseen[0]}: each executor needs the"
            " inputs and the output folder by the same paths or URIs"
        )


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    """Lets relative paths begin in a folder, if it is there."""
    before = os.getcwd()
    with contextlib.suppress(OSError):
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
