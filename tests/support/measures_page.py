"""What docs/measures.md shows: a section for each measure, its query, and the other SQL."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["PAGE", "examples", "prelude", "queries", "sections"]

PAGE = Path(__file__).resolve().parents[2] / "docs/measures.md"
_PLACE = re.compile(r"<!-- begin: (\w+) -->\n(.*?)<!-- end -->\n", re.DOTALL)
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _shown() -> dict[str, str]:
    """Returns the SQL of each place, by its name."""
    text = PAGE.read_text(encoding="utf-8")
    return {name: "".join(_SQL.findall(shown)) for name, shown in _PLACE.findall(text)}


def prelude() -> str:
    """Returns the statements that all queries need."""
    return _shown()["prelude"]


def queries() -> dict[str, str]:
    """Returns the query of each measure, in the order of the page."""
    return {name: sql for name, sql in _shown().items() if name != "prelude"}


def examples() -> list[str]:
    """Returns the SQL that reads gold."""
    return _SQL.findall(_PLACE.sub("", PAGE.read_text(encoding="utf-8")))


def sections() -> dict[str, str]:
    """Returns the text that people wrote about each measure, by its heading."""
    text = _PLACE.sub("", PAGE.read_text(encoding="utf-8"))
    parts = re.split(r"^##+ (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
