# Databricks notebook source
# MAGIC %md
# MAGIC # Kafka metadata: tables and measures from a Volume
# MAGIC
# MAGIC Needs a runtime with Spark 4.0 or later, and compute whose access mode is dedicated: in the
# MAGIC standard one Python on the executors does not see `/Volumes`. A job runs this each hour.

# COMMAND ----------

# MAGIC %pip install 'rdmeta[pipeline]'

# COMMAND ----------

import rdmeta.pipeline
import rdmeta.spark

HISTORY = "/Volumes/main/ops/kafka/history"  # what `rdmeta record` wrote
TABLES = "/Volumes/main/ops/kafka/tables"

engine = rdmeta.spark.spark_engine(spark)  # noqa: F821  (the notebook has it)
plan = rdmeta.pipeline.plan([HISTORY], TABLES, gold=True, engine=engine)
made = rdmeta.pipeline.run(plan, engine=engine)
print(f"{len(made.made)} files made, {made.unchanged} as they were")

# COMMAND ----------

# MAGIC %md
# MAGIC Silver as DataFrames, and a measure as a table of Unity Catalog.

# COMMAND ----------

tables = rdmeta.spark.tables(spark, TABLES)  # noqa: F821
gold = rdmeta.spark.measures(tables)
gold.risk_hour.write.mode("overwrite").saveAsTable("main.ops.kafka_risk_hour")
display(tables.leader_change.groupBy("topic").count())  # noqa: F821
