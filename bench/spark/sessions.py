"""Sessions of the bench, and what their Python workers take."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from bench.build import ROOT
from bench.figure import Missing
from rdmeta.pipeline.work import Engine
from rdmeta.spark import NoJavaError, build_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@contextmanager
def local(master: str) -> Iterator[SparkSession]:
    """Yields a session that writes nothing into the installed pyspark; Missing without Java."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["SPARK_WORKER_DIR"] = folder
        # The workers import this module, too.
        os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        try:
            session = build_session(master)
        except NoJavaError as error:
            raise Missing(str(error)) from error
        try:
            yield session
        finally:
            session.stop()


def engine(session: SparkSession) -> Engine:
    from rdmeta.spark.executors import spark_engine

    return spark_engine(session)


def cpu_seconds() -> float:
    """Returns the seconds of CPU that this process and its children that have ended took."""
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def first_job(session: SparkSession) -> float:
    """Returns the seconds of the first Python job of a session: it starts the workers."""
    begin = perf_counter()
    worker_peak(session)
    return perf_counter() - begin


def worker_peak(session: SparkSession) -> float:
    """Returns the most MiB that a Python worker which still runs has taken."""
    rows = session.range(0, 8, 1, 4).mapInArrow(_peaks, "mib double").collect()
    return max(float(row.mib) for row in rows)


def _peaks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for _ in batches:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        most = re.search(r"VmHWM:\s+(\d+) kB", status)
        yield pa.record_batch({"mib": pa.array([int(most[1]) / 1024 if most else 0.0])})
