"""The programs of docs/client.md run and print what the page shows; it names every reason."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rdmeta
from rdmeta.client.fast import LABELS

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


def test_every_file_that_the_clients_page_links_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (PAGE.parent / target).exists(), target


def reasons_in(tree: ast.AST) -> set[str]:
    """Returns the texts that a module of the client gives as reasons of requests."""
    places = {"want_full": 0, "_flight": 1, "_names_flight": 1}
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found += node.args[places[node.func.attr] :][:1] if node.func.attr in places else []
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "reason":
            found.append(node.value)
    texts = [each for node in found for each in ast.walk(node)]
    return {
        each.value
        for each in texts
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def test_the_clients_page_has_a_row_for_each_reason_of_a_request() -> None:
    table = TEXT.split("| reason |", 1)[1].split("\n\n", 1)[0]
    rows = re.findall(r"^\| `([^`]+)` \|", table, re.M)
    used = {label for _, label in LABELS}
    for path in (ROOT / "rdmeta/client").glob("*.py"):
        used |= reasons_in(ast.parse(path.read_text(encoding="utf-8")))
    assert {"start", "interval", "no leader", "refresh"} <= used
    assert sorted(rows) == sorted(used)
