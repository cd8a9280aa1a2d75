"""A stream of the data source passes the same checks in each kind of session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from session_checks import Check, assert_passes, marked
from spark_streams import CHECKS, check_each_row_comes_once_while_the_history_grows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    "check", marked(CHECKS, proof=check_each_row_comes_once_while_the_history_grows)
)
def test_a_stream_of_a_classic_session_passes(
    spark: SparkSession, tmp_path: Path, check: Check
) -> None:
    check(spark, tmp_path)


@pytest.mark.slow
def test_a_stream_of_spark_connect_passes(connect: str, tmp_path: Path) -> None:
    assert_passes("spark_streams", CHECKS, tmp_path, connect)


@pytest.mark.nightly
def test_a_stream_on_executors_of_their_own_passes(tmp_path: Path) -> None:
    env = {"SPARK_WORKER_DIR": str(tmp_path / "work")}
    assert_passes("spark_streams", CHECKS, tmp_path, "local-cluster[2,1,1024]", env)
