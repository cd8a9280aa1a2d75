"""Reads a day or a time from a user's text."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?")


def moment(text: str) -> datetime:
    """Returns a day's begin, or a time; without an offset it is one of UTC.

    Raises ValueError for another text, OverflowError for a time that no datetime has.
    """
    if not _TIME.fullmatch(text):
        raise ValueError(f"{text!r} is no day and no time, such as 2026-11-22T03:05:00Z")
    when = datetime.fromisoformat(_in_full(text))
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)


def _in_full(text: str) -> str:
    """Returns a time as Python 3.10 reads it: six digits of a second, and no Z."""
    text = text.replace("Z", "+00:00")
    found = re.search(r"\.(\d+)", text)
    return text if found is None else text.replace(found[0], f".{found[1]:0<6}", 1)
