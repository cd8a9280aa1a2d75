"""What the words of `rdmeta log` share: the request, and the log or the state that it asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rdmeta._core import KraftReplay
from rdmeta.cli.log_options import LogChoice, Point
from rdmeta.cli.messages import Messages
from rdmeta.cli.output import Output
from rdmeta.history.schema import microseconds
from rdmeta.kraft import NodeLog, find_nodes, looked_at, offset_at, proof_of, replayed


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


def furthest(logs: Sequence[NodeLog]) -> NodeLog:
    """Returns the copy that has the most of the highest epoch."""
    return max(logs, key=lambda each: (each.known_epoch, each.scan.end))


def state_of(request: LogRequest, paths: Sequence[str]) -> KraftReplay:
    """Returns the state that --at asks for."""
    choice = LogChoice(tuple(paths), request.at, request.proven)
    return chosen_state(choice, request.messages, skip=request.skip_corrupt)


def chosen_state(choice: LogChoice, messages: Messages, **options: Any) -> KraftReplay:
    """Returns the state that was chosen; says which part of it is not proven."""
    logs = [looked_at(each) for each in find_nodes(choice.paths)]
    log, end = furthest(logs), choice.at
    if isinstance(end, datetime):
        end = offset_at(log, microseconds(end))
    elif end is None:
        end = log.scan.end
    proven = proof_of(logs)
    if choice.is_proven:
        end = min(end, proven.end)
    elif end > proven.end:
        messages.note(f"offsets {proven.end} to {end - 1} are not proven to be committed")
    return replayed(log, end, **options).replay
