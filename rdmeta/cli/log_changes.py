"""`rdmeta log changes`: the rows of `rdmeta watch`, with offsets, from a metadata log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rdmeta.cli.change_rows import change_object, change_row, old_and_new
from rdmeta.cli.log_opening import LogRequest, doubts
from rdmeta.cli.messages import FINE
from rdmeta.cli.output import Row, Table, TableColumn, json_text, open_stdout
from rdmeta.model import Change

_COLUMNS = (
    TableColumn("time", "time"),
    TableColumn("offset", "integer"),
    TableColumn("topic"),
    TableColumn("partition", "integer"),
    TableColumn("kind"),
    TableColumn("old"),
    TableColumn("new"),
)


def answer(request: LogRequest) -> int:
    """Prints changes, or writes recordings of them."""
    log = request.log(request.arguments)
    changes = log.changes(request.since, request.until, listener=request.listener)
    chosen = _chosen(request, changes)
    if request.output.form == "json":
        write = open_stdout().write
        for change in chosen:
            write(f"{json_text(_object(change))}\n")
    else:
        request.output.tables(Table(_COLUMNS, map(_row, chosen)))
    doubts(request.messages, log, changes.until, changes.partial, changes.faults)
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


def _object(change: Change) -> dict[str, object]:
    head = {"version": 1, "command": "log", "word": "changes", "offset": change.offset}
    return {**head, **change_object(change, old_and_new(change))}
