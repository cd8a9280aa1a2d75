"""Log lines that a client must not write twice: warnings that come again too soon."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable

# A client counts a line that repeats within so many seconds, and writes it after them.
QUIET_S = 30.0
# A record has another clock than the client, and is a little later than its line.
_CLOCKS_S = 0.1


def warnings(records: Iterable[logging.LogRecord]) -> list[logging.LogRecord]:
    """Returns the records of rdmeta from warnings on."""
    return [r for r in records if r.levelno >= logging.WARNING and _is_ours(r)]


def lines_about(server: str, records: Iterable[logging.LogRecord]) -> list[str]:
    """Returns the warnings that name a server, within QUIET_S of the first one."""
    own = [r for r in warnings(records) if _names(server, r)]
    return [r.getMessage() for r in own if r.created < own[0].created + QUIET_S - _CLOCKS_S]


def other_lines(servers: Collection[str], records: Iterable[logging.LogRecord]) -> list[str]:
    """Returns the warnings that name none of these servers."""
    found = warnings(records)
    return [r.getMessage() for r in found if not any(_names(server, r) for server in servers)]


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == "rdmeta"


def _names(server: str, record: logging.LogRecord) -> bool:
    """Returns whether a record names a server: "host:9" is not in "host:90"."""
    return re.search(rf"{re.escape(server)}\b", record.getMessage()) is not None
