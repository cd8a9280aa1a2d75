"""Lines on stderr, the exit codes that go with errors, and the variable of completions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from rdmeta import errors
from rdmeta._escaping import escaped

FINE = 0
UNMET = 1
"""A condition that the user asked for does not hold."""
BAD_INPUT = 2
"""The command line, a configuration or a file is wrong."""
NO_ANSWER = 3
"""No server gave a usable answer."""
INTERRUPTED = 130
"""The user pressed Ctrl-C."""

COMPLETE = "_RDMETA_COMPLETE"
"""The variable by which a shell's function asks; completion.py writes that function."""


class BadInputError(Exception):
    """Input that the user has to correct; its text says what is wrong and what to do."""


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Returns the known word that is nearest to `word`; None if none is similar enough."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), 1, least)), None)


class Messages:
    """Writes lines about what goes wrong to stderr, as loudly as the user wants.

    `level` is -1 for errors only, 0, 1 for causes and the client's log, 2 for all of its log.
    """

    def __init__(self) -> None:
        self.level = 0

    def note(self, text: str, cluster: str | None = None) -> None:
        """Writes a line that is no error; -q leaves it out."""
        if self.level >= 0:
            self._write(text, cluster)

    def fault(self, text: str, cluster: str | None = None) -> None:
        """Writes a line about an error."""
        self._write(text, cluster)

    def failure(self, error: BaseException, cluster: str | None = None) -> int:
        """Writes an error as one line, with -v also its causes; returns the exit code."""
        code = _code(error)
        if code is None:
            import traceback

            traceback.print_exception(error)
            return NO_ANSWER
        self._write(_text(error) + (_advice(error) if code == NO_ANSWER else ""), cluster)
        if self.level > 0:
            for cause in _causes(error):
                self._write(f"  because of {type(cause).__name__}: {_text(cause)}", cluster)
        return code

    def log(self, *, quietly: bool = False) -> None:
        """Shows the client's log: its warnings, with -v more, with -q only errors.

        Call it once, before the client is made. A command that ends with the client's error calls
        it `quietly`: only -v shows warnings, which would say the same; see logs.show(). One that
        keeps running does so until it has begun.
        """
        from rdmeta.cli import logs

        logs.show(self.fault, self.level, quietly=quietly)

    def _write(self, text: str, cluster: str | None) -> None:
        prefix = "rdmeta: " if cluster is None else f"rdmeta: {cluster}: "
        if sys.stderr is None:
            return
        with suppress(OSError):  # where stderr cannot be written, the exit code still tells
            print(escaped(prefix + text), file=sys.stderr, flush=True)


def _code(error: BaseException) -> int | None:
    """Returns the exit code of an error; None for a defect of the program."""
    if isinstance(error, errors.UnknownTopicError):
        return UNMET
    if isinstance(error, (BadInputError, ValueError, OSError, errors.MissingExtraError)):
        return BAD_INPUT
    return NO_ANSWER if isinstance(error, errors.Error) else None


def _text(error: BaseException) -> str:
    """Returns the text of an error; an OSError's has the file and no number."""
    if isinstance(error, OSError) and error.strerror:
        file = error.filename
        return error.strerror if file is None else f"{file}: {error.strerror}"
    return str(error) or type(error).__name__


def _advice(error: BaseException) -> str:
    """Returns which keys to check, for an error that does not say it itself."""
    text = str(error)
    if any(f"{area}." in text for area in _AREAS) or isinstance(error, errors.NotCachedError):
        return ""
    if isinstance(error, errors.RequestTimedOutError):
        return "; check bootstrap.servers, or give it longer with --timeout"
    return "; check bootstrap.servers" if isinstance(error, errors.TransportError) else ""


_AREAS = ("bootstrap", "security", "sasl", "ssl")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the errors from which this one was raised, the nearest first."""
    seen = {id(error)}
    cause = error.__cause__ or error.__context__
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
