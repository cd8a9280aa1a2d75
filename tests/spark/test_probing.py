"""A run on Spark fails before a file is written if an executor has not what the driver has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from processes import environment
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from recorded import cluster_day

from rdmeta import pipeline
from rdmeta._version import __version__
from rdmeta.pipeline.gold import query
from rdmeta.spark import probing, run
from rdmeta.spark.probing import refusing

WANTED = {"rdmeta": __version__, "pyarrow": pyarrow.__version__, "duckdb": "9.9.9"}
# Spark's worker runs the function like this, without rdmeta or with another one.
EXECUTOR = """
import pickle, sys
{before}
print(pickle.loads(sys.stdin.buffer.read())() or "")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("sys.modules['rdmeta'] = None", "cannot import rdmeta: "),
        (
            "import rdmeta._version as found; found.__version__ = '0.0.1'",
            f"has rdmeta 0.0.1, and the driver {__version__}; install rdmeta[pipeline]==",
        ),
        ("sys.modules['pyarrow'] = None", "cannot import pyarrow: "),
        ("sys.modules['duckdb'] = None", "cannot import duckdb: "),
        ("import duckdb; duckdb.__version__ = '1.0'", "has duckdb 1.0, and the driver 9.9.9; "),
        ("import duckdb; duckdb.__version__ = '9.9.9'", ""),
    ],
)
def test_an_executor_says_what_it_lacks(before: str, text: str) -> None:
    sent = cloudpickle.dumps(refusing(WANTED))  # type: ignore[no-untyped-call]
    words = [sys.executable, "-c", EXECUTOR.format(before=before)]
    done = subprocess.run(words, input=sent, capture_output=True, env=environment(), check=True)
    said = done.stdout.decode()
    assert text in said
    assert said.startswith("executor ") == bool(text)


@pytest.mark.slow
def test_an_executor_without_pyarrow_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "pyarrow.py").write_text("raise ImportError('it is not here')")
    cluster_day(tmp_path / "history", "one", 1)
    plan = pipeline.plan([tmp_path / "history"], tmp_path / "out")
    with pytest.MonkeyPatch.context() as patch:
        of_workers: Any = spark.sparkContext.environment
        patch.setitem(of_workers, "PYTHONPATH", str(tmp_path / "broken"))
        with pytest.raises(pipeline.PipelineError, match=r"executor \S+ cannot import pyarrow: it"):
            run(plan, spark)
    assert list((tmp_path / "out").rglob("*.parquet")) == []


@pytest.mark.slow
def test_no_file_is_written_if_an_executor_differs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    plan = pipeline.plan([tmp_path / "history"], tmp_path / "out", gold=True)
    monkeypatch.setattr(probing, "version", lambda name: "9.9.9")
    with pytest.raises(pipeline.PipelineError, match=r"executor \S+ has pyarrow .*driver 9.9.9"):
        run(plan, spark)
    assert list((tmp_path / "out").rglob("*.parquet")) == []
    monkeypatch.undo()
    assert probing.require_executors(spark) == query.room_here()
    assert run(pipeline.plan([tmp_path / "history"], tmp_path / "out"), spark).made
