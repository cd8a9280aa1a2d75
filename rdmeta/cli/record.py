"""`rdmeta record`: the history of clusters in Parquet files."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rdmeta._escaping import escaped
from rdmeta.cli.messages import BAD_INPUT, FINE
from rdmeta.cli.output import json_text, label
from rdmeta.cli.shared_options import (
    Listen,
    Target,
    Where,
    connection_options,
    every_option,
    for_option,
    made_of,
    metrics_option,
    seconds_option,
    serving,
    side_by_side,
)
from rdmeta.cli.status import Status
from rdmeta.cli.wake import Wake

if TYPE_CHECKING:
    from rdmeta.cli.cluster_recording import ClusterRecording

_TICK_S = 1.0


class Files:
    """The files that recordings have written; prints each once, even if Ctrl-C interrupts it."""

    def __init__(self, status: Status, json: bool) -> None:
        self._status = status
        self._json = json
        self._written: list[tuple[ClusterRecording, Path]] = []
        self._printed = 0
        self._have_come = Wake()

    def add(self, recording: ClusterRecording, path: Path) -> None:
        """Takes a file that is written; any thread may call it."""
        self._written.append((recording, path))
        self._have_come.set()

    def print(self, timeout: float = 0.0) -> None:
        """Prints the files that have come, or come within `timeout` seconds."""
        self._have_come.wait(timeout)
        while self._printed < len(self._written):
            recording, path = self._written[self._printed]
            line = _json(recording, path) if self._json else escaped(str(path))
            with self._status.cleared():
                # CPython raises KeyboardInterrupt after a call. None is between these two lines.
                self._printed += 1
                print(line, flush=True)


@click.command(
    epilog="""\b
Examples:
  rdmeta record -o history --every 5
  rdmeta record -o history --for 2 --json
"""
)
@click.option(
    "-o",
    "--output",
    "directory",
    metavar="DIR",
    required=True,
    help="The directory of the files; it is made if it is missing.",
)
@every_option("The time between two answers. A pause of 3 times that, at least 60 s, is a gap.")
@seconds_option(
    "--flush-every",
    default=300.0,
    help="The time between two files, and so the most that a kill can lose.",
)
@for_option
@click.option("--json", "json", is_flag=True, help="Print each new file as a line of JSON.")
@metrics_option
@connection_options
def command(
    where: Where,
    metrics: Listen | None,
    directory: str,
    every: float,
    flush_every: float,
    duration: float | None,
    json: bool,
) -> int:
    """Record how clusters change, as Parquet files that rdmeta.history reads.

    One broker answers for all topics, and another one when it fails. Each new file is a line of
    output. A file is complete or absent, even after kill -9. Several clusters, and several
    processes, may share a directory.

    Files lie in cluster=ID/day=YYYY-MM-DD/ by days in UTC. Each day begins with the whole state, so
    that it can be read, or deleted, alone. min.insync.replicas of each topic is recorded too, if
    the user may read it (DESCRIBE_CONFIGS).
    """
    targets = where.targets()
    _check_directory(directory)
    from rdmeta.cli.cluster_recording import ClusterRecording

    status = Status(where.messages)
    files = Files(status, json)
    status.log(quietly=True)

    def make(target: Target) -> ClusterRecording:
        return ClusterRecording(target, directory, every, flush_every, status, files.add)

    made, unmade = made_of(targets, make, status)
    unwritten = FINE
    try:
        with serving(metrics) as serve:
            by_client = {each.client: each for each in made.values()}
            serve(*by_client, min_isr=lambda client: by_client[client].min_isr)
            code = _begun(targets, made, where.timeout, status) if made else unmade
            if code == FINE:
                status.log()
                _keep_on(list(made.values()), files, status, duration)
    finally:
        for each in made.values():
            unwritten = max(unwritten, _closed(each, status))
        status.end()
        files.print()
    if code == FINE:  # some began; an answer may have failed up to the end
        code = max([unmade, *(each.code for each in made.values())])
    return max(code, unwritten)


def _check_directory(directory: str) -> None:
    """Makes the directory; raises OSError if it cannot be made, or no file can be made in it."""
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    os.makedirs(directory, exist_ok=True)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)


def _begun(
    targets: Sequence[Target],
    made: Mapping[str | None, ClusterRecording],
    timeout: float,
    status: Status,
) -> int:
    """Returns FINE if a cluster answers, else the exit code.

    A cluster that does not answer in time is a line, and is asked further if another one answers.
    """
    ready = [target for target in targets if target.name in made]
    codes = [
        FINE if outcome is None else status.failure(outcome, target.name)
        for target, outcome in side_by_side(ready, lambda each: made[each.name].begin(timeout))
    ]
    return FINE if FINE in codes else max(codes)


def _keep_on(
    made: Sequence[ClusterRecording], files: Files, status: Status, duration: float | None
) -> None:
    """Prints files and the state until `duration` seconds are over, or a signal comes."""
    until = None if duration is None else time.monotonic() + duration
    while True:
        left = _TICK_S if until is None else until - time.monotonic()
        if left <= 0:
            return
        files.print(min(left, _TICK_S))
        if status.is_drawn:
            status.show(_state(made))


def _json(recording: ClusterRecording, path: Path) -> str:
    from rdmeta.history.schema import FileName

    head = {"version": 1, "command": "record", **label(recording.name), "file": str(path)}
    return json_text({**head, **FileName.parse(path.name)._asdict()})


def _state(made: Sequence[ClusterRecording]) -> str:
    """Returns what the line on a terminal says."""
    rows = sum(each.rows for each in made)
    files = sum(each.file_count for each in made)
    clusters = ", ".join(_answer_text(each) for each in made)
    return f"{rows} rows, {files} files; {clusters}"


def _answer_text(recording: ClusterRecording) -> str:
    label = "" if recording.name is None else f"{recording.name}: "
    age = recording.age
    if age is None:
        return f"{label}no answer yet"
    return f"{label}broker {recording.broker} answered {age:.0f} s ago"


def _closed(recording: ClusterRecording, status: Status) -> int:
    """Ends a recording, and returns FINE or the exit code if its last rows are lost."""
    try:
        recording.close()
    except OSError as error:
        status.fault(recording.unwritten(error) + "; its rows are lost", recording.name)
        return BAD_INPUT
    return FINE
