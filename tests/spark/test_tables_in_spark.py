"""Spark reads tables of Delta and Iceberg that were committed without it, and older versions.

Jars come by `make table-jars`; none are made for the newest Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from killed_commit import killed
from logged_tables import iceberg_table, made
from processes import environment
from recorded import cluster_day

from rdmeta.pipeline.committing import EVERY_TABLE

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests/support/tables_in_spark.py"
JARS = Path(os.environ.get("RDMETA_TABLE_JARS", ROOT / ".cache/table-jars"))
SPARKS = Path(os.environ.get("RDMETA_SPARKS", ROOT / ".cache/pyspark"))
# With rows and without, with lists, and with lists of structs.
TABLES = [t for t in EVERY_TABLE if t.name in ("partition_interval", "change", "coverage_hour")]
VERSIONS = {"delta": "4.2.1", "iceberg": "4.1.4"}


def seen_by_spark(out: Path, folders: list[Path], kind: str) -> dict[str, list[int]]:
    """Compares each of TABLES with that of a folder; returns what the program counts."""
    jars, spark = sorted(JARS.glob("*.jar")), SPARKS / VERSIONS[kind]
    if not jars or not spark.exists() or shutil.which("java") is None:
        pytest.skip(f"needs Java, {JARS} and {spark}: make table-jars")
    locations = {}
    for table, folder in zip(TABLES, folders, strict=True):
        where, first = str(out / table.folder), 0
        if kind == "iceberg":
            loaded = iceberg_table(out, table)
            where, first = loaded.metadata_location, loaded.snapshots()[0].snapshot_id
        locations[table.name] = (where, first, str(folder / table.folder))
    paths = os.pathsep.join((str(spark), environment()["PYTHONPATH"]))
    env = {**environment(), "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    words = [sys.executable, str(PROGRAM), kind, ",".join(map(str, jars)), json.dumps(locations)]
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    found: dict[str, list[int]] = json.loads(done.stdout.splitlines()[-1])
    assert {name: counts[1:4] for name, counts in found.items()} == dict.fromkeys(found, [0, 0, 0])
    assert len(found) == len(TABLES)
    return found


# Before the first commit, in it, among the commits, and before the manifest; and how many of TABLES
# have the new rows then.
STOPS = {
    "delta": {"1": 0, "log": 0, "3": 1, "manifest": 3},
    "iceberg": {"1": 0, "in": 0, "3": 1, "manifest": 3},
}


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "stop"), [(kind, stop) for kind in STOPS for stop in STOPS[kind]])
def test_spark_reads_tables_and_their_first_version(tmp_path: Path, kind: str, stop: str) -> None:
    """Also while a run commits, and after its SIGKILL at that step: once a table was committed, it
    has the new rows, and no row twice."""
    source, out, old, new = (tmp_path / name for name in ("history", "out", "old", "new"))
    cluster_day(source, "a/b %", 1)
    made(source, out, gold=True, tables=kind)
    made(source, old, gold=True)
    cluster_day(source, "a/b %", 2)
    cluster_day(source, "one", 1)
    made(source, new, gold=True)
    count = STOPS[kind][stop]
    folders = [new] * count + [old] * (len(TABLES) - count)
    seen = partial(seen_by_spark, out, folders, kind)
    killed(source, out, kind, stop, "gold", meanwhile=seen)
    seen()
    made(source, out, gold=True)
    rows, *_, before = seen_by_spark(out, [new] * 3, kind)["partition_interval"]
    assert (rows, before) == (24, 8)
