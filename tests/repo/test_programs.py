"""The programs of client.md and embedding.md run and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import rdmeta

ROOT = Path(__file__).resolve().parents[2]
Block = tuple[str, str]


def blocks(page: str) -> list[Block]:
    """Returns the language and the text of each block of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M)


def programs(page: str) -> list[tuple[str, str | None]]:
    """Returns the programs of a page, with the output that it shows."""
    found = [*blocks(page), ("", "")]
    return [
        (code, found[i + 1][1] if found[i + 1][0] == "text" else None)
        for i, (language, code) in enumerate(found)
        if language == "python"
    ]


@pytest.mark.parametrize(("code", "output"), [*programs("client.md"), *programs("embedding.md")])
def test_a_program_prints_what_its_page_shows(
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


def test_the_c_of_the_page_compiles(tmp_path: Path) -> None:
    (code,) = [code for language, code in blocks("embedding.md") if language == "c"]
    (tmp_path / "page.c").write_text(code, encoding="utf-8")
    include = [f"-I{each}" for each in (rdmeta.get_include(), sysconfig.get_path("include"))]
    command = ["cc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wno-unused-function", "-Werror"]
    subprocess.run([*command, *include, tmp_path / "page.c"], check=True, timeout=50)
