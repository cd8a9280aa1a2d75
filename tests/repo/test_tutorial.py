"""The commands and programs of docs/tutorial.md run in its order and print tables of its shape."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
# The cluster moves its leader more often here, and nothing is recorded for a minute.
FASTER = {
    "time.sleep(2)": "time.sleep(0.3)",
    "--count 4": "--count 2",
    "--every 1 --for 60": "--every 0.1 --for 2",
}


def titles(text: str) -> list[list[str]]:
    """Returns the words of the lines without a number, such as the names of a table's columns."""
    found = [re.findall(r"\w+", line) for line in text.splitlines() if not re.search(r"\d", line)]
    return [words for words in found if words]


@pytest.mark.proof
@pytest.mark.timeout(60)
def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    text = TEXT
    for slow, fast in FASTER.items():
        assert slow in text
        text = text.replace(slow, fast)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RDMETA_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    environment = {**kept, "PATH": path, "PYTHONPATH": str(ROOT)}
    cluster: subprocess.Popen[str] | None = None
    output = ""
    ran = []

    def run(command: str) -> str:
        return subprocess.run(
            ["bash", "-ec", command], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
            text=True, check=True, timeout=30,
        ).stdout  # fmt: skip

    try:
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M):
            if language == "python":
                name = block.split()[1]
                (tmp_path / name).write_text(block, encoding="utf-8")
                output = "" if name == "cluster.py" else run(f"python {name}")
                ran.append(name)
            elif language == "text":
                assert titles(output) == titles(block)
                assert ran[-1] != "leader.py" or output == block
            elif block == "python cluster.py\n":
                cluster = subprocess.Popen(
                    [sys.executable, "cluster.py"], cwd=tmp_path, env=environment,
                    stdout=subprocess.PIPE, text=True,
                )  # fmt: skip
                assert cluster.stdout is not None
                name, _, servers = cluster.stdout.readline().split()[1].partition("=")
                environment[name] = servers
            elif "pip install" not in block:
                output = run(block)
                ran.append(block.split()[1])
    finally:
        if cluster is not None:
            cluster.kill()
            cluster.communicate()
    assert " ".join(ran) == "cluster.py list leader.py watch record pipeline table.py plot.py"
    assert "none" in output
    assert "█" in output
