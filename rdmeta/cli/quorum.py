"""`rdmeta quorum`: the controllers of KRaft clusters, and how far each node is behind."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rdmeta.cli.messages import FINE, UNMET, BadInputError, Messages
from rdmeta.cli.output import (
    Output,
    Row,
    Stream,
    Table,
    TableColumn,
    clusters_table,
    columns,
    label,
    members,
)
from rdmeta.cli.shared_options import (
    Target,
    Where,
    connection_options,
    made_of,
    output_options,
    seconds_option,
    side_by_side,
)

if TYPE_CHECKING:
    from uuid import UUID

    from rdmeta.net.describe_quorum import Quorum, QuorumReplica

_EVERY_S = 2.0

_NODES = columns(
    "node:integer role log_end_offset:integer lag:integer last_fetch_s:number caught_up_s:number"
)
_ROUND = columns("epoch:integer high_watermark:integer")
_SUMMARY = columns(
    "leader:integer epoch:integer high_watermark:integer voters:integer observers:integer "
    "max_lag:integer"
)


class _Answer(NamedTuple):
    """The answer of a cluster; `name` is None without -c, `error` says why there is no answer."""

    name: str | None
    quorum: Quorum | None
    error: Exception | None = None


@click.command(
    epilog="""\b
Examples:
  rdmeta quorum
  rdmeta quorum --watch --max-lag 1000 --for 3
"""
)
@click.option(
    "--max-lag",
    type=click.IntRange(0),
    metavar="N",
    help="Exit with 1 if a node is more than N records behind, or it is not known how many.",
)
@click.option("--watch", is_flag=True, help="Ask again and again; with --max-lag until that fails.")
@seconds_option("--every", help="How often --watch asks.  [default: 2]")
@seconds_option(
    "--for", "duration", help="End --watch after that time; otherwise Ctrl-C or SIGTERM ends it."
)
@connection_options
@output_options
def command(
    where: Where,
    output: Output,
    max_lag: int | None,
    watch: bool,
    every: float | None,
    duration: float | None,
) -> int:
    """Show the controllers of a KRaft cluster: leader, epoch, high watermark, and each node's lag.

    Any broker passes the question on to the active controller (DescribeQuorum). The lag is how many
    records of the metadata log a node is behind the leader, as in kafka-metadata-quorum. The ages
    of its last fetch, and of when it had all of the log, are by the leader's clock, in seconds.
    CSV and Parquet hold the nodes. --watch prints a row per node and round, or a line of JSON.
    """
    if not watch and (every is not None or duration is not None):
        raise BadInputError("--every and --for need --watch")
    if watch and output.form == "parquet":
        raise BadInputError("--watch prints as it goes: leave out --parquet")
    targets = where.targets()
    where.messages.log(quietly=True)
    if not watch:
        return _once(where, output, targets, max_lag)
    with ExitStack() as stack:
        return _Rounds(where, output, max_lag, targets, stack).run(every or _EVERY_S, duration)


def _once(where: Where, output: Output, targets: Sequence[Target], max_lag: int | None) -> int:
    """Asks each cluster and prints the answers; returns the exit code."""
    from rdmeta.client.blocking import Client

    def ask(target: Target) -> Quorum:
        with Client(target.conf) as client:
            return client.quorum(where.timeout)

    answers, code = [], FINE
    for target, outcome in side_by_side(targets, ask):
        if isinstance(outcome, Exception):
            code = max(code, where.messages.failure(outcome, target.name))
            answers.append(_Answer(target.name, None, outcome))
        else:
            answers.append(_Answer(target.name, outcome))
    if where.clusters is not None or any(each.quorum for each in answers):
        tables = (_table(_SUMMARY, answers, _summary), _table(_NODES, answers, _nodes))
        output.answer(_object(answers), *tables)
    return max([code, *(_judge(each, max_lag, where.messages) for each in answers)])


def _judge(answer: _Answer, max_lag: int | None, messages: Messages) -> int:
    """Says which nodes are too far behind; returns the exit code for that."""
    code = FINE
    if max_lag is None or answer.quorum is None:
        return code
    for role, replica in _replicas(answer.quorum):
        lag = answer.quorum.lag(replica)
        if lag is None:
            messages.fault(f"{role} {replica.id}: its lag is not known", answer.name)
        elif lag > max_lag:
            text = f"{role} {replica.id} is {lag} records behind, more than --max-lag {max_lag}"
            messages.fault(text, answer.name)
        else:
            continue
        code = UNMET
    return code


def _replicas(quorum: Quorum) -> Iterator[tuple[str, QuorumReplica]]:
    """Yields each node with its role, the leader first."""
    leader = [each for each in quorum.voters if each.id == quorum.leader]
    yield from (("leader", each) for each in leader)
    yield from (("voter", each) for each in quorum.voters if each not in leader)
    yield from (("observer", each) for each in quorum.observers)


def _max_lag(quorum: Quorum) -> int | None:
    """Returns the largest lag of a voter, as kafka-metadata-quorum's MaxFollowerLag."""
    lags = [lag for each in quorum.voters if (lag := quorum.lag(each)) is not None]
    return max(lags, default=None)


# ---- rounds -------------------------------------------------------------------------------------


class _Rounds:
    """Asks clusters again and again by clients that stay connected.

    A cluster that fails before its first answer is given up. After that an error is printed once,
    and the client goes on.
    """

    def __init__(
        self,
        where: Where,
        output: Output,
        max_lag: int | None,
        targets: Sequence[Target],
        stack: ExitStack,
    ) -> None:
        """Makes a client for each cluster, which the stack closes."""
        from rdmeta.client.blocking import Client

        self._timeout, self._messages, self._max_lag = where.timeout, where.messages, max_lag
        self._is_json, self._has_names = output.form == "json", where.clusters is not None
        self._output = output
        self._stream: Stream | None = None
        self._heard: set[str | None] = set()
        self._reported: dict[str | None, str] = {}
        self._clients, self._code = made_of(
            targets, lambda target: stack.enter_context(Client(target.conf)), self._messages
        )
        self._targets = [each for each in targets if each.name in self._clients]

    def run(self, every: float, duration: float | None) -> int:
        """Asks until the time is over, no cluster is left, or a node is too far behind."""
        at = time.monotonic()
        end = None if duration is None else at + duration
        while self._targets:
            code = self._ask()
            if code != FINE:
                return max(code, self._code)
            at = max(at + every, time.monotonic())
            if end is not None and at > end:
                break
            time.sleep(max(0.0, at - time.monotonic()))
        return self._code

    def _ask(self) -> int:
        """Asks each cluster once and prints the answers; returns what --max-lag makes of them."""
        answers = []
        for target, outcome in side_by_side(self._targets, self._quorum):
            if isinstance(outcome, Exception):
                self._failed(target, outcome)
                answers.append(_Answer(target.name, None, outcome))
            else:
                self._heard.add(target.name)
                self._reported.pop(target.name, None)
                answers.append(_Answer(target.name, outcome))
        self._targets = [each for each in self._targets if each.name in self._heard]
        self._print(answers)
        return max([FINE, *(_judge(each, self._max_lag, self._messages) for each in answers)])

    def _quorum(self, target: Target) -> Quorum:
        return self._clients[target.name].quorum(self._timeout)

    def _failed(self, target: Target, error: Exception) -> None:
        if self._reported.get(target.name) != type(error).__name__:
            code = self._messages.failure(error, target.name)
            if target.name not in self._heard:
                self._code = max(self._code, code)
        self._reported[target.name] = type(error).__name__

    def _print(self, answers: Sequence[_Answer]) -> None:
        now = datetime.now(timezone.utc)
        if not self._is_json and not any(each.quorum for each in answers):
            return
        if self._stream is None:
            head = columns("time:time cluster" if self._has_names else "time:time")
            self._stream = Stream(self._output, [*head, *_ROUND, *_NODES])
            self._stream.header()
        if self._is_json:
            self._stream.write_json({**_object(answers), "time": now})
            return
        for each in answers:
            names = (each.name,) if self._has_names else ()
            if (quorum := each.quorum) is not None:
                head_row = (now, *names, quorum.leader_epoch, quorum.high_watermark)
                for row in _nodes(quorum):
                    self._stream.write((*head_row, *row))


# ---- tables -------------------------------------------------------------------------------------


def _table(
    columns: Sequence[TableColumn],
    answers: Sequence[_Answer],
    rows_of: Callable[[Quorum], Iterable[Row]],
) -> Table:
    found = [(each.name, rows_of(each.quorum) if each.quorum else ()) for each in answers]
    return clusters_table(columns, found)


def _summary(quorum: Quorum) -> Iterator[Row]:
    counts = len(quorum.voters), len(quorum.observers), _max_lag(quorum)
    yield (quorum.leader, quorum.leader_epoch, quorum.high_watermark, *counts)


def _nodes(quorum: Quorum) -> Iterator[Row]:
    return (_node(quorum, role, each) for role, each in _replicas(quorum))


def _node(quorum: Quorum, role: str, replica: QuorumReplica) -> Row:
    ages = map(quorum.age, (replica.last_fetch_ms, replica.last_caught_up_ms))
    return (replica.id, role, replica.log_end_offset, quorum.lag(replica), *ages)


# ---- JSON ---------------------------------------------------------------------------------------


def _object(answers: Sequence[_Answer]) -> dict[str, Any]:
    return {"version": 1, "command": "quorum", "quorums": list(map(_quorum_object, answers))}


def _quorum_object(answer: _Answer) -> dict[str, Any]:
    head = label(answer.name)
    if answer.quorum is None:
        return {**head, "error": str(answer.error), "leader": None, "voters": [], "observers": []}
    quorum = answer.quorum
    return {
        **head,
        "error": None,
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "max_lag": _max_lag(quorum),
        "voters": [_node_object(quorum, each) for each in quorum.voters],
        "observers": [_node_object(quorum, each) for each in quorum.observers],
    }


def _node_object(quorum: Quorum, replica: QuorumReplica) -> dict[str, Any]:
    found = members(_NODES, _node(quorum, "", replica))
    del found["role"]
    return {**found, "directory_id": _base64(replica.directory_id)}


def _base64(id: UUID | None) -> str | None:
    """Returns a UUID as Kafka writes it."""
    return None if id is None else urlsafe_b64encode(id.bytes).decode().rstrip("=")
