"""One Java for all tests in this folder: a classic Spark session, and a Connect server."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from listener import free_ports
from pyspark.sql import SparkSession

from rdmeta.spark import build_session
from rdmeta.spark.executors import _configured
from rdmeta.spark.spark_versions import has_spark

PORT = "spark.connect.grpc.binding.port"


def pytest_configure(config: pytest.Config) -> None:
    """Passes over sockets that an older Spark leaves to the garbage collection."""
    if not has_spark("4.2"):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks each test that uses the session as `spark`, and gives it time for a JVM."""
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yields the one classic session, on whose PATH python3 is no Python."""
    other = tmp_path_factory.mktemp("other-python") / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{other.parent}{os.pathsep}{os.environ['PATH']}")
        patch.delenv("PYSPARK_PYTHON", raising=False)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf {PORT}={free_ports(1)[0]} pyspark-shell")
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")  # other collectors have threads
        session = build_session("local[2]", app="rdmeta-tests", short=True)
    yield session
    session.stop()


@pytest.fixture
def light(spark: SparkSession) -> Iterator[SparkSession]:
    """Yields the session so that it spends no time on compiling plans for a few rows."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    with _configured(spark, settings):
        yield spark


@pytest.fixture(scope="session")
def connect(spark: SparkSession) -> str:
    """Returns the URL of the one Connect server, which runs in the Java of the session."""
    service = spark._jvm.org.apache.spark.sql.connect.service.SparkConnectService  # type: ignore[union-attr]
    service.start(spark._jsc.sc())
    return f"sc://127.0.0.1:{spark.conf.get(PORT)}"


@pytest.fixture
def remote(connect: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Yields a session of Spark Connect, beside which the classic one works again afterwards."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    session = SparkSession.builder.remote(connect).create()
    yield session
    session.stop()
