"""A DAG of Airflow that runs the pipeline each hour by spark-submit, as job.py."""

from datetime import datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG(
    "rdmeta_by_spark_submit",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a second run would be refused while one works on the tables
):
    SparkSubmitOperator(
        task_id="tables",
        conn_id="spark_default",  # its master: spark://host:7077, yarn or k8s://...
        application="/opt/rdmeta/job.py",
        application_args=["s3a://in/history", "s3a://lake/rdmeta"],
        archives="/opt/rdmeta/env.tar.gz#env",
        conf={
            "spark.pyspark.python": "./env/bin/python",
            # The driver runs on Airflow's worker, where nothing unpacks the archive.
            "spark.pyspark.driver.python": "/opt/rdmeta/env/bin/python",
        },
        retries=2,
        retry_delay=timedelta(minutes=5),
    )
