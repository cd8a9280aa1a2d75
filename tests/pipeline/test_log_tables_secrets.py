"""No secret of a log is in recordings, tables, plans or errors; its raw copies are the log's."""

from __future__ import annotations

import shutil
from pathlib import Path

import commands
import pyarrow.parquet as pq
import pytest
from kraft_logs import GOLDEN, LOG, LOGS, Made, secrets_of_logs


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
@pytest.mark.slow
def test_no_secret_leaves_the_raw_copies(made: Made, is_damaged: bool, tmp_path: Path) -> None:
    hidden, source, out = secrets_of_logs(), tmp_path / "in", tmp_path / "out"
    shutil.copytree(GOLDEN / made.name, source)
    if is_damaged:
        for path in source.glob(f"*/{LOG}/*.log"):
            data = bytearray(path.read_bytes())
            data[-40] ^= 1
            path.write_bytes(bytes(data))
    words = ("pipeline", "all", str(source), str(out))
    for options in (["--dry-run"], ["--json"], [], ["--json"]):
        done = commands.run(*words, *options, "--engine", "local")
        assert done.code in (0, 1), done.err
        hidden.check(done.out + done.err)
    done = commands.run("pipeline", "check", str(out), "--json")
    hidden.check(done.out + done.err)
    files = [path for path in out.rglob("*") if path.is_file() and "/log/" not in str(path)]
    for path in files:
        if path.suffix == ".parquet":
            hidden.check(f"{pq.ParquetFile(path).read().to_pylist()} {pq.read_schema(path)}")
        hidden.check(path.read_bytes().decode("latin-1"))
    assert {path.suffix for path in files} >= {".parquet", ".json"}
    assert any("/gold/" in str(path) for path in files)
