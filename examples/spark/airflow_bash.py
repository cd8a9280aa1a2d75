"""A DAG of Airflow that runs the command each hour, then compares all files each night."""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

RDMETA = "/opt/rdmeta/env/bin/rdmeta pipeline"

with DAG(
    "rdmeta_by_command",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a second run would be refused while one works on the tables
):
    BashOperator(
        task_id="tables",
        bash_command=f"{RDMETA} all /data/history /data/tables --engine spark --quiet",
        env={"SPARK_REMOTE": "sc://spark-connect:15002"},
        append_env=True,
        retries=2,
        retry_delay=timedelta(minutes=5),
    )

with DAG("rdmeta_check", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False):
    # Exit code 1 fails the task: a file differs. While a run works one does, so not on the hour.
    BashOperator(task_id="check", bash_command=f"sleep 1800 && {RDMETA} check /data/tables")
