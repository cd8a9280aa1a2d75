"""Reads the value of sasl.jaas.config: one login module of Java with its options.

The rules are those of Kafka's JaasConfig, a java.io.StreamTokenizer. Unquoted values may also begin
with a digit, a dot or a minus. No error shows a part of the text, which has a secret somewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<word>[\w$.\-\u00a0-\uffff]+)
    |(?P<sign>[=;{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")
_FORM = """expected MODULE required NAME="VALUE"...;"""


def read_jaas(text: str) -> tuple[str, dict[str, str]]:
    """Returns the module's class without its package, and its options.

    Raises ValueError, whose text goes after the key's name and shows nothing of the value.
    """
    tokens = list(_tokens(text))
    if ("sign", "{") in tokens:
        raise ValueError(f": a file of several logins is not supported: {_FORM}")
    if not tokens or tokens[0][0] == "sign":
        raise ValueError(f" names no login module: {_FORM}")
    if len(tokens) < 2 or tokens[1][1].lower() not in _FLAGS:
        raise ValueError(f" has no flag, such as required, after the login module: {_FORM}")
    if tokens[-1] != ("sign", ";"):
        raise ValueError(" does not end with a semicolon")
    if tokens.count(("sign", ";")) > 1:
        raise ValueError(" has more than one login module (there are two semicolons)")
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for at in range(0, len(rest), 3):
        triple = rest[at : at + 3]
        kinds = [kind for kind, _ in triple]
        if (
            len(triple) < 3
            or triple[1] != ("sign", "=")
            or kinds[0] == "sign"
            or kinds[2] == "sign"
        ):
            raise ValueError(
                f': option {at // 3 + 1} is not NAME="VALUE"; put a value with a sign or a space'
                " into quotes"
            )
        options[triple[0][1]] = triple[2][1]
    return tokens[0][1].rpartition(".")[2], options


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yields ("quoted", text), ("word", text) and ("sign", character)."""
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if not token:
            if text[at] in "\"'":
                raise ValueError(': a quote is not closed (write a quote in a value as \\")')
            raise ValueError(
                f": character {at + 1} is outside quotes; put a value with a sign into quotes"
            )
        at = token.end()
        kind, found = str(token.lastgroup), token[0]
        if kind == "quoted":
            yield kind, _ESCAPE.sub(_character, found[1:-1])
        elif kind != "space":
            yield kind, found


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code in "01234567" or len(code) > 1 else _CONTROLS.get(code, code)
