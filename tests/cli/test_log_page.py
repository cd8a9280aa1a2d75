"""The answers on docs/log.md are those that the command gives."""

from __future__ import annotations

import re
from pathlib import Path

import commands
import pytest
from kraft_logs import GOLDEN

PAGE = Path(__file__).resolve().parents[2] / "docs/log.md"
ANSWERS = re.findall(r"```console\n\$ rdmeta (.*)\n((?:.*\n)*?)```", PAGE.read_text())
# A terminal aligns what a pipe separates with tabs.
GAP = re.compile(r"\t| {2,}")


def cells(text: str) -> list[list[str]]:
    return [GAP.split(line.strip()) for line in text.splitlines()]


def test_the_page_answers_ten_questions() -> None:
    assert len(ANSWERS) == 10


@pytest.mark.parametrize(("line", "shown"), ANSWERS, ids=[line for line, _ in ANSWERS])
def test_an_answer_is_what_the_command_prints(line: str, shown: str) -> None:
    done = commands.run(*line.split(), cwd=GOLDEN)
    assert (done.code in (0, 1), done.err) == (True, "")
    assert cells(shown) == cells(done.out)
