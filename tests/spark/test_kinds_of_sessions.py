"""Functions for jobs, and streams of the data source, pass the same checks in each session."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import spark_functions
import spark_streams
from pyspark.sql import SparkSession
from session_checks import Check, assert_passes, marked

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

FUNCTIONS = marked(spark_functions.CHECKS, proof=spark_functions.check_columns)
STREAMS = marked(
    spark_streams.CHECKS, proof=spark_streams.check_each_row_comes_once_while_the_history_grows
)
each_module = pytest.mark.parametrize("module", [spark_functions, spark_streams])


@pytest.mark.parametrize("check", FUNCTIONS + STREAMS)
def test_a_classic_session_passes(spark: SparkSession, tmp_path: Path, check: Check) -> None:
    check(spark, tmp_path)


@pytest.mark.slow
@each_module
def test_a_session_of_spark_connect_passes(
    connect: str, tmp_path: Path, module: ModuleType
) -> None:
    assert_passes(module.__name__, module.CHECKS, tmp_path, connect)


@pytest.mark.nightly
@each_module
def test_executors_that_are_processes_of_their_own_pass(tmp_path: Path, module: ModuleType) -> None:
    env = {"SPARK_WORKER_DIR": str(tmp_path / "work")}
    master = "local-cluster[2,1,1024]"
    assert_passes(module.__name__, module.CHECKS, tmp_path, master, env)
