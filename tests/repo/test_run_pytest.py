"""`tools/run-pytest` runs a few failed tests again, alone, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from processes import environment

SCRIPT = Path(__file__).parents[2] / "tools" / "run-pytest"
FOLDERS = ("cli", "metrics", "real", "spark", "core")
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert False\n"
# It passes from the second time on.
ONCE = """
from pathlib import Path
def test_once():
    seen = Path(__file__ + ".seen")
    was_here = seen.exists()
    seen.touch()
    assert was_here
"""
TOLD = "== failed at first, passed alone:\n"


def run(directory: Path, **programs: str) -> tuple[int, str]:
    """Returns the exit code and output for a project with these tests by folder."""
    (directory / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    for name in FOLDERS:
        folder = directory / "tests" / name
        folder.mkdir(parents=True)
        (folder / f"test_{name}.py").write_text(programs.get(name, PASSES))
    done = subprocess.run(
        [SCRIPT, sys.executable], cwd=directory, env=environment(), capture_output=True,
        text=True, timeout=100, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_run_without_failures_has_no_second_one(tmp_path: Path) -> None:
    code, out = run(tmp_path)
    assert code == 0
    assert "4 passed" in out
    assert "again" not in out
    assert TOLD not in out


@pytest.mark.parametrize("folder", ["cli", "core"])
def test_what_passes_alone_is_named(tmp_path: Path, folder: str) -> None:
    code, out = run(tmp_path, **{folder: PASSES + ONCE})
    assert code == 0
    assert "assert was_here" in out
    assert out.endswith(f"{TOLD}tests/{folder}/test_{folder}.py::test_once\n")


@pytest.mark.parametrize("folder", ["cli", "core"])
def test_what_fails_twice_fails_the_run(tmp_path: Path, folder: str) -> None:
    code, out = run(tmp_path, **{folder: FAILS + ONCE})
    assert code == 1
    assert out.count("def test_fails(): assert False") == 2
    assert TOLD not in out


def test_many_failures_do_not_run_again(tmp_path: Path) -> None:
    many = "".join(ONCE.replace("test_once", f"test_{n}").replace(".seen", f".{n}") for n in "abcd")
    code, out = run(tmp_path, spark=many)
    assert code == 1
    assert "4 failed" in out
    assert "again" not in out


def test_a_module_that_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    code, _ = run(tmp_path, core="import nothing_of_this_name\n")
    assert code == 2
