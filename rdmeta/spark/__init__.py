"""Spark sessions, tables and measures as DataFrames, and plans of rdmeta.pipeline on executors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rdmeta.spark.spark_session import (
    NoJavaError,
    NoSparkError,
    SparkJobError,
    build_session,
    find_java,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rdmeta.pipeline import Made, Plan, Progress
    from rdmeta.spark.executors import spark_engine
    from rdmeta.spark.gold_frames import measures
    from rdmeta.spark.silver_frames import tables
    from rdmeta.spark.source import DefaultSource as DataSource
    from rdmeta.spark.source import read

__all__ = [
    "DataSource",
    "NoJavaError",
    "NoSparkError",
    "SparkJobError",
    "build_session",
    "find_java",
    "measures",
    "read",
    "run",
    "spark_engine",
    "tables",
]

# They need pyspark, and a program that plans without Spark may not have it.
_LATER = {
    "DataSource": ("source", "DefaultSource"),
    "measures": ("gold_frames", "measures"),
    "read": ("source", "read"),
    "spark_engine": ("executors", "spark_engine"),
    "tables": ("silver_frames", "tables"),
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        module, there = _LATER[name]
        return getattr(import_module(f"rdmeta.spark.{module}"), there)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run(plan: Plan, session: SparkSession, *, progress: Progress | None = None) -> Made:
    """Carries out a plan on the executors of a session, Classic or Connect; as pipeline.run().

        made = rdmeta.spark.run(rdmeta.pipeline.plan(["history"], "tables"), session)

    Raises the errors of pipeline.run(), SparkJobError, and MissingExtraError without the extra
    `spark`.
    """
    from rdmeta import pipeline
    from rdmeta.spark.executors import spark_engine

    return pipeline.run(plan, engine=spark_engine(session), progress=progress)
