"""The functions for jobs pass the same checks in each kind of session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from session_checks import Check, assert_passes, marked
from spark_functions import CHECKS, check_columns

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize("check", marked(CHECKS, proof=check_columns))
def test_a_classic_session_passes(spark: SparkSession, tmp_path: Path, check: Check) -> None:
    check(spark, tmp_path)


@pytest.mark.slow
def test_a_session_of_spark_connect_passes(connect: str, tmp_path: Path) -> None:
    assert_passes("spark_functions", CHECKS, tmp_path, connect)


@pytest.mark.nightly
def test_executors_that_are_processes_of_their_own_pass(tmp_path: Path) -> None:
    env = {"SPARK_WORKER_DIR": str(tmp_path / "work")}
    assert_passes("spark_functions", CHECKS, tmp_path, "local-cluster[2,1,1024]", env)
