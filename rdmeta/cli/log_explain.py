"""`rdmeta log explain`: how a partition or a broker came to be as it is, turn by turn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rdmeta.cli.change_rows import value_text
from rdmeta.cli.log_opening import LogRequest, doubts
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.output import Row, Table, columns
from rdmeta.kraft import Turn

_COLUMNS = columns(
    "time:time offset:integer partition:integer what value stood partitions:integer cause"
)
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def answer(request: LogRequest) -> int:
    """Prints the turns, as log.explain() has them; returns 1 if the log has none."""
    paths, topic, partition = _asked(request)
    if (topic is None) == (request.broker is None):
        raise BadInputError("log explain needs TOPIC[/PARTITION] behind the path, or --broker ID")
    log = request.log(paths)
    turns = log.explain(topic, partition, broker=request.broker)
    changes = turns.changes
    about = {"topic": topic, "partition": partition, "broker": request.broker}
    found = {**about, "proven": changes.proven, "turns": list(map(_object, turns))}
    request.answer(found, Table(_COLUMNS, map(_row, turns)))
    doubts(request.messages, log, changes.until, changes.faults)
    if not turns:
        place = "topic {}" if partition is None else "partition {}/{}"
        name = f"broker {request.broker}" if topic is None else place.format(topic, partition)
        request.messages.fault(f"the log has nothing about {name}")
    return FINE if turns else UNMET


def _asked(request: LogRequest) -> tuple[list[str], str | None, int | None]:
    """Returns the paths, and the topic and the partition that are asked."""
    if request.topic is not None or request.broker is not None:
        return request.arguments, request.topic, request.partition
    *paths, asked = request.arguments
    topic, slash, partition = asked.partition("/")
    if not paths or (slash and not (partition.isascii() and partition.isdigit())):
        raise BadInputError("log explain needs TOPIC[/PARTITION] behind the path, or --broker ID")
    return paths, topic, int(partition) if slash else request.partition


def _row(turn: Turn) -> Row:
    cause = f"{turn.cause} (inferred)" if turn.is_inferred else turn.cause
    value, stood = value_text(turn.value), None if turn.stood is None else _shown(turn.stood)
    place = (turn.time, turn.offset, turn.partition)
    return (*place, turn.what, value, stood, turn.partitions, cause)


def _object(turn: Turn) -> dict[str, Any]:
    found = turn._asdict()
    stood, inferred = found.pop("stood"), found.pop("is_inferred")
    found["stood_s"] = None if stood is None else stood.total_seconds()
    return {**found, "inferred": inferred}


def _shown(stood: timedelta) -> str:
    """Returns a time span as 2 d 3 h, 5 min 6 s, or 1.234 s."""
    left = stood.total_seconds()
    if left < 60:
        return f"{left:.3f} s"
    parts = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count:.0f} {unit}")
    return " ".join([*parts, f"{left:.0f} s"][:2])
