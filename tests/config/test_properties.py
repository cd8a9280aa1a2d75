"""Properties files: comments, escapes, continued lines, and errors with file and line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rdmeta import ConfigError
from rdmeta.config.properties import read_properties


def read(tmp_path: Path, data: str | bytes) -> dict[str, str]:
    path = tmp_path / "client.properties"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_properties(path)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b c\r\n", {"a": "b c"}),
        ("a:b=c\n", {"a": "b=c"}),
        ("  \n# x=1\n ! y=2\n\t\na=1", {"a": "1"}),
        ("a=\n", {"a": ""}),
        ("a=1\na=2\n", {"a": "2"}),
        ("a=b \n", {"a": "b "}),
        ("a=b\\\n   c\\\n d\n", {"a": "bcd"}),
        ("a=b\\\\\nc=d\n", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# c=d\n", {"a": "b# c=d"}),
        ("a=b\\", {"a": "b"}),
        ("a\\=b\\:c=d", {"a=b:c": "d"}),
        (r"a=\t\n\r\f\\\q\"", {"a": '\t\n\r\f\\q"'}),
        (r"a=\u00fc\ud83d\ude00", {"a": "ü\U0001f600"}),
        ("a=ü", {"a": "ü"}),
        ("\ufeffa=b", {"a": "b"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, pairs: dict[str, str], tmp_path: Path) -> None:
    assert read(tmp_path, text) == pairs


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        ("a=1\n\nhunter2\n", 3, "expected key=value"),
        ("=hunter2", 1, "expected key=value"),
        ("# c\n[hunter2]\n", 2, "expected key=value"),
        ("a=1\\\n2\nb=\\u12xhunter2", 3, "four hexadecimal digits"),
        ("a=\\\n\\\n\\uD83Dhunter2", 1, "half a character"),
        (b"a=1\nb=hunter2\xff\n", 2, "not UTF-8"),
    ],
)
def test_an_error_names_the_file_and_the_line_and_shows_nothing_of_it(
    data: str | bytes, line: int, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        read(tmp_path, data)
    assert f"client.properties: line {line}: " in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named_with_the_cause(tmp_path: Path) -> None:
    for path, cause in (
        (tmp_path / "no.properties", "No such file"),
        (tmp_path, "Is a directory"),
        (Path("a\0b"), "null byte"),
    ):
        with pytest.raises(ConfigError, match=cause) as caught:
            read_properties(path)
        assert repr(os.fspath(path)) in str(caught.value)


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most 1048576 bytes"):
        read_properties("/dev/zero")


@pytest.mark.parametrize("path", [0, True, None])
def test_a_path_is_no_descriptor(path: Any) -> None:
    with pytest.raises(TypeError, match="PathLike"):
        read_properties(path)
