"""`rdmeta quorum`: the controllers of KRaft clusters, and how far each node is behind."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rdmeta.cli.clusters import Target, side_by_side
from rdmeta.cli.messages import FINE, UNMET, Messages
from rdmeta.cli.options import Where, connection_options, output_options
from rdmeta.cli.output import Column, Output, Row, Table, json_text

if TYPE_CHECKING:
    from uuid import UUID

    from rdmeta.net.describe_quorum import Quorum, QuorumReplica

__all__ = ["command"]

_NODES = (
    Column("node", "integer"),
    Column("role"),
    Column("log_end_offset", "integer"),
    Column("lag", "integer"),
    Column("last_fetch_s", "number"),
    Column("caught_up_s", "number"),
)
_SUMMARY = (
    Column("leader", "integer"),
    Column("epoch", "integer"),
    Column("high_watermark", "integer"),
    Column("voters", "integer"),
    Column("observers", "integer"),
    Column("max_lag", "integer"),
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
  rdmeta quorum --max-lag 1000 --json
"""
)
@click.option(
    "--max-lag",
    type=click.IntRange(0),
    metavar="N",
    help="Exit with 1 if a node is more than N records behind, or it is not known how many.",
)
@connection_options
@output_options
def command(where: Where, output: Output, max_lag: int | None) -> int:
    """Show the controllers of a KRaft cluster: leader, epoch, high watermark, and each node's lag.

    Any broker passes the question on to the active controller (DescribeQuorum). The lag is how many
    records of the metadata log a node is behind the leader, as in kafka-metadata-quorum. The ages
    of its last fetch, and of when it had all of the log, are by the leader's clock, in seconds.
    CSV and Parquet hold the nodes.
    """
    targets, messages = where.targets(), where.messages
    from rdmeta.cli.following import show_log
    from rdmeta.client.blocking import Client

    show_log(messages)

    def ask(target: Target) -> Quorum:
        with Client(target.conf) as client:
            return client.quorum(where.timeout)

    answers, code = [], FINE
    for target, outcome in side_by_side(targets, ask):
        if isinstance(outcome, Exception):
            code = max(code, messages.failure(outcome, target.name))
            answers.append(_Answer(target.name, None, outcome))
        else:
            answers.append(_Answer(target.name, outcome))
    if where.clusters is not None or any(each.quorum for each in answers):
        if output.form == "json":
            output.json(json_text(_object(answers)))
        else:
            output.tables(_table(_SUMMARY, answers, _summary), _table(_NODES, answers, _nodes))
    return max([code, *(_judge(each, max_lag, messages) for each in answers)])


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


# ---- tables -------------------------------------------------------------------------------------


def _table(
    columns: Sequence[Column],
    answers: Sequence[_Answer],
    rows_of: Callable[[Quorum], Iterable[Row]],
) -> Table:
    has_names = any(each.name is not None for each in answers)
    head = [Column("cluster")] if has_names else []
    rows = (
        (each.name, *row) if has_names else row
        for each in answers
        if each.quorum is not None
        for row in rows_of(each.quorum)
    )
    return Table([*head, *columns], rows)


def _summary(quorum: Quorum) -> Iterator[Row]:
    yield (
        quorum.leader,
        quorum.leader_epoch,
        quorum.high_watermark,
        len(quorum.voters),
        len(quorum.observers),
        _max_lag(quorum),
    )


def _nodes(quorum: Quorum) -> Iterator[Row]:
    for role, each in _replicas(quorum):
        yield (
            each.id,
            role,
            each.log_end_offset,
            quorum.lag(each),
            quorum.age(each.last_fetch_ms),
            quorum.age(each.last_caught_up_ms),
        )


# ---- JSON ---------------------------------------------------------------------------------------


def _object(answers: Sequence[_Answer]) -> dict[str, Any]:
    return {"version": 1, "command": "quorum", "quorums": list(map(_quorum_object, answers))}


def _quorum_object(answer: _Answer) -> dict[str, Any]:
    label = {} if answer.name is None else {"cluster": answer.name}
    if answer.quorum is None:
        return {**label, "error": str(answer.error), "leader": None, "voters": [], "observers": []}
    quorum = answer.quorum
    return {
        **label,
        "error": None,
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "max_lag": _max_lag(quorum),
        "voters": [_node_object(quorum, each) for each in quorum.voters],
        "observers": [_node_object(quorum, each) for each in quorum.observers],
    }


def _node_object(quorum: Quorum, replica: QuorumReplica) -> dict[str, Any]:
    return {
        "node": replica.id,
        "log_end_offset": replica.log_end_offset,
        "lag": quorum.lag(replica),
        "last_fetch_s": quorum.age(replica.last_fetch_ms),
        "caught_up_s": quorum.age(replica.last_caught_up_ms),
        "directory_id": _base64(replica.directory_id),
    }


def _base64(id: UUID | None) -> str | None:
    """Returns a UUID as Kafka writes it."""
    return None if id is None else urlsafe_b64encode(id.bytes).decode().rstrip("=")
