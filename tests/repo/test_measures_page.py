"""docs/measures.md has each measure: what it tells, its columns and its SQL as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from measures_page import PAGE, queries, sections

from rdmeta.pipeline.gold import measures
from rdmeta.pipeline.gold.measures import MEASURES

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_measures_is_up_to_date() -> None:
    words = [sys.executable, str(ROOT / "tools/measure_docs.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run tools/measure_docs.py"


def test_there_is_a_measure_for_each_file_of_sql() -> None:
    folder = Path(measures.__file__).parent / "sql"
    assert {path.stem for path in folder.iterdir()} == {"prelude", *MEASURES}


def test_the_page_has_the_measures_in_their_order_and_lists_each() -> None:
    assert list(queries()) == list(MEASURES)
    text = PAGE.read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\) \|", text, re.MULTILINE)
    assert listed == [(name, name) for name in MEASURES]


@pytest.mark.parametrize("name", MEASURES)
def test_the_text_of_a_measure_says_what_each_column_means(name: str) -> None:
    measure = MEASURES[name]
    named = set(re.findall(r"`(\w+)`", sections()[name]))
    wanted = {*measure.schema.names} - {"cluster_id", *measure.order}
    assert wanted - named == set()
