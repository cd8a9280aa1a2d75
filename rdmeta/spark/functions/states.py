"""The state that a Python worker reads: one that its host publishes, or the newest shared image.

A worker looks once per task, so all rows of a task have the same image. It maps the file, and
workers of a host share the pages.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple

from rdmeta.cache import Attached
from rdmeta.errors import Error

__all__ = ["NoStateError", "state_of"]


class NoStateError(Error):
    """An executor has no image and no published state; the text says what to do."""


class _Held(NamedTuple):
    task: int | None
    path: str
    state: Attached


_held: dict[tuple[str, str | None], _Held] = {}


def state_of(name: str, published: str | None) -> Attached:
    """Returns the state for the task that runs; raises NoStateError if there is none."""
    task = _task()
    held = _held.get((name, published))
    if held is not None and task is not None and held.task == task:
        return held.state
    found = _published(published, held) or _newest(name, held)
    if found is None:
        at = f", and nothing is published at {published}" if published else ""
        raise NoStateError(
            f"executor {socket.gethostname()} has no image {name!r}{at}: call"
            " rdmeta.spark.functions.share() before the job"
        )
    _held[name, published] = found._replace(task=task)
    return found.state


def _task() -> int | None:
    """Returns the number of the attempt that this worker runs; None outside of a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.taskAttemptId()


def _published(path: str | None, held: _Held | None) -> _Held | None:
    """Returns the state that a process of this host publishes at a path, if there is one."""
    if path is None:
        return None
    if held is not None and held.path == path:
        return held  # it follows the file by itself, and keeps the last good one
    try:
        return _Held(None, path, Attached(path))
    except (OSError, Error):
        return None


def _newest(name: str, held: _Held | None) -> _Held | None:
    """Returns the newest image of a name that Spark has copied to this executor.

    Spark may still be copying the very newest one: then the one before is the newest.
    """
    from pyspark import SparkFiles

    try:
        folder = SparkFiles.getRootDirectory()
        files = [each for each in os.listdir(folder) if each.startswith(f"rdmeta-{name}-")]
    except OSError:
        return None
    for file in sorted(files, reverse=True):
        path = str(Path(folder, file))
        if held is not None and held.path == path:
            return held
        try:
            return _Held(None, path, Attached(path, clock=_stopped))
        except (OSError, Error):
            continue
    return None


def _stopped() -> float:
    """Returns the time for an image: it stands still, so no topic gets past its deadline."""
    return 0.0
