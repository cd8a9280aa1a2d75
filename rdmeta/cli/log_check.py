"""`rdmeta log check`: what is wrong with the files of metadata logs, and between copies."""

from __future__ import annotations

from rdmeta.cli.log_opening import LogRequest
from rdmeta.cli.messages import FINE, UNMET
from rdmeta.cli.output import Table, columns
from rdmeta.kraft import check

_COLUMNS = columns("serious:flag finding")


def answer(request: LogRequest) -> int:
    """Prints the findings; returns 1 if one is serious."""
    found = check(request.arguments)
    rows = [{"serious": each.is_serious, "text": each.text} for each in found]
    request.answer({"findings": rows}, Table(_COLUMNS, found))
    return UNMET if any(each.is_serious for each in found) else FINE
