"""The README's Python programs run, and print the output that the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import commands
import pytest
from broker import Brokers
from frames import P

import rdmeta

README = Path(__file__).resolve().parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.S | re.M)
PROGRAMS = [
    (code, BLOCKS[i + 1][1] if BLOCKS[i + 1 :] and BLOCKS[i + 1][0] == "text" else None)
    for i, (language, code) in enumerate(BLOCKS)
    if language == "python"
]
THEIRS = "localhost:9092"


def run(code: str, tmp_path: Path) -> str:
    """Runs a program in a new process; returns its output."""
    program = tmp_path / "readme.py"
    program.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_has_a_program_for_a_broker_and_one_with_its_output() -> None:
    assert [(THEIRS in code, output is not None) for code, output in PROGRAMS] == [
        (True, False),
        (False, True),
    ]


def test_the_readmes_program_for_a_broker_names_the_leaders_of_its_topics(tmp_path: Path) -> None:
    with rdmeta.EmbeddedCluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=2, replication_factor=3)
        cluster.set_leader("orders", 0, 2)
        output = run(PROGRAMS[0][0].replace(THEIRS, cluster.bootstrap), tmp_path)
    assert output == "leader of orders[0]: 2\n"


@pytest.mark.parametrize(("code", "output"), PROGRAMS[1:])
def test_the_readmes_program_prints_what_the_readme_shows(
    code: str, output: str | None, tmp_path: Path
) -> None:
    assert run(code, tmp_path) == output


def test_the_first_screen_has_a_command_with_its_output() -> None:
    ((language, shown),) = [block for block in BLOCKS if block[0] == "console"]
    assert TEXT.index(f"```{language}") < TEXT.index("```python")
    line, _, output = shown.partition("\n")
    # As Apache Kafka 4.3 answered after the end of broker 3, which had the only replica.
    partitions = [P(0, 1, 0, (1,)), P(1, -1, 1, (3,), (), (3,))]
    with Brokers(3) as brokers:
        brokers.truth.create("sessions", partitions=2)
        topic = brokers.truth.topics["sessions"]
        brokers.truth.topics["sessions"] = replace(topic, partitions=partitions)
        words = line.removeprefix("$ rdmeta ").replace(THEIRS, brokers.bootstrap).split()
        with commands.Terminal(*words) as terminal:
            assert terminal.end() == 0
    assert terminal.text == output
