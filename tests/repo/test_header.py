"""The public headers are the documentation: every function in them has a full comment."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HEADERS = sorted((Path(__file__).resolve().parents[2] / "csrc" / "include").glob("*.h"))


def undocumented(header: str) -> list[str]:
    """Returns the functions of `header` that have no comment right before them."""
    calls = re.finditer(r"^RDMETA_API [^;]*?(\w+)\(", header, re.MULTILINE)
    return [call[1] for call in calls if not header[: call.start()].rstrip().endswith("*/")]


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_every_public_function_has_a_comment(path: Path) -> None:
    assert undocumented(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_every_header_says_which_threads_may_call(path: Path) -> None:
    assert "Threads" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
@pytest.mark.parametrize("standard", ["c99", "c11", "c++11"])
def test_every_header_compiles_alone_without_a_warning(path: Path, standard: str) -> None:
    language, compiler = ("c++", "g++") if "+" in standard else ("c", "cc")
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    words = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", f"-I{path.parent}"]
    command = [compiler, f"-std={standard}", *words, "-x", language, "-"]
    source = f"#include <{path.name}>\nint nothing;\n"
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_function_without_a_comment_is_found() -> None:
    header = "/** A. */\nRDMETA_API int rdmeta_a(void);\nRDMETA_API int\nrdmeta_b(int x);\n"
    assert undocumented(header) == ["rdmeta_b"]


def comments(header: str) -> dict[str, tuple[str, str]]:
    """Returns, for each function, its return type and the words of its comment."""
    found = {}
    for call in re.finditer(r"^RDMETA_API ([^;(]*?)(\w+)\(", header, re.MULTILINE):
        before = header[: call.start()].rstrip()
        comment = before[before.rfind("/*") :]
        words = re.sub(r"^/\*\*|\*/$|^ \*", "", comment, flags=re.MULTILINE).split()
        found[call[2]] = (" ".join(call[1].split()), " ".join(words))
    return found


CALLS = {
    name: comment
    for path in HEADERS
    for name, comment in comments(path.read_text(encoding="utf-8")).items()
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_says_from_which_threads(name: str) -> None:
    assert re.search(r"Threads: \w+", CALLS[name][1]), CALLS[name][1]


@pytest.mark.parametrize("name", [name for name in CALLS if "err_t" in CALLS[name][0]])
def test_every_call_that_can_fail_names_its_errors(name: str) -> None:
    # Codes by name; or the name of a call that has the same codes.
    assert re.search(r"\b[A-Z]{2,}(_[A-Z]+)*\b|<= -100|rdmeta_\w+\(\)", CALLS[name][1])


@pytest.mark.parametrize("name", [name for name in CALLS if "ARGUMENT" in CALLS[name][1]])
def test_every_call_with_an_argument_error_says_what_causes_it(name: str) -> None:
    assert re.search(r"\bARGUMENT(:| \(| beyond)", CALLS[name][1])


@pytest.mark.parametrize("name", [name for name in CALLS if CALLS[name][0].endswith("*")])
def test_every_call_that_returns_a_pointer_explains_null_and_ownership(name: str) -> None:
    returned, comment = CALLS[name]
    assert "NULL" in comment or "returns `" in comment, comment
    if "const" not in returned:  # the caller must give back an object that it may change
        assert re.search(r"reference|for rdmeta_|with one", comment, re.IGNORECASE), comment
