"""Runs the pipeline in the session that spark-submit makes: `job.py IN... OUT`."""

import sys

from pyspark.sql import SparkSession

import rdmeta.pipeline
import rdmeta.spark

spark = SparkSession.builder.appName("rdmeta").getOrCreate()
engine = rdmeta.spark.spark_engine(spark)
plan = rdmeta.pipeline.plan(sys.argv[1:-1], sys.argv[-1], gold=True, engine=engine)
made = rdmeta.pipeline.run(plan, engine=engine)
print(f"{len(made.made)} files made, {made.unchanged} as they were")
for each in made.plan.quarantined:
    print(f"set aside: {each.path}: {each.reason}")
spark.stop()
