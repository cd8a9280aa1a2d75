"""What the words of `rdmeta log` share: the request, points of a log, and the log that they ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rdmeta._core import KraftReplay
from rdmeta._moments import moment
from rdmeta.cli.messages import Messages
from rdmeta.cli.output import Output
from rdmeta.history.schema import microseconds
from rdmeta.kraft import find_nodes, looked_at, offset_at, proof_of, replayed

Point = int | datetime


class LogRequest(NamedTuple):
    """The words and the options of one command line."""

    word: str
    arguments: list[str]
    output: Output
    messages: Messages
    at: Point | None = None
    since: Point | None = None
    until: Point | None = None
    types: tuple[str, ...] = ()
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    batches: bool = False
    recordings: str | None = None
    listener: str | None = None
    proven: bool = False
    skip_corrupt: bool = False
    show_secrets: bool = False


def point(text: str) -> Point:
    """Returns an offset, or a time. Raises ValueError."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return moment(text)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is neither an offset nor a time, such as 2026-11-22T03:05:00Z"
        ) from None


def state_of(request: LogRequest, paths: Sequence[str]) -> KraftReplay:
    """Returns the state that --at asks for."""
    logs = [looked_at(each) for each in find_nodes(paths)]
    log = max(logs, key=lambda each: (each.known_epoch, each.scan.end))
    end = log.scan.end
    if request.at is not None:
        end = (
            request.at if isinstance(request.at, int) else offset_at(log, microseconds(request.at))
        )
    if request.proven:
        end = min(end, proof_of(logs).end)
    return replayed(log, end, skip=request.skip_corrupt).replay
