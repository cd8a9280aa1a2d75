"""The answers on docs/log.md are those that the command gives; the example gives them, too."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import commands
import pytest
from kraft_logs import GOLDEN

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/log.md"
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


def test_the_example_explains_the_golden_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = str(ROOT / "examples/metadata_log.py")
    monkeypatch.setattr(sys, "argv", [program])
    runpy.run_path(program)
    out = capsys.readouterr().out
    assert "orders [0] ISR (1, 3): broker 2 was fenced (offset 79)" in out
    monkeypatch.setattr(sys, "argv", [program, str(tmp_path / "nix")])
    with pytest.raises(SystemExit):
        runpy.run_path(program)
    assert "give the metadata.log.dir of a controller" in capsys.readouterr().out
