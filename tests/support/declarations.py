"""Reads which functions the public headers declare."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def declared() -> set[str]:
    """Returns the names of the functions that the public headers declare."""
    found = set()
    for header in (ROOT / "csrc/include").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
        found |= set(re.findall(r"RDMETA_API\b[^;(]*?\b(rdmeta_\w+)\s*\(", text))
    return found
