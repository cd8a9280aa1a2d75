"""Reads properties files: lines "key=value", with the comments and escapes of Java's files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from rdmeta.errors import ConfigError

_LARGEST = 1 << 20
_PAIR = re.compile(r"((?:\\.|[^\\=:])+)[=:](.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the pairs of a file; the last value of a key counts.

    Unlike Java's files, these are UTF-8, and each key has '=' or ':' after it. Raises ConfigError,
    which names the file and the line, and shows nothing of the line.
    """
    path = os.fspath(path)  # open() takes an int for a descriptor
    pairs: dict[str, str] = {}
    for number, line in _logical_lines(_read(path)):
        try:
            key, value = _pair(line)
        except ValueError as error:
            raise ConfigError(f"{os.fspath(path)}: line {number}: {error}") from None
        pairs[key] = value
    return pairs


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL
        cause = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read {os.fspath(path)!r}: {cause}") from error
    if len(data) > _LARGEST:
        raise ConfigError(f"{os.fspath(path)}: a properties file has at most {_LARGEST} bytes")
    return data.removeprefix(b"\xef\xbb\xbf")


def _logical_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (number of the first line, bytes) without comments, each with its continuations."""
    begun, text = 0, b""
    for number, line in enumerate(data.splitlines(), 1):
        line = line.lstrip()
        if not begun and (not line or line[:1] in (b"#", b"!")):
            continue
        begun = begun or number
        backslashes = len(line) - len(line.rstrip(b"\\"))
        if backslashes % 2:
            text += line[:-1]
            continue
        yield begun, text + line
        begun, text = 0, b""
    if begun:
        yield begun, text


def _pair(line: bytes) -> tuple[str, str]:
    """Returns the key and the value; raises ValueError, whose text shows neither."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    pair = _PAIR.fullmatch(text)
    if not pair or not pair[1].strip():
        raise ValueError("expected key=value")
    return _unescaped(pair[1].rstrip()), _unescaped(pair[2].lstrip())


def _unescaped(text: str) -> str:
    plain = _ESCAPE.sub(_character, text)
    try:  # two escapes make one character above U+FFFF, as in Java
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("an escape \\u is half a character; write both halves") from None


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code == "u":
        raise ValueError("an escape \\u needs four hexadecimal digits")
    return _CONTROLS.get(code, code)
