"""An executor makes the tasks that it gets, or says why it cannot."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from processes import environment
from pyspark import cloudpickle
from recorded import cluster_day

from rdmeta import pipeline
from rdmeta._version import __version__
from rdmeta.pipeline.work import Result, Task
from rdmeta.spark.functions.column_functions import _shipped
from rdmeta.spark.remote import COUNTS, make_pack, shipped

# Spark's worker runs the function like this; `{rdmeta}` is the code that sets up rdmeta there.
EXECUTOR = """
import pickle, sys
import pyarrow as pa
{rdmeta}
called = pickle.loads(sys.stdin.buffer.read())
try:
    print({call})
except Exception as error:
    print(error)
"""
# A function, what calls it, and the extra that it needs.
TASKS = (
    shipped("/"),
    'list(called([pa.record_batch({"tasks": pa.array([b""])})]))[0].to_pylist()[0]["refusal"]',
    "pipeline",
)
COLUMN = (_shipped("row_lookups", "named", (), [None]), "called(pa.array([1]))", "arrow")


def said(function: object, call: str, rdmeta: str) -> str:
    """Returns what a function says or raises in a process like that."""
    sent = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    words = [sys.executable, "-c", EXECUTOR.format(rdmeta=rdmeta, call=call)]
    done = subprocess.run(words, input=sent, capture_output=True, env=environment(), check=True)
    text: bytes = done.stdout
    return text.decode().strip()


def tasks_of(source: Path, out: Path) -> list[Task]:
    return list(pipeline.plan([source], out, in_place=True).tasks)


def outcomes(tasks: list[Task], folder: Path) -> list[object]:
    return [pickle.loads(each) for each, _ in make_pack(pickle.dumps(tasks), str(folder))]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "call", "extra"), [TASKS, COLUMN])
def test_an_executor_without_this_rdmeta_says_so(function: object, call: str, extra: str) -> None:
    text = said(function, call, "sys.modules['rdmeta'] = None")
    assert text.startswith("executor ")
    assert "cannot import rdmeta" in text
    assert text.endswith(f"install rdmeta[{extra}]=={__version__} for its Python")
    text = said(function, call, "import rdmeta._version as found; found.__version__ = '0.0.1'")
    assert f"has rdmeta 0.0.1, and the driver {__version__}; install" in text
    assert function is TASKS[0] or said(function, call, "") == str(pa.array([1]))


def test_a_partition_has_a_result_for_each_task_of_its_packs(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        cluster_day(tmp_path / "history", name, 1)
    tasks = tasks_of(tmp_path / "history", tmp_path / "out")
    packs = pa.array([pickle.dumps([tasks[2]]), pickle.dumps(tasks[:1])])
    rows = list(shipped("/")([pa.record_batch({"tasks": packs})]))
    results = [pickle.loads(row["result"][0].as_py()) for row in rows]
    assert [each.cluster_id for each in results] == ["two", "one"]
    counted = [{name: row[name][0].as_py() for name in COUNTS} for row in rows]
    assert counted == [each.counts for each in results]
    assert counted[0]["files_written"] == 8
    assert min(counted[0].values()) > 0


def test_relative_paths_begin_in_the_folder_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    monkeypatch.chdir(tmp_path)
    tasks = tasks_of(Path("history"), Path("out"))
    monkeypatch.chdir("/")
    (result,) = outcomes(tasks, tmp_path)
    assert isinstance(result, Result)
    assert (tmp_path / result.made[0].name.replace("silver", "out/silver", 1)).exists()
    assert Path.cwd() == Path("/")


def test_an_executor_that_does_not_see_a_folder_says_which_one(tmp_path: Path) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    tasks = tasks_of(tmp_path / "history", tmp_path / "out")
    (error,) = outcomes([replace(each, token="of the driver's lock") for each in tasks], tmp_path)
    assert isinstance(error, pipeline.PipelineError)
    assert f"does not see {tmp_path}/out/lock: each executor needs" in str(error)
    assert not (tmp_path / "out").exists()
    (tmp_path / "history").rename(tmp_path / "moved")
    (error,) = outcomes(tasks, tmp_path)
    assert isinstance(error, pipeline.PipelineError)
    assert f"does not see {tmp_path}/history: " in str(error)
