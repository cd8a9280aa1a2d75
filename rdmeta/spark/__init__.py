"""Spark sessions, and plans of rdmeta.pipeline on their executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdmeta.spark.spark_session import NoJavaError, NoSparkError, build_session, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rdmeta.pipeline import Made, Plan, Progress
    from rdmeta.spark.source import DefaultSource as DataSource
    from rdmeta.spark.source import read

__all__ = ["DataSource", "NoJavaError", "NoSparkError", "build_session", "find_java", "read", "run"]


def __getattr__(name: str) -> object:
    # They need pyspark, and a program that plans without Spark may not have it.
    if name in ("DataSource", "read"):
        from rdmeta.spark import source

        return source.read if name == "read" else source.DefaultSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run(plan: Plan, session: SparkSession, *, progress: Progress | None = None) -> Made:
    """Carries out a plan on the executors of a session, Classic or Connect; as pipeline.run().

        made = rdmeta.spark.run(rdmeta.pipeline.plan(["history"], "tables"), session)

    Raises the errors of pipeline.run(), and MissingExtraError without the extra `spark`.
    """
    from rdmeta import pipeline
    from rdmeta.spark.executors import spark_engine

    return pipeline.run(plan, engine=spark_engine(session), progress=progress)
