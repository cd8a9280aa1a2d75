"""The README's Python runs as it stands there, and says what the README says it says."""

from __future__ import annotations

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
