"""Writes rows to Kafka by Spark's own connector, and by a producer in each task: by leader or not.

    python spark_kafka_job.py SERVERS PROXIED IMAGE JARS

SERVERS are the brokers' addresses, PROXIED those before which a test counts connections. It prints
how many partitions the rows by leader had. PLAN is what it writes to which topic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rdmeta.spark import build_session
from rdmeta.spark import functions as F

if TYPE_CHECKING:
    import pyarrow as pa

ROWS, TASKS = 3000, 12
# By topic: whether rows go by leader, and whether Spark's sink writes them or a producer per task.
PLAN = {
    "sink-plain": (False, True),
    "sink-by-leader": (True, True),
    "tasks-plain": (False, False),
    "tasks-by-leader": (True, False),
}
# One batch per partition and task: it is sent when the task ends.
LINGER_MS = 5000


def key_of(number: int) -> bytes:
    return f"customer-{number}".encode()


def main(servers: str, proxied: str, image: str, jars: str) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
    session = build_session("local[2]", short=True)
    F.share(session, image)
    keys = session.range(0, ROWS, 1, TASKS).select(
        sf.concat(sf.lit("customer-"), sf.col("id")).cast("binary").alias("key"),
        sf.col("id").cast("string").cast("binary").alias("value"),
    )
    for topic, (is_by_leader, is_by_sink) in PLAN.items():
        rows = keys.withColumn("topic", sf.lit(topic))
        if is_by_leader:
            rows = F.repartition_by_leader(rows, TASKS)
            print(rows.rdd.getNumPartitions())
        if is_by_sink:
            by_sink(rows, servers)
        else:
            by_tasks(rows, proxied)
    session.stop()


def by_sink(rows: DataFrame, servers: str) -> None:
    options: dict[str, str | int] = {"bootstrap.servers": servers, "linger.ms": LINGER_MS}
    options["batch.size"] = 2**20
    writer = rows.write.format("kafka")
    for name, value in options.items():
        writer = writer.option(f"kafka.{name}", value)
    writer.save()


def by_tasks(rows: DataFrame, servers: str) -> None:
    """Writes rows by a producer in each task, which has the name of the topic."""
    if "partition" not in rows.columns:
        rows = rows.withColumn("partition", F.partition_for("key", "topic"))

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from confluent_kafka import Producer

        producer = None
        for batch in batches:
            for row in batch.to_pylist():
                if producer is None:
                    options = {"client.id": row["topic"], "linger.ms": LINGER_MS}
                    producer = Producer({"bootstrap.servers": servers, **options})
                    # A producer that learns of partitions while it flushes sends some by parts.
                    producer.list_topics(row["topic"], 60)
                producer.produce(row["topic"], row["value"], row["key"], row["partition"])
        if producer is not None:
            assert producer.flush(60) == 0
        yield from ()

    rows.mapInArrow(written, "nothing int").collect()


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    server_list, proxies, path, folder = sys.argv[1:]
    main(server_list, proxies, path, ",".join(map(str, sorted(Path(folder).glob("*.jar")))))
