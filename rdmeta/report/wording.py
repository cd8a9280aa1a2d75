"""Values as people read them: lengths of time, shares, lists, names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timezone

from rdmeta._moments import nearest_moment, parse_moment

KINDS = {
    "leaderless": "without a leader",
    "under_min_isr": "under min ISR",
    "under_replicated": "under-replicated",
    "single_copy": "with a single copy",
    "at_min_isr": "at min ISR",
    "not_preferred": "not led by the preferred replica",
    "reassigning": "being reassigned",
    "rack_unsafe": "on too few racks",
}
"""The kinds of risk, gravest first."""

LETTERS = dict(zip(KINDS, "LMUSAPRK", strict=True))
# The ends that are not plain words as gold has them.
_ENDS = {
    "isr_changed": "ISR changed",
    "topic_absent": "left out by brokers",
    "topic_error": "no longer described",
    "open": "not over when last seen",
    "midnight": "not over when last seen",
    "gap": "not over before a hole",
}
HOLES = {
    "gap": "no poll",
    "closed": "recorder stopped",
    "open": "recorder gone without notice",
    "clock": "clock set",
    "lost": "changes lost",
    "cluster": "another cluster answered",
    "missing": "a file missing",
}
"""Why nothing was recorded, by gold's word."""
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def rounded_minutes(us: int | None) -> float | None:
    """Returns microseconds as minutes with two digits; what is not 0 stays above 0."""
    return None if us is None else max(round(us / 6e7, 2), 0.01 if us > 0 else 0.0)


def time_text(us: int) -> str:
    """Returns a moment as RFC 3339 in UTC, in milliseconds."""
    found = nearest_moment(us).astimezone(timezone.utc).replace(tzinfo=None)
    return f"{found.isoformat(timespec='milliseconds')}Z"


def duration(seconds: float) -> str:
    """Returns a length of time in its two largest units, such as 4 min 10 s."""
    if 0 < seconds < 10:
        return f"{number(round(seconds, 3))} s"
    left, parts = round(seconds), list[str]()
    for unit, name in _UNITS:
        if left >= unit or (name == "s" and not parts):
            parts.append(f"{left // unit} {name}")
            left %= unit
        elif parts:
            break
    return " ".join(parts[:2])


def number(value: float) -> str:
    """Returns a number without trailing zeros."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def shown(value: object, kind: str) -> str:
    """Returns a value of a column of that kind as the page has it."""
    if value is None:
        return "-" if kind == "rank" else "not known"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if kind == "seconds" and isinstance(value, (int, float)):
        return duration(value)
    if kind == "share" and isinstance(value, (int, float)):
        return f"{number(100 * value)} %"
    if kind == "time":
        return clock(str(value))
    return number(value) if isinstance(value, float) else str(value)


def ended(by: str) -> str:
    """Returns what ended a recovery or a topic, by gold's word: a kind of change, or no end."""
    return _ENDS.get(by, by.replace("_", " "))


def clock(time: str) -> str:
    """Returns a time of RFC 3339 to the second."""
    return f"{parse_moment(time):%Y-%m-%d %H:%M:%S}"


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun: 1 cluster, 3 clusters."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def was(count: int) -> str:
    """Returns the verb for so many."""
    return "was" if count == 1 else "were"


def listed(names: Sequence[object]) -> str:
    """Returns names as a sentence has them: a, b and c."""
    texts = [str(each) for each in names]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
