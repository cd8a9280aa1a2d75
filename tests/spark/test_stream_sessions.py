"""A stream of the data source passes the same checks in each kind of session.

RDMETA_LOCAL_CLUSTER=1 also runs executors that are processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import spark_streams
from processes import environment
from pyspark.sql import SparkSession
from spark_streams import CHECKS

from rdmeta.spark import NoJavaError, find_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_stream_of_a_classic_session_passes(
    spark: SparkSession, tmp_path: Path, check: Callable[[SparkSession, Path], None]
) -> None:
    check(spark, tmp_path)


def passed(folder: Path, env: Mapping[str, str], *master: str) -> None:
    """Runs all checks in a process of their own."""
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, str(spark_streams.__file__), str(folder), *master],
        capture_output=True, text=True, timeout=280, check=False,
        env={**environment(), **env}, cwd=folder,
    )  # fmt: skip
    print(done.stdout, done.stderr[-5000:])
    assert done.returncode == 0
    for check in CHECKS:
        assert f"passed {check.__name__}" in done.stdout


def test_a_stream_of_spark_connect_passes(tmp_path: Path) -> None:
    passed(tmp_path, {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"})


@pytest.mark.skipif(
    not os.environ.get("RDMETA_LOCAL_CLUSTER"), reason="RDMETA_LOCAL_CLUSTER=1 runs it: a minute"
)
def test_a_stream_on_executors_of_their_own_passes(tmp_path: Path) -> None:
    passed(tmp_path, {"SPARK_WORKER_DIR": str(tmp_path / "work")}, "local-cluster[2,1,1024]")
