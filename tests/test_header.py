"""The public header is the documentation: no declaration in it goes without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HEADERS = sorted((Path(__file__).parent.parent / "csrc" / "include").glob("*.h"))


def undocumented(header: str) -> list[str]:
    """The names of the functions of `header` that no comment ends right before."""
    calls = re.finditer(r"^RDMETA_API [^;]*?(\w+)\(", header, re.MULTILINE)
    return [call[1] for call in calls if not header[: call.start()].rstrip().endswith("*/")]


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_every_public_function_has_a_comment(path: Path) -> None:
    assert undocumented(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_every_header_says_which_threads_may_call(path: Path) -> None:
    assert "Threads" in path.read_text(encoding="utf-8")


def test_a_function_without_a_comment_is_found() -> None:
    header = "/** A. */\nRDMETA_API int rdmeta_a(void);\nRDMETA_API int\nrdmeta_b(int x);\n"
    assert undocumented(header) == ["rdmeta_b"]
