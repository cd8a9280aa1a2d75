"""The state that a Python worker reads: one that its host publishes, the newest shared image, or
the image of a plan or of a stream's batch.

A worker looks for the newest image once per task, so all rows of a task have the same one. A plan
that routes rows names its image by a number. A worker maps the file, and workers of a host share
the pages.
"""

from __future__ import annotations

import os
import re
import socket
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rdmeta.cache import Attached
from rdmeta.errors import Error


class NoStateError(Error):
    """An executor has no image and no published state; the text says what to do."""


class _KeptState(NamedTuple):
    task: int | None
    path: str
    state: Attached


_held: dict[tuple[str, str | None], _KeptState] = {}


def state_of(name: str, published: str | None) -> Attached:
    """Returns the state for the task that runs; raises NoStateError if there is none."""
    task = _task()
    held = _held.get((name, published))
    if held is not None and task is not None and held.task == task:
        return held.state
    found = _published(published, held) or _newest(name, held)
    if found is None:
        raise _no_image(name, f", and nothing is published at {published}" if published else "")
    _held[name, published] = found._replace(task=task)
    return found.state


def file_name(name: str, number: int) -> str:
    """Returns the name of a shared file."""
    return f"rdmeta-{name}-{number:020d}.image"


def number_of(name: str, file: str) -> int:
    """Returns the number of a shared file, 0 if it is none of this name."""
    found = re.fullmatch(rf"rdmeta-{name}-(\d+)\.image", file)
    return 0 if found is None else int(found[1])


def image_of_number(name: str, number: int) -> Attached:
    """Returns the image of that number; raises NoStateError if this executor does not have it."""
    folder = _folder()
    try:
        return _opened(str(Path(folder or "", file_name(name, number))))
    except (OSError, Error) as error:
        raise NoStateError(
            f"executor {socket.gethostname()} does not have the image {name!r} of number {number},"
            f" which the plan reads: {error}; share the image by another name, and make the plan"
            " anew"
        ) from error


def image_at(name: str, moment: int) -> Attached:
    """Returns the newest image at a moment, or the oldest if all came later.

    `moment` is the begin of a stream's batch, in nanoseconds. Images that come while the batch
    runs have higher numbers, so all its tasks read the same one.
    """
    numbers = _numbers(name)
    if not numbers:
        raise _no_image(name)
    before = [number for number in numbers if number <= moment]
    return image_of_number(name, max(before) if before else min(numbers))


# A worker that lives on may see many plans, each with an image of its own.
@lru_cache(4)
def _opened(path: str) -> Attached:
    return Attached(path, clock=_stopped)


def _folder() -> str | None:
    """Returns where Spark puts files on this executor."""
    from pyspark import SparkFiles

    try:
        return SparkFiles.getRootDirectory()
    except OSError:
        return None


def _numbers(name: str) -> list[int]:
    """Returns the numbers of the images of a name, the newest first."""
    try:
        found = (number_of(name, each) for each in os.listdir(_folder() or ""))
        return sorted((number for number in found if number), reverse=True)
    except OSError:
        return []


def _no_image(name: str, at: str = "") -> NoStateError:
    return NoStateError(
        f"executor {socket.gethostname()} has no image {name!r}{at}: call"
        " rdmeta.spark.functions.share() before the job"
    )


def _task() -> int | None:
    """Returns the number of the attempt that this worker runs; None outside of a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.taskAttemptId()


def _published(path: str | None, held: _KeptState | None) -> _KeptState | None:
    """Returns the state that a process of this host publishes at a path, if there is one."""
    if path is None:
        return None
    if held is not None and held.path == path:
        return held  # it follows the file by itself, and keeps the last good one
    try:
        return _KeptState(None, path, Attached(path))
    except (OSError, Error):
        return None


def _newest(name: str, held: _KeptState | None) -> _KeptState | None:
    """Returns the newest image of a name that Spark has copied to this executor.

    Spark may still be copying the very newest one: then the one before is the newest.
    """
    for number in _numbers(name):
        path = str(Path(_folder() or "", file_name(name, number)))
        if held is not None and held.path == path:
            return held
        try:
            return _KeptState(None, path, Attached(path, clock=_stopped))
        except (OSError, Error):
            continue
    return None


def _stopped() -> float:
    """Returns the time for an image: it stands still, so no topic gets past its deadline."""
    return 0.0
