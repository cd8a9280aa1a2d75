"""A session finds Java as Spark does, or a Spark Connect server, and says what is missing."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from processes import environment
from pyspark.sql import SparkSession
from spark_functions import cache_of

from rdmeta.errors import Error
from rdmeta.spark import NoJavaError, NoSparkError, build_session, find_java
from rdmeta.spark.spark_session import is_served, reason_of


def test_java_is_looked_for_as_spark_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == str(java)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(NoJavaError, match="no java on the PATH") as caught:
        find_java()
    assert isinstance(caught.value, Error)


def test_a_connect_server_needs_no_java_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert is_served("sc://host")
    assert not is_served("local[2]")
    assert not is_served(None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:1")
    assert is_served(None)
    assert not is_served("local[2]")


def test_a_server_that_does_not_listen_is_named_at_once(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"sc://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(NoSparkError, match=f"{url}: no Spark Connect server answers"):
            build_session(url)


def ran(folder: Path, program: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a program from a file: Spark exits where an import fails in one without."""
    file = folder / "program.py"
    file.write_text(program)
    words = [sys.executable, str(file)]
    return subprocess.run(words, capture_output=True, env=environment(), check=False)


@pytest.mark.parametrize(
    ("missing", "master", "extra"),
    [
        pytest.param("grpc", None, ".[connect]", marks=pytest.mark.slow),
        ("pyspark", None, ".[connect]"),
        ("pyspark.core", "local[2]", ".[spark]"),
    ],
)
def test_a_missing_package_names_the_extra(
    missing: str, master: str | None, extra: str, tmp_path: Path
) -> None:
    """None is a server that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = master or f"sc://127.0.0.1:{server.getsockname()[1]}"
        program = f"import sys; sys.modules[{missing!r}] = None; import rdmeta.spark\n"
        program += f"rdmeta.spark.build_session({master!r})"
        last = ran(tmp_path, program).stderr.decode().splitlines()[-1]
        assert "MissingExtraError: " in last
        assert last.endswith(f"pip install -e '{extra}'")


@pytest.mark.slow
def test_the_engine_imports_without_the_link_to_java(tmp_path: Path) -> None:
    program = "import sys; sys.modules['py4j'] = sys.modules['pyspark.core'] = None\n"
    program += "import rdmeta.spark.executors as e; print(len(e.spark_errors()))"
    assert ran(tmp_path, program).stdout == b"1\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[A] one\ntwo", "[A] one"),
        (
            "An error occurred.\n: java.E: why\n\tat x\nCaused by: java.F: deeper\n",
            "java.F: deeper",
        ),
        ("An error occurred.\n: java.E: why\n\tat x", "java.E: why"),
        ("x\nTraceback (most recent call last):\n  File a\nMemoryError: b\n at", "MemoryError: b"),
        ("", "ValueError"),
    ],
)
def test_an_error_of_spark_becomes_one_line(text: str, reason: str) -> None:
    assert reason_of(ValueError(text)) == reason


@pytest.mark.slow
def test_the_data_source_is_found_where_python3_is_another_python(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark looks for data sources with python3, unless PYSPARK_PYTHON names a Python."""
    assert spark._jvm is not None
    path = spark._jvm.java.lang.System.getenv("PATH")
    found = shutil.which("python3", path=path)
    assert found is not None
    assert subprocess.run([found], check=False).returncode == 1
    cache_of({"orders": [1, 2]}).image().save(tmp_path / "image")
    read = spark.read.format("rdmeta").options(image=str(tmp_path / "image"), table="partitions")
    assert read.load().count() == 2


@pytest.mark.slow
def test_a_short_session_has_room_for_the_code_of_many_queries(spark: SparkSession) -> None:
    """With 48 MiB, as Java has it for one compiler, a session of many queries ends."""
    sent = spark.conf.get("spark.driver.extraJavaOptions", "")
    assert "-XX:TieredStopAtLevel=1" in str(sent)
    assert "-XX:ReservedCodeCacheSize=240m" in str(sent)
