"""Asks the executors of a session what they have, before a task writes a file.

Each needs the driver's rdmeta, and the same pyarrow and DuckDB if the driver has them: other
versions write other bytes, and then a part would differ from one executor to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, TypeAlias

from rdmeta._version import __version__
from rdmeta.pipeline.errors import PipelineError
from rdmeta.spark.spark_session import reason_of, spark_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_PACKAGES = ("pyarrow", "duckdb")
# Spark spreads so many tasks over its executors. One that comes later is asked by its own tasks.
_TASKS = 16

Batches: TypeAlias = "Iterable[pa.RecordBatch]"


def require_executors(session: SparkSession) -> None:
    """Raises PipelineError, which names a host and both versions, if an executor differs."""
    wanted = {"rdmeta": __version__}
    for name in _PACKAGES:
        try:
            wanted[name] = version(name)
        except PackageNotFoundError:
            continue
    asked = session.range(0, _TASKS, 1, _TASKS).mapInArrow(probe(wanted), "refusal string")
    try:
        refusals = sorted({row[0] for row in asked.collect()})
    except spark_errors() as error:
        raise PipelineError(f"the Spark job has failed: {reason_of(error)}") from error
    if refusals:
        raise PipelineError(refusals[0])


def probe(wanted: dict[str, str]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Returns what an executor runs, whose code Spark sends along: it yields what is wrong."""

    def found(batches: Batches) -> Iterator[pa.RecordBatch]:
        import importlib
        import socket

        import pyarrow as pa

        for _ in batches:
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
                    text = f"executor {socket.gethostname()} {problem}; {advice}"
                    yield pa.record_batch({"refusal": pa.array([text], pa.string())})
                    return

    return found
