"""Every rule of docs/internals/policies.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
C_TESTS = {
    name
    for path in (ROOT / "tests/c").rglob("test_*.c")
    for name in re.findall(r"^\w*TEST\w*\(test_(\w+)[),]", path.read_text("utf-8"), re.MULTILINE)
}
PYTHON_TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def test_(\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
}


def rows(heading: str) -> list[list[str]]:
    """Returns the cells of each row of the table below a heading, without its head."""
    text = (ROOT / "docs/internals/policies.md").read_text(encoding="utf-8")
    section = text.split(f"# {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("Which answer is believed", C_TESTS),
        ("Mistakes of others, and the tests that would find them here", C_TESTS | PYTHON_TESTS),
    ],
)
def test_every_row_has_a_rule_and_names_tests_that_are_run(heading: str, known: set[str]) -> None:
    assert rows(heading)
    for first, second, tests in rows(heading):
        assert first
        assert second
        prefixes = [name.rstrip("…") for name in re.findall(r"`([^`]+)`", tests)]
        assert prefixes, second
        for prefix in prefixes:
            assert any(name.startswith(prefix) for name in known), f"{second}: {prefix}"
