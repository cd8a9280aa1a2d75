"""docs/cli.md shows the helps of the commands and the table of bad inputs as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rdmeta.cli.app import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_the_command_is_up_to_date() -> None:
    words = [sys.executable, str(ROOT / "tools/cli_docs.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run tools/cli_docs.py"


def test_the_page_names_each_command() -> None:
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"\n## rdmeta {name}\n" in text
