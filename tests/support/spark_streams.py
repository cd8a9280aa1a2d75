"""Streams of the data source in a session of Spark: checks for Classic, Connect and a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from history_files import record
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rdmeta import history
from rdmeta.spark.spark_versions import has_spark


def started(spark: SparkSession, root: Path, **options: str) -> StreamingQuery:
    """Starts a stream of `root`/history into a folder of Parquet; it ends at what is there."""
    reader = spark.readStream.format("rdmeta").option("path", str(root / "history"))
    for name, value in options.items():
        reader = reader.option(name, value)
    writer = reader.load().writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(root / "checkpoint"))
    return writer.start(str(root / "out"))


def drained(spark: SparkSession, root: Path, **options: str) -> int:
    """Runs a stream to its end; returns how many batches its checkpoint has then."""
    assert started(spark, root, **options).awaitTermination(120)
    # The progress of a query that has ended is not the same in Connect.
    commits = (root / "checkpoint/commits").iterdir()
    return sum(path.name.isdecimal() for path in commits)


def error_of(spark: SparkSession, root: Path, **options: str) -> str:
    """Returns the error with which a stream ends."""
    try:
        started(spark, root, **options).awaitTermination(120)
    except StreamingQueryException as error:
        return str(error)
    raise AssertionError("the stream ended without an error")


def rows_of(spark: SparkSession, root: Path) -> list[str]:
    """Returns the rows of the sink."""
    columns = history.CHANGE_SCHEMA.names
    found = spark.read.parquet(str(root / "out")).toArrow().select(columns)
    return sorted(map(repr, found.to_pylist()))


def wanted_rows(root: Path) -> list[str]:
    """Returns the rows of the history."""
    return sorted(map(repr, history.read(root / "history").to_pylist()))


def check_each_row_comes_once_while_the_history_grows(spark: SparkSession, root: Path) -> None:
    record(root / "history", "one", changes=4)
    count = len(wanted_rows(root))
    limits = {"maxRowsPerTrigger": str(count - 2)} if has_spark("4.2") else {}
    batches = drained(spark, root, **limits)
    assert batches == (2 if limits else 1)
    history.compact(root / "history")
    record(root / "history", "two", changes=2)
    assert drained(spark, root) == batches + 1
    assert rows_of(spark, root) == wanted_rows(root)


def check_errors_name_what_is_wrong(spark: SparkSession, root: Path) -> None:
    paths = record(root / "history", "one", changes=2)
    content = paths[1].read_bytes()
    paths[1].write_bytes(content[:-1])
    assert f"{paths[1]}: not a whole Parquet file" in error_of(spark, root)
    paths[1].write_bytes(content)
    batches = drained(spark, root)
    for path in (root / "history").rglob("*.parquet"):
        path.rename(path.with_suffix(".gone"))
    # The stream has read the recording to its end. Before 4.2 that makes a batch without rows.
    assert drained(spark, root) == batches + (not has_spark("4.2"))
    (checkpoint,) = (p for p in (root / "checkpoint/offsets").iterdir() if p.name == "0")
    checkpoint.write_text(checkpoint.read_text().replace('"rows"', '"lines"'))
    for path in (root / "checkpoint").glob("*/*"):
        if path.name.strip(".") not in ("0", "metadata") or path.parent.name == "commits":
            path.unlink()
    assert "the checkpoint's offset is damaged" in error_of(spark, root)


CHECKS: tuple[Callable[[SparkSession, Path], None], ...] = (
    check_each_row_comes_once_while_the_history_grows,
    check_errors_name_what_is_wrong,
)
