"""A Spark session that uses this Python and UTC, and logs only errors."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rdmeta.config import secret_keys
from rdmeta.errors import Error, MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PORT = 15002
# Java reserves 48 MiB for the code of its fast compiler alone. A session of many queries fills it,
# and then Java ends with "Out of space in CodeCache".
_FAST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_REDACTION = "spark.sql.redaction.string.regex"
# A server's own client tries for ten minutes, also where nothing listens.
_ANSWER_SECONDS = 20.0


class NoJavaError(Error):
    """There is no Java, which Spark needs."""


class NoSparkError(Error):
    """A Spark session cannot start; the text says why."""


class SparkJobError(Error):
    """A job of Spark has failed, or its server is gone; the text says why."""


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


def find_spark(master: str | None = None) -> None:
    """Raises MissingExtraError or NoJavaError if what a session on `master` needs is missing."""
    try:
        from pyspark.util import is_remote_only
    except ImportError as error:
        extra = "connect" if is_served(master) else "spark"
        raise MissingExtraError.of("rdmeta.spark", extra) from error
    if is_served(master):
        return
    if is_remote_only():
        raise MissingExtraError.of("Spark without a Connect server", "spark")
    find_java()


def is_served(master: str | None) -> bool:
    """Returns whether a Spark Connect server runs the jobs; then this machine needs no Java."""
    return _chosen(master).startswith("sc://")


def build_session(
    master: str | None = None, app: str = "rdmeta", *, short: bool = False
) -> SparkSession:
    """Returns a session on `master`, by default every core of this machine; the caller stops it.

    `master` may be a Spark Connect server, such as sc://host:15002. Without it the environment's
    SPARK_REMOTE counts, as for Spark: such a server, or local[*] for one of this machine. `short`
    says that the job takes only seconds. On one machine Java then compiles its code fast instead of
    well. That halves the time of a first small job and slows down large ones. Executors run this
    process's own Python unless PYSPARK_PYTHON names another. Timestamps are in UTC. Raises
    NoJavaError, NoSparkError, and MissingExtraError without the extra `spark` or `connect`.
    """
    find_spark(master)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app).config("spark.sql.session.timeZone", "UTC")
    # The data source takes filters only with it; Spark refuses such a reader otherwise.
    builder = builder.config("spark.sql.python.filterPushdown.enabled", "true")
    if is_served(master):
        builder = builder.remote(_listening(_chosen(master)))
    else:
        builder = _started_here(builder, master, short)
    try:
        with warnings.catch_warnings():
            # A server that this process starts has them; a session of Connect cannot set them.
            warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
            return hiding_secrets(builder.getOrCreate())
    except ImportError as error:
        raise MissingExtraError.of("Spark Connect", "connect") from error
    except spark_errors() as error:
        raise NoSparkError(f"Spark has not started: {reason_of(error)}") from error


def spark_errors() -> tuple[type[Exception], ...]:
    """Returns the errors of Spark; a client of Spark Connect has none of the link to Java."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return (PySparkException,)
    return (PySparkException, Py4JError, ConnectionError)  # the latter if Java has ended


def _secrets() -> tuple[str, ...]:
    """Returns the options that are credentials."""
    from rdmeta.pipeline.storage import secret_options  # it needs the extra `pipeline`

    return (*secret_keys(), *secret_options())


def has_secret(options: Iterable[str]) -> bool:
    """Returns whether one of these options is a credential."""
    return not {*map(str.lower, options)}.isdisjoint(_secrets())


def hidden_pattern() -> str:
    """Returns a pattern of Java for options with a credential, as Spark shows a query's text.

    A Connect server shows options as `key: "..." value: "..."`. It shows SQL as it is written, on
    its pages with a backslash before each quote and backslash. A value of SQL may be in any quotes,
    behind a comment, or an expression, so all that follows its key is hidden there; so is what
    follows a letter that is written as \\u0077 or \\167, as it may be one of a key.
    """
    keys = "|".join(_secrets()).replace(".", r"\.")
    option = rf'key: "(?i:{keys})"\s*value: "[^"\\]*(?:\\.[^"\\]*)*"'
    # A dot of a key may be escaped, and have blanks and quotes of its parts beside it.
    beside = r"[\s`'\"\\]*"
    keys = keys.replace(r"\.", rf"{beside}(?:\.|u002e|056){beside}")
    letter = r"\\(?:u00|U000000)[4-7][0-9a-fA-F]|\\1[0-7]{2}"
    return rf"{option}|(?:(?i:{keys})|{letter})[\s\S]*"


def reason_of(error: Exception) -> str:
    """Returns one line of an error of Spark.

    It is the error itself, or the one that a trace of Python or the cause of Java's ends with.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if "Traceback (most recent call last)" in line:
            below = (each for each in lines[number + 1 :] if not each.startswith(" "))
            return next(below, line).strip()
    causes = [line.partition(": ")[2] for line in lines if line.startswith((": ", "Caused by: "))]
    return (causes[-1:] or lines[:1] or [type(error).__name__])[0].strip()


def hiding_secrets(session: SparkSession) -> SparkSession:
    """Lets the pages of a Connect server hide credentials; returns the session.

    Those pages show each query as the client sent it, with the options of a data source.
    """
    if not type(session).__module__.startswith("pyspark.sql.connect."):
        return session
    before = session.conf.get(_REDACTION, None)
    ours = hidden_pattern()
    if before is None or ours not in before:
        session.conf.set(_REDACTION, "|".join(filter(None, (before, ours))))
    return session


def _chosen(master: str | None) -> str:
    return master or os.environ.get("SPARK_REMOTE") or "local[*]"


def _listening(url: str) -> str:
    """Returns the URL of a server that accepts connections; raises NoSparkError."""
    try:
        parts = urlsplit(url)
        address = (parts.hostname or "", parts.port or _PORT)
        socket.create_connection(address, _ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise NoSparkError(f"{url}: no Spark Connect server answers: {error}") from error
    return url


def _started_here(
    builder: SparkSession.Builder, master: str | None, short: bool
) -> SparkSession.Builder:
    """Configures a session whose driver this machine starts."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = _chosen(master)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if chosen.startswith("local"):
        builder = _on_one_machine(builder, short)
    is_remote = master is None and "SPARK_REMOTE" in os.environ
    return builder.remote(chosen) if is_remote else builder.master(chosen)


def _on_one_machine(builder: SparkSession.Builder, short: bool) -> SparkSession.Builder:
    """Configures a session for one machine.

    It looks up no host name, serves no web page and logs only errors. It has one shuffle partition
    per core instead of a cluster's 200.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = (Path(__file__).parent / "log4j2.properties").as_uri()
    java = f"-Dlog4j2.configurationFile={quiet}" + f" {_FAST_COMPILER}" * short
    return (
        builder.config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
        .config("spark.ui.enabled", "false")
    )
