"""The programs of docs/client.md run and print what the page shows; it names every reason."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rdmeta

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/client.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.S | re.M)
PROGRAMS = [
    (code, BLOCKS[i + 1][1] if BLOCKS[i + 1 :] and BLOCKS[i + 1][0] == "text" else None)
    for i, (language, code) in enumerate(BLOCKS)
    if language == "python"
]


@pytest.mark.parametrize(("code", "output"), PROGRAMS)
def test_a_program_of_the_clients_page_prints_what_the_page_shows(
    code: str, output: str | None, tmp_path: Path
) -> None:
    with rdmeta.EmbeddedCluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=6, replication_factor=3)
        cluster.set_leader("orders", 3, 1)
        program = tmp_path / "program.py"
        program.write_text(code.replace("localhost:9092", cluster.bootstrap), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "error", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
    assert (done.returncode, done.stderr) == (0, "")
    if output is not None:
        assert done.stdout == output
