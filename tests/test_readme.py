"""The README's Python runs as it stands there, and says what the README says it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.S | re.M)
PROGRAMS = [
    (code, BLOCKS[at + 1][1] if BLOCKS[at + 1 :] and BLOCKS[at + 1][0] == "text" else None)
    for at, (language, code) in enumerate(BLOCKS)
    if language == "python"
]


def test_the_readme_has_a_program_and_its_output() -> None:
    assert [said is not None for _, said in PROGRAMS] == [True]


@pytest.mark.parametrize(("code", "said"), PROGRAMS)
def test_the_readmes_program_prints_what_the_readme_shows(
    code: str, said: str | None, tmp_path: Path
) -> None:
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
    assert done.stdout == said


FIGURES = json.loads((README.parent / "bench/results.json").read_text(encoding="utf-8"))


def test_every_figure_of_the_readme_is_one_of_the_last_run() -> None:
    measured = [
        row[key] for row in FIGURES if row["run"] == "bench" for key in ("value", "reference")
    ]
    text = README.read_text(encoding="utf-8")
    table = text[text.index("| figure |") :].split("\n\n")[0].splitlines()[2:]
    assert len(table) > 20
    unknown = [
        (line, told)
        for line in table
        for told in re.findall(r"\d+(?:\.\d+)?", " ".join(line.split("|")[2:]))
        if told not in {f"{value:.{len(told.partition('.')[2])}f}" for value in measured}
    ]
    assert unknown == []


def test_the_ratios_to_librdkafka_are_those_that_the_goals_were_judged_by() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    told = re.search(
        r"librdkafka's lookup at .*? and was ([\d.]+), ([\d.]+) and ([\d.]+) times", text
    )
    judged = [
        f"{row['ratio']:.1f}"
        for row in FIGURES
        if row.get("peer") == "librdkafka" and "leader lookup, random" in row["figure"]
    ]
    assert told
    assert list(told.groups()) == judged
