"""Times reads of the data source: changes and a log's records beside Parquet, live partitions
beside their Arrow."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.build import c_benches
from bench.spark import sessions
from bench.spark.histories import days_of_changes, made_history
from bench.spark.log_files import write_logs
from rdmeta import EmbeddedCluster, MetadataCache, fetch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOPICS = 100


def measure(changes: int, partitions: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: changes, parquet, records (as many), records_parquet, live, arrow.

    Each reads all columns of all rows.
    """
    names = ("changes", "parquet", "records", "records_parquet", "live", "arrow")
    out: dict[str, Any] = {name: [] for name in names}
    c_benches()
    with (
        TemporaryDirectory() as folder,
        sessions.local("local[2]") as session,
        made_history(days_of_changes(changes)) as history,
        EmbeddedCluster(brokers=3) as cluster,
    ):
        sessions.first_job(session)
        for number in range(_TOPICS):
            cluster.create_topic(f"topic-{number:03}", partitions // _TOPICS)
        cache = MetadataCache()
        fetch(cache, cluster.bootstrap)
        rows = pa.RecordBatchReader.from_stream(cache.to_arrow("partitions")).read_all()
        assert rows.num_rows == partitions // _TOPICS * _TOPICS
        source = session.read.format("rdmeta")
        recorded = source.option("path", str(history)).option("table", "changes")
        parquet = session.read.option("recursiveFileLookup", "true")
        write_logs(Path(folder, "logs"), changes, 1)
        logged = session.read.format("rdmeta").option("path", f"{folder}/logs")
        logged = logged.option("table", "records")
        logged.load().write.parquet(f"{folder}/records")
        asked = session.read.format("rdmeta").option("bootstrap.servers", cluster.bootstrap)
        asked = asked.option("table", "partitions")
        for _ in range(rounds + 1):  # the first round compiles
            out["changes"].append(_read(lambda: recorded.load()))
            out["parquet"].append(_read(lambda: parquet.parquet(str(history))))
            out["records"].append(_read(lambda: logged.load()))
            out["records_parquet"].append(_read(lambda: session.read.parquet(f"{folder}/records")))
            out["live"].append(_read(lambda: asked.load()))
            out["arrow"].append(_read(lambda: session.createDataFrame(rows)))
    return {name: seconds[1:] for name, seconds in out.items()}


def _read(made: Any) -> float:
    """Returns the seconds in which Spark makes a data frame and takes all its rows."""
    begin = perf_counter()
    frame: DataFrame = made()
    frame.write.format("noop").mode("overwrite").save()
    return perf_counter() - begin
