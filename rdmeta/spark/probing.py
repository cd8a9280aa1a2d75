"""Asks the executors of a session what they have, before a task writes a file.

Each needs the driver's rdmeta, and the same pyarrow and DuckDB if the driver has them: other
versions write other bytes, and then a part would differ from one executor to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from rdmeta._version import __version__
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.gold.query import Room

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("pyarrow", "duckdb")
# Spark spreads so many tasks over its executors. One that comes later is asked by its own packs.
_TASKS = 16


def require_executors(session: SparkSession) -> Room:
    """Returns the least memory of an executor, and the most CPUs that share it.

    Raises PipelineError, which names a host and both versions, if an executor differs, and
    PySparkException.
    """
    from pyspark.sql import functions as sf

    refusal = refusing(versions_here())

    def answer(_: int) -> tuple[str | None, int, int]:
        if (found := refusal()) is not None:
            return found, 0, 0
        from rdmeta.pipeline.gold.query import room_here

        return None, *room_here()

    # An executor may lack pyarrow.
    probe = sf.udf(answer, "refusal string, memory bigint, cpus int", useArrow=False)
    asked = session.range(0, _TASKS, 1, _TASKS).select(probe("id").alias("found")).select("found.*")
    answers = asked.collect()
    refusals = sorted({each.refusal for each in answers if each.refusal is not None})
    if refusals:
        raise PipelineError(refusals[0])
    return Room(min(each.memory for each in answers), max(each.cpus for each in answers))


def versions_here() -> dict[str, str]:
    """Returns the versions that the driver has."""
    found = {"rdmeta": __version__}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def refusing(wanted: dict[str, str]) -> Callable[[], str | None]:
    """Returns what an executor runs, whose code Spark sends along: it says what is wrong there."""

    def refusal() -> str | None:
        import importlib
        import socket

        for name, right in wanted.items():
            try:
                module = "rdmeta._version" if name == "rdmeta" else name
                there = importlib.import_module(module).__version__
                problem = f"has {name} {there}, and the driver {right}"
            except ImportError as error:
                there, problem = None, f"cannot import {name}: {error}"
            if there != right:
                extra = "rdmeta[pipeline]" if name == "rdmeta" else name
                advice = f"install {extra}=={right} for its Python"
                return f"executor {socket.gethostname()} {problem}; {advice}"
        return None

    return refusal
