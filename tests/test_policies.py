"""docs/policies.md and the C tests name each other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = {
    name
    for path in (ROOT / "tests/c").glob("test_*.c")
    for name in re.findall(r"RUN\(test_(\w+)\)", path.read_text(encoding="utf-8"))
}


def rows() -> list[list[str]]:
    """Cells of the table's rows, without its head."""
    text = (ROOT / "docs/policies.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_every_policy_has_a_rule_and_tests_that_are_run() -> None:
    assert rows()
    for case, rule, tests in rows():
        assert case
        assert rule
        prefixes = [name.rstrip("…") for name in re.findall(r"`([^`]+)`", tests)]
        assert prefixes, case
        for prefix in prefixes:
            assert any(name.startswith(prefix) for name in TESTS), f"{case}: {prefix}"
