"""Makes a task of any kind: parts of silver, or a month of gold."""

from __future__ import annotations

from rdmeta.pipeline.errors import BadFileError
from rdmeta.pipeline.gold.making import make_month
from rdmeta.pipeline.task import make
from rdmeta.pipeline.work import AnyTask, MonthTask, Result

__all__ = ["attempt"]


def attempt(task: AnyTask) -> Result | BadFileError:
    """Makes a task; returns the error of an input that it cannot read.

    Raises the other errors of `make` and `make_month`.
    """
    try:
        return make_month(task) if isinstance(task, MonthTask) else make(task)
    except BadFileError as error:
        return error
