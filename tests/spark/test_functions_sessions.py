"""The functions for jobs pass the same checks in each kind of session.

RDMETA_LOCAL_CLUSTER=1 also runs executors that are processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyspark
import pytest
import spark_functions
from processes import environment
from pyspark.sql import SparkSession
from spark_functions import CHECKS

from rdmeta.spark import NoJavaError, find_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_classic_session_passes(
    spark: SparkSession, tmp_path: Path, check: Callable[[SparkSession, Path], None]
) -> None:
    check(spark, tmp_path)


def passed(folder: Path, master: str, env: Mapping[str, str]) -> None:
    """Runs all checks in a process of their own."""
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(str(error))
    # The process has this one's Spark, which may be an older one in a folder of its own.
    base = environment()
    base["PYTHONPATH"] += f"{os.pathsep}{Path(pyspark.__file__).parents[1]}"
    done = subprocess.run(
        [sys.executable, str(spark_functions.__file__), str(folder), master],
        capture_output=True, text=True, timeout=280, check=False,
        env={**base, **env}, cwd=folder,
    )  # fmt: skip
    print(done.stdout, done.stderr[-5000:])
    assert done.returncode == 0
    for check in CHECKS:
        assert f"passed {check.__name__}" in done.stdout


def test_a_session_of_spark_connect_passes(tmp_path: Path) -> None:
    passed(tmp_path, "", {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"})


@pytest.mark.skipif(
    not os.environ.get("RDMETA_LOCAL_CLUSTER"), reason="RDMETA_LOCAL_CLUSTER=1 runs it: a minute"
)
def test_executors_that_are_processes_of_their_own_pass(tmp_path: Path) -> None:
    passed(tmp_path, "local-cluster[2,1,1024]", {"SPARK_WORKER_DIR": str(tmp_path / "work")})
