"""The one way in which texts of brokers, files and tokens get into errors, logs and output."""

from __future__ import annotations

_SHOWN = 24


def escaped(text: str) -> str:
    """Returns the text with each character that does not print as an escape, such as \\x1b.

    These are control characters, ends of lines, separators other than a space, signs that change
    the direction of writing, and halves of characters. So no text forges a line or a colour.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def first_bytes(data: bytes) -> str:
    """Returns the first bytes of what another server sent, with escapes."""
    return f"{data[:_SHOWN]!r}{'...' if len(data) > _SHOWN else ''}"
