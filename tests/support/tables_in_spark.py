"""A Spark that compares tables with folders: python tables_in_spark.py KIND JARS LOCATIONS.

LOCATIONS is JSON: what it reads of each table, and the folder with the same rows. It prints JSON:
the rows of each table, those that it lacks, those that it has more, and those of its first version.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

_SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.mem": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.mem.catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
    },
}


def main(kind: str, jars: str, locations: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", 2)
    for key, value in _SETTINGS[kind].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    found = {}
    for name, (where, folder) in json.loads(locations).items():
        rows, first = _read(spark, kind, name, where)
        whole = spark.read.option("recursiveFileLookup", "true").parquet(folder)
        rows = rows.select(whole.columns)
        counts = (rows, whole.exceptAll(rows), rows.exceptAll(whole), first)
        found[name] = [each.count() for each in counts]
    print(json.dumps(found))


def _read(spark: Any, kind: str, name: str, where: str) -> tuple[Any, Any]:
    """Returns a table, and its first version."""
    if kind == "delta":
        reader = spark.read.format("delta")
        return reader.load(where), reader.option("versionAsOf", 0).load(where)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS mem.db")
    spark.sql(f"CALL mem.system.register_table('db.{name}', '{where}')")
    (first, *_) = spark.sql(
        f"SELECT snapshot_id FROM mem.db.{name}.snapshots ORDER BY committed_at"
    ).collect()
    at = spark.sql(f"SELECT * FROM mem.db.{name} VERSION AS OF {first[0]}")
    return spark.table(f"mem.db.{name}"), at


if __name__ == "__main__":
    main(*sys.argv[1:])
