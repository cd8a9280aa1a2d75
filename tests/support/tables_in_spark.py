"""A Spark that compares tables with folders: python tables_in_spark.py KIND JARS LOCATIONS.

LOCATIONS is JSON: what it reads of each table, its first version, and the folder with the same
rows. It prints JSON: the rows of each table, those that it lacks, those that it has more, its
commits that name no run, and the rows of its first version.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

_SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
    "iceberg": {},
}


def main(kind: str, jars: str, locations: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", 2)
    for key, value in _SETTINGS[kind].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    found = {}
    for name, (where, version, folder) in json.loads(locations).items():
        reader = spark.read.format(kind)
        rows, first = reader.load(where), reader.option("versionAsOf", version).load(where)
        whole = spark.read.option("recursiveFileLookup", "true").parquet(folder)
        rows = rows.select(whole.columns)
        if kind == "delta":
            runs = spark.sql(f"DESCRIBE HISTORY delta.`{where}`").selectExpr("userMetadata AS run")
        else:
            runs = reader.load(f"{where}#snapshots").selectExpr("summary['rdmeta.run'] AS run")
        unnamed = runs.where("run IS NULL")
        counts = (rows, whole.exceptAll(rows), rows.exceptAll(whole), unnamed, first)
        found[name] = [each.count() for each in counts]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
