"""`rdmeta publish`: a feeder whose state the other processes of the host attach to."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence

import click

from rdmeta._escaping import escaped
from rdmeta.cache import MetadataCache, Publisher
from rdmeta.cli.following import asking_every, wait_for_first
from rdmeta.cli.messages import FINE, BadInputError
from rdmeta.cli.output import json_text, label
from rdmeta.cli.selection import kept_topics
from rdmeta.cli.shared_options import (
    Listen,
    Target,
    Where,
    connection_options,
    every_option,
    for_option,
    metrics_option,
    new_file,
    serving,
)
from rdmeta.cli.status import Status
from rdmeta.cli.wake import Wake
from rdmeta.client.actions import Updated
from rdmeta.client.blocking import Client

_TICK_S = 1.0
# Readers may use a state as true for that long, as a producer does with its own metadata: a feeder
# that is restarted, or a cluster that is away for a moment, must not stop them.
_MAX_AGE_S = 900.0
# What each image begins with: RDMETA_FILE_MAGIC of csrc/image/file.h.
_MAGIC = b"\x89rdmeta\n"


def _mode(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    if not re.fullmatch("0?[0-7]{3}", value) or not int(value, 8):
        raise click.UsageError("--mode needs the permissions as three octal digits: 640", context)
    return int(value, 8)


@click.command(
    epilog="""\b
Examples:
  rdmeta publish kafka.rdmeta
  rdmeta publish kafka.rdmeta -t orders -t /^log-/ --for 2
"""
)
@click.argument("path")
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="NAME|/REGEX/",
    multiple=True,
    help="Keep this topic true, or those with a match for the regular expression; by default all."
    " With a regular expression the file has the others, too. May be repeated.",
)
@every_option("The time between two answers; a process that reads cannot make it ask earlier.")
@for_option
@click.option(
    "--mode",
    metavar="OCTAL",
    callback=_mode,
    help="The permissions of the file, such as 640; by default the umask decides.",
)
@click.option("--json", "json", is_flag=True, help="Print the READY line as JSON.")
@metrics_option
@connection_options
def command(
    where: Where,
    path: str,
    topics: tuple[str, ...],
    metrics: Listen | None,
    every: float,
    duration: float | None,
    mode: int | None,
    json: bool,
) -> int:
    """Keep the state of a cluster up to date in the file PATH, for all processes of this host.

    They read it with rdmeta.attach(PATH), at the speed of memory and without a connection. The
    line READY comes once the first answer is in the file. The file stays when the command ends, and
    its readers see how old it is. A second feeder of the same PATH is refused.
    """
    target, kept = where.target(), kept_topics(topics)
    status = Status(where.messages)
    status.log(quietly=True)
    path = new_file(path)
    _check_replaced(path)
    conf = asking_every(target.conf, every, max(3 * every, _MAX_AGE_S))
    client = Client(conf, topics=kept)
    answered = _first_answer(client)  # before the client starts, or the answer may be missed
    with serving(metrics) as serve, client:
        serve(client)
        wait_for_first(client, answered, where.timeout)
        status.log()
        with client.cache.publish(path, mode=mode) as publisher:
            _say_ready(publisher, client.cache, target, json)
            _keep_on(publisher, status, duration)
    return FINE


def _check_replaced(path: str) -> None:
    """Raises BadInputError if a file at `path` is no state: the first state would replace it.

    A damaged state is replaced, or a feeder would not start after the host lost power.
    """
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_MAGIC))
    except FileNotFoundError:
        return
    if begin and begin != _MAGIC:
        raise BadInputError(
            f"{path}: it is not a published state, and the state would replace it; name another"
            " file, or remove this one"
        )


def _first_answer(client: Client) -> Wake:
    """Returns what is set by the first answer about topics: no empty state is published."""
    answered = Wake()

    def updated(answers: Sequence[Updated]) -> None:
        if any(each.request.topics != () for each in answers):
            answered.set()

    client.on_update(updated)
    return answered


def _say_ready(publisher: Publisher, cache: MetadataCache, target: Target, json: bool) -> None:
    line = f"READY {escaped(publisher.path)}"
    if json:
        head = {"version": 1, "command": "publish", **label(target.name), "path": publisher.path}
        counts = {"brokers": len(cache.brokers), "topics": len(cache)}
        line = json_text({**head, "cluster_id": cache.cluster_id, **counts})
    if sys.stdout is not None:
        print(line, flush=True)


def _keep_on(publisher: Publisher, status: Status, duration: float | None) -> None:
    """Waits until `duration` seconds are over, or a signal comes; says if a save fails."""
    until = None if duration is None else time.monotonic() + duration
    complaint: str | None = None
    while until is None or time.monotonic() < until:
        time.sleep(_TICK_S if until is None else min(_TICK_S, max(0.0, until - time.monotonic())))
        reason = _reason(publisher.error)
        if reason is not None and reason != complaint:
            advice = "readers keep the last state, and the next attempt follows soon"
            status.fault(f"{publisher.path}: the state is not published: {reason}; {advice}")
        elif reason is None and complaint is not None:
            status.note(f"{publisher.path}: the state is published again")
        complaint = reason


def _reason(error: Exception | None) -> str | None:
    """Returns an error's text without its number and file; None for None."""
    return getattr(error, "strerror", None) or (None if error is None else str(error))
