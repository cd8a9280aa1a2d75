"""`rdmeta log changes`: the rows of `rdmeta watch`, with offsets, from a metadata log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rdmeta.cli.change_rows import change_object, change_row, old_and_new
from rdmeta.cli.log_opening import LogRequest, doubts
from rdmeta.cli.messages import FINE, BadInputError
from rdmeta.cli.output import Row, Table, columns, json_text, open_stdout
from rdmeta.errors import MissingExtraError
from rdmeta.kraft import KraftLog
from rdmeta.model import Change

_COLUMNS = columns("time:time offset:integer topic partition:integer kind old new")


def answer(request: LogRequest) -> int:
    """Prints changes, or writes recordings of them."""
    log = request.log(request.arguments)
    if request.recordings is not None:
        return _recorded(request, log)
    changes = log.changes(request.since, request.until, listener=request.listener)
    chosen = _chosen(request, changes)
    if request.output.form == "json":
        write = open_stdout().write
        for change in chosen:
            write(f"{json_text(_object(request.head(), change, log.proven))}\n")
    else:
        request.output.tables(Table(_COLUMNS, map(_row, chosen)))
    doubts(request.messages, log, changes.until, changes.faults)
    return FINE


def _recorded(request: LogRequest, log: KraftLog) -> int:
    """Writes recordings of what is proven, and prints their paths."""
    chosen = ("since", "until", "topic", "partition", "broker", "listener")
    if any(getattr(request, each) is not None for each in chosen) or request.show_secrets:
        raise BadInputError("--recordings writes all that is proven, without secrets")
    if log.cluster_id is None:
        raise BadInputError(
            "no meta.properties names the cluster: copy that of the node to beside the log"
        )
    try:
        from rdmeta.kraft import record
    except ImportError as error:
        raise MissingExtraError.of("--recordings", "arrow") from error
    assert request.recordings is not None
    paths = list(map(str, record(log, request.recordings)))
    found = Table(columns("recording"), ([path] for path in paths))
    request.answer({"recordings": paths}, found)
    doubts(request.messages, log, 0)
    if log.end > log.proven:
        unproven = f"offsets {log.proven} to {log.end - 1} are not proven to be committed"
        request.messages.note(f"{unproven}, and are left out")
    return FINE


def _chosen(request: LogRequest, changes: Iterable[Change]) -> Iterator[Change]:
    for change in changes:
        if (
            request.topic in (None, change.topic)
            and request.partition in (None, change.partition)
            and request.broker in (None, change.broker)
        ):
            yield change


def _row(change: Change) -> Row:
    time, *rest = change_row(change, old_and_new(change))
    return [time, change.offset, *rest]


def _object(head: dict[str, Any], change: Change, proven: int) -> dict[str, object]:
    about = {"offset": change.offset, "proven": change.version <= proven}
    return {**head, **about, **change_object(change, old_and_new(change))}
