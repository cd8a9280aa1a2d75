"""What the words of `rdmeta log` share: the request, and the log or the state that it asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rdmeta import health
from rdmeta._core import KraftReplay
from rdmeta.cache import Image, MetadataCache
from rdmeta.cli.log_options import LogChoice, Point
from rdmeta.cli.messages import BadInputError, Messages
from rdmeta.cli.output import Output
from rdmeta.cli.selection import ClusterState
from rdmeta.history.schema import microseconds
from rdmeta.kraft import KraftError, NodeLog, find_nodes, looked_at, offset_at, proof_of, replayed
from rdmeta.model import ALL

_OF_TOPIC = 2
_OF_BROKERS = (4, "")


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
    found = replayed(log, end, cluster_id=log.files.cluster_id, **options).replay
    if end > proven.end:
        messages.note(f"offsets {proven.end} to {end - 1} are not proven to be committed")
    return found


def logged_state(choice: LogChoice, messages: Messages) -> ClusterState:
    """Returns a log's state as that of a cluster. Raises BadInputError for a log without it."""
    try:
        replay = chosen_state(choice, messages)
    except KraftError as error:
        raise BadInputError(str(error)) from error
    least = _min_isr(replay)
    known = {row[0]: least.get(row[0], least.get("")) for row in replay.topics()}
    return ClusterState(
        None,
        _image(replay),
        min_isr={name: value for name, value in known.items() if value is not None},
        controller=replay.info()["leader"],
    )


def logged_image(choice: LogChoice, messages: Messages) -> Image:
    """Returns a log's state as an image. Raises BadInputError for a log without it."""
    try:
        return _image(chosen_state(choice, messages))
    except KraftError as error:
        raise BadInputError(str(error)) from error


def _image(replay: KraftReplay) -> Image:
    cache = MetadataCache()
    cache.apply(replay.answer(), 12, ALL)
    return cache.image()


def _min_isr(replay: KraftReplay) -> dict[str, int]:
    """Returns min.insync.replicas by topic; that of all brokers is under the name ""."""
    found = {}
    for kind, text, _ in replay.facts():
        if kind == "CONFIG_RECORD":
            data = json.loads(text)
            place = (data["resourceType"], data["resourceName"])
            if data["name"] == health.MIN_ISR and (place[0] == _OF_TOPIC or place == _OF_BROKERS):
                found[data["resourceName"]] = int(data["value"])
    return found
