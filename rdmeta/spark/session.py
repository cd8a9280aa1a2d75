"""A Spark session that uses this Python and UTC, and logs only errors."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rdmeta.errors import Error, MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NoJavaError", "build_session", "find_java"]


class NoJavaError(Error):
    """There is no Java, which Spark needs."""


def find_java() -> str:
    """Returns the `java` that Spark will start; raises NoJavaError if there is none.

    `JAVA_HOME` comes first, then `PATH`, as in Spark's own start script.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME ({home}) has no bin/java" if home else "there is no java on the PATH"
        raise NoJavaError(f"Spark needs Java 17 or later: {where}; install it or set JAVA_HOME")
    return found


def build_session(
    master: str | None = None, app: str = "rdmeta", *, short: bool = False
) -> SparkSession:
    """Returns a session on `master`, by default every core of this machine; the caller stops it.

    `short` says that the job takes only seconds. On one machine Java then compiles its code fast
    instead of well. That halves the time of a first small job and slows down large ones. Executors
    run this process's own Python unless PYSPARK_PYTHON names another. Timestamps are in UTC. Raises
    NoJavaError, and MissingExtraError without the extra `spark`.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError.of("rdmeta.spark", "spark") from error
    find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName(app)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
    )
    if master is None or master.startswith("local"):
        builder = _on_one_machine(builder, short)
    return builder.master(master or "local[*]").getOrCreate()


def _on_one_machine(builder: SparkSession.Builder, short: bool) -> SparkSession.Builder:
    """Configures a session for one machine.

    It looks up no host name, serves no web page and logs only errors. It has one shuffle partition
    per core instead of a cluster's 200.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = (Path(__file__).parent / "log4j2.properties").as_uri()
    java = f"-Dlog4j2.configurationFile={quiet}" + " -XX:TieredStopAtLevel=1" * short
    return (
        builder.config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
        .config("spark.ui.enabled", "false")
    )
