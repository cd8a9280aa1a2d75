"""Searches output for secrets: as they are, in hexadecimal, inside of base64, or both.

secrets = Secrets()
secrets.add("the password", "m4rked-word")
secrets.check(caplog.text)  # AssertionError if it is in there
"""

from __future__ import annotations

import base64
import logging
import traceback

# By the position of a text in base64's groups of three bytes: the first character that depends on
# the text alone.
_FIRST = (0, 2, 3)
_AROUND = 200


def forms(secret: str) -> set[str]:
    """Returns the texts of which output has one if it shows a secret.

    Messages are encoded up to twice: a token is base64 of claims, and a message with it may be
    shown in base64 or hexadecimal.
    """
    once = _encoded(secret)
    return {secret, *once, *(twice for each in once for twice in _encoded(each))}


def _encoded(text: str) -> set[str]:
    """Returns what every message that contains a text has in hexadecimal or base64.

    In base64 that is one of three texts, by the position of the text in the message.
    """
    data = text.encode()
    found = {data.hex()}
    for before, first in enumerate(_FIRST):
        size = before + len(data)
        whole = base64.b64encode(bytes(before) + data).decode()
        part = whole[first : 8 * size // 6]
        found |= {part, part.replace("+", "-").replace("/", "_")}
    return found


def described(error: BaseException) -> str:
    """Returns all that an exception shows: its traceback, and each one's repr and attributes."""
    shown = traceback.format_exception(error)
    each: BaseException | None = error
    while each is not None:
        shown += [repr(each), repr(each.args), repr(vars(each))]
        each = each.__cause__ or each.__context__
    return "\n".join(shown)


class Secrets:
    """Secrets that no output may show; any thread may add one."""

    def __init__(self) -> None:
        self._forms: dict[str, str] = {}

    def add(self, name: str, secret: str) -> None:
        """Adds a secret, of six characters or more: a shorter one is found by chance."""
        assert len(secret) >= 6, name
        self._forms |= dict.fromkeys(forms(secret), name)

    def add_key(self, name: str, pem: str) -> None:
        """Adds each line of a private key."""
        for line in pem.splitlines():
            if not line.startswith("-----") and len(line) >= 16:
                self._forms[line] = name

    def check(self, text: str) -> None:
        """Raises AssertionError if a text shows one of the secrets."""
        for form, name in list(self._forms.items()):
            at = text.find(form)
            assert at < 0, f"{name} is shown: {text[max(0, at - _AROUND) : at + _AROUND]}"


class LogKeeper(logging.Handler):
    """Keeps what is logged, as text with tracebacks, until it is taken."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def taken(self) -> str:
        """Returns what was logged since the last call."""
        lines, self._lines = self._lines, []
        return "\n".join(lines)
