"""An environment that Spark unpacks on executors without rdmeta: docs/spark-deploy.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pyarrow
import pytest
from recorded import cluster_day
from spark_functions import cache_of
from spark_releases import since

import rdmeta
from rdmeta import pipeline
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.tables import TABLES

JOB = """
import rdmeta.pipeline
import rdmeta.spark
from rdmeta.spark import functions as F

def seen(batches):
    import pyarrow, rdmeta
    for batch in batches:
        yield pyarrow.record_batch({"file": [rdmeta.__file__]})

spark = rdmeta.spark.build_session("local-cluster[2,1,1024]", short=True)
F.share(spark, "state.image")
rows = spark.sql("SELECT 'orders' AS topic, 1 AS partition")
print("leader", rows.select(F.leader_of("topic", "partition")).head()[0])
print("routed", F.repartition_by_leader(rows, 2).count())
made = rdmeta.spark.run(rdmeta.pipeline.plan(["history"], "tables", gold=True), spark)
print("made", len(made.made))
print("file", rows.mapInArrow(seen, "file string").head()[0])
spark.stop()
"""


@since("4.1")
@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_executors_run_in_an_environment_that_spark_unpacks(tmp_path: Path) -> None:
    venv.create(tmp_path / "made")
    (packages,) = (tmp_path / "made").glob("lib/python*/site-packages")
    ours = Path(rdmeta.__file__).parent
    shutil.copytree(ours, packages / "rdmeta", ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    # pip would copy the packages that rdmeta needs; a line that names their folder is smaller.
    (packages / "needed.pth").write_text(str(Path(pyarrow.__file__).parents[1]))
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(tmp_path / "made", ".")
    shutil.rmtree(tmp_path / "made")
    cache_of({"orders": [3, 4]}).image().save(tmp_path / "state.image")
    (tmp_path / "job.py").write_text(JOB)
    cluster_day(tmp_path / "history", "one", 1)
    done = subprocess.run(
        [sys.executable, "job.py"],
        env={
            **os.environ,
            "PYSPARK_PYTHON": "./env/bin/python",
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": "--archives env.tar.gz#env pyspark-shell",
            "SPARK_WORKER_DIR": str(tmp_path / "work"),
        },
        cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    print(done.stdout, done.stderr[-5000:])
    assert done.returncode == 0
    assert f"leader 4\nrouted 1\nmade {len(TABLES) + len(MEASURES)}\n" in done.stdout
    assert pipeline.check(tmp_path / "tables") == []
    file = done.stdout.partition("file ")[2].strip()
    assert file.endswith(
        "/env/" + str(packages.relative_to(tmp_path / "made") / "rdmeta/__init__.py")
    )
    assert not file.startswith(str(ours))
