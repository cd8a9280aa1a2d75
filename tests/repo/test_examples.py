"""The examples are short, and their table lists all of them; `make packaging` runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.suffix in {".py", ".c", ".pyx"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_an_example_has_fewer_than_40_lines(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 100


def test_the_table_names_every_example_once() -> None:
    rows = re.findall(r"^\| \[`([^`]+)`\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text(), re.M)
    assert [name for name, link in rows if name != link] == []
    names = [path.name for path in EXAMPLES.glob("*.py")]
    names += [f"{path.name}/" for path in EXAMPLES.iterdir() if path.is_dir()]
    assert sorted(name for name, _ in rows) == sorted(names)
