"""Times: as microseconds since 1970, and from a user's text."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?")


def microseconds(when: datetime) -> int:
    """Returns a time as microseconds since 1970 in UTC."""
    return (when - _EPOCH) // timedelta(microseconds=1)


_FIRST_US, _LAST_US = (
    microseconds(each.replace(tzinfo=timezone.utc)) for each in (datetime.min, datetime.max)
)


def moment(us: int) -> datetime:
    """Returns the time that is so many microseconds after 1970 in UTC."""
    return _EPOCH + timedelta(microseconds=us)


def nearest_moment(us: int) -> datetime:
    """Returns moment(), or the first or last time that Python has."""
    return moment(min(max(us, _FIRST_US), _LAST_US))


def parse_moment(text: str) -> datetime:
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
