"""docs/measures.md says what each column of each measure means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rdmeta.pipeline.gold import measures
from rdmeta.pipeline.gold.measures import MEASURES

PAGE = Path(__file__).resolve().parents[2] / "docs/measures.md"
PLACE = re.compile(r"<!-- begin: (\w+) -->\n(.*?)<!-- end -->\n", re.DOTALL)


def sections() -> dict[str, str]:
    """Returns the text that people wrote about each measure, by its heading."""
    text = PLACE.sub("", PAGE.read_text(encoding="utf-8"))
    parts = re.split(r"^##+ (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_there_is_a_measure_for_each_file_of_sql() -> None:
    folder = Path(measures.__file__).parent / "sql"
    assert {path.stem for path in folder.iterdir()} == {"prelude", *MEASURES}


@pytest.mark.parametrize("name", MEASURES)
def test_the_text_of_a_measure_says_what_each_column_means(name: str) -> None:
    measure = MEASURES[name]
    named = set(re.findall(r"`(\w+)`", sections()[name]))
    wanted = {*measure.schema.names} - {"cluster_id", *measure.order}
    assert wanted - named == set()
