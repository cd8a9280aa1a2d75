"""`rdmeta log dump`: the records of a metadata log, or its batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rdmeta._core import KraftReplay
from rdmeta._moments import nearest_moment
from rdmeta.cli.log_opening import LogRequest, doubts
from rdmeta.cli.messages import FINE, BadInputError
from rdmeta.cli.output import Output, Row, Table, columns, json_text, members, open_stdout
from rdmeta.kraft import KraftError, KraftLog, Record
from rdmeta.kraft.log_records import record_of, types_of
from rdmeta.kraft.log_state import as_json
from rdmeta.kraft.scanning import batch_heads

_RECORDS = columns("offset:integer time:time epoch:integer type version:integer topic data")
_BATCHES = columns(
    "first:integer last:integer time:time epoch:integer control:flag records:integer "
    "bytes:integer byte:integer file"
)


def answer(request: LogRequest) -> int:
    """Prints records or batches."""
    log = request.log(request.arguments)
    begin = log.start if request.since is None else log.offset(request.since)
    end = log.offset(request.until)
    if request.batches:
        _print_batches(request, log, begin, end)
        return FINE
    wanted: dict[str, Any] = {
        "types": request.types or None,
        "topic": request.topic,
        "partition": request.partition,
        "broker": request.broker,
    }
    records = log.records(begin, end, **wanted)
    has_log = log.start < log.end or not log.snapshots
    lines = records.lines() if has_log else _snapshot_lines(log, wanted)
    _print_lines(request.output, lines)
    doubts(request.messages, log, end if end > begin else 0, records.faults)
    return FINE


def _snapshot_lines(log: KraftLog, wanted: Mapping[str, Any]) -> Iterator[bytes]:
    """Yields the records of snapshots that are given without a log. Raises KraftError."""
    keys, controls = types_of(wanted["types"]) if wanted["types"] else (None, None)
    options = {**wanted, "types": keys, "controls": controls, "show_secrets": log.show_secrets}
    for use in log.snapshots:
        data, replay = use.file.path.read_bytes(), KraftReplay()
        text, used = replay.lines(data, **options)
        yield text
        if (use.why_not is not None and use.file.end) or used < len(data):
            raise KraftError(use.why_not or replay.fault[4], use.file.path)


def _print_lines(output: Output, lines: Iterable[bytes]) -> None:
    """Writes lines of JSON as they come, or as a table."""
    if output.form == "json":
        out = open_stdout()
        out.flush()
        is_utf8 = out.encoding.lower() == "utf-8"
        for text in lines:
            if is_utf8:  # as C writes it
                out.buffer.write(text)
            else:
                out.write(text.decode())
        return
    records = (record_of(line) for text in lines for line in text.splitlines())
    output.tables(Table(_RECORDS, map(_row, records)))


def _row(record: Record) -> Row:
    offset, epoch, time, type, version, data, topic = record
    return offset, time, epoch, str(type), version, topic, as_json(data)


def _print_batches(request: LogRequest, log: KraftLog, begin: int, end: int) -> None:
    chosen = (request.topic, request.partition, request.broker)
    if request.types or chosen != (None, None, None):
        raise BadInputError("--batches shows all of them: leave out --type, --topic and so on")
    faults: list[str] = []
    rows = _batches(log, begin, end, faults)
    if request.output.form != "json":
        request.output.tables(Table(_BATCHES, rows))
    else:
        write = open_stdout().write
        for row in rows:
            write(f"{json_text(members(_BATCHES, row))}\n")
    for fault in faults:
        request.messages.note(fault)
    doubts(request.messages, log, 0)


def _batches(log: KraftLog, begin: int, end: int, faults: list[str]) -> Iterator[tuple[Any, ...]]:
    paths = [segment.path for segment in log.segments]
    for path in paths or [use.file.path for use in log.snapshots]:
        for head in batch_heads(path, faults, lost=[] if log.skip_corrupt else None):
            if not paths or (head.last >= begin and head.base < end):
                time = nearest_moment(1000 * head.time_ms)
                yield (
                    *(head.base, head.last, time, head.epoch, head.is_control, head.records),
                    *(head.size, head.at, str(path)),
                )
