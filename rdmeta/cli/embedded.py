"""`rdmeta embedded`: a cluster to play with, on its own or around another command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from rdmeta.cli.messages import BadInputError, Messages
from rdmeta.model import topic_fault

# Seconds that COMMAND has after SIGTERM before it is killed.
_GRACE = 5.0
_USUAL_REPLICAS = 3
# More partitions than a topic has; a slip of the finger must not take all memory.
_MOST = 100_001


class _NewTopic(NamedTuple):
    name: str
    partitions: int
    replicas: int


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  rdmeta embedded --topic orders:6 --topic clicks
  rdmeta embedded --brokers 5 --topic orders:6:2 -- rdmeta list -t orders
""",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    metavar="N",
    help="How many brokers the cluster has.",
)
@click.option(
    "--topic",
    "topics",
    metavar="NAME[:PARTITIONS[:REPLICAS]]",
    multiple=True,
    help="Create this topic; by default with one partition, and three replicas if there are as"
    " many brokers. May be repeated.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
@click.pass_obj
def command(
    messages: Messages, brokers: int, topics: tuple[str, ...], words: tuple[str, ...]
) -> int:
    """Run a cluster in this process, without Java, to try clients and commands on.

    The first line of the output has the servers for bootstrap.servers. The cluster ends at Ctrl-C
    or SIGTERM. With COMMAND it runs that instead, with RDMETA_BOOTSTRAP set, prints nothing itself,
    and ends with its exit code. The brokers are librdkafka's mocks: a producer and a consumer can
    use them; there is no TLS, no SASL, and no failover.
    """
    wanted = {each.name: each for each in (_new_topic(each, brokers) for each in topics)}
    if len(wanted) < len(topics):
        raise BadInputError("--topic: a topic is named twice")
    from rdmeta.embedded import EmbeddedCluster

    with EmbeddedCluster(brokers) as cluster:
        for each in wanted.values():
            cluster.create_topic(*each)
        if words:
            return _run(words, _surroundings(os.environ, cluster.bootstrap))
        print(cluster.bootstrap, flush=True)
        if sys.stderr is not None and sys.stderr.isatty():
            messages.note("Ctrl-C ends the cluster")
        while True:
            time.sleep(1.0)


def _new_topic(given: str, brokers: int) -> _NewTopic:
    """Returns a value of --topic; raises BadInputError."""
    name, *numbers = given.split(":")
    what = f"--topic {given!r}"
    if fault := topic_fault(name):
        raise BadInputError(f"{what}: {name!r} is no topic's name: {fault}")
    if len(numbers) > 2 or not all(each.isascii() and each.isdigit() for each in numbers):
        raise BadInputError(f"{what}: expected NAME[:PARTITIONS[:REPLICAS]]")
    counts = [min(int(each), _MOST) for each in numbers]
    partitions, replicas = [*counts, *(1, min(_USUAL_REPLICAS, brokers))[len(counts) :]]
    if not partitions or not replicas or partitions == _MOST:
        raise BadInputError(f"{what}: expected 1 to {_MOST - 1} partitions, and 1 replica or more")
    if replicas > brokers:
        raise BadInputError(f"{what}: that many replicas need --brokers {replicas}")
    return _NewTopic(name, partitions, replicas)


def _surroundings(variables: Mapping[str, str], bootstrap: str) -> dict[str, str]:
    """Returns the environment of COMMAND: options of another cluster do not count in it."""
    from rdmeta.cli.shared_options import option_variables

    removed = option_variables()
    kept = {name: value for name, value in variables.items() if name not in removed}
    return {**kept, "RDMETA_BOOTSTRAP": bootstrap}


def _run(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Runs a command to its end; returns its exit code, 128 + N if signal N ended it.

    Ctrl-C on a terminal reaches the command by itself. Otherwise a SIGINT is passed on, and so is
    SIGTERM, which then ends this process.
    """
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        if is_terminal:
            return
        if process is None:
            early.append(number)  # the command may run already, and Popen has not returned yet
        else:
            process.send_signal(number)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        process = subprocess.Popen(words, env=env)
        for number in early:
            process.send_signal(number)
        code = process.wait()
    finally:
        if process is not None:
            _end(process)
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that still runs: this one unwinds after SIGTERM."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
