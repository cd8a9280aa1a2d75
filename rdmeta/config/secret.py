"""A secret of the configuration, which no repr, log, copy or pickle shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rdmeta.errors import ConfigError

# Output shows this instead of a secret.
MASK = "***"


def cause_of(error: BaseException) -> str:
    """Returns the type of an exception that a user's callable raised, and the place.

    Call it where the callable was called. The text of the exception may have a secret, so it is
    left out: "KeyError in read (vault.py:12); its text may have a secret and is not shown".
    """
    place, trace = "", error.__traceback__
    while trace is not None and trace.tb_next is not None:  # the first frame is the caller's
        trace = trace.tb_next
        code = trace.tb_frame.f_code
        file = code.co_filename.rpartition("/")[2]
        place = f" in {code.co_name} ({file}:{trace.tb_lineno})"
    return f"{type(error).__name__}{place}; its text may have a secret and is not shown"


class Secret:
    """A password, a private key or a token, or a callable that returns one.

    `key` is the option that gave it. Two secrets are equal if both have the same key and the same
    text, or the same callable; a callable is not asked for that. Threads may share a secret.

        Secret("hunter2", "sasl.password").reveal()
    """

    __slots__ = ("_value", "key")

    def __init__(self, value: str | Callable[[], str], key: str) -> None:
        self._value = value
        self.key = key

    def reveal(self) -> str:
        """Returns the text; asks a callable each time.

        Raises ConfigError, which names the key, if the callable fails or returns no text. Text
        that ends with a line break, as a file's may, is refused unless it is in PEM. The error is
        retriable if the callable failed. It shows the type and the place of the callable's
        exception, but not its text, which may have the secret.
        """
        if isinstance(self._value, str):
            return self._value
        cause = ""
        try:
            found = self._value()
        except Exception as error:
            cause = cause_of(error)
        if cause:  # outside the handler, so that the error has no context with the secret
            raise ConfigError(f"{self.key}: its callable raised {cause}", retriable=True)
        if not isinstance(found, str):
            kind = type(found).__name__
            raise ConfigError(f"{self.key}: its callable returned {kind}; expected str")
        if not found:
            raise ConfigError(f"{self.key}: its callable returned empty text")
        if any("\ud800" <= each <= "\udfff" for each in found):  # an encoder's error has the text
            raise ConfigError(
                f"{self.key}: its callable returned no legal Unicode text: it has bytes that are"
                " not UTF-8"
            )
        if found[-1] in "\r\n" and "-----END " not in found:
            raise ConfigError(
                f"{self.key}: its callable returned text that ends with a line break: strip it"
            )
        return found

    def is_encrypted_pem(self) -> bool:
        """Whether it is a private key that needs a password; False for a callable."""
        return isinstance(self._value, str) and "ENCRYPTED" in self._value

    def __repr__(self) -> str:
        return f"Secret({self.key})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self.key == other.key and self._value == other._value

    def __hash__(self) -> int:
        return hash(self.key)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a secret cannot be pickled: {self.key}")
